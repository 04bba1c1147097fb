"""What a transaction showed its client, statement by statement.

A committed transaction stands at one place in the serial history of its table, and each of its statements saw
exactly the version before that place with the transaction's own changes over it: its own writes, nothing of
what it had rolled back, nothing that came later, nothing of anybody who failed. One that did not commit
saw, the same way, some version that was the newest while it ran.
"""

from collections.abc import Iterable, Mapping, Sequence

from sim.checkers.history import Operation
from sim.checkers.tables.effects import bag, rows_after, rows_after_steps, shown
from sim.checkers.tables.versions import Version, newest_during


def check_steps(
    versions: Sequence[Version], operations: Sequence[Operation], made: Mapping[int, int]
) -> list[str]:
    """Violations among the transactions of several statements; `made` is the version that each made."""
    several = [op for op in operations if op.action == "steps"]
    return [violation for op in several for violation in _check(op, versions, made.get(op.number))]


def _check(op: Operation, versions: Sequence[Version], made: int | None) -> Iterable[str]:
    if made is not None:
        wrong = _wrong_step(op, versions[made - 1])
        if wrong is not None:
            yield f"{_name(op)} is version {made}, and its step {wrong} did not see the version before"
        return
    first, last = newest_during(op, versions)
    fitting = [v for v in versions[first : last + 1] if _wrong_step(op, v) is None]
    if not fitting:
        yield f"{_name(op)} saw no version of those that were the newest while it ran, {first} to {last}"
    elif op.outcome == "ok" and all(bag(rows_after(op, v.rows)) != v.bag for v in fitting):
        yield f"{_name(op)} was acknowledged, made no version, and what it saw asked for one"


def _wrong_step(op: Operation, base: Version) -> int | None:
    """The first step that was not shown this version with the transaction's own changes."""
    for number, step in enumerate(op.steps):
        if step.shows and not shown(step, rows_after_steps(op.changes(number), base.rows)):
            return number
    return None


def _name(op: Operation) -> str:
    steps = ", ".join(f"{s.action} {s.key} {s.value}" for s in op.steps)
    return f"operation {op.number} ({op.client} on {op.table}: {steps})"
