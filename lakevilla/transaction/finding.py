"""What became of a transaction, asked by somebody who was not there (docs/guarantees.md, "Outcomes").

Only a log can say that a transaction is committed. That no log names it says less: its client may be paused
and publish later. Age does not rule that out. A client may not build on what it read longer than an hour ago,
but it may read again, find that nothing is in its way, and publish; so nothing here turns into `aborted` with
time. What was decided in the global log and had to be taken back is aborted for good.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from lakevilla.environment import Environment
from lakevilla.errors import InvalidInput
from lakevilla.markers.lease import Leases
from lakevilla.markers.survey import find_stale
from lakevilla.model import HistoryEntry, Outcome, TableRef
from lakevilla.settle.commits import INVERSE
from lakevilla.store.metered import Meter
from lakevilla.sublogs.reading import has_sublogs
from lakevilla.transaction.catalog import Catalog
from lakevilla.transaction.resuming import lease_of
from lakevilla.versions.commits import Adopt, Commit, Void, Write
from lakevilla.versions.records import CreateTable, Entry

DAY_MS = 24 * 3600 * 1000
"""How far the clocks of two clients may be apart, for what need not be looked at."""

_ID = re.compile(r"[0-9a-f]{32}")
_FIRST_ENTRIES = 16
_SLOTS = 16


def is_id(text: str) -> bool:
    """Whether this can be the id of a transaction."""
    return _ID.fullmatch(text) is not None


def check_id(txn: str) -> str:
    """The id of a transaction itself, if it can be one."""
    if not isinstance(txn, str) or not is_id(txn):
        raise InvalidInput(f"{txn!r} is not the id of a transaction: tx.id has 32 hexadecimal digits")
    return txn


@dataclass(frozen=True, slots=True)
class Seen:
    """The versions of one table that name a transaction, newest first; `oldest` is the oldest version that
    was looked at, None if the table's log is gone. `first` is the version with which new tables begin."""

    ref: TableRef
    first: int
    oldest: int | None
    versions: tuple[HistoryEntry, ...]

    def of(self, attempt: str) -> HistoryEntry | None:
        """The version that this attempt wrote."""
        return next((version for version in self.versions if version.attempt == attempt), None)

    def reaches(self, version: int) -> bool:
        """Whether this version was looked at, and all after it."""
        return self.oldest is not None and self.oldest <= version


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the logs say of a transaction: its entries of the global log, newest first, and its versions of
    tables by location. `head` is the last settled entry's number; `expired` says that entries of its time
    are not there any more."""

    head: int
    entries: tuple[Entry, ...]
    tables: Mapping[str, Seen]
    expired: bool = False

    def is_settled(self, entry: Entry) -> bool:
        return entry.seq <= self.head

    def is_whole(self, entry: Entry) -> bool | None:
        """Whether a settled entry stands; False if it had to be taken back, None if logs that would tell
        were cleaned away."""
        match entry.change:
            case Commit(writes=writes):
                told = [self._stands(write, entry.attempt) for write in writes]
                return False if False in told else None if None in told else True
            case CreateTable(table=table):
                seen = self.tables.get(table.location)
                if seen is None or not seen.reaches(seen.first):
                    return None
                return seen.of(entry.attempt) is not None
        return not isinstance(entry.change, Void)

    def _stands(self, write: Write, attempt: str) -> bool | None:
        """Whether the attempt published this part and nobody took it back."""
        seen = self.tables.get(write.table.location)
        if seen is not None and seen.of(attempt + INVERSE) is not None:
            return False
        if seen is not None and seen.of(attempt) is not None:
            return True
        if seen is None:
            return None
        return False if seen.reaches(seen.first if write.creates else write.base + 1) else None


def find_outcome(catalog: Catalog, environment: Environment, leases: Leases, txn: str) -> Outcome:
    """Look for a transaction in the logs of the lake and of its tables, newest first; then for its client."""
    return outcome_of(find_evidence(catalog, environment, txn), catalog, environment, leases, txn)


def outcome_of(
    evidence: Evidence, catalog: Catalog, environment: Environment, leases: Leases, txn: str
) -> Outcome:
    """What the evidence says of a transaction; of one that no log names, what its client left says."""
    if evidence.entries:
        decided = _decided(txn, evidence, evidence.entries[0])
        if decided is not None:
            return decided
    for seen in evidence.tables.values():
        if seen.versions:
            version, name = seen.versions[0].version, seen.ref.name
            return _committed(txn, f"version {version} of {name!r}", name, version)
    found = _not_found(catalog, environment, leases, txn)
    return replace(found, advice=_EXPIRED) if evidence.expired and found.advice == _LOST else found


def find_evidence(catalog: Catalog, environment: Environment, txn: str) -> Evidence:
    """Look for a transaction in the logs of the lake and of its tables. Changes nothing."""
    return _Search(catalog, environment, txn).run()


class _Search:
    """One look. Entries that are older than the transaction by more than a day are not read."""

    def __init__(self, catalog: Catalog, environment: Environment, txn: str) -> None:
        self._catalog = catalog
        self._environment = environment
        self._txn = txn
        self._meter = Meter()
        self._begun_ms = int(txn[:12], 16)

    def run(self) -> Evidence:
        head = self._catalog.head(self._meter, fresh=True)
        slots = [] if head is None else self._slots(head.seq + 1, head.horizon)
        expired = head is not None and head.horizon > 0 and not self._reaches_back(slots)
        refs = self._tables(slots)
        found = self._environment.fan_out([partial(self._in_table, ref) for ref in refs])
        return Evidence(
            0 if head is None else head.seq,
            tuple(entry for entry in slots if entry.txn == self._txn),
            {seen.ref.location: seen for seen in found},
            expired,
        )

    def _slots(self, newest: int, horizon: int) -> list[Entry]:
        """The entries of the global log that may matter, newest first, as far as they are kept."""
        log, found = self._catalog.log(self._meter), list[Entry]()
        for last in range(newest, 0, -_SLOTS):
            numbers = range(last, max(0, last - _SLOTS), -1)
            read = self._environment.fan_out([partial(log.read_slot, number) for number in numbers])
            entries = [entry for entry in read if entry is not None]
            found += entries
            if self._reaches_back(entries) or (not entries and last < horizon):
                break
        return found

    def _reaches_back(self, entries: Sequence[Entry]) -> bool:
        """Whether what lies before these entries was written before the transaction began."""
        return any(self._is_before(entry.time_ms) or entry.seq == 1 for entry in entries)

    def _tables(self, slots: Sequence[Entry]) -> list[TableRef]:
        """The lake's tables, and those that were dropped or renamed since the transaction began."""
        names = self._catalog.names(self._meter)
        pins = self._environment.fan_out([partial(self._catalog.find, name, self._meter) for name in names])
        refs = {pinned.ref.location: pinned.ref for pinned in pins if pinned is not None}
        for entry in slots:
            for ref in entry.tables:
                refs.setdefault(ref.location, ref)
        return list(refs.values())

    def _in_table(self, ref: TableRef) -> Seen:
        table, limit = self._catalog.open(ref, self._meter), _FIRST_ENTRIES
        while True:
            entries = table.history(limit)
            if len(entries) < limit or self._is_before(entries[-1].timestamp_ms):
                own = tuple(entry for entry in entries if entry.txn == self._txn)
                return Seen(ref, table.first_version, entries[-1].version if entries else None, own)
            limit *= 4

    def _is_before(self, time_ms: int) -> bool:
        return time_ms < self._begun_ms - DAY_MS


