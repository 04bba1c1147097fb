"""Markers as they are stored: read with their tags, and released by tombstones (placement `side`).

Requests only. A marker that cannot be understood (`Corrupt`) is reported in the log and taken for absent:
order is fairness, so damage to the queue costs order and never a commit. One of a newer record format is
refused (`Unsupported`), like any such record.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from lakevilla.environment import Environment
from lakevilla.errors import Corrupt
from lakevilla.markers.records import Marker
from lakevilla.store import keys
from lakevilla.store.port import Object, Replaced, Store

_log = logging.getLogger("lakevilla.markers")


@dataclass(frozen=True, slots=True)
class ReadMarker:
    """A marker as it was read, with the tag that its tombstone wants."""

    ticket: int
    marker: Marker
    etag: str


def read_marker(store: Store, ticket: int) -> ReadMarker | None:
    """One GET."""
    return understand(store, ticket, store.get(keys.marker(ticket)))


def read_markers(store: Store, environment: Environment, tickets: Sequence[int]) -> list[ReadMarker]:
    """Those of these tickets that have a marker, read in parallel."""
    found = environment.fan_out([partial(read_marker, store, ticket) for ticket in tickets])
    return [read for read in found if read is not None]


def understand(store: Store, ticket: int, found: Object | None) -> ReadMarker | None:
    """The marker in this object, if it is one."""
    if found is None:
        return None
    try:
        marker = Marker.decode(found.data, f"{store.url}/{keys.marker(ticket)}")
    except Corrupt as damage:
        _log.warning("ticket %d is ignored: %s", ticket, damage)
        return None
    return ReadMarker(ticket, marker, found.etag)


def write_tombstone(store: Store, environment: Environment, read: ReadMarker) -> bool:
    """Put the tombstone over a marker if no client has changed it since it was read."""
    tombstone = read.marker.tombstone(environment.new_id())
    answer = store.replace(keys.marker(read.ticket), tombstone.encode(), read.etag)
    return isinstance(answer, Replaced)
