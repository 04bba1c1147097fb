"""The snapshots that a client has read, by the locations of their tables.

A warm transaction starts from the newest one and asks for the next version and nothing else. Safe to use from
many threads.
"""

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from threading import Lock

from lakevilla.formats.port import Snapshot
from lakevilla.model import TableRef

KEPT_SNAPSHOTS = 1000
KEPT_VERSIONS = 8
"""How many versions of a table are kept, for transactions that see the lake at an earlier instant."""

_Place = tuple[str, str]
"""A location and a format: what we know of a table of one format is nothing to one of another."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A version of a table, and when it was seen to be the newest, on the environment's clock."""

    snapshot: Snapshot
    at: float


class SnapshotCache:
    """The newest snapshot of each table, and some earlier ones."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._newest: OrderedDict[_Place, Seen] = OrderedDict()
        self._earlier: dict[_Place, OrderedDict[int, Seen]] = {}

    def newest(self, ref: TableRef) -> Seen | None:
        """The newest version that was seen of a table."""
        with self._lock:
            return self._newest.get(_place(ref))

    def at(self, ref: TableRef, version: int) -> Seen | None:
        """This version of a table, if it is kept."""
        with self._lock:
            return self._earlier.get(_place(ref), OrderedDict()).get(version)

    def remember(self, ref: TableRef, snapshot: Snapshot, seen_at: float) -> None:
        """Keep a version. The newest one never goes back, but by `forget`."""
        place = _place(ref)
        with self._lock:
            known = self._newest.get(place)
            if known is None or known.snapshot.version <= snapshot.version:
                self._newest[place] = Seen(snapshot, seen_at)
            self._newest.move_to_end(place)
            earlier = self._earlier.setdefault(place, OrderedDict())
            last = earlier.get(snapshot.version)
            earlier[snapshot.version] = Seen(snapshot, seen_at if last is None else max(seen_at, last.at))
            while len(earlier) > KEPT_VERSIONS:
                earlier.popitem(last=False)
            while len(self._newest) > KEPT_SNAPSHOTS:
                self._earlier.pop(self._newest.popitem(last=False)[0], None)

    def forget(self, refs: Iterable[TableRef]) -> None:
        """What is kept of these tables does not hold any more."""
        with self._lock:
            for ref in refs:
                self._drop(_place(ref))

    def forget_locations(self, locations: Iterable[str]) -> None:
        """The same for tables of any format at these locations."""
        gone = set(locations)
        with self._lock:
            for place in [place for place in self._newest if place[0] in gone]:
                self._drop(place)

    def clear(self) -> None:
        with self._lock:
            self._newest.clear()
            self._earlier.clear()

    def _drop(self, place: _Place) -> None:
        self._newest.pop(place, None)
        self._earlier.pop(place, None)


def _place(ref: TableRef) -> _Place:
    return ref.location, ref.format
