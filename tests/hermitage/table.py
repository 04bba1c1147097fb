"""Print the paper's table of anomalies, for the plain format's clients and for LakeVilla: `make hermitage`.

A cell says what was seen in this run. "Occurs": the anomaly was seen in so many of the orders that were
played. "Prevented": in none of them, and a serial order explains every outcome. Quick systems play up to
`--orders` orders of each script. Slow ones play up to `--slow-orders`, each such that a system without
transactions shows the anomaly, and stop when it is seen.
"""

import argparse
import logging
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field

from tests.hermitage.judging import find_serial_order, find_unjust
from tests.hermitage.notation import Layout
from tests.hermitage.orders import sampled_orders, telling_orders
from tests.hermitage.outcome import End, Outcome
from tests.hermitage.playing import play
from tests.hermitage.script import Script
from tests.hermitage.scripts import SCRIPTS
from tests.hermitage.systems import System, quick_systems, spark_systems


@dataclass
class Cell:
    """What was seen of one script on one system."""

    orders: int = 0
    named: int = 0
    other: int = 0
    unjust: int = 0
    ends: Counter[End] = field(default_factory=Counter)

    def add(self, script: Script, outcome: Outcome) -> None:
        self.orders += 1
        self.ends.update(ended.end for ended in outcome.transactions.values())
        if find_serial_order(script, outcome) is None:
            seen = script.seen(outcome)
            self.named += seen
            self.other += not seen
        elif find_unjust(outcome):
            self.unjust += 1

    @property
    def prevented(self) -> bool:
        return not (self.named or self.other or self.unjust)

    def __str__(self) -> str:
        if self.prevented:
            return f"prevented ({self.orders})"
        if self.named:
            return f"**occurs** ({self.named} of {self.orders})"
        if self.other:
            return f"another anomaly ({self.other} of {self.orders})"
        return f"refused for nothing ({self.unjust} of {self.orders})"


def measure(system: System, script: Script, orders: Iterable[str]) -> Cell:
    """Play the script in these orders; on a slow system until the anomaly is seen."""
    cell = Cell()
    for order in orders:
        cell.add(script, play(system.place(), script, order, system.patience_seconds))
        if system.slow and cell.named:
            break
    return cell


def render(scripts: Sequence[Script], columns: dict[str, dict[str, Cell]]) -> str:
    """The table in Markdown, with what the systems refused below."""
    lines = ["| anomaly | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for script in scripts:
        cells = " | ".join(str(cells[script.name]) for cells in columns.values())
        lines.append(f"| {script.name}: {script.anomaly} | {cells} |")
    refused = " | ".join(_refused(cells.values()) for cells in columns.values())
    return "\n".join([*lines, f"| refused, of all that would commit | {refused} |"])


def _refused(cells: Iterable[Cell]) -> str:
    ends = sum((cell.ends for cell in cells), Counter[End]())
    return f"{ends[End.REFUSED]} of {ends[End.REFUSED] + ends[End.COMMITTED]}"


def main() -> int:
    options = _parse()
    # Conflicts are the point here; what LakeVilla logs about them is not.
    logging.disable(logging.CRITICAL)
    layout = Layout(apart=not options.together)
    with ExitStack() as stack:
        systems = stack.enter_context(quick_systems(layout))
        if not options.without_spark:
            systems = [*stack.enter_context(_on_spark(stack, layout)), *systems]
        columns = {system.name: _column(system, options) for system in systems}
    print(render(SCRIPTS, columns))
    wrong = [
        f"{system}: {script}"
        for system, cells in columns.items()
        for script, cell in cells.items()
        if system.startswith("LakeVilla R") and not cell.prevented
    ]
    for one in wrong:
        print(f"not prevented by {one}", file=sys.stderr)
    return 1 if wrong else 0


def _column(system: System, options: argparse.Namespace) -> dict[str, Cell]:
    cells = {}
    for script in SCRIPTS:
        if system.slow:
            orders = telling_orders(script, options.slow_orders)
        else:
            count = min(options.orders, script.count_orders())
            orders = [order for _, order in sampled_orders([script], count)]
        cells[script.name] = measure(system, script, orders)
        print(f"{system.name}: {script.name} {cells[script.name]}", file=sys.stderr, flush=True)
    return cells


def _on_spark(stack: ExitStack, layout: Layout) -> AbstractContextManager[list[System]]:
    from bench import sparks

    spark = sparks.start({"spark.log.level": "OFF"})
    stack.callback(spark.stop)
    return spark_systems(spark, sparks.with_delta(spark), layout)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.hermitage.table", description=__doc__)
    parser.add_argument("--without-spark", action="store_true", help="leave out what needs Java")
    parser.add_argument("--together", action="store_true", help="the first rows in one file")
    parser.add_argument("--orders", type=int, default=60)
    parser.add_argument("--slow-orders", type=int, default=3)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
