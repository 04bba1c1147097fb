"""Print the paper's table of anomalies, for the plain format's clients and for LakeVilla: `make hermitage`.

First with all rows in one table, then with the rows in two tables (-MT). A cell says what was seen in this
run. "Occurs": the anomaly was seen in so many of the orders that were played. "Prevented": in none of them,
and a serial order explains every outcome. "Readers": a serial order explains all who write, and some who only
read saw two tables at different instants, which needs the feature I. "Write skew": each read what the other
changed, which snapshot isolation allows and nothing else. Quick systems play up to `--orders`
orders of each script. Slow ones play up to `--slow-orders`, each such that a system without transactions
shows the anomaly, and stop when it is seen.
"""

import argparse
import logging
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from tests.hermitage.cases import ACROSS, LAYOUTS
from tests.hermitage.outcome import End, Outcome
from tests.hermitage.player import play
from tests.hermitage.scripts.anomalies import ACROSS_TABLES, SCRIPTS
from tests.hermitage.scripts.notation import Layout
from tests.hermitage.scripts.orders import sampled_orders, telling_orders
from tests.hermitage.scripts.script import Script
from tests.hermitage.systems.columns import System, quick_systems, spark_systems
from tests.hermitage.verdict import (
    find_order_of_writers,
    find_serial_order,
    find_snapshot_order,
    find_unjust,
)


@dataclass
class Cell:
    """What was seen of one script on one system."""

    orders: int = 0
    named: int = 0
    other: int = 0
    unjust: int = 0
    readers: int = 0
    skew: int = 0
    ends: Counter[End] = field(default_factory=Counter)

    def add(self, script: Script, outcome: Outcome, layout: Layout, snapshots: bool = False) -> None:
        """Judge an outcome; `snapshots` if the system promises snapshot isolation."""
        self.orders += 1
        self.ends.update(ended.end for ended in outcome.transactions.values())
        if find_serial_order(script, outcome) is not None:
            self.unjust += bool(find_unjust(outcome))
        elif snapshots and find_snapshot_order(script, outcome) is not None:
            self.skew += 1
        elif not snapshots and layout.several and find_order_of_writers(script, outcome, layout) is not None:
            self.readers += 1
        else:
            seen = script.seen(outcome)
            self.named += seen
            self.other += not seen

    @property
    def prevented(self) -> bool:
        return not (self.named or self.other or self.unjust or self.readers or self.skew)

    def promised(self, script: Script, isolated: bool = False) -> bool:
        """Whether this is what recovery promises, on one table or, with CT, on several, or isolation."""
        differ = script.readers_differ and not isolated
        return not (self.named or self.other or self.unjust) and (differ or not self.readers)

    def __str__(self) -> str:
        if self.prevented:
            return f"prevented ({self.orders})"
        if self.named:
            return f"**occurs** ({self.named} of {self.orders})"
        if self.other:
            return f"another anomaly ({self.other} of {self.orders})"
        if self.unjust:
            return f"refused for nothing ({self.unjust} of {self.orders})"
        if self.skew:
            return f"write skew ({self.skew} of {self.orders})"
        return f"readers ({self.readers} of {self.orders})"


def measure(system: System, script: Script, orders: Iterable[str], layout: Layout | None = None) -> Cell:
    """Play the script in these orders, on tables of this layout (else one); on a slow system until the
    anomaly is seen."""
    cell, layout = Cell(), layout or Layout()
    for order in orders:
        outcome = play(system.place(), script, order, system.patience_seconds)
        cell.add(script, outcome, layout, "snapshot" in system.name)
        if system.slow and cell.named:
            break
    return cell


