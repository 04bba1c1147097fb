"""All judges together, on what one run left behind."""

from collections import Counter

from sim.actors import one_table
from sim.checkers.history import History, Operation
from sim.checkers.isolation.cycles import Append, Read, Txn, find_anomalies
from sim.checkers.isolation.serial import find_serial_order
from sim.checkers.lake.published import check_published
from sim.checkers.lake.registry import check_registry, read_registry
from sim.checkers.tables.markers import check_markers
from sim.checkers.tables.replay import check_replay, makers
from sim.checkers.tables.versions import table_versions
from sim.world.bucket import Bucket
from sim.world.lakes import LEASE_SECONDS

SMALL = 8
"""So many transactions are a small history: all their orders can be tried."""


def judge(bucket: Bucket, history: History) -> list[str]:
    """All violations that the judges find."""
    violations = check_published(bucket.writes) + check_markers(bucket.writes, LEASE_SECONDS)
    for table, rows in ((name, one_table.FIRST_ROWS.get(name)) for name in one_table.SCHEMAS):
        versions = table_versions(bucket.writes, table)
        made = Operation(-1, "maker", table, "append", None, rows, 0.0, 0.0, "ok")
        first = [made] if rows and versions else []
        violations.extend(check_replay(versions, first + history.of(table)))
    violations.extend(check_registry(read_registry(bucket.writes), history.of("")))
    violations.extend(
        f"operation {op.number} is a blind append and got a {op.error}"
        for op in history.operations
        if op.failure == "Conflict" and _is_blind(op)
    )
    lists = lists_of(history, makers(table_versions(bucket.writes, "lists"), history.of("lists")))
    violations.extend(f"{a.kind}: {a.detail}" for a in find_anomalies(lists))
    if len(lists) <= SMALL and find_serial_order(lists) is None:
        violations.append(f"no serial order explains {lists}")
    return violations


def _is_blind(op: Operation) -> bool:
    """Whether it only appends and was shown nothing."""
    if op.action == "steps":
        return bool(op.steps) and all(step.action == "append" for step in op.steps)
    return op.action == "append" and op.table == "blind"


def lists_of(history: History, made: set[int]) -> list[Txn]:
    """The operations on the table of lists, as the cycle checker wants them; `made` are those in its log.

    If several clients resumed one transaction, only one can have written what they have in common.
    """
    txns = []
    operations = history.of("lists")
    began = Counter(op.txn for op in operations)
    for op in operations:
        if op.action == "list-append":
            steps: tuple[Append | Read, ...] = (Append(str(op.key), op.value),)
        elif op.action == "steps":
            steps = _steps(op)
            if began[op.txn] > 1 and op.number not in made:
                steps = tuple(step for step in steps if isinstance(step, Read))
        elif op.outcome == "ok" and op.action == "read":
            steps = _reads(op.result)
        else:
            continue
        txns.append(Txn(op.number, steps, op.outcome, op.looks_from, op.completed))
    return txns


def _steps(op: Operation) -> tuple[Append | Read, ...]:
    """Appends and reads in their order; neither what was rolled back nor what was read of that."""
    steps: list[Append | Read] = []
    for number, step in enumerate(op.steps):
        if step.action == "list-append" and step.undone_at is None:
            steps.append(Append(str(step.key), step.value))
        elif step.action == "read" and all(change.undone_at is None for change in op.changes(number)):
            steps.extend(_reads(step.value))
    if op.outcome == "ok":
        return tuple(steps)
    # Its own values are in nobody's order, or perhaps are: what it read before them is what counts.
    appends = [step for step in steps if isinstance(step, Append)]
    own = {step.value for step in appends}
    reads = (step for step in steps if isinstance(step, Read))
    return (*(Read(r.key, tuple(value for value in r.values if value not in own)) for r in reads), *appends)


def _reads(rows: list[dict[str, object]]) -> tuple[Read, ...]:
    return tuple(Read(str(row["k"]), _items(str(row["items"]))) for row in rows)


def _items(text: str) -> tuple[int, ...]:
    return tuple(int(item) for item in text.split(",") if item)
