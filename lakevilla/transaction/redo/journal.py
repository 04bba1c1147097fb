"""Operations as records, from which a restarted client can resume.

What a record says is fixed when it is asked for, because a redo changes the operation later; only the
encoding of changes, which may be large, is left to the writer of the record.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from lakevilla.model import Counts, ReadSet
from lakevilla.sublogs.records import Anew, Ran, Record, Saved, Touched
from lakevilla.transaction.redo.operations import Operation, Operations
from lakevilla.transaction.statements.effect import TableChange, TableDrop
from lakevilla.transaction.workspace import Workspace
from lakevilla.versions.views import ViewChange, encode_view_change


def record_of(workspace: Workspace, operation: Operation) -> Callable[[], Ran]:
    """What makes the record of a statement that just ended."""
    reads, pending, result = operation.reads.all, operation.pending, operation.result
    target = None
    if isinstance(pending, TableChange | TableDrop):
        target = pending.pinned.ref.location
        reads.setdefault(target, ReadSet())
    if isinstance(pending, TableChange):
        reads[pending.pinned.ref.location] = reads[pending.pinned.ref.location].union(pending.change.read)
    # A table that the statement itself makes is not there yet for those after it.
    made = pending.pinned if isinstance(pending, TableChange) and pending.makes else None
    bases = {at: made if made is not None and at == target else workspace.base(at) for at in reads}
    instant, statement = workspace.instant, operation.statement
    # Another client has other views under the same names.
    outside = operation.reads.outside
    ran = Ran(
        touched=tuple(Touched(bases[at].ref, bases[at].snapshot.version, read) for at, read in reads.items()),
        text=None if outside else statement.text,
        parameters={name: _fixed(value) for name, value in statement.parameters.items()},
        once=statement.once or ("it read what its client alone can read" if outside else ""),
        counts=result if isinstance(result, Counts) else None,
        rows=result is not None and not isinstance(result, Counts),
        target=target,
        over=operation.over,
        makes=made is not None,
        drops=isinstance(pending, TableDrop),
        seq=instant.head.seq if instant is not None and instant.is_pinned else None,
        view=encode_view_change(pending) if isinstance(pending, ViewChange) else None,
        seen=workspace.stored_views.encoded(),
    )
    return partial(_with_change, ran, pending) if isinstance(pending, TableChange) else lambda: ran


def records_of(workspace: Workspace, operations: Operations, statements: int) -> Callable[[], Record]:
    """What makes the record of all that was done, in the place of the records before it."""
    made = [record_of(workspace, operation) for operation in operations]
    savepoints = operations.savepoints

    def anew() -> Anew:
        records: list[Ran | Saved] = []
        for number in range(len(made) + 1):
            records += [Saved(name) for place, name in savepoints if place == number]
            records += [record() for record in made[number : number + 1]]
        return Anew(tuple(records), statements)

    return anew


def _with_change(ran: Ran, pending: TableChange) -> Ran:
    pinned = pending.pinned
    return ran.changing(pinned.table.encode_change(pinned.snapshot, pending.change))


def _fixed(value: Any) -> Any:
    """A parameter that its client can change no more."""
    return tuple(_fixed(item) for item in value) if isinstance(value, list | tuple) else value
