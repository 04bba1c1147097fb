"""Records turned into operations again: pins as they were, own writes over them, savepoints between.

What the old client had been given is taken for known: a number of rows must come out the same in a redo, and
a result of rows stands for everything that it could have read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NoReturn

from lakevilla.errors import Conflict, Corrupt, InvalidInput
from lakevilla.model import ReadSet, TableRef
from lakevilla.predicates import ANYTHING
from lakevilla.sql.parser import parse
from lakevilla.sublogs.reads import Reads
from lakevilla.sublogs.records import Anew, Ran, Record, RolledBack, Saved, Touched
from lakevilla.tables.pinned import Pinned
from lakevilla.transaction.instants.instant import NO_LAKE, PinnedInstant
from lakevilla.transaction.redo.operations import Operation, Operations
from lakevilla.transaction.statements.dispatch import named_by, run_statement
from lakevilla.transaction.statements.effect import Effect, TableChange, TableDrop
from lakevilla.transaction.statements.statement import Statement
from lakevilla.transaction.workspace import Workspace
from lakevilla.versions.instants import Instants
from lakevilla.versions.views import ViewChange, decode_view_change


def restore(workspace: Workspace, stored: Sequence[Record]) -> tuple[Operations, int]:
    """The operations of an attempt, with their changes laid over the pinned tables, and how many finished."""
    records, statements = current_records(stored)
    if workspace.instant is not None:
        _restore_instant(workspace, workspace.instant, records)
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


def current_records(records: Sequence[Record]) -> tuple[list[Record], int]:
    """The records that are not replaced by a later one, and how many statements finished altogether."""
    found: list[Record] = []
    statements = 0
    for record in records:
        if isinstance(record, Anew):
            found, statements = list(record.records), record.statements
        else:
            found.append(record)
            statements += isinstance(record, Ran) and not record.over
    return found, statements


def changes_something(records: Sequence[Record]) -> bool:
    """Whether a change is left when all of these have happened."""
    changes: list[bool] = []
    savepoints: dict[str, int] = {}
    for record in records:
        match record:
            case Saved(name):
                savepoints[name] = len(changes)
            case RolledBack(name):
                changes = changes[: savepoints.get(name, 0)]
            case Ran():
                changes.append((record.target is not None or record.view is not None) and not record.over)
    return any(changes)


def _restore_instant(workspace: Workspace, instant: PinnedInstant, records: Sequence[Record]) -> None:
    """Pin the instant that the transaction had pinned last: all that it touched has that instant's version.

    Without one no statement has come so far as to choose it.
    """
    ran = [record for record in records if isinstance(record, Ran)]
    seq = next((record.seq for record in reversed(ran) if record.seq is not None), None)
    if seq is None:
        return
    log = workspace.catalog.log(workspace.meter)
    try:
        head = NO_LAKE if log.read_head() is None else Instants(log).at_seq(seq)
    except InvalidInput as error:
        raise Conflict(
            f"transaction {workspace.txn} cannot be resumed: the instant that it reads has expired "
            f"({error}). Run it again"
        ) from error
    touched: dict[TableRef, int] = {t.table: t.version for one in ran for t in one.touched if t.version >= 0}
    instant.restore(head, touched)


def _operation(workspace: Workspace, ran: Ran) -> Operation:
    reads = Reads()
    workspace.stored_views.restore(ran.seen)
    for touched in ran.touched:
        if touched.version < 0 and not workspace.is_touched(touched.table.location):
            # A table of the transaction's own that was rolled back, or that this statement makes.
            continue
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
    if workspace.is_touched(ref.location):
        pinned = workspace.base(ref.location)
    else:
        table, now = catalog.open(ref, workspace.meter), workspace.environment.elapsed()
        try:
            snapshot = table.at_version(touched.version)
        except InvalidInput as error:
            raise Conflict(
                f"transaction {workspace.txn} cannot be resumed: version {touched.version} of {ref.name!r}, "
                f"which it builds on, cannot be read any more ({error}). Run it again",
                table=ref.name,
                version=touched.version,
            ) from error
        pinned = workspace.keep(ref.name, Pinned(ref, table, snapshot, now))
    if (pinned.ref, pinned.snapshot.version) != (ref, touched.version):
        raise Corrupt(
            f"the records of transaction {workspace.txn} contradict each other about {ref.name!r}",
            transaction=workspace.txn,
        )
    return pinned


def _pending(workspace: Workspace, ran: Ran, reads: Reads) -> TableChange | TableDrop | ViewChange | None:
    if ran.view is not None:
        return _view_change(workspace, ran.view)
    if ran.target is None:
        return None
    ref = next((t.table for t in ran.touched if t.table.location == ran.target), None)
    if ref is None:
        raise Corrupt(
            f"a record of transaction {workspace.txn} changes a table that it does not name",
            transaction=workspace.txn,
        )
    if ran.makes and ran.change is not None:
        table = workspace.catalog.open(ref, workspace.meter)
        made = table.decode_change(ran.change)
        new = Pinned(ref, table, table.describe(made), workspace.environment.elapsed())
        return TableChange(new, made, makes=True)
    base = workspace.base(ran.target)
    seen = replace(base, snapshot=workspace.view(ran.target))
    if ran.drops or ran.change is None:
        return TableDrop(seen)
    change = replace(base.table.decode_change(ran.change), read=reads.of(ran.target) or ReadSet())
    return TableChange(seen, change)


def _view_change(workspace: Workspace, record: Mapping[str, Any]) -> ViewChange:
    try:
        return decode_view_change(record)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise Corrupt(
            f"a record of transaction {workspace.txn} has a malformed view: {error!r}",
            transaction=workspace.txn,
        ) from error


def _statement(ran: Ran) -> Statement:
    if ran.rows or ran.over or ran.text is None:
        why = "its dead client has seen the result" if ran.rows else "its dead client did not run it as SQL"
        return Statement(_never, ran.text, ran.parameters, ran.once or why)
    parsed = parse(ran.text, ran.parameters)
    run = partial(run_statement, statement=parsed)
    return Statement(run, ran.text, ran.parameters, ran.once, tables=named_by(parsed))


def _never(workspace: Workspace) -> NoReturn:
    raise AssertionError(f"a statement of {workspace.txn} that cannot run again was run again")
