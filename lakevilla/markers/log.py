"""The writer queue of one table in its log (module 1, placement `log`, the paper's; protocol section 3).

A ticket is a version of the table, and its marker is the log entry of that version: valid and empty for
every other client. Its holder replaces it by the commit, when no live marker lies below it. Freeing replaces
it by an empty commit. So a version that one client holds belongs to no other client, and one that was freed
stays empty.

Every write here but the first is a replace of what was read: a client that was freed, or whose place another
client of the same transaction took, finds that out when it publishes.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from lakevilla.environment import Environment
from lakevilla.markers.lease import Leases
from lakevilla.markers.marker_objects import ReadMarker
from lakevilla.markers.queue import Queue
from lakevilla.markers.records import Marker
from lakevilla.store.port import Created, Object, Replaced, Store


class Entries(Protocol):
    """The entries of a log as places for markers (`formats.port.MarkerEntries`)."""

    def key(self, version: int) -> str: ...

    def encode(self, version: int, record: Mapping[str, Any]) -> bytes: ...

    def decode(self, version: int, data: bytes) -> Mapping[str, Any] | None: ...

    def taken(self, after: int) -> Mapping[int, int]: ...

    def freed(self, version: int) -> None: ...


class LogQueue(Queue):
    """A place in the queue that is a version of the table."""

    holds_versions = True

    def __init__(
        self,
        store: Store,
        leases: Leases,
        environment: Environment,
        txn: str,
        attempt: str,
        entries: Entries,
    ) -> None:
        super().__init__(store, leases, environment, txn, attempt)
        self._entries = entries

    def probe(self, version: int, dead: int = 0) -> bool:  # noqa: ARG002
        """No request is needed: a client that changes the table takes a place in any case."""
        return False

    def _search(self, latest: int) -> None:
        """Without competition: one create. Otherwise as with markers outside of the log."""
        first = latest + 1
        mine = self._marker()
        answer = self._create(first, mine)
        if isinstance(answer, Created):
            self._hold(ReadMarker(first, mine, answer.etag))
        else:
            super()._search(latest)

    def _key(self, ticket: int) -> str:
        return self._entries.key(ticket)

    def _encode(self, ticket: int, marker: Marker) -> bytes:
        return self._entries.encode(ticket, marker.record())

    def _understand(self, ticket: int, found: Object | None) -> ReadMarker | None:
        return understand(self._store, self._entries, ticket, found)

    def _read(self, ticket: int) -> ReadMarker | None:
        return self._understand(ticket, self._store.get(self._key(ticket)))

    def _read_all(self, tickets: Sequence[int]) -> list[ReadMarker]:
        found = self._environment.fan_out([partial(self._read, ticket) for ticket in tickets])
        return [read for read in found if read is not None]

    def _bury(self, read: ReadMarker) -> bool:
        return write_tombstone(self._store, self._environment, self._entries, read)

    def _listed(self) -> list[int]:
        return list(self._entries.taken(self._dead))


def understand(store: Store, entries: Entries, version: int, found: Object | None) -> ReadMarker | None:
    """The marker that this log entry is, pending or freed; None if it is not a marker."""
    record = None if found is None else entries.decode(version, found.data)
    if found is None or record is None:
        return None
    return ReadMarker(version, Marker.of(record, f"{store.url}/{entries.key(version)}"), found.etag)


def write_tombstone(store: Store, environment: Environment, entries: Entries, read: ReadMarker) -> bool:
    """Replace a pending marker by an empty commit, if no client has filled or freed it since it was read."""
    freed = entries.encode(read.ticket, read.marker.tombstone(environment.new_id()).record())
    if not isinstance(store.replace(entries.key(read.ticket), freed, read.etag), Replaced):
        return False
    entries.freed(read.ticket)
    return True
