"""What a commit builds on, and whether that is still there (docs/protocol.md, section 1, "Age").

Nothing that a premise may name is deleted within a day, so a premise that is younger than an hour holds.
There are two, and each has a time of its own:

- **The log**: the number after the version that the commit builds on is free, or its entry can be read. It
  holds since a look found that version to be the newest (`Pinned.pinned_at`, or a look of the commit), for
  that version and for those that are reached from there. Following the log from an older version proves
  nothing about entries that were deleted, so it does not renew the premise.
- **The uploads**: the data files are there. It holds since the statement began that wrote them
  (`Operation.begun_at`), whatever the transaction has read or redone since.

A premise that is older is checked again right before the commit, which then builds on the newest version: an
entry that the check found may be so old that it is deleted in the next moment. For the uploads the
transaction writes its lease first: from then on vacuum keeps what it uploaded (`maintenance.transactions`).
That is the vacuum of this lake. A table that belongs to another lake is vacuumed from there, by a client that
does not see this lake's leases: files that were uploaded there almost a day ago are not published any more.

A client may be suspended between that look and its commit. So a commit that was sent an hour after the look
is confirmed: an entry at a number that had been used is deleted again, and a commit whose files were deleted,
or may be about to be, is rolled back by an inverse commit. One that went unanswered is sent once more before.
"""

import logging
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from lakevilla.errors import CommitUnknown, Conflict, Corrupt, Fenced, LakeVillaError, Unavailable
from lakevilla.formats.conditional_commit import NoAnswer
from lakevilla.formats.identity import Recreated
from lakevilla.formats.port import Published, Snapshot, Table
from lakevilla.markers.records import VACUUM
from lakevilla.model import Author
from lakevilla.settle.lost_parts import INVERSE
from lakevilla.settle.places import owner_of
from lakevilla.settle.publish_walk import PublishedAt, walk
from lakevilla.tables.pinned import Pinned
from lakevilla.transaction.commit.writer_queues import WriterQueues
from lakevilla.transaction.redo.operations import Operations
from lakevilla.transaction.statements.effect import TableChange
from lakevilla.transaction.workspace import Workspace
from lakevilla.versions.log import PREMISE_SECONDS

logger = logging.getLogger("lakevilla.transaction")

Answer = TypeVar("Answer")

UNSEEN_SECONDS = 22 * 3600.0
"""The highest age of uploads that no lease protects: vacuum deletes nothing within a day, and a commit may be
sent an hour after the look. The rest allows for clocks that differ."""
NEVER_MS = 2**62
"""A time that does not come: no earlier version is needed from then on."""
UPLOADS = "files that it uploaded"


