"""The commit of a transaction with recovery, on one table: publish, rebase, or wait for our turn and redo.

Create the next version. If another client holds it, ask whether their commit concerns any of our operations.
If not, rebase: nothing is redone. If so, take a place in the table's queue of writers, wait until it is the
first, redo what does not stand any more on the newest version, and try again. Every version on the way is
looked at: one that names our own transaction was written by the client that resumed it, and we are fenced.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

from lakevilla.errors import Conflict, Fenced
from lakevilla.formats.port import Displaced, Published, Snapshot, Taken
from lakevilla.model import Author, Change, Footprint, ReadSet
from lakevilla.settle.commits import INVERSE
from lakevilla.tables.pinned import Pinned
from lakevilla.transaction.commit.optimistic_commit import (
    BACK_OFF_AFTER,
    LOSSES_ALLOWED,
    back_off,
    settle_base,
)
from lakevilla.transaction.commit.premises import Premises
from lakevilla.transaction.commit.writer_queues import WriterQueues
from lakevilla.transaction.redo.operations import Operations
from lakevilla.transaction.redo.replay import Replay, conflict, conflict_of
from lakevilla.transaction.statements.effect import TableChange
from lakevilla.transaction.workspace import Workspace

logger = logging.getLogger("lakevilla.transaction")


class QueuedCommit:
    """How one transaction gets past the commits of others. It counts what was redone and what that saved.

    `attempt` is the one that runs: each time that `lake.run` starts from the beginning it is another.
    """

    def __init__(
        self, workspace: Workspace, operations: Operations, queues: WriterQueues, attempt: str
    ) -> None:
        self._attempts: set[str] = set()
        self._workspace = workspace
        self._operations = operations
        self._queues = queues
        self.premises = Premises(workspace, operations, queues)
        self.redone = 0
        self.saved_bytes = 0
        self.moves = 0
        """How often we came to stand on a newer version."""
        self.halfway = False
        """Whether that failed: what we have done is half redone, and nothing may build on it."""
        self.begin(attempt)

    def commit(self, location: str) -> Snapshot | None:
        """Publish what the operations do to the table; None if nothing is left to publish.

        Raises Conflict if something that the client was given has changed; our place in the queue is kept.
        """
        with self._queues.at_work():
            return self._publish(location)

    def _publish(self, location: str) -> Snapshot | None:
        workspace, environment = self._workspace, self._workspace.environment
        for losses in range(LOSSES_ALLOWED):
            change = self.change(location)
            if change is None:
                return None
            if not change.blind or workspace.base(location).snapshot.markers_in_log:
                self._let_pass(location, losses)
                change = self.change(location)
                if change is None:
                    return None
            workspace.uploads.finish()
            pinned = workspace.base(location)
            pending = TableChange(pinned, change)
            settle_base(workspace.catalog, pinned, workspace.meter)
            self.premises.renew([pending])
            author = Author(
                workspace.txn, self.attempt, environment.new_id(), self._queues.ticket(pinned.ref)
            )
            match self._queues.publish(pinned, change, author):
                case Published() as published:
                    return self.premises.confirm(pending, published, author)
                case Displaced(reason):
                    logger.info("transaction %s takes another place: %s", workspace.txn, reason)
                    if losses >= BACK_OFF_AFTER:
                        back_off(environment, losses)
                case Taken() as taken:
                    self._catch_up(location, [taken])
                    if change.blind and losses >= BACK_OFF_AFTER:
                        back_off(environment, losses)
                        self._catch_up(location, pinned.table.since(workspace.base(location).snapshot))
        raise Conflict(
            f"transaction {workspace.txn} lost {LOSSES_ALLOWED} races in a row: nothing was changed; "
            "try again when fewer clients write",
            table=workspace.base(location).ref.name,
        )

    def begin(self, attempt: str) -> None:
        """From here on the transaction runs under this attempt; what earlier ones left is ours too."""
        self.attempt, self.halfway = attempt, False
        self._attempts |= {attempt, attempt + INVERSE}

    def enter(self, name: str) -> None:
        """Before a statement changes a table: let those pass who wait for it, and stand on what they did.

        So the statement works on the state that it will commit on. Raises Conflict if they changed
        something that the client was given: then no commit could stand.
        """
        between = self._queues.enter(name)
        pinned = self._workspace.pinned(name)
        if between and pinned is not None:
            self._catch_up(pinned.ref.location, between)

    def change(self, location: str) -> Change | None:
        """All that the transaction does to the table, with all that it has read of it."""
        change = self._operations.net(location)
        return None if change is None else replace(change, read=self.read_of(location))

    def read_of(self, location: str) -> ReadSet:
        """All that the transaction has read of the table."""
        read = ReadSet()
        for operation in self._operations:
            standing = operation.standing_on(location)
            read = read if standing is None else read.union(standing.read)
        return read

    def _let_pass(self, location: str, losses: int) -> None:
        """Wait for those before us: if we hold a place, or have lost so often that it is time to take one."""
        pinned = self._workspace.base(location)
        if self._queues.must_wait(pinned, often_lost=losses >= BACK_OFF_AFTER):
            self._catch_up(location, self._queues.wait(pinned))

    def _catch_up(self, location: str, between: Sequence[Taken]) -> None:
        """Stand on the version of one table after these commits; a client that conflicts waits for its turn
        first."""
        base = self._workspace.base(location)
        between = self._settled(base, between)
        conflicts = self.conflicts({location: between})
        if conflicts and self._queues.ticket(base.ref) is None:
            waited = self._queues.wait(replace(base, snapshot=between[-1].snapshot))
            between = self._settled(base, [*between, *waited])
        self.catch_up({location: between})

    def _settled(self, base: Pinned, between: Sequence[Taken]) -> Sequence[Taken]:
        """These commits, and if one of them had to be settled, also what came since: its inverse, perhaps."""
        workspace = self._workspace
        if between and workspace.catalog.settle_up_to(between[-1].snapshot.slot, workspace.meter):
            return [*between, *base.table.since(between[-1].snapshot)]
        return between

    def catch_up(self, between: Mapping[str, Sequence[Taken]]) -> None:
        """Stand on the versions after these commits, by the table's location; redo what they concern.

        Raises Conflict if something that the client was given has changed.
        """
        foreign = _footprints(between)
        for place, footprints in foreign.items():
            self._refuse_fenced(footprints, self._workspace.base(place))
        if not foreign:
            return
        self.moves += 1
        self.halfway = True
        stands = conflict_of(self._operations, foreign) is None
        self._stand({place: between[place][-1].snapshot for place in foreign})
        replay = Replay(self._workspace, {} if stands else foreign)
        replay.run(self._operations)
        if not stands:
            self.redone += replay.redone
            self.saved_bytes += replay.saved_bytes
        self.halfway = False

    def conflicts(self, between: Mapping[str, Sequence[Taken]]) -> bool:
        """Whether one of these commits concerns an operation."""
        return conflict_of(self._operations, _footprints(between)) is not None

    def refuse_conflicts(self, between: Mapping[str, Sequence[Taken]]) -> None:
        """Without recovery: Conflict if one of these commits concerns an operation."""
        foreign = _footprints(between)
        found = conflict_of(self._operations, foreign)
        if found is not None:
            operation, place, hit = found
            name = self._workspace.base(place).ref.name
            raise conflict(operation.name, name, hit, "the transaction is without recovery (R)")

    def _stand(self, newest: Mapping[str, Snapshot]) -> None:
        """Stand on newer versions of some tables, without our own writes on any, nor our own tables."""
        for pinned in self._workspace.touched:
            self._workspace.move(pinned.ref.location, newest.get(pinned.ref.location, pinned.snapshot))
        self._workspace.own.restart()

    def _refuse_fenced(self, foreign: Sequence[Footprint], pinned: Pinned) -> None:
        for footprint in foreign:
            if footprint.txn == self._workspace.txn and footprint.attempt not in self._attempts:
                raise Fenced(
                    f"transaction {self._workspace.txn} is committed already, as version {footprint.version} "
                    f"of {pinned.ref.name!r}, by another client that went on with it: do not run it again",
                    transaction=self._workspace.txn,
                    table=pinned.ref.name,
                    version=footprint.version,
                )


def _footprints(between: Mapping[str, Sequence[Taken]]) -> dict[str, list[Footprint]]:
    """What these commits did, for the tables on which there are any."""
    return {
        place: _without_undone([taken.footprint for taken in found])
        for place, found in between.items()
        if found
    }


def _without_undone(found: Sequence[Footprint]) -> list[Footprint]:
    """Without commits that were taken back, and without what took them back: together they did nothing.

    A table that was made and had to be dropped is not as if nothing had been: its place is used up.
    """
    attempts = {footprint.attempt for footprint in found if footprint.attempt is not None}
    inverses = {footprint.attempt for footprint in found if not footprint.dropped}
    undone = {attempt for attempt in attempts if attempt + INVERSE in inverses}
    undone |= {attempt + INVERSE for attempt in undone}
    return [footprint for footprint in found if footprint.attempt not in undone]
