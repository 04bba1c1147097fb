"""The commit of a transaction with recovery, on one table: publish, rebase, or wait for our turn and redo.

Create the next version. If another client holds it, ask whether their commit concerns any of our operations.
If not, rebase: nothing is redone. If so, claim a ticket in the table's writer queue, wait until it is the
first, redo what is not valid any more on the newest version, and try again. Every version on the way is
looked at (see `redo.redo`).
"""

import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from lakevilla.errors import Conflict
from lakevilla.formats.authorship import keeps_rows
from lakevilla.formats.port import Displaced, Published, Snapshot, Taken
from lakevilla.model import Author
from lakevilla.tables.pinned import Pinned
from lakevilla.transaction.commit.optimistic_commit import (
    BACK_OFF_AFTER,
    LOSSES_ALLOWED,
    back_off,
    settle_base,
)
from lakevilla.transaction.commit.parts import CommitParts
from lakevilla.transaction.redo.net_feed import put_together
from lakevilla.transaction.statements.effect import TableChange

logger = logging.getLogger("lakevilla.transaction")


class QueuedCommit:
    """The commit of one transaction with recovery on one table, and its tickets in that table's queue."""

    def __init__(self, parts: CommitParts) -> None:
        self._parts = parts
        self._workspace = parts.workspace
        self._queues = parts.queues
        self._redo = parts.redo

    def commit(self, location: str) -> Snapshot | None:
        """Publish what the operations do to the table; None if nothing is left to publish.

        Raises Conflict if something that the client was given has changed; our place in the queue is kept.
        """
        with self._queues.at_work():
            return self._publish(location)

    def _publish(self, location: str) -> Snapshot | None:
        workspace, environment = self._workspace, self._workspace.environment
        pinned = workspace.base(location)
        if self._parts.premises.is_behind(pinned):
            self._catch_up(location, pinned.table.since(pinned.snapshot))
        for losses in range(LOSSES_ALLOWED):
            change = self._parts.operations.change(location)
            if change is None:
                return None
            if not change.blind or workspace.base(location).snapshot.coordination.markers_in_log:
                self._let_pass(location, losses >= BACK_OFF_AFTER or keeps_rows(change))
                change = self._parts.operations.change(location)
                if change is None:
                    return None
            put_together(workspace, self._parts.operations)
            change = self._parts.operations.change(location) or change
            workspace.uploads.finish()
            pinned = workspace.base(location)
            pending = TableChange(pinned, change)
            settle_base(workspace.catalog, pinned, workspace.meter)
            self._parts.premises.recheck([pending])
            author = Author(
                workspace.txn, self._redo.attempt, environment.new_id(), self._queues.ticket(pinned.ref)
            )
            match self._parts.premises.publish(partial(self._queues.publish, pinned, change, author)):
                case Published() as published:
                    return self._parts.premises.confirm(pending, published, author)
                case Displaced(reason):
                    logger.info("transaction %s claims another ticket: %s", workspace.txn, reason)
                    if losses >= BACK_OFF_AFTER:
                        back_off(environment, losses)
                case Taken() as taken:
                    self._catch_up(location, [taken])
                    if change.blind and losses >= BACK_OFF_AFTER:
                        back_off(environment, losses)
                        self._catch_up(location, pinned.table.since(workspace.base(location).snapshot))
        raise Conflict(
            f"transaction {workspace.txn} lost {LOSSES_ALLOWED} races in a row: nothing was changed; "
            "retry it when fewer clients write",
            table=workspace.base(location).ref.name,
        )

    def enter(self, name: str) -> None:
        """Before a statement changes a table: wait for the clients that queue for it, and build on their
        commits.

        So the statement works on the state that it will commit on. Raises Conflict if they changed
        something that the client was given: then no commit is possible.
        """
        between = self._queues.enter(name)
        pinned = self._workspace.pinned(name)
        if between and pinned is not None:
            self._catch_up(pinned.ref.location, between)

    def _let_pass(self, location: str, takes_a_place: bool) -> None:
        """Wait for those before us: if we hold a place, or it is time to take one, after many losses or for
        a change that only rewrites files."""
        pinned = self._workspace.base(location)
        if self._queues.must_wait(pinned, often_lost=takes_a_place):
            self._catch_up(location, self._queues.wait(pinned))

    def _catch_up(self, location: str, between: Sequence[Taken]) -> None:
        """Move to the version of one table after these commits; a client that conflicts waits for its turn
        first."""
        base = self._workspace.base(location)
        between = self._settled(base, between)
        conflicts = self._redo.conflicts({location: between})
        if conflicts and self._queues.ticket(base.ref) is None:
            waited = self._queues.wait(replace(base, snapshot=between[-1].snapshot))
            between = self._settled(base, [*between, *waited])
        self._redo.catch_up({location: between})

    def _settled(self, base: Pinned, between: Sequence[Taken]) -> Sequence[Taken]:
        """These commits, and if one of them had to be settled, also what came since: its inverse, perhaps."""
        workspace = self._workspace
        if between and workspace.catalog.settle_up_to(
            between[-1].snapshot.coordination.slot, workspace.meter
        ):
            return [*between, *base.table.since(between[-1].snapshot)]
        return between
