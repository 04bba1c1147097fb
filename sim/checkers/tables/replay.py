"""A table's log replayed as a serial history: each version is the effect of one operation on the one before.

This is the strongest check of single-table commits. It follows that acknowledged operations are present
exactly once, failed ones are absent, no update is lost, and no statement was published on a state that it
had not seen. Operations that ended before others began have smaller versions, and a read gives a version
that was the newest at some moment while it ran. What was shown within transactions is judged by `steps`.
"""

from collections.abc import Iterable, Sequence

from sim.checkers.history import Operation
from sim.checkers.steps import check_steps
from sim.checkers.tables.effects import bag, rows_after
from sim.checkers.tables.versions import Version, newest_during


def makers(versions: Sequence[Version], operations: Sequence[Operation]) -> set[int]:
    """The numbers of the operations that made the versions of a table."""
    return set(_owners(versions, [op for op in operations if op.action != "read"])[0].values())


def check_replay(versions: Sequence[Version], operations: Sequence[Operation]) -> list[str]:
    """Violations of the history of one table, whose first version is the empty table."""
    changes = [op for op in operations if op.action != "read"]
    owners, violations = _owners(versions, changes)
    for op in changes:
        if op.outcome == "ok" and op.number not in owners.values() and _changes_something(op, versions):
            violations.append(f"{_name(op)} was acknowledged and is in no version")
    violations.extend(_out_of_order(owners, changes))
    violations.extend(_published_twice(versions))
    violations.extend(v for op in operations if op.action == "read" for v in _bad_read(op, versions))
    violations.extend(check_steps(versions, operations, {op: version for version, op in owners.items()}))
    return violations


def _owners(versions: Sequence[Version], changes: Sequence[Operation]) -> tuple[dict[int, int], list[str]]:
    """Which operation made which version."""
    owners: dict[int, int] = {}
    violations: list[str] = []
    told = {op.version: op for op in changes if op.outcome == "ok" and op.version is not None}
    used: set[int] = set()
    for number in range(1, len(versions)):
        before, after = versions[number - 1], versions[number].bag
        if not before.is_made:
            continue
        op = told.get(number)
        if op is not None and bag(rows_after(op, before.rows)) != after:
            violations.append(f"version {number} is told to be {_name(op)}, and is not its effect")
        if op is None and versions[number].txn is None and before.bag == after:
            # A property that another client set, perhaps by a request that came twice.
            continue
        if op is None:
            fitting = [
                o for o in changes if o.number not in used and bag(rows_after(o, before.rows)) == after
            ]
            # An operation that promised to be absent is blamed only if no other explains the version.
            named = versions[number].txn
            fitting.sort(key=lambda o: (o.txn != named, ("unknown", "ok", "failed").index(o.outcome)))
            op = fitting[0] if fitting else None
            if op is None:
                violations.append(f"version {number} is the effect of no operation on version {number - 1}")
                continue
            if op.outcome == "failed":
                violations.append(f"{_name(op)} failed ({op.error}) and is version {number}")
            elif op.outcome == "ok" and op.version is not None:
                violations.append(f"{_name(op)} is version {number}, its receipt says {op.version}")
        if versions[number].at < op.invoked:
            violations.append(f"{_name(op)} is version {number}, which is older than the operation")
        used.add(op.number)
        owners[number] = op.number
    return owners, violations


def _changes_something(op: Operation, versions: Sequence[Version]) -> bool:
    """False for a statement that found no row while it ran: nothing needs to be published."""
    first, last = newest_during(op, versions)
    return all(bag(rows_after(op, v.rows)) != v.bag for v in versions[first : last + 1])


def _out_of_order(owners: dict[int, int], changes: Sequence[Operation]) -> Iterable[str]:
    by_number = {op.number: op for op in changes}
    published = [(version, by_number[number]) for version, number in sorted(owners.items())]
    for position, (version, op) in enumerate(published):
        for later, other in published[position + 1 :]:
            if other.outcome == "ok" and other.completed < op.invoked:
                yield f"{_name(op)} is version {version} and began after version {later} was acknowledged"


def _published_twice(versions: Sequence[Version]) -> Iterable[str]:
    """A transaction is published once, even if a request is repeated or a second client works on it."""
    first: dict[str, int] = {}
    for number, version in enumerate(versions):
        if version.txn is not None and first.setdefault(version.txn, number) != number:
            yield f"versions {first[version.txn]} and {number} are of one transaction, {version.txn}"


def _bad_read(op: Operation, versions: Sequence[Version]) -> Iterable[str]:
    if op.outcome != "ok":
        return
    first, last = newest_during(op, versions)
    seen = bag(op.result)
    if not any(seen == versions[number].bag for number in range(first, last + 1)):
        old = [number for number in range(first) if versions[number].bag == seen]
        what = f"the stale version {old[-1]}" if old else "no version of the table"
        yield f"{_name(op)} saw {what}; while it ran the versions {first} to {last} were the newest"


def _name(op: Operation) -> str:
    if op.action == "steps":
        steps = ", ".join(f"{step.action} {step.key} {step.value}" for step in op.changes())
        return f"operation {op.number} ({op.client}: {steps} on {op.table})"
    return f"operation {op.number} ({op.client}: {op.action} {op.key} {op.value} on {op.table})"
