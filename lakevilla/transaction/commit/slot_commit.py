"""The commit of a transaction that the global log decides: several tables, or one with reads of others.

The create of the next slot is the decision (docs/protocol.md, 7). It proves that no other entry came since
HEAD was read; its commit base says what it builds on at that HEAD. Only outside writers, which use no slots,
can have changed its tables since then, and settling handles those. If the slot is taken, that entry is
settled first, then the transaction catches up with the new HEAD, and the next slot is tried.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from lakevilla.errors import Aborted, Conflict, Fenced, InvalidInput, LakeVillaError, Torn
from lakevilla.formats.port import Snapshot, Table
from lakevilla.model import Batch, Change, ReadSet, TableRef
from lakevilla.settle.commits import CommitSettler
from lakevilla.settle.completion import complete
from lakevilla.settle.entries import decided_but_unseen, entry_after, help_next, hold_slot
from lakevilla.settle.premise import GuardedPlaces, Premise, guarded
from lakevilla.tables.catalog import CatalogPlaces
from lakevilla.tables.ownership import TableOwnership
from lakevilla.tables.pinned import Pinned, seen
from lakevilla.tables.table_errors import torn
from lakevilla.transaction.commit.commit_base import CommitBase
from lakevilla.transaction.commit.optimistic_commit import LOSSES_ALLOWED
from lakevilla.transaction.commit.parts import CommitParts
from lakevilla.transaction.redo.net_feed import put_together
from lakevilla.versions import registry
from lakevilla.versions.batches import Done, check_room, find_done
from lakevilla.versions.commits import NEW, Commit, Drop, Read, Settled, Write
from lakevilla.versions.log import ReadHead
from lakevilla.versions.records import Entry, Head

logger = logging.getLogger("lakevilla.transaction")

QUEUE_AFTER = 8
"""A client that has lost so many slots to others claims a ticket in the queue for them. With a lower number,
clients would wait for each other's requests that could as well try; measured with 48 clients
(docs/benchmarks.md)."""


@dataclass(frozen=True)
class Committed:
    """What a commit made of each table, by location, and the entry of the global log that decided it, if
    one did. `versions` are known also where another client settled the entry, without `snapshots`.
    `replayed` says that the transaction changed nothing, because its batch was committed before."""

    seq: int | None
    snapshots: Mapping[str, Snapshot]
    versions: Mapping[str, int] = field(default_factory=dict)
    replayed: bool = False

    @staticmethod
    def before(once: Batch, done: Done) -> "Committed":
        """The result of a transaction whose batch is committed already."""
        return Committed(done.seq_of(once), {}, replayed=True)


class SlotCommit:
    """The commit of one transaction by a slot."""

    def __init__(self, parts: CommitParts, base: CommitBase, *, final: bool) -> None:
        self._final = final
        self._parts = parts
        self._workspace = parts.workspace
        self._queues = parts.queues
        self._base = base
        self._places = CatalogPlaces(self._workspace.catalog, self._workspace.meter)
        self._ownership = TableOwnership(self._places, self._workspace.environment)

    def commit(self) -> Committed | None:
        """Decide and settle; None if nothing is left to publish."""
        try:
            return self._decide()
        except Aborted as error:
            # The conflicting commit may be our own batch, committed by a client that ran it at the same time,
            # or our own transaction, committed by a client that resumed it.
            log = self._workspace.catalog.log(self._workspace.meter)
            replay = None if self._parts.guarantees.once is None else self._replay(log.read_head())
            if replay is not None:
                return replay
            if not isinstance(error, Fenced):
                self._parts.fence.check_newest(log)
            raise

    def _decide(self) -> Committed | None:
        workspace, environment = self._workspace, self._workspace.environment
        log = workspace.catalog.log(workspace.meter)
        read = self._base.first(log)
        for losses in range(LOSSES_ALLOWED):
            if losses >= QUEUE_AFTER and self._queues.lake_ticket is None:
                # A client that has to redo something does it before, so that no client waits for that.
                self._base.queue_up()
                self._base.catch_up_with(log, log.read_head() or read)
                self._queues.wait_for_the_lake(log)
                read = log.read_head() or read
            # Before what our own batch did is redone, and again where the look at that led to a later HEAD.
            replay = self._replay(read)
            if replay is None:
                read = self._base.catch_up_with(log, read)
                replay = self._replay(read)
            if replay is not None:
                return replay
            put_together(workspace, self._parts.operations)
            workspace.uploads.finish()
            commit = self._commit()
            if commit is None:
                return None
            self._parts.fence.check(log, read)
            self._check(read.head, commit)
            self._ownership.ensure(read.head, commit)
            environment.fan_out([partial(p.table.look, p.snapshot) for p, _ in self._base.changes])
            entry = entry_after(read.head, environment, workspace.txn, self._parts.redo.attempt, commit)
            premise = Premise(log, environment, entry, environment.elapsed())
            self._base.recheck()
            if self._base.is_behind():
                # The look found later versions.
                continue
            if hold_slot(log, environment, entry):
                premise.decided()
                read, done = self._settle(read, entry, commit, premise)
                if done is not None:
                    return done
                # An outside writer conflicted, and what was published has been rolled back.
                self._parts.redo.begin(environment.new_id())
                self._base.was_rolled_back()
            else:
                read = help_next(log, environment, read, self._places)
        raise Conflict(
            f"transaction {workspace.txn} lost {LOSSES_ALLOWED} races in a row: nothing was changed; "
            "retry it when fewer clients write"
        )

    def _replay(self, read: ReadHead | None) -> Committed | None:
        """The result of the transaction if its batch is committed at this HEAD; None if it is not."""
        once = self._parts.guarantees.once
        done = None if once is None or read is None else find_done(read.head.batches, once)
        return None if once is None or done is None else Committed.before(once, done)

    def _commit(self) -> Commit | None:
        """What the transaction does and has read, on its pinned versions.

        Also where it changes nothing in the end: the slot then proves that all it has read was true at once.
        """
        own = self._workspace.own
        writes = [
            _write(pinned, change, self._queues.ticket(pinned.ref)) for pinned, change in self._base.changes
        ]
        writes += [self._new(pinned) for pinned in own.made.values()]
        # A notice follows what is published: our own changes of a table that goes are not.
        gone = [self._workspace.base(location) for location in own.dropped]
        drops = tuple(Drop(pinned.ref, seen(pinned.ref, pinned.snapshot.version)) for pinned in gone)
        written = {write.table.location for write in writes}
        reads = [
            Read(
                pinned.ref,
                pinned.snapshot.version,
                self._parts.operations.read_of(pinned.ref.location),
                pinned.snapshot.table_id,
            )
            for pinned in self._workspace.touched
            if pinned.ref.location not in written
        ]
        once, views = self._parts.guarantees.once, tuple(own.views.values())
        if not (writes or drops or reads or once or views):
            return None
        ticket = self._queues.lake_ticket
        return Commit(tuple(writes), tuple(reads), drops, ticket, self._final, once, views)

    def _new(self, pinned: Pinned) -> Write:
        """A table that the transaction makes, with all that it does to it. No other client can have read
        it."""
        change = self._parts.operations.change(pinned.ref.location)
        assert change is not None, "to make a table is a change of it"
        encoded = pinned.table.encode_change(pinned.snapshot, change)
        table_id = pinned.table.describe(change).table_id
        return Write(pinned.ref, NEW, encoded, ReadSet(), blind=False, table_id=table_id)

    def _check(self, head: Head, commit: Commit) -> None:
        """No other entry took a name that the commit gives, dropped what it drops, or let an instant expire
        that it restores. If none has until this HEAD, the create of the slot after it proves that none has
        until then."""
        for seq in self._parts.operations.instants:
            registry.refuse_expired(head, seq)
        check_room(head.batches, head.horizon, commit.once)
        self._workspace.stored_views.refuse_changed(head.views)
        for write in commit.writes:
            if write.table.location in head.torn:
                raise torn(write.table.name)
        try:
            registry.check(head, commit, self._workspace.catalog.real_place)
        except InvalidInput as error:
            raise Conflict(
                f"the commit conflicts with another client's change of the lake's tables: {error}. Nothing "
                "was changed; run the transaction again",
                table=error.table,
            ) from error

    def _settle(
        self, read: ReadHead, entry: Entry, commit: Commit, premise: Premise
    ) -> tuple[ReadHead, Committed | None]:
        """Publish our own entry and make it visible. It is decided: a store that goes away cannot undo it."""
        workspace = self._workspace
        log = workspace.catalog.log(workspace.meter)
        published: dict[str, Snapshot] = {}

        def settle(given_up: frozenset[str]) -> Settled:
            settler = CommitSettler(
                read.head.lake,
                entry.seq,
                entry.txn,
                entry.attempt,
                workspace.environment,
                GuardedPlaces(self._places, premise),
                partial(self._open_at, premise),
                given_up,
                premise,
            )
            outcome = settler.settle(commit)
            published.clear()
            published.update(outcome.snapshots)
            return outcome.settled

        try:
            moved, settled = complete(log, workspace.environment, read, entry, settle)
        except LakeVillaError as error:
            raise decided_but_unseen(entry, error) from error
        workspace.catalog.learn(moved.head)
        if settled.torn:
            raise _torn(entry, settled.torn)
        written = {write.table.location for write in commit.writes}
        versions = {at: version for at, version in settled.versions.items() if at in written}
        return moved, Committed(entry.seq, published, versions) if settled.published else None

    def _open_at(self, premise: Premise, ref: TableRef, version: int) -> tuple[Table, Snapshot]:
        pinned = self._workspace.base(ref.location)
        assert pinned.snapshot.version == version, "the entry was made from the pinned version"
        return guarded(pinned.table, ref, premise), pinned.snapshot


def _torn(entry: Entry, locations: frozenset[str]) -> Torn:
    """A redo cannot repair it: what is left of the commit there would be counted twice."""
    names = sorted(ref.name for ref in entry.tables if ref.location in locations)
    return Torn(
        f"transaction {entry.txn} was rolled back, but not on {', '.join(map(repr, names))}: a legacy client "
        "built on its version there, or the table's log can no longer be read. Its changes may be visible "
        f"there, and nowhere else. lakevilla explain {entry.txn} shows the versions: "
        "repair those tables by hand before you run the transaction again",
        transaction=entry.txn,
        tables=tuple(names),
    )


def _write(pinned: Pinned, change: Change, ticket: int | None) -> Write:
    encoded = pinned.table.encode_change(pinned.snapshot, change)
    snapshot = pinned.snapshot
    return Write(
        pinned.ref,
        snapshot.version,
        encoded,
        change.read,
        change.blind,
        ticket,
        snapshot.coordination.exclusive,
        snapshot.table_id,
    )
