"""Known bugs of recovery (markers, leases, redo, savepoints), to be planted one by one, as in
`planted.commits`."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from lakevilla.conflicts.files import Hit, decide_conflict
from lakevilla.conflicts.rows import RowFacts
from lakevilla.environment import Environment
from lakevilla.formats.delta.snapshot import DeltaSnapshot
from lakevilla.formats.delta.table import DeltaTable
from lakevilla.formats.port import Taken
from lakevilla.markers.lease import Leases
from lakevilla.markers.marker_objects import ReadMarker
from lakevilla.markers.records import Lease, Marker
from lakevilla.markers.side import SideQueue
from lakevilla.markers.staleness import Observer
from lakevilla.model import Change, Footprint, ReadSet
from lakevilla.store import keys
from lakevilla.store.port import Created, Exists, Store
from lakevilla.sublogs.journal import Journal
from lakevilla.sublogs.reads import Reads
from lakevilla.transaction.commit.queued_commit import QueuedCommit
from lakevilla.transaction.redo import replay
from lakevilla.transaction.redo.operations import Operation, Operations
from lakevilla.transaction.redo.redo import Redo
from lakevilla.transaction.statements.effect import Effect
from lakevilla.transaction.workspace import Workspace
from sim.planted.commits import Plant, planter

BUGS: dict[str, Plant] = {}
"""Every bug by its name."""


_bug = planter(BUGS)


_SIDE = "lakevilla.markers.side"
_LEASES = "lakevilla.markers.lease.Leases"
_QUEUED = "lakevilla.transaction.commit.queued_commit"
_REDO = "lakevilla.transaction.redo.redo"
_REPLAYING = "lakevilla.transaction.redo.replay"
_OPERATIONS = "lakevilla.transaction.redo.operations"
_WORKSPACE = "lakevilla.transaction.workspace.Workspace"

_create_marker = SideQueue._create
_is_stale = Leases.is_stale
_since = DeltaTable.since
_note = Reads.note
_conflict_of = replay.conflict_of


# Tickets and leases.


@_bug(f"{_SIDE}.write_tombstone")
def freed_ticket_is_deleted(store: Store, environment: Environment, read: ReadMarker) -> bool:  # noqa: ARG001
    """A late copy of a deleted ticket would come back to life."""
    store.delete(keys.marker(read.ticket))
    return True


@_bug(f"{_SIDE}.SideQueue._create")
def freed_ticket_is_used_again(self: SideQueue, ticket: int, mine: Marker) -> Created | Exists:
    for number in range(max(ticket - 2, 1), ticket):
        found = self._store.get(keys.marker(number))
        if found is not None and not Marker.decode(found.data, "").live:
            self._store.replace(keys.marker(number), mine.encode(), found.etag)
    return _create_marker(self, ticket, mine)


@_bug("lakevilla.markers.staleness.Observer.is_stale")
def lease_by_wall_clock(self: Observer, txn: str, sign: str) -> bool:  # noqa: ARG001
    """Compares what the owner's clock wrote with the observer's own."""
    found = self._store.get(keys.lease(txn))
    written = int(txn[:12], 16) if found is None else Lease.decode(found.data, "").written_ms
    return self._environment.now_ms() - written > self._seconds * 1000


@_bug(f"{_LEASES}.is_stale")
def waiting_ignores_a_dead_owner(self: Leases, txn: str, sign: str) -> bool:  # noqa: ARG001
    return False


@_bug(f"{_LEASES}.is_stale")
def stranger_deletes_data_files(self: Leases, txn: str, sign: str) -> bool:
    """A client that releases a ticket cleans up after its owner, which was only suspended."""
    stale = _is_stale(self, txn, sign)
    if stale:
        for meta in list(self._store.list("")):
            if f"part-{txn}-" in meta.key:
                self._store.delete(meta.key)
    return stale


# Catching up with others' commits.


@_bug(f"{_REDO}.conflict_of")
def published_without_conflict_check(*_: Any) -> None:
    """What was lost to is rebased past, whatever it did."""


@_bug(f"{_REDO}.conflict_of")
def only_the_first_operation_is_checked(
    workspace: Workspace, operations: Iterable[Operation], foreign: Any
) -> Any:
    return _conflict_of(workspace, list(operations)[:1], foreign)


@_bug("lakevilla.conflicts.replays.decide_conflict")
def replay_forgets_what_was_read(change: Change, theirs: Footprint, *facts: RowFacts) -> Hit | None:
    return decide_conflict(replace(change, read=ReadSet()), theirs, *facts)


@_bug("lakevilla.formats.delta.table.DeltaTable.since")
def versions_between_are_skipped(self: DeltaTable, base: DeltaSnapshot) -> Sequence[Taken]:
    """A client that waited asks only the newest commit."""
    return _since(self, base)[-1:]


@_bug(f"{_QUEUED}.QueuedCommit._let_pass")
def first_in_the_queue_needs_no_check(self: QueuedCommit, location: str, losses: int) -> None:  # noqa: ARG001
    """The transaction whose turn it is moves to the newest version, without a check of the commits since."""
    pinned = self._workspace.base(location)
    self._queues.probe(pinned)
    if self._queues.ticket(pinned.ref) is not None:
        between = self._queues.wait(pinned)
        if between:
            self._workspace.move(location, between[-1].snapshot)


# Redo.


@_bug(f"{_REPLAYING}._same")
def redo_keeps_a_stale_read(before: Any, after: Any) -> bool:  # noqa: ARG001
    """What the client was given is not compared with what it would be given now."""
    return True


@_bug(f"{_REPLAYING}.Replay._hit")
def redo_keeps_files_that_do_not_stand(self: Any, operation: Operation) -> None:
    """Every operation is taken for one that stands."""


@_bug(f"{_REPLAYING}.shift_between")
def redo_forgets_what_it_changed_itself(*_: Any) -> None:
    """Operations after a redone one are judged as if it had done what it did before."""


@_bug(f"{_OPERATIONS}.Operation._look")
def look_at_counts_is_not_noted(self: Operation) -> Any:
    return self.result


@_bug("lakevilla.sublogs.reads.Reads.note")
def reads_of_queries_are_not_noted(self: Reads, *args: Any) -> None:
    *_, keeps_files = args
    if not keeps_files:
        _note(self, *args)


# The transaction's own view.


@_bug(f"{_WORKSPACE}.write")
def own_writes_are_not_seen(self: Workspace, *_: Any, again: bool = False) -> None:
    pass


@_bug(f"{_WORKSPACE}.forget")
def rewind_keeps_old_pins(self: Workspace) -> None:
    pass


@_bug(f"{_OPERATIONS}.Operations.roll_back_to")
def rollback_keeps_the_change(self: Operations, name: str) -> None:
    pass


@_bug(f"{_OPERATIONS}.Operation.undone")
def rollback_forgets_what_was_shown(self: Operation) -> Operation:
    """What the client learned before the rollback is not validated any more."""
    left = Operation(self.statement, Reads(), Effect(None))
    left.seen = False
    return left


# Going on with what another client began.


@_bug(f"{_REDO}.Redo._refuse_fenced")
def resume_without_fence(self: Redo, *_: Any) -> None:
    """Entries on the way that name the transaction are taken for anybody's."""


@_bug("lakevilla.sublogs.journal.Journal._new_key")
def sublogs_without_attempt(self: Journal) -> str:
    """All attempts write to the same keys."""
    self._keys.append(keys.sublog(self._txn, self._txn, len(self._keys)))
    return self._keys[-1]
