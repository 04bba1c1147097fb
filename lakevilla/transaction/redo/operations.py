"""The operations of a transaction: what each did, what it read, and what its client knows of it."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from lakevilla.conflicts.files import follow
from lakevilla.errors import InvalidInput
from lakevilla.model import Change, Counts, Footprint, ReadSet, WrittenFile
from lakevilla.sublogs.net import net
from lakevilla.sublogs.reads import Reads
from lakevilla.tables.pinned import Pinned
from lakevilla.transaction.statements.effect import Effect, LakeChange, TableChange, TableDrop
from lakevilla.transaction.statements.statement import Statement
from lakevilla.transaction.workspace import Workspace
from lakevilla.versions.views import ViewChange

FeedKey = tuple[tuple[str, ...], ...]

READ = "READ"
"""The operation of a statement that changed nothing, in errors."""
DROP = "DROP TABLE"


class WatchedCounts(Counts):
    """Counts that note when they are looked at: from then on the client may depend on their values.

    Until then a redo may change them, so `look` gives them as they are.
    """

    def __init__(self, look: Callable[[], Counts]) -> None:
        super().__init__()
        object.__setattr__(self, "_look", look)

    def __getattribute__(self, name: str) -> Any:
        if name in ("inserted", "updated", "deleted"):
            return getattr(self.__dict__["_look"](), name)
        return super().__getattribute__(name)


# To users they are counts like any others, also where an error names their type.
WatchedCounts.__name__ = WatchedCounts.__qualname__ = Counts.__qualname__


class Operation:
    """One statement that ran. `seen` says that its client may depend on the result. `begun_at` is when it
    began, on the environment's clock: its files are not older. Where that is not known they are looked at
    before the commit."""

    def __init__(
        self, statement: Statement, reads: Reads, effect: Effect, begun_at: float = -math.inf
    ) -> None:
        self.begun_at = begun_at
        self.statement = statement
        self.reads = reads
        self.result = effect.result
        self.pending = effect.pending
        self.seen = not isinstance(effect.result, Counts)
        self.over = False
        """Whether nothing is left of it: it failed, or was rolled back."""

    def hand_out(self) -> Any:
        """The result, for the client."""
        if not isinstance(self.result, Counts):
            return self.result
        return WatchedCounts(self._look)

    def _look(self) -> Counts:
        self.seen = True
        counts: Counts = self.result
        return counts

    @property
    def name(self) -> str:
        """What the statement is, for errors."""
        match self.pending:
            case TableChange(change=change):
                return change.operation
            case TableDrop():
                return DROP
            case ViewChange(view=view):
                return "DROP VIEW" if view is None else "CREATE VIEW"
        return READ

    @property
    def uploaded_at(self) -> float:
        """No file that it adds is older than this, on the environment's clock. Those of an earlier version
        are of any age; as long as their instant is kept, so are they."""
        match self.pending:
            case TableChange(restores=True, instant=None):
                return -math.inf
        return self.begun_at

    def show(self, workspace: Workspace, *, again: bool = False) -> None:
        """Let the statements after it see what it did; `again` if they did on an older version."""
        match self.pending:
            case TableChange(pinned, change):
                if pinned.is_new:
                    workspace.make(pinned)
                workspace.write(pinned.ref.location, change, again=again)
            case TableDrop(pinned):
                workspace.own.drop(pinned)
            case ViewChange() as change:
                workspace.own.change_view(change)

    def change_of(self, location: str) -> Change | None:
        """What the operation does to a table."""
        if isinstance(self.pending, TableChange) and self.pending.pinned.ref.location == location:
            return self.pending.change
        return None

    def change_and_reads(self, location: str) -> Change | None:
        """What it does to a table and has read of it, also lazily; None if it has nothing to do with it."""
        change, read = self.change_of(location), self.reads.of(location)
        if change is None and read is None:
            return None
        change = change or Change(READ)
        # Files that the change itself asks not to be read, such as a constraint's rows, stand there already.
        return replace(change, read=change.read.union(read or ReadSet()))

    def follow(self, location: str, foreign: Iterable[Footprint]) -> None:
        """Commits of others, which did not concern the operation, may have moved rows that it has read."""
        for footprint in foreign:
            self.reads.follow(location, partial(follow, theirs=footprint))

    def undone(self) -> "Operation":
        """The operation after it was rolled back, or has failed: its client still knows what it gave.

        Whatever it looked into counts as read, for what it would have done to that is not kept.
        """
        self.reads.keep_files()
        left = Operation(replace(self.statement, once="it was rolled back"), self.reads, Effect(self.result))
        left.seen, left.over = self.seen, True
        return left


@dataclass(frozen=True)
class _Savepoint:
    name: str
    length: int


class Operations:
    """The operations so far, in order, with savepoints between them."""

    def __init__(self) -> None:
        self._all: list[Operation] = []
        self._feeds: dict[str, tuple[FeedKey, tuple[WrittenFile, ...]]] = {}
        self._savepoints: list[_Savepoint] = []

    def __iter__(self) -> Iterator[Operation]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def add(self, operation: Operation) -> None:
        self._all.append(operation)

    def clear(self) -> None:
        self._all.clear()
        self._savepoints.clear()

    def forget_results(self) -> None:
        """Hold no rows that clients were given: a DataFrame holds its session's plan, which holds us."""
        for operation in self._all:
            if not isinstance(operation.result, Counts):
                operation.result = None

    def savepoint(self, name: str) -> None:
        """Remember this place. The same name again moves it here."""
        self._savepoints = [s for s in self._savepoints if s.name != name]
        self._savepoints.append(_Savepoint(name, len(self._all)))

    def roll_back_to(self, name: str) -> None:
        """Undo what came after the savepoint, which stays; those after it go."""
        found = next((s for s in self._savepoints if s.name == name), None)
        if found is None:
            known = ", ".join(repr(s.name) for s in self._savepoints) or "none"
            raise InvalidInput(f"unknown savepoint {name!r} in this transaction; available: {known}")
        undone = self._all[found.length :]
        # What was seen may depend on what was done before it, also where that was never looked at.
        seen = max((number for number, op in enumerate(undone, 1) if op.seen), default=0)
        self._all = self._all[: found.length] + [op.undone() for op in undone[:seen]]
        self._savepoints = self._savepoints[: self._savepoints.index(found) + 1]

    def show(self, workspace: Workspace) -> None:
        """Let the next statement see what all of them did, and nothing else."""
        for pinned in workspace.touched:
            workspace.move(pinned.ref.location, pinned.snapshot)
        workspace.own.restart()
        for operation in self._all:
            operation.show(workspace)

    @property
    def savepoints(self) -> list[tuple[int, str]]:
        """Each savepoint by the number of operations before it."""
        return [(savepoint.length, savepoint.name) for savepoint in self._savepoints]

    @property
    def lake_change(self) -> LakeChange | None:
        """The change of the registry that the transaction makes, if it does."""
        found = (op.pending for op in self._all if isinstance(op.pending, LakeChange))
        return next(found, None)

    @property
    def targets(self) -> list[Pinned]:
        """The tables that the transaction changes, each as it was pinned for its first change."""
        found: dict[str, Pinned] = {}
        for operation in self._all:
            if isinstance(operation.pending, TableChange):
                found.setdefault(operation.pending.pinned.ref.location, operation.pending.pinned)
        return list(found.values())

    @property
    def meant_to_change(self) -> bool:
        """Whether one of them is to change rows, also if there was no row to change."""
        return any(isinstance(operation.result, Counts) and not operation.over for operation in self._all)

    def uploaded_since(self, location: str) -> float:
        """No file that the operations add to a table is older than this, on the environment's clock."""
        changes = ((op.uploaded_at, op.change_of(location)) for op in self._all)
        return min(
            (start for start, change in changes if change is not None and (change.added or change.feed)),
            default=math.inf,
        )

    @property
    def instants(self) -> set[int]:
        """The entries of the global log whose instants must not have expired when the commit is decided."""
        found = (op.pending.instant for op in self._all if isinstance(op.pending, TableChange))
        return {seq for seq in found if seq is not None}

    def changes_of(self, location: str) -> list[TableChange]:
        """What each of them does to a table."""
        pending = (op.pending for op in self._all if op.change_of(location) is not None)
        return [one for one in pending if isinstance(one, TableChange)]

    def net(self, location: str) -> Change | None:
        """What the operations do to a table together; None if nothing is left of it."""
        changes = [one.change for one in self.changes_of(location)]
        together = net(changes)
        if together is None or len(changes) == 1 or location not in self._feeds:
            return together
        key, feed = self._feeds[location]
        return replace(together, feed=feed) if key == _feed_key(changes) else together

    def has_feed(self, location: str) -> bool:
        """Whether the feed of these changes has been put together."""
        known = self._feeds.get(location)
        return known is not None and known[0] == _feed_key([one.change for one in self.changes_of(location)])

    def keep_feed(self, location: str, feed: tuple[WrittenFile, ...]) -> None:
        """The change data feed of all that they do to a table, for as long as they stay as they are."""
        self._feeds[location] = _feed_key([one.change for one in self.changes_of(location)]), feed

    def change(self, location: str) -> Change | None:
        """The same with all that they have read of the table."""
        change = self.net(location)
        return None if change is None else replace(change, read=self.read_of(location))

    def read_of(self, location: str) -> ReadSet:
        """All that the operations have read of a table."""
        read = ReadSet()
        for operation in self._all:
            change = operation.change_and_reads(location)
            read = read if change is None else read.union(change.read)
        return read


def _feed_key(changes: Sequence[Change]) -> FeedKey:
    """What tells changes from others that a redo has put in their place."""
    found = []
    for change in changes:
        written = [file.key for file in (*change.added, *change.feed)]
        found.append((*written, *(file.identity for file in change.removed)))
    return tuple(found)
