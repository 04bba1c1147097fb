"""That an entry is still to be settled: the premise of a client that settles it (docs/protocol.md, 1 and 7).

While an entry is not settled nothing that it needs is deleted. Other clients may settle it at any time, and a
day later its tables may have moved on and their logs may be cleaned up. A client that was suspended in
between would then create numbers that had been used, or make tables again that were dropped. So a client that
settles looks at HEAD again when its last look is an hour old, before each write and after it:

- HEAD has come past the entry: the client stops (`Overtaken`), and reads the result of the entry from HEAD.
- The number that it created had been used: it deletes that log entry again. A client that completes an old
  entry of another looks for that too.

An entry whose slot was created long after it was made may name uploads that vacuum deleted in between, or
build on versions whose log entries were cleaned up. Uploads are looked for before they are published. If
something is missing the table cannot take its part, and stays as it is (`lost_parts`).
"""

from dataclasses import dataclass
from typing import Any, cast

from lakevilla.environment import Environment
from lakevilla.errors import Corrupt, InvalidInput
from lakevilla.formats.port import Published, Snapshot, Table, Taken
from lakevilla.model import Author, Change, Notice, TableRef
from lakevilla.settle.places import Places
from lakevilla.store.port import Store
from lakevilla.versions.log import PREMISE_SECONDS, GlobalLog, LakeRecreated, ReadHead
from lakevilla.versions.records import Entry


class Overtaken(Exception):
    """Another client settled the entry while this one was suspended. `read` is HEAD beyond it."""

    def __init__(self, read: ReadHead) -> None:
        super().__init__(f"HEAD is at entry {read.head.seq}")
        self.read = read


class Premise:
    """That HEAD has not come to an entry, as of a moment `since` of the environment's clock. `found` says
    that the entry may build on versions that are older than anything in its tables' logs. `late` says that
    its slot was created long after its client had looked for the versions that it builds on, and for the
    files that it uploaded. `lost` are locations of tables that an operator has declared lost: this client
    does not wait until they can be reached."""

    def __init__(
        self,
        log: GlobalLog,
        environment: Environment,
        entry: Entry,
        since: float,
        *,
        found: bool = False,
        late: bool = False,
        lost: frozenset[str] = frozenset(),
    ) -> None:
        self._log = log
        self._environment = environment
        self._entry = entry
        self._since = since
        self.found = found
        self.late = late
        self.lost = lost

    @property
    def is_old(self) -> bool:
        return self._environment.elapsed() - self._since > PREMISE_SECONDS

    def decided(self) -> None:
        """The slot was created just now."""
        self.late = self.is_old
        self.found = self.found or self.late

    def is_recent(self) -> bool:
        """Whether the slot was created so short a time ago that nothing that settled its entry can have been
        cleaned up since."""
        return not self._log.is_aged(self._entry)

    def decided_ms(self) -> int | None:
        """When the slot was created, by the lake's store; None if it is not there any more."""
        return self._log.decided_ms(self._entry)

    def check(self) -> None:
        """Look at HEAD again if the last look is old; Overtaken if HEAD has come past the entry."""
        if self.is_old:
            now, read = self._environment.elapsed(), self.passed()
            if read is not None:
                raise Overtaken(read)
            # Other clients may have cleaned up the logs of its tables, whether it is settled or not.
            self._since, self.found = now, True

    def passed(self) -> ReadHead | None:
        """HEAD, if it has come past the entry; LakeRecreated if it is another lake's."""
        read = self._log.read_head_of(self._entry.lake)
        return read if read.head.seq >= self._entry.seq else None


@dataclass(frozen=True)
class GuardedPlaces:
    """The tables of a lake for a client that settles an entry: nothing is written there once the entry is
    settled."""

    places: Places
    premise: Premise

    @property
    def url(self) -> str:
        return self.places.url

    def open(self, ref: TableRef) -> Table:
        return guarded(self.places.open(ref), ref, self.premise)

    def store(self, ref: TableRef) -> Store:
        self.premise.check()
        return self.places.store(ref)


def guarded(table: Table, ref: TableRef, premise: Premise) -> Table:
    """The table, whose writes rest on this premise."""
    return cast(Table, _Guarded(table, ref, premise))


class _Guarded:
    """A table whose writes look at the premise before and after; everything else is the table's own."""

    def __init__(self, table: Table, ref: TableRef, premise: Premise) -> None:
        self._table = table
        self._ref = ref
        self._premise = premise

    def __getattr__(self, name: str) -> Any:
        return getattr(self._table, name)

    def publish(self, base: Snapshot, change: Change, author: Author) -> Published | Taken:
        self._premise.check()
        try:
            answer = self._table.publish(base, change, author)
        except (Corrupt, InvalidInput):
            # What it builds on may have been cleaned away, because the entry is settled.
            self._premise.check()
            raise
        if isinstance(answer, Published):
            self._confirm(answer.snapshot.version, author.put)
        return answer

    def publish_first(self, data: bytes, attempt: str) -> bool:
        self._premise.check()
        answer = self._table.publish_first(data, attempt)
        if answer and self._premise.is_old:
            self._confirm(self._table.first_version, None)
        return answer

    def publish_notice(self, base: int, notice: Notice, txn: str, attempt: str) -> tuple[int, str] | None:
        self._premise.check()
        made = self._table.publish_notice(base, notice, txn, attempt)
        if made is not None and self._premise.is_old:
            self._confirm(*made)
        return made

    def renew_hint(self, snapshot: Snapshot) -> None:
        self._premise.check()
        self._table.renew_hint(snapshot)

    def _confirm(self, version: int, put: str | None) -> None:
        """Confirm what was published, or delete it again because its number had been used. An entry that
        another client published for the same commit stays: that client deletes it when it confirms it."""
        if not self._premise.found and not self._premise.is_old:
            return
        try:
            read = self._premise.passed() if self._premise.is_old else None
        except LakeRecreated:
            self._table.retract(version, put, True)
            raise
        places = () if read is None else {ref.location for ref in read.head.tables.values()}
        orphaned = read is not None and self._ref.location not in places
        used = self._table.retract(version, put, orphaned) or self._table.is_stale(version)
        if read is not None:
            raise Overtaken(read)
        if used:
            raise Corrupt(
                f"log entries of table {self._ref.name!r} from version {version} on were cleaned up "
                "before a decided commit could be published there",
                table=self._ref.name,
                version=version,
            )
