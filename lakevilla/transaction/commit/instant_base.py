"""The base of a commit with isolation: one instant, and the way to a later one (module 4.2).

As long as HEAD is the pinned one there is no later commit, and the create of the slot after it proves that:
no table has to be read. If another entry came first, the versions of the tables that were touched are
compared with the new HEAD's by the rules R1-R3. With recovery a rule that is hit leads to a rebase or a redo
on the new instant, without it to `ValidationFailed`.

All tables move to a later instant together. A transaction with snapshot isolation stays on its instant as
long as the tables that it writes have not changed. If one has changed, the whole transaction moves to the new
instant, and everything that its client was given must be the same there: to redo only a part would lose
updates.
"""

from functools import partial

from lakevilla.errors import Aborted, Conflict, ValidationFailed
from lakevilla.tables.pinned import Pinned
from lakevilla.transaction.commit.commit_base import CommitBase, CommitsSince
from lakevilla.transaction.commit.parts import CommitParts
from lakevilla.transaction.instants.instant import PinnedInstant
from lakevilla.validation.rules import Failure, TableVersions, validate
from lakevilla.versions.log import PREMISE_SECONDS, GlobalLog, ReadHead
from lakevilla.versions.records import Head


class InstantBase(CommitBase):
    """All tables pinned at one instant."""

    def __init__(self, parts: CommitParts) -> None:
        super().__init__(parts)
        assert parts.workspace.instant is not None, "a transaction with isolation has an instant"
        self._instant: PinnedInstant = parts.workspace.instant

    def first(self, log: GlobalLog) -> ReadHead:
        """The pinned HEAD. It is read again if it is old, or if we had to queue meanwhile."""
        self.recheck()
        age = self._workspace.environment.elapsed() - self._instant.read_at
        read = None if age > PREMISE_SECONDS or self._is_contended() else self._instant.read
        return read or self._read_head(log)

    def catch_up_with(self, log: GlobalLog, read: ReadHead) -> ReadHead:
        """Validate, and if a rule is violated, move to this HEAD. A client that has to redo for that queues
        up first, so that it is done once."""
        if self._instant.head.lake not in ("", read.head.lake):
            raise log.recreated()
        # What others committed there without the global log may be cleaned up at any time: the commit must
        # not build on a version below that.
        behind = [pinned.ref for pinned, _ in self.changes if self._parts.premises.is_behind(pinned)]
        if behind:
            read = self._instant.adopt_newest(read, behind)
        if self._instant.read is not None and read.head.seq == self._instant.read.head.seq:
            return read
        while (failure := self._validate(read.head)) is not None or self._rolled_back:
            between = self._commits_since(read.head)
            conflicts = self._redo.conflicts(between)
            if not self._recovers and (conflicts or self._rolled_back or not _keeps_rows(between)):
                raise _invalid(failure)
            if conflicts:
                self._queues.leave_the_lake()
            if not conflicts or self._queued_up:
                # What is redone sees the new instant.
                self._instant.move(read)
                self._redo.catch_up(between)
                break
            self.queue_up()
            read = self._read_head(log)
        self._rolled_back = False
        self._instant.move(read)
        return read

    def _read_head(self, log: GlobalLog) -> ReadHead:
        return log.read_head() or self._workspace.catalog.first_head(self._workspace.meter)

    def _validate(self, head: Head) -> Failure | None:
        written = {pinned.ref.location for pinned, _ in self.changes}
        compared = [self._versions_of(head, pinned, pinned.ref.location in written) for pinned in self._found]
        guarantees = self._parts.guarantees
        return validate(compared, guarantees.isolation, guarantees.slack)

    def _versions_of(self, head: Head, pinned: Pinned, written: bool) -> TableVersions:
        name, version = pinned.ref.name, pinned.snapshot.version
        now = head.versions.get(pinned.ref.location)
        if now is None:
            raise Conflict(
                f"table {name!r}, which the transaction used, was dropped, or could not become part of the "
                "lake's instant. Nothing was changed; run the transaction again",
                table=name,
            )
        return TableVersions(name, version, version + 1 if written else None, hidden=now, log=now)

    def is_behind(self) -> bool:
        return any(self._parts.premises.is_behind(pinned) for pinned, _ in self.changes)

    @property
    def _found(self) -> list[Pinned]:
        """The lake's tables that were touched; no other client knows those that the transaction makes."""
        return [pinned for pinned in self._workspace.touched if not pinned.is_new]

    def _commits_since(self, head: Head) -> CommitsSince:
        """What was committed between the pinned instant and this one, and where we make tables."""
        moved = [p for p in self._found if p.snapshot.version != head.versions[p.ref.location]]
        # Nothing after it: later versions are not part of the instant.
        tasks = [partial(self._since, pinned, head.versions[pinned.ref.location]) for pinned in moved]
        if self._rolled_back:
            made = list(self._workspace.own.made.values())
            moved, tasks = moved + made, tasks + [partial(self._since, pinned) for pinned in made]
        found = self._workspace.environment.fan_out(tasks)
        return {p.ref.location: taken for p, taken in zip(moved, found, strict=True)}


def _keeps_rows(between: CommitsSince) -> bool:
    """Whether these commits only rewrote files: then what was read at the earlier instant is still true."""
    return all(taken.footprint.keeps_rows for found in between.values() for taken in found)


def _invalid(failure: Failure | None) -> Aborted:
    if failure is None:
        return Conflict(
            "another client created a table at the location of one that the transaction creates: nothing "
            "was changed; run the transaction again"
        )
    return ValidationFailed(
        f"the lake moved past the instant that the transaction read: table {failure.table!r} violates rule "
        f"{failure.rule} ({failure.reason}). Nothing was changed; run the transaction again, use lake.run, "
        "or add lakevilla.R, which redoes its statements",
        table=failure.table,
        rule=failure.rule,
    )
