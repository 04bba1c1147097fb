"""The writer queue of one table, with markers outside of its log (module 1, `side`; protocol section 3).

The commit itself is the create of a log entry, and the conflict check decides whether it may stand: **order
is fairness, safety is not ours**. So nothing here may lose a commit: a damaged marker is taken for absent,
and a ticket dies with the published entry that names it or a later one, else with its owner's lease. Only
vacuum deletes tombstones, long after.
"""

from collections.abc import Sequence

from lakevilla.markers.marker_objects import (
    ReadMarker,
    read_marker,
    read_markers,
    understand,
    write_tombstone,
)
from lakevilla.markers.queue import Queue
from lakevilla.markers.records import Marker
from lakevilla.store import keys
from lakevilla.store.port import Object

# How many numbers a probe looks at, if it meets tombstones.
_PROBES = 4


class SideQueue(Queue):
    """A place in a writer queue whose markers are objects outside of the log."""

    holds_versions = False

    def probe(self, version: int, dead: int = 0) -> bool:
        """The courtesy of a short transaction: does another client wait to publish this version? One GET.

        `dead` as in `claim`. Tickets run ahead of versions where some were given up: a tombstone makes us
        look at the next number, a few times at most.
        """
        first = max(version, dead + 1)
        for ticket in range(first, first + _PROBES):
            found = read_marker(self._store, ticket)
            if found is None or found.marker.live:
                return found is not None and self._precedes(found)
        return False

    def _key(self, ticket: int) -> str:
        return keys.marker(ticket)

    def _encode(self, ticket: int, marker: Marker) -> bytes:  # noqa: ARG002
        return marker.encode()

    def _understand(self, ticket: int, found: Object | None) -> ReadMarker | None:
        return understand(self._store, ticket, found)

    def _read(self, ticket: int) -> ReadMarker | None:
        return read_marker(self._store, ticket)

    def _read_all(self, tickets: Sequence[int]) -> list[ReadMarker]:
        return read_markers(self._store, self._environment, tickets)

    def _bury(self, read: ReadMarker) -> bool:
        return write_tombstone(self._store, self._environment, read)

    def _listed(self) -> list[int]:
        start = keys.marker(self._dead) if self._dead else ""
        tickets = (keys.ticket_of(meta.key) for meta in self._store.list(keys.MARKERS, start))
        return [ticket for ticket in tickets if ticket is not None]