class Premises:
    """The premises of one transaction's commit."""

    def __init__(self, workspace: Workspace, operations: Operations, queues: WriterQueues) -> None:
        self._workspace = workspace
        self._operations = operations
        self._queues = queues
        self._checked_at = -PREMISE_SECONDS
        self._unanswered: NoAnswer | None = None
        self._lease_written_at: dict[str, float] = {}
        self._newest_at: dict[str, tuple[int, float]] = {}
        """By location: a version that the commit found to be the newest, and when."""

    def is_behind(self, pinned: Pinned) -> bool:
        """Whether the log may have been cleaned up behind this table: then the commit catches up before it
        checks again. Entries that are as old as the pin may be deleted right after the check, so a commit
        that builds on a version below them could take one of their numbers."""
        version, at = self._newest_at.get(pinned.ref.location, (pinned.snapshot.version, pinned.pinned_at))
        since = at if pinned.snapshot.version >= version else pinned.pinned_at
        return not pinned.is_new and self._is_old(max(since, pinned.pinned_at))

    def recheck(self, pending: Iterable[TableChange]) -> None:
        """Right before the commit: check again what is old. Conflict if it was deleted."""
        now, changes = self._workspace.environment.elapsed(), list(pending)
        for each in changes:
            if self.is_behind(each.pinned):
                self._look_at_log(each, now)
        old = [
            each
            for each in changes
            if (each.change.added or each.change.feed) and self._is_old(self._uploaded_since(each))
        ]
        if old:
            # What is still on its way is not missing.
            self._workspace.uploads.finish()
            self._write_lease(old[0])
        for each in old:
            self._refuse_unprotected(each)
            refuse_missing(each)
            self._lease_written_at[each.pinned.ref.location] = now
        self._checked_at = now

    def _look_at_log(self, pending: TableChange, now: float) -> None:
        """Conflict if the log has a gap. It proves nothing for the next hour about a version that it has gone
        past: the entry above that may be about to be deleted."""
        pinned = pending.pinned
        newest = newest_without_gap(pinned)
        if newest is None:
            raise _gone(pending, "log entries since it began")
        if newest == pinned.snapshot.version:
            self._newest_at[pinned.ref.location] = newest, now

    def publish(self, send: Callable[[], Answer]) -> Answer:
        """Send the commit. Raises CommitUnknown if it stays unanswered.

        One whose client was suspended in it is sent again, because the suspension has used up the time for
        its tries: then a late copy finds the number taken. The lease is written first, so that what was
        uploaded stays for a copy that applies later. Any other answer says nothing about the first copy: it
        may have been published, and its log entry cleaned up since.
        """
        self._unanswered = None
        try:
            return send()
        except NoAnswer as unknown:
            if not self._is_old(self._checked_at):
                raise
            self._unanswered = unknown
        try:
            self._queues.write_lease()
            answer = send()
        except LakeVillaError as error:
            logger.info("transaction %s could not be sent again: %s", self._workspace.txn, error)
            raise self._unanswered from error
        if not isinstance(answer, Published):
            raise self._unanswered
        return answer

    def confirm(self, pending: TableChange, published: Published, author: Author) -> Snapshot:
        """Right after the commit: its version. Conflict if it builds on something that was deleted while
        the client was suspended; then nothing of it is left."""
        snapshot = published.snapshot
        if not self._is_old(self._checked_at):
            return snapshot
        try:
            return self._confirm(pending, published, author)
        except Recreated as error:
            raise CommitUnknown(
                f"transaction {author.txn} was committed as version {snapshot.version} of "
                f"{pending.pinned.ref.name!r}, but the table was deleted or recreated while its client was "
                "suspended: look at the data before you run it again",
                table=pending.pinned.ref.name,
                transaction=author.txn,
                version=snapshot.version,
            ) from error
        except Unavailable as error:
            raise CommitUnknown(
                f"the outcome of transaction {author.txn} is unknown: it is version {snapshot.version} of "
                f"{pending.pinned.ref.name!r}, and the store stopped answering before it was clear whether "
                f"its files are still there. Ask lake.outcome({author.txn!r}) when the store answers again; "
                "do not rerun it blindly",
                table=pending.pinned.ref.name,
                transaction=author.txn,
                version=snapshot.version,
            ) from error

    def _confirm(self, pending: TableChange, published: Published, author: Author) -> Snapshot:
        snapshot, table = published.snapshot, pending.pinned.table
        # A marker held the number of a version that was filled.
        if not snapshot.coordination.markers_in_log and table.retract(snapshot.version, author.put):
            entries = f"log entries from {snapshot.version} on"
            if self._unanswered is not None or published.doubtful:
                # The first copy may have been published, and its log entry is one of those.
                raise self._unanswered or _unknown(pending, author, snapshot.version, entries)
            raise _gone(pending, entries)
        added = (*pending.change.added, *pending.change.feed)
        # The lease comes first: a vacuum that has not taken hold of the transaction yet finds it and stops,
        # and one that has may be about to delete.
        held = bool(added) and self._queues.write_lease() == VACUUM
        missing = table.missing(added, snapshot)
        if missing and not _is_needed(table, missing):
            # Other clients have built on the version, and removed the files, before vacuum deleted them.
            missing = []
        if not held and not missing:
            return snapshot
        if self._roll_back(pending, published, author):
            raise _gone(pending, missing[0] if missing else UPLOADS)
        if not missing:
            # Vacuum has found the files in the log, as other clients have.
            return snapshot
        raise Corrupt(
            f"version {snapshot.version} of {pending.pinned.ref.name!r}, which transaction {author.txn} "
            f"published, needs {missing[0]}, which was deleted while its client was suspended. Another "
            "client has built on that version, so it could not be rolled back; restore the file from a "
            "backup",
            table=pending.pinned.ref.name,
            transaction=author.txn,
            version=snapshot.version,
        )

    def _roll_back(self, pending: TableChange, published: Published, author: Author) -> bool:
        """Publish the inverse of the commit. False if another client has built on it: its entry may even have
        been cleaned up with those after it, whose numbers are not free."""
        table, snapshot = pending.pinned.table, published.snapshot
        if newest_without_gap(replace(pending.pinned, snapshot=snapshot)) is None:
            return False
        inverse = table.inverse(published.before or pending.pinned.snapshot, pending.change, author)
        undo = Author(author.txn, author.attempt + INVERSE, "")
        result = walk(table, snapshot, inverse, undo, self._workspace.environment.new_id)
        return isinstance(result, PublishedAt)

    def _is_old(self, since: float) -> bool:
        return self._workspace.environment.elapsed() - since > PREMISE_SECONDS

    def _uploaded_since(self, pending: TableChange) -> float:
        location = pending.pinned.ref.location
        since = self._operations.uploaded_since(location)
        return max(since, self._lease_written_at.get(location, since))

    def _refuse_unprotected(self, pending: TableChange) -> None:
        """Conflict if another lake's vacuum, which does not see our lease, may be about to delete uploads."""
        workspace, ref = self._workspace, pending.pinned.ref
        since = self._operations.uploaded_since(ref.location)
        if math.isinf(since):
            # Another client uploaded them, no earlier than it began.
            age = (workspace.environment.now_ms() - workspace.now_ms) / 1000
        else:
            age = workspace.environment.elapsed() - since
        if age <= UNSEEN_SECONDS:
            return
        head = workspace.catalog.head(workspace.meter)
        owner = owner_of(workspace.catalog.store_of(ref.location, workspace.meter))
        if owner is not None and (head is None or owner.lake != head.lake):
            raise Conflict(
                f"{pending.change.operation} on {ref.name!r} took too long: its uploaded files are so old "
                f"that the lake at {owner.url}, which owns the table, may delete them. Nothing was changed; "
                "run it again, and commit within a day",
                table=ref.name,
                operation=pending.change.operation,
            )

    def _write_lease(self, pending: TableChange) -> None:
        """Write the lease, so that vacuum keeps what is there."""
        other = self._queues.write_lease()
        if other == VACUUM:
            raise _gone(pending, UPLOADS)
        if other is not None:
            raise Fenced(
                f"transaction {self._workspace.txn} was resumed by another client, which continues it: do "
                "not run it again",
                transaction=self._workspace.txn,
            )


