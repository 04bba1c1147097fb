"""Going on with a transaction whose client is gone (module 2; docs/protocol.md, section 4).

The records of its newest attempt are turned into operations again: pins as they were, own writes over them,
savepoints between. Nothing of that decides a commit. Whoever else still works on the transaction publishes on
the same table, from the same version on, and reads every entry on the way: the first one that names the
transaction is its commit, and everybody else is fenced. That is why a transaction that has changed nothing
yet cannot be resumed, and why one that was resumed stays with its table.

What the old client had been given is taken for known: a number of rows must come out the same in a redo, and
a result of rows stands for everything that it could have read.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import NoReturn

from lakevilla.engines.port import Engine
from lakevilla.environment import Environment
from lakevilla.errors import Conflict, Corrupt, InvalidInput
from lakevilla.markers.lease import Leases
from lakevilla.markers.records import Lease
from lakevilla.model import Change, ReadSet
from lakevilla.predicates import ANYTHING
from lakevilla.sql.parsing import parse
from lakevilla.store import keys
from lakevilla.store.port import Store
from lakevilla.sublogs.net import net
from lakevilla.sublogs.reading import Left, has_sublogs, newest, read_sublogs
from lakevilla.sublogs.reads import Reads
from lakevilla.sublogs.records import Anew, Ran, Record, RolledBack, Saved, Touched
from lakevilla.transaction.begun import Begun, journal_of
from lakevilla.transaction.catalog import Catalog, Pinned
from lakevilla.transaction.chores import Chores
from lakevilla.transaction.committing import renew_premise
from lakevilla.transaction.effect import Effect, TableChange
from lakevilla.transaction.operations import Operation, Operations
from lakevilla.transaction.running import run_statement
from lakevilla.transaction.statement import Statement
from lakevilla.transaction.workspace import Workspace


def resume(
    catalog: Catalog, engine: Engine, environment: Environment, leases: Leases, chores: Chores, txn: str
) -> Begun | None:
    """What the transaction has left, to go on with; None if it has left nothing.

    From here on its lease names our attempt, so that a client which still works on it learns of that.
    """
    workspace = Workspace(catalog, engine, environment, txn)
    store = catalog.root(workspace.meter)
    lease = lease_of(store, txn)
    if not has_sublogs(store, txn):
        return None
    attempt = environment.new_id()
    leases.take_over(txn, attempt)
    try:
        # Only now: what the old client finished before it was fenced is part of it.
        left = read_sublogs(store, environment, txn)
        if not left:
            leases.release(txn)
            return None
        return _go_on(workspace, chores, attempt, left, None if lease is None else lease.attempt)
    except BaseException:
        leases.release(txn)
        raise


def lease_of(store: Store, txn: str) -> Lease | None:
    """The lease of a transaction, below the lake's root."""
    key = keys.lease(txn)
    found = store.get(key)
    return None if found is None else Lease.decode(found.data, f"{store.url}/{key}")


def _go_on(workspace: Workspace, chores: Chores, attempt: str, left: list[Left], named: str | None) -> Begun:
    last = newest(left, workspace.txn, named)
    workspace.now_ms = last.begun_ms
    operations, statements = _restore(workspace, last)
    if not operations.targets:
        raise InvalidInput(
            f"transaction {workspace.txn} has changed nothing that could be resumed: begin a new one"
        )
    target = operations.targets[0]
    _refuse_committed(workspace, target, left)
    _refuse_lost_files(operations, workspace.base(target.ref.location))
    new_journal = partial(journal_of, workspace, chores)
    journal = new_journal(attempt)
    journal.take_over(last.records, [key for found in left for key in found.keys])
    return Begun(workspace, operations, attempt, journal, new_journal, statements, target.ref.name)


def _restore(workspace: Workspace, left: Left) -> tuple[Operations, int]:
    """The operations of an attempt, with their changes laid over the pinned tables, and how many finished."""
    records, statements = _standing(left.records)
    operations = Operations()
    for record in records:
        match record:
            case Saved(name):
                operations.savepoint(name)
            case RolledBack(name):
                operations.roll_back_to(name)
                operations.show(workspace)
            case Ran():
                operation = _operation(workspace, record)
                operations.add(operation)
                operation.show(workspace)
    return operations, statements


