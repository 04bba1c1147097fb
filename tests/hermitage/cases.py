"""One script in one order on the local engine, and all that R, CT and I promise about it."""

from contextlib import nullcontext
from functools import cache

from tests.hermitage.outcome import End, Outcome
from tests.hermitage.player import PATIENCE_SECONDS, play
from tests.hermitage.scripts.anomalies import ACROSS_TABLES
from tests.hermitage.scripts.notation import Layout, Read
from tests.hermitage.scripts.script import Script
from tests.hermitage.systems.ours import SNAPSHOT, WAYS, WITH_I, MemoryLakes, queueing
from tests.hermitage.verdict import complaint, complaint_across, complaint_snapshot

BY_NAME = {script.name: script for script in ACROSS_TABLES}
ACROSS = "across"
LAYOUTS = {
    "apart": Layout(apart=True),
    "together": Layout(apart=False),
    "together, vectors": Layout(apart=False, vectors=True),
    ACROSS: Layout(tables=("a", "b")),
    "apart, iceberg": Layout(apart=True, formats=("iceberg",)),
    "together, iceberg": Layout(apart=False, formats=("iceberg",)),
    "across, iceberg": Layout(tables=("a", "b"), formats=("iceberg",)),
    "across, mixed": Layout(tables=("a", "b"), formats=("delta", "iceberg")),
}
ONE_TABLE = tuple(name for name, layout in LAYOUTS.items() if not layout.several)
SEVERAL_TABLES = tuple(name for name, layout in LAYOUTS.items() if layout.several)

BY_HAND = ("R", "R,CT", "R,CT,I", "R,CT,I snapshot")
WITHOUT_RECOVERY = ("CT", "I")

SHORT_PATIENCE_SECONDS = 0.05
"""Where many steps wait for others, and are meant to."""

Case = tuple[str, str, str, str]
"""Script, order, way and layout, by name."""


def judge(case: Case, queued: bool = False, shared: bool = False) -> tuple[Case, str, list[End]]:
    """Play one case: what is wrong, if anything, and how its transactions ended."""
    name, order, way, layout = case
    script = BY_NAME[name]
    with queueing() if queued else nullcontext():
        place = _lakes(layout).place(WAYS[way], shared)
        outcome = play(place, script, order, SHORT_PATIENCE_SECONDS if queued else PATIENCE_SECONDS)
    if way in SNAPSHOT:
        found = complaint_snapshot(script, outcome)
    elif layout in SEVERAL_TABLES and way not in WITH_I:
        found = complaint_across(script, outcome, LAYOUTS[layout])
    else:
        found = complaint(script, outcome)
    if way not in WITHOUT_RECOVERY:
        found = found or find_broken_promise(script, outcome, again=way not in BY_HAND)
    told = f"{script.in_order(order)}\n{found}\n{outcome}" if found else ""
    return case, told, [ended.end for ended in outcome.transactions.values()]


def find_broken_promise(script: Script, outcome: Outcome, again: bool) -> str:
    """The transaction that R refused without need; empty if there is none.

    What a transaction read can be outdated when it commits a change: then it is refused, or run again. A
    transaction that only reads, or changes without reading, need not be refused.
    """
    for name, ended in outcome.transactions.items():
        reads = [isinstance(operation, Read) for operation in script.transactions[name]]
        if ended.end is End.REFUSED and (again or all(reads) or not any(reads)):
            return f"{name} was refused: {ended.why}"
    return ""


@cache
def _lakes(layout: str) -> MemoryLakes:
    """Made once in each process."""
    return MemoryLakes(LAYOUTS[layout])
