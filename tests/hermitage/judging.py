"""Is an outcome right? By the values alone: some serial order has to explain it.

A serial order explains an outcome if the committed transactions, run one after the other in that order,
read what they did read and leave the rows that were left. Transactions that did not commit leave no trace.
A transaction that committed before another began comes before it. How a system got there is its own affair:
it may refuse a transaction, wait, or run it again.
"""

from itertools import permutations

from tests.hermitage.notation import Operation, Read, Rows
from tests.hermitage.outcome import End, Ended, Outcome
from tests.hermitage.script import FIRST_ROWS, Script


def find_serial_order(script: Script, outcome: Outcome) -> tuple[str, ...] | None:
    """An order of the committed transactions that explains the outcome, or None."""
    committed = [name for name, ended in outcome.transactions.items() if ended.committed]
    for order in permutations(committed):
        ends = [outcome.transactions[name] for name in order]
        if _keeps_time(ends) and _explains(script, order, outcome):
            return order
    return None


def find_unjust(outcome: Outcome) -> str:
    """Who could not end, or was refused with nobody to give way to; empty if nobody."""
    for name, ended in outcome.transactions.items():
        if ended.end is End.STUCK:
            return f"{name} is stuck"
        others = [other for other in outcome.transactions if other != name]
        if ended.end is End.REFUSED and not any(outcome.committed(other) for other in others):
            return f"{name} was refused, and nobody else committed: {ended.why}"
    return ""


def complaint(script: Script, outcome: Outcome) -> str:
    """What is wrong with the outcome; empty if nothing is."""
    if find_serial_order(script, outcome) is None:
        what = script.anomaly if script.seen(outcome) else "an anomaly that is not the script's"
        return f"no serial order explains it: {what}"
    return find_unjust(outcome)


def _keeps_time(ends: list[Ended]) -> bool:
    return not any(
        later.ended < earlier.began for place, earlier in enumerate(ends) for later in ends[place + 1 :]
    )


def _explains(script: Script, order: tuple[str, ...], outcome: Outcome) -> bool:
    rows = FIRST_ROWS
    for name in order:
        reads, rows = _run(script.transactions[name], rows)
        if reads != outcome.transactions[name].reads:
            return False
    return rows == outcome.final


def _run(operations: tuple[Operation, ...], rows: Rows) -> tuple[tuple[Rows, ...], Rows]:
    """What the reads give and which rows there are then, with nobody else about."""
    reads = []
    for operation in operations:
        if isinstance(operation, Read):
            reads.append(operation.on(rows))
        else:
            rows = operation.on(rows)
    return tuple(reads), rows