def _standing(records: Sequence[Record]) -> tuple[list[Record], int]:
    """The records that are not replaced by a later one, and how many statements finished altogether."""
    standing: list[Record] = []
    statements = 0
    for record in records:
        if isinstance(record, Anew):
            standing, statements = list(record.records), record.statements
        else:
            standing.append(record)
            statements += isinstance(record, Ran) and not record.over
    return standing, statements


def _operation(workspace: Workspace, ran: Ran) -> Operation:
    reads = Reads()
    for touched in ran.touched:
        pinned = _pin(workspace, touched)
        read = touched.read
        if ran.rows:
            everything = frozenset(file.identity for file in pinned.snapshot.files(ANYTHING))
            read = read.union(ReadSet((ANYTHING,), everything))
        reads.add(pinned.ref.location, read)
    operation = Operation(_statement(ran), reads, Effect(ran.counts, _pending(workspace, ran, reads)))
    operation.seen = True
    return operation.undone() if ran.over else operation


def _pin(workspace: Workspace, touched: Touched) -> Pinned:
    """The table at the version at which the transaction pinned it."""
    ref, catalog = touched.table, workspace.catalog
    pinned = workspace.pinned(ref.name)
    if pinned is None:
        table, now = catalog.open(ref, workspace.meter), workspace.environment.elapsed()
        try:
            snapshot = table.at_version(touched.version)
        except InvalidInput as error:
            raise Conflict(
                f"version {touched.version} of {ref.name!r}, on which transaction {workspace.txn} stands, is "
                f"not there any more: run it again ({error})",
                table=ref.name,
            ) from error
        pinned = workspace.keep(ref.name, Pinned(ref, table, snapshot, now))
    if (pinned.ref, pinned.snapshot.version) != (ref, touched.version):
        raise Corrupt(f"the records of transaction {workspace.txn} contradict each other about {ref.name!r}")
    return pinned


def _pending(workspace: Workspace, ran: Ran, reads: Reads) -> TableChange | None:
    if ran.target is None or ran.change is None:
        return None
    touched = next((t.table for t in ran.touched if t.table.location == ran.target), None)
    if touched is None:
        raise Corrupt(f"a record of transaction {workspace.txn} changes a table that it does not name")
    base = workspace.base(ran.target)
    change = replace(base.table.decode_change(ran.change), read=reads.of(ran.target) or ReadSet())
    return TableChange(replace(base, snapshot=workspace.view(ran.target)), change)


def _statement(ran: Ran) -> Statement:
    if ran.rows or ran.over or ran.text is None:
        why = "its result was given to" if ran.rows else "it was not given as SQL by"
        return Statement(_never, ran.text, ran.parameters, ran.once or f"{why} a client that is gone")
    run = partial(run_statement, statement=parse(ran.text, ran.parameters))
    return Statement(run, ran.text, ran.parameters, ran.once)


def _never(workspace: Workspace) -> NoReturn:
    raise AssertionError(f"a statement of {workspace.txn} that cannot run again was run again")


def _refuse_committed(workspace: Workspace, target: Pinned, left: list[Left]) -> None:
    """Look at every version since the first that an attempt may have published on."""
    location = target.ref.location
    records = [record for found in left for record in found.records]
    records += [kept for record in records if isinstance(record, Anew) for kept in record.records]
    touched = [seen for record in records if isinstance(record, Ran) for seen in record.touched]
    oldest = min(seen.version for seen in touched if seen.table.location == location)
    base = workspace.base(location)
    first = base.snapshot if oldest == base.snapshot.version else base.table.at_version(oldest)
    for taken in base.table.since(first):
        if taken.footprint.txn == workspace.txn:
            raise InvalidInput(
                f"transaction {workspace.txn} is committed, as version {taken.footprint.version} of "
                f"{target.ref.name!r}: there is nothing to resume"
            )


def _refuse_lost_files(operations: Operations, base: Pinned) -> None:
    """Conflict if a file that was uploaded is gone, or log entries since the version that we stand on."""
    changes = [change for op in operations if (change := op.change_of(base.ref.location)) is not None]
    added = tuple(file for change in changes for file in change.added)
    whole = net(changes) or Change(changes[0].operation)
    renew_premise(TableChange(base, replace(whole, added=added)))