def render(scripts: Sequence[Script], columns: dict[str, dict[str, Cell]], suffix: str = "") -> str:
    """The table in Markdown, with what the systems refused below. Names of scripts get the suffix."""
    lines = ["| anomaly | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for script in scripts:
        cells = " | ".join(str(cells[script.name]) for cells in columns.values())
        lines.append(f"| {script.name}{suffix}: {script.anomaly} | {cells} |")
    refused = " | ".join(_refused(cells.values()) for cells in columns.values())
    return "\n".join([*lines, f"| refused, of all that would commit | {refused} |"])


def narrow(columns: dict[str, dict[str, Cell]]) -> list[dict[str, dict[str, Cell]]]:
    """The columns as tables that fit a page: for each engine one of transactions in `with` blocks, and one
    of those by `lake.run`."""
    tables: dict[tuple[bool, bool], dict[str, dict[str, Cell]]] = {}
    for name, cells in columns.items():
        tables.setdefault(("Spark" in name, "lake.run" in name), {})[name] = cells
    return list(tables.values())


def _refused(cells: Iterable[Cell]) -> str:
    ends = sum((cell.ends for cell in cells), Counter[End]())
    return f"{ends[End.REFUSED]} of {ends[End.REFUSED] + ends[End.COMMITTED]}"


def main() -> int:
    options = _parse()
    # Conflicts are the point here; what LakeVilla logs about them is not.
    logging.disable(logging.CRITICAL)
    one = LAYOUTS["together" if options.together else "apart"]
    wrong: list[str] = []
    with ExitStack() as stack:
        sparks = None if options.without_spark else _on_spark(stack)
        for layout, scripts, suffix in ((one, SCRIPTS, ""), (LAYOUTS[ACROSS], ACROSS_TABLES, "-MT")):
            columns = _columns(layout, scripts, sparks, options)
            for part in narrow(columns):
                print(render(scripts, part, suffix), end="\n\n", flush=True)
            wrong += _broken(scripts, columns, suffix)
    for broken in wrong:
        print(f"not prevented by {broken}", file=sys.stderr)
    return 1 if wrong else 0


def _columns(
    layout: Layout, scripts: Sequence[Script], sparks: tuple[Any, Any] | None, options: argparse.Namespace
) -> dict[str, dict[str, Cell]]:
    with ExitStack() as stack:
        systems = stack.enter_context(quick_systems(layout))
        if sparks:
            systems = [*stack.enter_context(spark_systems(*sparks, layout)), *systems]
        return {system.name: _column(system, layout, scripts, options) for system in systems}


def _broken(scripts: Sequence[Script], columns: dict[str, dict[str, Cell]], suffix: str) -> list[str]:
    """Where LakeVilla with recovery, or isolation, did not do what it promises."""
    return [
        f"{system}: {script.name}{suffix}"
        for system, cells in columns.items()
        for script in scripts
        if system.startswith("LakeVilla R") and not cells[script.name].promised(script, ",I" in system)
    ]


def _column(
    system: System, layout: Layout, scripts: Sequence[Script], options: argparse.Namespace
) -> dict[str, Cell]:
    cells = {}
    for script in scripts:
        if system.slow:
            orders = telling_orders(script, options.slow_orders)
        else:
            count = min(options.orders, script.count_orders())
            orders = [order for _, order in sampled_orders([script], count)]
        cells[script.name] = measure(system, script, orders, layout)
        print(f"{system.name}: {script.name} {cells[script.name]}", file=sys.stderr, flush=True)
    return cells


def _on_spark(stack: ExitStack) -> tuple[Any, Any]:
    """A plain session, and one of Spark + Delta, in one Spark."""
    from bench.spark import sessions

    spark = sessions.start({"spark.log.level": "OFF"})
    stack.callback(spark.stop)
    return spark, sessions.with_delta(spark)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.hermitage.table", description=__doc__)
    parser.add_argument("--without-spark", action="store_true", help="leave out what needs Java")
    parser.add_argument("--together", action="store_true", help="the first rows in one file")
    parser.add_argument("--orders", type=int, default=60)
    parser.add_argument("--slow-orders", type=int, default=3)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
