"""The base of a commit that the global log decides, and how it moves to a later HEAD.

Without isolation each table was pinned separately. For a table that was changed, settling reads every version
since; a table that was only read is asked for newer versions in the same round as HEAD is read. The versions
in HEAD show whether an entry came between the pins and that. With isolation it is the other way round, see
`instant_base`: HEAD said what to read.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from lakevilla.formats.authorship import keeps_rows
from lakevilla.formats.port import Taken
from lakevilla.model import Change
from lakevilla.tables.pinned import Pinned
from lakevilla.transaction.commit.parts import CommitParts
from lakevilla.transaction.redo.operations import READ
from lakevilla.transaction.statements.effect import TableChange
from lakevilla.versions.log import GlobalLog, ReadHead

CommitsSince = Mapping[str, Sequence[Taken]]
"""What was committed since, by the table's location."""


class CommitBase(ABC):
    """The versions that one transaction's commit builds on."""

    def __init__(self, parts: CommitParts) -> None:
        self._parts = parts
        self._workspace = parts.workspace
        self._queues = parts.queues
        self._redo = parts.redo
        self._recovers = parts.guarantees.recovers
        self._queued_up = False
        self._rolled_back = False
        self._met: dict[str, list[Taken]] = {}

    @abstractmethod
    def first(self, log: GlobalLog) -> ReadHead:
        """The HEAD after which the transaction tries to be decided first."""

    @abstractmethod
    def catch_up_with(self, log: GlobalLog, read: ReadHead) -> ReadHead:
        """Move all that the transaction did to this HEAD, or to a later one, which is returned.

        Raises Aborted if that is impossible. Called again whenever another entry came first, or an outside
        writer conflicted.
        """

    def was_rolled_back(self) -> None:
        """The decided commit was rolled back, because an outside writer conflicted, perhaps where a table was
        to be made."""
        self._rolled_back = True

    @property
    def changes(self) -> list[tuple[Pinned, Change]]:
        """The lake's tables that the transaction changes, and how."""
        found = [(p, self._parts.operations.change(p.ref.location)) for p in self._workspace.changeable]
        return [(pinned, change) for pinned, change in found if change is not None]

    def _is_contended(self) -> bool:
        """Whether another client had to queue for a table that we change; then we queue too. A change that
        only rewrites files always does, so that it redoes no client twice that waits there."""
        contended = self._recovers and any(
            pinned.snapshot.coordination.contended or keeps_rows(change) for pinned, change in self.changes
        )
        if contended:
            self.queue_up()
        return contended

    def queue_up(self) -> None:
        """Claim a ticket for each table that we change by what we read of it, if we can redo that."""
        if self._queued_up or not self._recovers:
            return
        self._queued_up = True
        self._met = self._queues.queue_up([pinned for pinned, change in self.changes if not change.blind])

    def _since(self, pinned: Pinned, version: int | None = None) -> list[Taken]:
        """What was committed on a table since it was pinned, up to a version or to its newest. What was read
        while we queued up is not read again."""
        met = self._met.get(pinned.ref.location, ())
        found = [taken for taken in met if taken.snapshot.version > pinned.snapshot.version]
        last = found[-1].snapshot if found else pinned.snapshot
        if version is None or last.version < version:
            found += pinned.table.since(last)
        return found if version is None else [taken for taken in found if taken.snapshot.version <= version]

    def recheck(self) -> None:
        """Check again what the commit builds on, if it is so old that it may have been deleted."""
        touched = [(p, self._parts.operations.change(p.ref.location)) for p in self._workspace.touched]
        self._parts.premises.recheck([TableChange(p, change or Change(READ)) for p, change in touched])

    def is_behind(self) -> bool:
        """Whether log entries after a pinned version may have been deleted."""
        return any(self._parts.premises.is_behind(pinned) for pinned in self._workspace.touched)


class PerTableBase(CommitBase):
    """Each table pinned separately."""

    _unsure = False
    """Whether something may have been committed that we have not seen."""

    def first(self, log: GlobalLog) -> ReadHead:
        """HEAD, and whether a table that is only read has moved, in the same round as what is left of the
        uploads."""
        if self.is_behind() or self._is_contended():
            self._catch_up()
        # In this order: versions after the pinned one that are found now are young.
        self.recheck()
        workspace, found, moved = self._workspace, list[ReadHead | None](), list[bool]()
        written = {pinned.ref.location for pinned, _ in self.changes}
        left = {*written, *workspace.own.made}
        only_read = [pinned for pinned in workspace.touched if pinned.ref.location not in left]
        tasks: list[Callable[[], None]] = [partial(_look_at, pinned, moved) for pinned in only_read]
        tasks += [lambda: found.append(log.read_head()), workspace.uploads.finish]
        workspace.environment.fan_out(tasks)
        self._unsure = any(moved)
        return found[0] or workspace.catalog.first_head(workspace.meter)

    def catch_up_with(self, log: GlobalLog, read: ReadHead) -> ReadHead:  # noqa: ARG002 - later ones are met by the slot
        """If no entry up to this HEAD moved a table since it was pinned, the create of the slot after HEAD
        proves that none has until then."""
        versions = read.head.versions
        if self._unsure or any(
            versions.get(p.ref.location, -1) > p.snapshot.version for p in self._workspace.touched
        ):
            self._catch_up()
        self._unsure = True
        return read

    def _catch_up(self) -> None:
        """Bring all that the transaction touched up to date. A client that has to redo for that queues up
        first, so that it is done once."""
        between = self._commits_since()
        if not self._recovers:
            self._redo.refuse_conflicts(between)
        elif self._redo.conflicts(between):
            self._queues.leave_the_lake()
            if not self._queued_up:
                self.queue_up()
                between = self._commits_since()
        self._redo.catch_up(between)

    def _commits_since(self) -> CommitsSince:
        touched = self._workspace.touched
        tasks = [partial(self._since, pinned) for pinned in touched]
        found = self._workspace.environment.fan_out(tasks)
        return {p.ref.location: taken for p, taken in zip(touched, found, strict=True)}


def _look_at(pinned: Pinned, moved: list[bool]) -> None:
    newest = pinned.table.latest(pinned.snapshot)
    moved.append(newest is None or newest.version != pinned.snapshot.version)
