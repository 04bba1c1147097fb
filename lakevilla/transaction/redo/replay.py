"""Redo: bring the operations of a transaction onto newer versions of its tables (module 2).

Operations that are still valid keep their files. The others are undone and run again, in order, on the newer
versions. The client may have used the values that it was given: if such a value could have changed, the
operations after it cannot be redone without the client, and that is a Conflict.
"""

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from lakevilla.conflicts.files import Hit
from lakevilla.conflicts.replays import Shift, decide_redo, shift_between
from lakevilla.errors import Conflict, InvalidInput
from lakevilla.model import Change, Counts, Footprint
from lakevilla.transaction.redo.operations import Operation
from lakevilla.transaction.statements.effect import TableChange
from lakevilla.transaction.workspace import BeforeChange, Workspace

logger = logging.getLogger("lakevilla.transaction")

COMPARED_BYTES = 64 * 1024 * 1024
"""A result that was computed from more data than this is not computed again to see whether it changed."""

Foreign = Mapping[str, Sequence[Footprint]]
"""The commits of others since the version on which the operations ran, by the table's location."""


def conflict_of(
    workspace: Workspace, operations: Iterable[Operation], foreign: Foreign
) -> tuple[Operation, str, Hit] | None:
    """The first operation that is not valid any more, on which table, and why."""
    for operation in operations:
        for location, footprints in foreign.items():
            change = operation.change_and_reads(location)
            hit = None if change is None else _decide(workspace, location, change, footprints, ())
            if hit is not None:
                return operation, location, hit
    return None


def _decide(
    workspace: Workspace,
    location: str,
    change: Change,
    foreign: Iterable[Footprint],
    shifts: Iterable[Shift],
) -> Hit | None:
    pinned = workspace.base(location)
    known = workspace.rows.known(pinned.table, pinned.snapshot, change, foreign)
    return decide_redo(change, known, shifts)


class Replay:
    """One redo. The workspace must be at the newer versions already, without own writes."""

    def __init__(self, workspace: Workspace, foreign: Foreign, before_change: BeforeChange) -> None:
        self._workspace = workspace
        self._foreign = foreign
        self._before_change = before_change
        self._shifts: dict[str, list[Shift]] = {}
        self.redone = 0
        self.saved_bytes = 0

    def run(self, operations: Iterable[Operation]) -> None:
        """Redo what is not valid any more and keep the rest. Raises Conflict where a client's value
        changed."""
        for operation in operations:
            hit = self._hit(operation)
            if hit is None:
                self._keep(operation)
            else:
                self._redo(operation, *hit)

    def _hit(self, operation: Operation) -> tuple[str, Hit] | None:
        for location in {*self._foreign, *self._shifts}:
            change = operation.change_and_reads(location)
            if change is not None:
                foreign, shifts = self._foreign.get(location, ()), self._shifts.get(location, ())
                hit = _decide(self._workspace, location, change, foreign, shifts)
                if hit is not None:
                    return location, hit
        return None

    def _keep(self, operation: Operation) -> None:
        if isinstance(operation.pending, TableChange):
            change = operation.pending.change
            # A file that goes and comes again, with more of its rows deleted, was not uploaded.
            masked = {file.key for file in change.removed}
            self.saved_bytes += sum(file.size for file in change.added if file.key not in masked)
        operation.show(self._workspace, again=True)

    def _redo(self, operation: Operation, location: str, hit: Hit) -> None:
        workspace = self._workspace
        lasting = self._why_not(operation, hit)
        if lasting:
            raise self._conflict(operation, location, hit, lasting)
        logger.debug("redoing %s of %s: %s", operation.name, workspace.txn, hit.reason)
        before = self._footprints(operation.pending)
        statement, begun_at = operation.statement, workspace.environment.elapsed()
        try:
            with workspace.statement(self._before_change) as reads:
                workspace.pin_instant(statement.tables, statement.blind)
                effect = statement.run(workspace)
            changed = operation.seen and not _same(operation, effect.result)
        except InvalidInput as error:
            why = f"it fails on the newest version of the table: {error}"
            raise self._conflict(operation, location, hit, why) from error
        if changed:
            raise self._conflict(operation, location, hit, "a result that its client has seen has changed")
        operation.reads, operation.result, operation.pending = reads, effect.result, effect.pending
        operation.begun_at = begun_at
        after = self._footprints(operation.pending)
        for place in {*before, *after}:
            shift = shift_between(before.get(place), after.get(place))
            if shift is not None:
                self._shifts.setdefault(place, []).append(shift)
        operation.show(workspace)
        self.redone += 1

    def _why_not(self, operation: Operation, hit: Hit) -> str:
        """Why the operation cannot be redone; empty if it may be tried."""
        if hit.final:
            return "the table was dropped or replaced"
        if operation.seen and self._bytes_to_compare(operation) > COMPARED_BYTES:
            return "its client has seen a result that is too large to be compared"
        return operation.statement.once

    def _bytes_to_compare(self, operation: Operation) -> int:
        if isinstance(operation.result, Counts) or not self._workspace.engine.composes:
            return operation.reads.bytes
        touched = (self._workspace.base(location) for location in operation.reads.all)
        return sum(pinned.snapshot.about_bytes() for pinned in touched)

    def _footprints(self, pending: Any) -> dict[str, Footprint]:
        if not isinstance(pending, TableChange):
            return {}
        pinned, change = pending.pinned, pending.change
        return {pinned.ref.location: pinned.table.footprint(pinned.snapshot, change)}

    def _conflict(self, operation: Operation, location: str, hit: Hit, why: str) -> Conflict:
        name = self._workspace.base(location).ref.name
        return conflict(operation.name, name, hit, why, self._foreign.get(location, ()))


def conflict(operation: str, table: str, hit: Hit, why: str, foreign: Sequence[Footprint] = ()) -> Conflict:
    """The error for a transaction that cannot be redone; `foreign` are the commits of others since."""
    about = f" ({hit.file})" if hit.file else ""
    winner = hit.winner or (foreign[-1] if foreign else None)
    cause = "another commit" if winner is None else winner.summary
    return Conflict(
        f"{operation} on {table!r} conflicts with {cause}: {hit.reason}{about}. It cannot be redone "
        f"automatically, because {why}. Nothing was changed; run the transaction again, or use lake.run",
        table=table,
        operation=operation,
        file=hit.file,
        winner="" if winner is None else winner.summary,
        transaction=(winner.txn or "") if winner is not None else "",
    )


def _same(operation: Operation, after: Any) -> bool:
    """Whether a client that was given the operation's result would not notice the other."""
    before = operation.result
    if isinstance(before, Counts) or before is None:
        return bool(before == after)
    old, new = before.toArrow(), after.toArrow()
    if old.schema != new.schema or old.num_rows != new.num_rows:
        return False
    if operation.statement.ordered:
        return _rows(old) == _rows(new)
    return Counter(_rows(old)) == Counter(_rows(new))


def _rows(table: pa.Table) -> list[str]:
    """Rows that can be compared also where they hold NaN."""
    return [repr(row) for row in table.to_pylist()]
