"""What one operation read, noted while it runs, and later where its result is lazy."""

from collections.abc import Callable
from threading import Lock

from lakevilla.model import ReadSet
from lakevilla.predicates import Predicate


class Reads:
    """The read sets of one operation by the table's location. Safe to use from many threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._sets: dict[str, ReadSet] = {}
        self._others: dict[str, frozenset[str]] = {}
        self._bytes = 0
        self.outside = False
        """Whether the operation read something outside of the lake, which only its own client can."""

    def touch(self, location: str) -> None:
        """The operation depends on what the table is, even if it looks at no row."""
        with self._lock:
            self._sets.setdefault(location, ReadSet())

    def note(
        self, location: str, predicate: Predicate, files: frozenset[str], size: int, keeps_files: bool
    ) -> None:
        """The operation asked for these files, of so many bytes. They are kept only where their going would
        matter."""
        seen = files
        with self._lock:
            before = self._sets.get(location, ReadSet())
            if not keeps_files:
                self._others[location] = self._others.get(location, frozenset()) | seen
                seen = frozenset()
            self._sets[location] = before.union(ReadSet((predicate,), seen))
            self._bytes += size

    def keep_files(self) -> None:
        """From here on all files that were asked for count as read, whatever their rows were needed for."""
        with self._lock:
            for location, files in self._others.items():
                self._sets[location] = self._sets[location].union(ReadSet((), files))

    def follow(self, location: str, move: Callable[[ReadSet], ReadSet]) -> None:
        """The table's rows moved to other files: what was read of it is what `move` makes of it."""
        with self._lock:
            if location in self._sets:
                self._sets[location] = move(self._sets[location])
            if location in self._others:
                self._others[location] = move(ReadSet((), self._others[location])).files

    def add(self, location: str, read: ReadSet) -> None:
        """The operation has read this, as its record says."""
        with self._lock:
            self._sets[location] = self._sets.get(location, ReadSet()).union(read)

    def of(self, location: str) -> ReadSet | None:
        """What was read of a table so far; None if the operation has nothing to do with it."""
        with self._lock:
            return self._sets.get(location)

    @property
    def all(self) -> dict[str, ReadSet]:
        """Every table that the operation depends on."""
        with self._lock:
            return dict(self._sets)

    @property
    def bytes(self) -> int:
        """About how much data the operation looked at."""
        return self._bytes
