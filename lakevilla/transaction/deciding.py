"""The commit of a transaction that the global log decides: several tables, or one with reads of others.

The create of the next slot is the decision (docs/protocol.md, 7). It proves that no other entry came since
HEAD was read; and HEAD tells by the versions of its tables whether one came between their pins and that. So
what was read and written needs no look at the tables again: only outside writers, who use no slots, can have
moved them, and settling deals with those. If the slot is taken, that entry is settled
first, then all that this transaction touched is brought up to date, and the next slot is tried.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from lakevilla.errors import Conflict, Corrupt, InvalidInput, Unavailable
from lakevilla.formats.port import Snapshot, Table, Taken
from lakevilla.model import Change, ReadSet, TableRef
from lakevilla.settle.commits import CommitSettler
from lakevilla.settle.entries import decided_but_unseen, help_next, hold_slot, move_head
from lakevilla.store.probe import probe
from lakevilla.transaction.catalog import PREMISE_SECONDS, CatalogPlaces, Pinned, seen
from lakevilla.transaction.committing import LOSSES_ALLOWED, renew_premise
from lakevilla.transaction.effect import TableChange
from lakevilla.transaction.operations import READ
from lakevilla.transaction.owning import Owning
from lakevilla.transaction.recovering import Recovery
from lakevilla.transaction.turns import Turns
from lakevilla.transaction.workspace import Workspace
from lakevilla.versions import registry
from lakevilla.versions.commits import NEW, Commit, Drop, Read, Write
from lakevilla.versions.log import GlobalLog, ReadHead
from lakevilla.versions.records import Entry, Head

logger = logging.getLogger("lakevilla.transaction")


@dataclass(frozen=True)
class Committed:
    """What a commit made of each table, by location, and the entry of the global log that decided it, if
    one did."""

    seq: int | None
    snapshots: Mapping[str, Snapshot]


class Decision:
    """The commit of one transaction by a slot. `recovers` says whether a conflict is redone or raised."""

    def __init__(self, workspace: Workspace, recovery: Recovery, turns: Turns, recovers: bool) -> None:
        self._workspace = workspace
        self._recovery = recovery
        self._turns = turns
        self._recovers = recovers
        self._lined_up = False
        self._places = CatalogPlaces(workspace.catalog, workspace.meter)
        self._owning = Owning(self._places, workspace.environment)

    def commit(self) -> Committed | None:
        """Decide and settle; None if nothing is left to publish."""
        workspace = self._workspace
        log = workspace.catalog.log(workspace.meter)
        if self._is_old() or self._is_contended():
            self._catch_up()
        read, stale = self._look(log)
        for _ in range(LOSSES_ALLOWED):
            if stale or self._is_behind(read.head):
                stale = False
                self._catch_up()
            workspace.uploads.finish()
            commit = self._commit()
            if commit is None:
                return None
            self._check_names(read.head, commit)
            self._owning.ensure(read.head, commit)
            entry = Entry(
                read.head.seq + 1,
                workspace.txn,
                self._recovery.attempt,
                workspace.environment.new_id(),
                workspace.environment.now_ms(),
                commit,
            )
            if hold_slot(log, workspace.environment, entry):
                read, done = self._settle(read, entry, commit)
                if done is not None:
                    return done
                # An outside writer was in the way, and what was published has been taken back.
                self._recovery.begin(workspace.environment.new_id())
            else:
                read = help_next(log, workspace.environment, read, self._places)
            self._catch_up()
        raise Conflict(
            f"transaction {workspace.txn} lost {LOSSES_ALLOWED} races in a row: nothing was changed; "
            "try again when fewer clients write"
        )

    def _look(self, log: GlobalLog) -> tuple[ReadHead, bool]:
        """HEAD, and whether a table that is only read has moved, in the same round as what is left of the
        uploads. Settling meets the commits of others without slots only on tables that it publishes."""
        workspace, found, moved = self._workspace, list[ReadHead | None](), list[bool]()
        written = {pinned.ref.location for pinned, _ in self._changes()}
        left = {*written, *workspace.own.made}
        only_read = [pinned for pinned in workspace.touched if pinned.ref.location not in left]
        tasks: list[Callable[[], None]] = [partial(_look_at, pinned, moved) for pinned in only_read]
        tasks += [lambda: found.append(log.read_head()), workspace.uploads.finish]
        workspace.environment.fan_out(tasks)
        if found[0] is None:
            probe(workspace.catalog.root(workspace.meter), workspace.environment)
        return found[0] or log.first_head(), any(moved)

    def _changes(self) -> list[tuple[Pinned, Change]]:
        """The lake's tables that the transaction changes, and how."""
        found = [(p, self._recovery.change(p.ref.location)) for p in self._workspace.changeable]
        return [(pinned, change) for pinned, change in found if change is not None]

    def _commit(self) -> Commit | None:
        """What the transaction does and has read, on the versions that it stands on.

        Also where it changes nothing in the end: the slot then proves that all it has read was true at once.
        """
        own = self._workspace.own
        writes = [
            _write(pinned, change, self._turns.ticket(pinned.ref)) for pinned, change in self._changes()
        ]
        writes += [self._new(pinned) for pinned in own.made.values()]
        # A notice follows what is published: our own changes of a table that goes are not.
        gone = [self._workspace.base(location) for location in own.dropped]
        drops = tuple(Drop(pinned.ref, seen(pinned)) for pinned in gone)
        written = {write.table.location for write in writes}
        reads = [
            Read(pinned.ref, pinned.snapshot.version, self._recovery.read_of(pinned.ref.location))
            for pinned in self._workspace.touched
            if pinned.ref.location not in written
        ]
        return Commit(tuple(writes), tuple(reads), drops) if writes or drops or reads else None

    def _new(self, pinned: Pinned) -> Write:
        """A table that the transaction makes, with all that it does to it. Nobody else can have read it."""
        change = self._recovery.change(pinned.ref.location)
        assert change is not None, "to make a table is a change of it"
        encoded = pinned.table.encode_change(pinned.snapshot, change)
        return Write(pinned.ref, NEW, encoded, ReadSet(), blind=False)

    def _check_names(self, head: Head, commit: Commit) -> None:
        """No other entry took a name that the commit gives, or dropped what it drops. If none has until
        this HEAD, the create of the slot after it proves that none has until then."""
        try:
            registry.check(head, commit)
        except InvalidInput as error:
            raise Conflict(
                f"another client changed the lake's tables meanwhile: {error}. Nothing was changed; run the "
                "transaction again"
            ) from error

    def _settle(self, read: ReadHead, entry: Entry, commit: Commit) -> tuple[ReadHead, Committed | None]:
        """Publish our own entry and make it visible. It is decided: a store that goes away cannot undo it."""
        workspace = self._workspace
        log = workspace.catalog.log(workspace.meter)
        settler = CommitSettler(
            read.head.lake,
            entry.seq,
            entry.txn,
            entry.attempt,
            workspace.environment,
            self._places,
            self._open_at,
        )
        try:
            outcome = settler.settle(commit)
            moved = move_head(log, workspace.environment, read, entry, outcome.settled)
        except Unavailable as error:
            raise decided_but_unseen(entry) from error
        workspace.catalog.learn(moved.head)
        if outcome.settled.torn:
            raise _torn(entry, outcome.settled.torn)
        done = Committed(entry.seq, outcome.snapshots) if outcome.settled.published else None
        return moved, done

    def _catch_up(self) -> None:
        """Bring all that the transaction touched up to date. Who has to redo for that lines up first, so that
        it is done once."""
        between = self._news()
        if not self._recovers:
            self._recovery.refuse_conflicts(between)
        elif self._recovery.conflicts(between) and not self._lined_up:
            self._line_up()
            between = self._news()
        self._recovery.catch_up(between)

    def _news(self) -> dict[str, Sequence[Taken]]:
        """What was committed since, by the table's location."""
        touched = self._workspace.touched
        tasks = [partial(pinned.table.since, pinned.snapshot) for pinned in touched]
        found = self._workspace.environment.fan_out(tasks)
        return {p.ref.location: taken for p, taken in zip(touched, found, strict=True)}

    def _is_contended(self) -> bool:
        """Whether somebody had to queue for a table that we change; then we queue too."""
        contended = self._recovers and any(pinned.snapshot.contended for pinned, _ in self._changes())
        if contended:
            self._line_up()
        return contended

    def _line_up(self) -> None:
        """Take a place in the queue of each table that we change by what it holds."""
        self._lined_up = True
        self._turns.line_up([pinned for pinned, change in self._changes() if not change.blind])

    def _is_old(self) -> bool:
        """Whether something that the commit builds on may have been cleaned away; then it is checked."""
        now = self._workspace.environment.elapsed()
        old = [p for p in self._workspace.touched if now - p.pinned_at > PREMISE_SECONDS]
        for pinned in old:
            change = self._recovery.change(pinned.ref.location)
            renew_premise(TableChange(pinned, change or Change(READ)))
        return bool(old)

    def _is_behind(self, head: Head) -> bool:
        """Whether an entry up to this HEAD moved a table since it was pinned. If none did, the create of the
        slot after HEAD proves that none has until then."""
        touched = self._workspace.touched
        return any(head.versions.get(p.ref.location, -1) > p.snapshot.version for p in touched)

    def _open_at(self, ref: TableRef, version: int) -> tuple[Table, Snapshot]:
        pinned = self._workspace.base(ref.location)
        assert pinned.snapshot.version == version, "the entry was made from where we stand"
        return pinned.table, pinned.snapshot


def _torn(entry: Entry, locations: frozenset[str]) -> Corrupt:
    """No redo can mend it: what is left of the commit there would be counted twice."""
    return Corrupt(
        f"transaction {entry.txn} had to be taken back, and a client that knows nothing of LakeVilla built "
        f"on its version of {', '.join(sorted(locations))} before that: there its changes stand, and nowhere "
        f"else. Do not run it again before that is mended by hand; lakevilla explain {entry.txn} shows the "
        "versions"
    )


def _look_at(pinned: Pinned, moved: list[bool]) -> None:
    newest = pinned.table.latest(pinned.snapshot)
    moved.append(newest is None or newest.version != pinned.snapshot.version)


def _write(pinned: Pinned, change: Change, ticket: int | None) -> Write:
    encoded = pinned.table.encode_change(pinned.snapshot, change)
    return Write(pinned.ref, pinned.snapshot.version, encoded, change.read, change.blind, ticket)
