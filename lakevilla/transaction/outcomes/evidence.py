"""What the logs of a lake say of one transaction: found newest first, each object read once.

The global log is asked first: HEAD, and the objects of `heads/`, which hold some thirty entries each. Only
where it does not name the transaction, the logs of the tables are read, page by page, back to the day before
the transaction began.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from lakevilla.answers import HistoryEntry
from lakevilla.environment import Environment
from lakevilla.errors import LakeVillaError, Unavailable
from lakevilla.formats.catalogs import NotConfigured
from lakevilla.formats.port import Table
from lakevilla.model import TableRef
from lakevilla.settle.lost_parts import INVERSE
from lakevilla.store.metered import Meter
from lakevilla.tables.catalog import Catalog
from lakevilla.versions.commits import Adopt, Commit, Void, Write
from lakevilla.versions.head_encoding import Packed
from lakevilla.versions.head_steps import Step
from lakevilla.versions.instants import Instants
from lakevilla.versions.records import CreateTable, Entry, Head

DAY_MS = 24 * 3600 * 1000
"""How far the clocks of two clients may be apart, for what need not be looked at."""

_FIRST_PAGE = 16
_SLOTS = 16


@dataclass(frozen=True, slots=True)
class Seen:
    """The versions of one table that name a transaction, newest first; `oldest` is the oldest version that
    was looked at, None if the table's log was deleted. `first` is the version with which new tables begin;
    `whole` says that no version since the transaction began is missing. `error` says why a table
    of the lake cannot be read at the moment."""

    ref: TableRef
    first: int
    oldest: int | None
    versions: tuple[HistoryEntry, ...]
    whole: bool = True
    error: LakeVillaError | None = None

    def of(self, attempt: str) -> HistoryEntry | None:
        """The version that this attempt wrote."""
        return next((version for version in self.versions if version.attempt == attempt), None)

    def reaches(self, version: int) -> bool:
        """Whether this version was looked at, and all after it."""
        return self.oldest is not None and self.oldest <= version


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the logs say of a transaction: its entries of the global log and what HEAD kept of them, newest
    first, and its versions of tables by location. `head` is the last settled entry's number; `expired` says
    that entries of its time are not there any more."""

    head: int
    entries: tuple[Entry, ...]
    tables: Mapping[str, Seen]
    steps: tuple[Step, ...] = ()
    expired: bool = False

    def is_settled(self, entry: Entry) -> bool:
        return entry.seq <= self.head

    def is_whole(self, entry: Entry) -> bool | None:
        """Whether a settled entry is visible; False if it was rolled back, None if the logs that show it were
        cleaned up."""
        if isinstance(entry.change, Void | Adopt):
            return not isinstance(entry.change, Void)
        step = next((step for step in self.steps if step.seq == entry.seq), None)
        if step is not None:
            return step.published
        match entry.change:
            case Commit(writes=writes):
                parts = [self._is_published(write, entry.attempt) for write in writes]
                return False if False in parts else None if None in parts else True
            case CreateTable(table=table):
                seen = self.tables.get(table.location)
                if seen is None or not seen.reaches(seen.first):
                    return None
                return seen.of(entry.attempt) is not None
        return True

    def torn(self, entry: Entry) -> list[str]:
        """The tables on which a settled entry could not be rolled back, as far as HEAD still records it."""
        step = next((step for step in self.steps if step.seq == entry.seq), None)
        told = frozenset() if step is None else step.added.get("torn", frozenset())
        return sorted(ref.name for ref in entry.tables if ref.location in told)

    @property
    def is_complete(self) -> bool:
        """Whether nothing that could name the transaction is missing."""
        return not self.expired and all(seen.whole for seen in self.tables.values())

    def _is_published(self, write: Write, attempt: str) -> bool | None:
        """Whether the attempt published this part and no client rolled it back."""
        seen = self.tables.get(write.table.location)
        if seen is not None and seen.of(attempt + INVERSE) is not None:
            return False
        if seen is not None and seen.of(attempt) is not None:
            return True
        if seen is None:
            return None
        return False if seen.reaches(seen.first if write.creates else write.base + 1) else None


def find_evidence(
    catalog: Catalog, environment: Environment, txn: str, *, stop_early: bool = False
) -> Evidence:
    """Look for a transaction in the logs of the lake and of its tables. Changes nothing. With `stop_early`
    the logs of tables are not read where the global log names it."""
    return _Search(catalog, environment, txn).run(stop_early)