def refuse_missing(pending: TableChange) -> None:
    """Conflict if a file that was uploaded was deleted."""
    missing = pending.pinned.table.missing((*pending.change.added, *pending.change.feed))
    if missing:
        raise _gone(pending, missing[0])


def refuse_gap(pending: TableChange) -> None:
    """Conflict if log entries after the pinned version were deleted: a create could take a number that was
    used."""
    if not pending.pinned.is_new and newest_without_gap(pending.pinned) is None:
        raise _gone(pending, "log entries since it began")


def newest_without_gap(pinned: Pinned) -> int | None:
    """The newest version; None if the log does not have every entry after the pinned one any more."""
    # In this order: what is published between the two reads makes the second one newer, not the first.
    newest = pinned.table.latest()
    followed = pinned.table.latest(pinned.snapshot)
    whole = followed is not None and newest is not None and followed.version >= newest.version
    return followed.version if followed is not None and whole else None


def _is_needed(table: Table, files: Sequence[str]) -> bool:
    """Whether the newest version has some of these files, or cannot be read (perhaps without them)."""
    try:
        newest = table.latest()
        if newest is None:
            return True
        needed = table.references(newest, NEVER_MS).needed(pa.array(files, pa.string()))
    except Corrupt as damage:
        logger.info("whether %s is needed cannot be told: %s", files[0], damage)
        return True
    return bool(pc.any(needed).as_py())


def moved_to(pending: TableChange, base: Snapshot) -> TableChange:
    """The change on a later version that was reached by following the log."""
    return replace(pending, pinned=replace(pending.pinned, snapshot=base))


def _unknown(pending: TableChange, author: Author, version: int, what: str) -> CommitUnknown:
    name = pending.pinned.ref.name
    return CommitUnknown(
        f"the outcome of transaction {author.txn} is unknown: the store did not answer when it was sent as "
        f"version {version} of {name!r}, and {what} were cleaned up while its client was suspended. Look at "
        "the data before you run it again",
        table=name,
        transaction=author.txn,
        version=version,
    )


def _gone(pending: TableChange, what: str) -> Conflict:
    name, operation = pending.pinned.ref.name, pending.change.operation
    return Conflict(
        f"{operation} on {name!r} took too long: {what} were cleaned up meanwhile. Nothing was changed; run "
        "it again, and check the table's retention",
        table=name,
        operation=operation,
    )
