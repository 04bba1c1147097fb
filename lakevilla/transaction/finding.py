"""What became of a transaction, asked by somebody who was not there (docs/protocol.md, section 8).

Only a log can say that a transaction is committed. That no log names it says less: its client may be paused
and publish later. Age does not rule that out. A client may not build on what it read longer than an hour ago,
but it may read again, find that nothing is in its way, and publish; so nothing here turns into `aborted` with
time. What was decided in the global log and had to be taken back is aborted for good.
"""

import re
from collections.abc import Mapping, Sequence
from functools import partial

from lakevilla.environment import Environment
from lakevilla.errors import InvalidInput
from lakevilla.markers.lease import Leases
from lakevilla.markers.survey import find_stale
from lakevilla.model import HistoryEntry, Outcome, TableRef
from lakevilla.store.metered import Meter
from lakevilla.sublogs.reading import has_sublogs
from lakevilla.transaction.catalog import Catalog
from lakevilla.transaction.resuming import lease_of
from lakevilla.versions.commits import Commit, Void
from lakevilla.versions.records import CreateTable, Entry

DAY_MS = 24 * 3600 * 1000
"""How far the clocks of two clients may be apart, for what need not be looked at."""

_ID = re.compile(r"[0-9a-f]{32}")
_FIRST_ENTRIES = 16
_SLOTS = 16


def check_id(txn: str) -> str:
    """The id of a transaction itself, if it can be one."""
    if not isinstance(txn, str) or not _ID.fullmatch(txn):
        raise InvalidInput(f"{txn!r} is not the id of a transaction: tx.id has 32 hexadecimal digits")
    return txn


def find_outcome(catalog: Catalog, environment: Environment, leases: Leases, txn: str) -> Outcome:
    """Look for a transaction in the logs of the lake and of its tables, newest first; then for its client."""
    return _Search(catalog, environment, leases, txn).run()


class _Search:
    """One question. Entries that are older than the transaction by more than a day are not read."""

    def __init__(self, catalog: Catalog, environment: Environment, leases: Leases, txn: str) -> None:
        self._catalog = catalog
        self._environment = environment
        self._leases = leases
        self._txn = txn
        self._meter = Meter()
        self._begun_ms = int(txn[:12], 16)

    def run(self) -> Outcome:
        head = self._catalog.head(self._meter, fresh=True)
        slots = [] if head is None else self._slots(head.seq + 1)
        refs = self._tables(slots)
        found = self._environment.fan_out([partial(self._in_table, ref) for ref in refs])
        commits = {ref: entries for ref, entries in zip(refs, found, strict=True) if entries}
        own = next((entry for entry in slots if entry.txn == self._txn), None)
        if own is not None and head is not None:
            return self._decided(own, commits, settled=own.seq <= head.seq)
        for ref, entries in commits.items():
            return self._committed(f"version {entries[0].version} of {ref.name!r}", ref, entries[0].version)
        return self._not_found()

    def _slots(self, newest: int) -> list[Entry]:
        """The entries of the global log that may matter, newest first."""
        log, found = self._catalog.log(self._meter), list[Entry]()
        for last in range(newest, 0, -_SLOTS):
            numbers = range(last, max(0, last - _SLOTS), -1)
            read = self._environment.fan_out([partial(log.read_slot, number) for number in numbers])
            entries = [entry for entry in read if entry is not None]
            found += entries
            if any(self._is_before(entry.time_ms) for entry in entries):
                break
        return found

    def _tables(self, slots: Sequence[Entry]) -> list[TableRef]:
        """The lake's tables, and those that were dropped or renamed since the transaction began."""
        names = self._catalog.names(self._meter)
        pins = self._environment.fan_out([partial(self._catalog.find, name, self._meter) for name in names])
        refs = {pinned.ref.location: pinned.ref for pinned in pins if pinned is not None}
        for entry in slots:
            if not isinstance(entry.change, Commit | Void):
                refs.setdefault(entry.change.table.location, entry.change.table)
        return list(refs.values())

    def _in_table(self, ref: TableRef) -> list[HistoryEntry]:
        """The versions of a table that name the transaction, newest first."""
        table, limit = self._catalog.open(ref, self._meter), _FIRST_ENTRIES
        while True:
            entries = table.history(limit)
            if len(entries) < limit or self._is_before(entries[-1].timestamp_ms):
                return [entry for entry in entries if entry.txn == self._txn]
            limit *= 4

    def _is_before(self, time_ms: int) -> bool:
        return time_ms < self._begun_ms - DAY_MS

    def _decided(
        self, entry: Entry, commits: Mapping[TableRef, Sequence[HistoryEntry]], settled: bool
    ) -> Outcome:
        """The transaction is an entry of the global log; what became of that, its tables tell."""
        place = f"entry {entry.seq} of the global log"
        match entry.change:
            case Void():
                return self._not_found()
            case Commit(writes=writes):
                # What had to be taken back has two entries: the commit and its inverse.
                whole = all(len(commits.get(write.table, ())) == 1 for write in writes)
            case CreateTable(table=table):
                whole = table in commits or not settled
            case _:
                return self._committed(place, entry.change.table, None, entry.seq)
        if not settled:
            advice = f"it is {place}, which the next client that writes to the lake completes: ask again then"
            return Outcome(self._txn, "undecided", advice, seq=entry.seq)
        if not whole:
            advice = f"it was {place} and had to give way: nothing of it is visible, and it may be run again"
            return Outcome(self._txn, "aborted", advice, seq=entry.seq)
        return self._committed(place, None, None, entry.seq)

    def _committed(
        self, place: str, ref: TableRef | None, version: int | None, seq: int | None = None
    ) -> Outcome:
        advice = f"it is committed, as {place}: do not run it again"
        return Outcome(self._txn, "committed", advice, None if ref is None else ref.name, version, seq)

    def _not_found(self) -> Outcome:
        store = self._catalog.root(self._meter)
        lease = lease_of(store, self._txn)
        if (
            lease is not None
            and not find_stale([(self._txn, lease.attempt)], self._leases, self._environment)[0]
        ):
            return Outcome(self._txn, "live", _LIVE)
        advice = _RESUME.format(txn=self._txn) if has_sublogs(store, self._txn) else _LOST
        return Outcome(self._txn, "undecided", advice)


_LIVE = "no table names it yet, and its client shows signs of life: wait for it"
_RESUME = (
    "no table names it, and its client shows no sign of life, but it left what it had done: "
    "lake.resume('{txn}') goes on with it"
)
_LOST = (
    "no table names it. If its client has ended, and no request of it can still be under way after some "
    "minutes, it was not committed and may be run again; a client that is only paused may still commit it"
)