class _Search:
    """One look. What is older than the transaction by more than a day is not read."""

    def __init__(self, catalog: Catalog, environment: Environment, txn: str) -> None:
        self._catalog = catalog
        self._environment = environment
        self._txn = txn
        self._meter = Meter()
        self._log = catalog.log(self._meter)
        self._begun_ms = int(txn[:12], 16)

    def run(self, stop_early: bool) -> Evidence:
        objects = list(self._objects())
        if not objects:
            return Evidence(0, (), self._in_tables(self._catalog.names(self._meter), None, ()))
        head = objects[0].head
        steps = tuple(step for packed in objects for step in reversed(packed.steps) if step.txn == self._txn)
        earlier = [] if self._reaches_back(objects) else self._slots(objects[-1].base.seq, head.horizon)
        numbers = [*self._unsettled(head.seq), *(step.seq for step in steps)]
        found = self._environment.fan_out([partial(self._log.read_slot, number) for number in numbers])
        seen = [entry.seen_from(head.lake) for entry in (*found, *earlier) if entry is not None]
        entries = [entry for entry in seen if entry.txn == self._txn]
        expired = not self._reaches_back(objects) and not _begins(earlier, self._begun_ms)
        evidence = Evidence(head.seq, tuple(entries), {}, steps, expired)
        if stop_early and (entries or steps):
            return evidence
        names = self._catalog.names(self._meter, head)
        return Evidence(head.seq, tuple(entries), self._in_tables(names, head, objects), steps, expired)

    def _objects(self) -> Iterator[Packed]:
        """HEAD and what was put aside before, newest first, back to the day before the transaction began."""
        for packed in Instants(self._log).objects():
            yield packed
            if self._reaches_back([packed]):
                return

    def _reaches_back(self, objects: Sequence[Packed]) -> bool:
        """Whether all older objects were written before the transaction began."""
        base = objects[-1].base
        return base.seq == 0 or (base.time_ms > 0 and self._is_before(base.time_ms))

    def _unsettled(self, head: int) -> Iterator[int]:
        """The numbers of entries that are decided and not settled; as a rule there are none."""
        number = head + 1
        while self._log.read_slot(number) is not None:
            yield number
            number += 1

    def _slots(self, newest: int, horizon: int) -> list[Entry]:
        """Entries that only their slots record, newest first: HEADs of format 1 kept nothing."""
        found: list[Entry] = []
        for last in range(newest, 0, -_SLOTS):
            numbers = range(last, max(0, last - _SLOTS), -1)
            read = self._environment.fan_out([partial(self._log.read_slot, number) for number in numbers])
            entries = [entry for entry in read if entry is not None]
            found += entries
            if _begins(entries, self._begun_ms) or (not entries and last < horizon):
                break
        return found

    def _in_tables(
        self, names: Sequence[str], head: Head | None, objects: Sequence[Packed]
    ) -> dict[str, Seen]:
        """The lake's tables, and those that were dropped or renamed since the transaction began."""
        refs = [ref for name in names if (ref := self._catalog.resolve(name, self._meter, head)) is not None]
        current = {ref.location for ref in refs}
        for packed in objects:
            refs += packed.base.tables.values()
            for step in packed.steps:
                refs += [ref for ref in step.maps.get("tables", {}).values() if ref is not None]
        known = {ref.location for ref in refs}
        gone = {at for packed in objects for step in packed.steps for at in step.added.get("dropped", ())}
        for location in sorted(gone - known):
            found = self._catalog.format_at(location, self._meter)
            refs += [] if found is None else [TableRef(location, location, found)]
        # The newest name of each.
        unique = {ref.location: ref for ref in reversed(refs)}
        seen = self._environment.fan_out([partial(self._in_table, ref) for ref in unique.values()])
        return {
            one.ref.location: one if one.ref.location in current else replace(one, error=None) for one in seen
        }

    def _in_table(self, ref: TableRef) -> Seen:
        table = self._catalog.open(ref, self._meter)
        try:
            return self._pages(ref, table)
        except (Unavailable, NotConfigured) as error:
            return Seen(ref, table.first_version, None, (), whole=False, error=error)
        except LakeVillaError:
            # The table was deleted, or its log cannot be read: it says nothing about the transaction.
            return Seen(ref, table.first_version, None, (), whole=False)

    def _pages(self, ref: TableRef, table: Table) -> Seen:
        limit, oldest, own = _FIRST_PAGE, None, list[HistoryEntry]()
        numbers: list[int] = []
        while True:
            page = table.history(limit, oldest, brief=True)
            numbers += [entry.version for entry in page]
            own += [entry for entry in page if entry.txn == self._txn]
            oldest = page[-1].version if page else oldest
            back = bool(page) and self._is_before(page[-1].timestamp_ms)
            if len(page) < limit or back:
                begins = back or (oldest is not None and oldest <= table.first_version)
                # Between the versions that are there some may be missing, where a log was cleaned up.
                whole = begins and len(numbers) == numbers[0] - numbers[-1] + 1
                if not whole:
                    own = [entry for entry in own if not table.is_stale(entry.version)]
                return Seen(ref, table.first_version, oldest, tuple(own), whole)
            limit *= 4

    def _is_before(self, time_ms: int) -> bool:
        return time_ms < self._begun_ms - DAY_MS


def _begins(entries: Sequence[Entry], begun_ms: int) -> bool:
    """Whether all entries before these were written before the transaction began."""
    return any(entry.time_ms < begun_ms - DAY_MS or entry.seq == 1 for entry in entries)
