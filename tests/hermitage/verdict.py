"""Is an outcome right? By the values alone: some serial order has to explain it.

A serial order explains an outcome if the committed transactions, run one after the other in that order,
read what they did read and leave the rows that were left. Transactions that did not commit leave no trace.
A transaction that committed before another began comes before it. How a system got there is its own affair:
it may refuse a transaction, wait, or run it again.

Across tables, without the feature I, this is promised to those who write. A read-only transaction sees each
table as it was at one instant of that order, and different tables perhaps at different instants.
"""

from itertools import permutations

from tests.hermitage.outcome import End, Ended, Outcome
from tests.hermitage.scripts.notation import Layout, Operation, Read, Rows
from tests.hermitage.scripts.script import FIRST_ROWS, Script


def find_serial_order(script: Script, outcome: Outcome) -> tuple[str, ...] | None:
    """An order of the committed transactions that explains the outcome, or None."""
    committed = [name for name, ended in outcome.transactions.items() if ended.committed]
    for order in permutations(committed):
        ends = [outcome.transactions[name] for name in order]
        if _keeps_time(ends) and _explains(script, order, outcome):
            return order
    return None


def find_order_of_writers(script: Script, outcome: Outcome, layout: Layout) -> tuple[str, ...] | None:
    """An order of the committed transactions that write which explains them and the rows that were left,
    with those who only read at some instant of it on each table; or None."""
    committed = [name for name, ended in outcome.transactions.items() if ended.committed]
    readers = [name for name in committed if only_reads(script, name)]
    for order in permutations(name for name in committed if name not in readers):
        ends = [outcome.transactions[name] for name in order]
        if _keeps_time(ends) and _explains(script, order, outcome):
            instants = _instants(script, order)
            if all(_saw_instants(script, name, ends, instants, outcome, layout) for name in readers):
                return order
    return None


def find_snapshot_order(script: Script, outcome: Outcome) -> tuple[str, ...] | None:
    """An order of the committed transactions that explains the outcome with snapshot isolation, or None.

    Each reads one instant of that order and its own changes, not earlier than what it follows, and no
    transaction between that instant and its own place has changed a row that it changes.
    """
    committed = [name for name, ended in outcome.transactions.items() if ended.committed]
    for order in permutations(committed):
        ends = [outcome.transactions[name] for name in order]
        if _keeps_time(ends) and _explains_by_snapshots(script, order, outcome, [FIRST_ROWS], []):
            return order
    return None


def _explains_by_snapshots(
    script: Script, order: tuple[str, ...], outcome: Outcome, instants: list[Rows], changed: list[set[int]]
) -> bool:
    """Whether those of the order that are left have an instant each; `changed` are the rows of the others."""
    place = len(changed)
    if place == len(order):
        return instants[-1] == outcome.final
    ended = outcome.transactions[order[place]]
    first = max(
        (n for n, name in enumerate(order, 1) if outcome.transactions[name].ended < ended.began), default=0
    )
    for seen in range(first, place + 1):
        reads, rows = _run(script.transactions[order[place]], instants[seen])
        mine = {row_id for row_id, _ in set(rows) ^ set(instants[seen])}
        if reads != ended.reads or any(mine & theirs for theirs in changed[seen:]):
            continue
        kept = [row for row in instants[-1] if row[0] not in mine]
        after = tuple(sorted(kept + [row for row in rows if row[0] in mine]))
        if _explains_by_snapshots(script, order, outcome, [*instants, after], [*changed, mine]):
            return True
    return False


def only_reads(script: Script, name: str) -> bool:
    """Whether a transaction of the script has no step that writes."""
    return all(isinstance(operation, Read) for operation in script.transactions[name])


def find_unjust(outcome: Outcome) -> str:
    """The transaction that could not end, or was refused without a competitor; empty if there is none."""
    for name, ended in outcome.transactions.items():
        if ended.end is End.STUCK:
            return f"{name} is stuck"
        others = [other for other in outcome.transactions if other != name]
        if ended.end is End.REFUSED and not any(outcome.committed(other) for other in others):
            return f"{name} was refused, and no other transaction committed: {ended.why}"
    return ""


def complaint(script: Script, outcome: Outcome) -> str:
    """What is wrong with the outcome; empty if nothing is."""
    if find_serial_order(script, outcome) is None:
        what = script.anomaly if script.seen(outcome) else "an anomaly that is not the script's"
        return f"no serial order explains it: {what}"
    return find_unjust(outcome)


def complaint_snapshot(script: Script, outcome: Outcome) -> str:
    """The same with snapshot isolation, which lets two commit that each read what the other changes."""
    if find_snapshot_order(script, outcome) is None:
        return f"no order of snapshots explains it: {script.anomaly}"
    return find_unjust(outcome)


def complaint_across(script: Script, outcome: Outcome, layout: Layout) -> str:
    """The same where rows lie in several tables, and transactions that only read are without I."""
    strict = complaint(script, outcome)
    if strict and script.readers_differ and find_order_of_writers(script, outcome, layout) is not None:
        return find_unjust(outcome)
    return strict


def _instants(script: Script, order: tuple[str, ...]) -> list[Rows]:
    """The rows before the first, and after each transaction of a serial order."""
    instants = [FIRST_ROWS]
    for name in order:
        instants.append(_run(script.transactions[name], instants[-1])[1])
    return instants


def _saw_instants(
    script: Script, name: str, writers: list[Ended], instants: list[Rows], outcome: Outcome, layout: Layout
) -> bool:
    """Whether each table that a transaction read was at one instant, none before what it came after."""
    ended = outcome.transactions[name]
    first = max((place for place, one in enumerate(writers, 1) if one.ended < ended.began), default=0)
    last = min(
        (place for place, one in enumerate(writers) if one.began > ended.ended), default=len(instants) - 1
    )
    reads = list(zip(script.transactions[name], ended.reads, strict=True))
    return all(
        any(_saw(reads, table, instants[place], layout) for place in range(first, last + 1))
        for table in layout.tables
    )


def _saw(reads: list[tuple[Operation, Rows]], table: str, instant: Rows, layout: Layout) -> bool:
    """Whether all that was read of a table is as at this instant."""

    def of_table(rows: Rows) -> Rows:
        return tuple(row for row in rows if layout.table_of(row[0]) == table)

    return all(
        of_table(operation.on(instant)) == of_table(rows)
        for operation, rows in reads
        if table in layout.tables_of(operation)
    )


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
    """What the reads give and which rows there are then, without other transactions."""
    reads = []
    for operation in operations:
        if isinstance(operation, Read):
            reads.append(operation.on(rows))
        else:
            rows = operation.on(rows)
    return tuple(reads), rows