def _decided(txn: str, evidence: Evidence, entry: Entry) -> Outcome | None:
    """What became of a transaction that is an entry of the global log; None if that entry was given up."""
    place = f"entry {entry.seq} of the global log"
    if isinstance(entry.change, Void | Adopt):
        return None
    if not isinstance(entry.change, Commit | CreateTable):
        table = next((ref.name for ref in entry.tables), None)
        return _committed(txn, place, table, None, entry.seq)
    if not evidence.is_settled(entry):
        advice = f"it is {place}, which the next client that writes to the lake completes: ask again then"
        return Outcome(txn, "undecided", advice, seq=entry.seq)
    match evidence.is_whole(entry):
        case True:
            return _committed(txn, place, None, None, entry.seq)
        case False:
            advice = f"it was {place} and had to give way: nothing of it is visible, and it may be run again"
            return Outcome(txn, "aborted", advice, seq=entry.seq)
    advice = (
        f"it is {place}, and the log entries of its tables that would tell whether it stands were cleaned "
        "away: look at the data before it is run again"
    )
    return Outcome(txn, "undecided", advice, seq=entry.seq)


def _committed(
    txn: str, place: str, table: str | None, version: int | None, seq: int | None = None
) -> Outcome:
    return Outcome(txn, "committed", f"it is committed, as {place}: do not run it again", table, version, seq)


def _not_found(catalog: Catalog, environment: Environment, leases: Leases, txn: str) -> Outcome:
    store = catalog.root(Meter())
    lease = lease_of(store, txn)
    if lease is not None and not find_stale([(txn, lease.attempt)], leases, environment)[0]:
        return Outcome(txn, "live", _LIVE)
    advice = _RESUME.format(txn=txn) if has_sublogs(store, txn) else _LOST
    return Outcome(txn, "undecided", advice)


_LIVE = "no table names it yet, and its client shows signs of life: wait for it"
_RESUME = (
    "no table names it, and its client shows no sign of life, but it left what it had done: "
    "lake.resume('{txn}') goes on with it"
)
_EXPIRED = (
    "no table names it, and entries of the lake from when it ran have expired: whether it was committed is "
    "not known any more; look at the data before it is run again"
)
_LOST = (
    "no table names it. If its client has ended, and no request of it can still be under way after some "
    "minutes, it was not committed and may be run again; a client that is only paused may still commit it"
)
