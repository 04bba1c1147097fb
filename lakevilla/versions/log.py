"""The global version log on the store: HEAD at a static key, entries in numbered slots (module 4.1).

Requests only; no decision is taken here. The create of a slot decides an entry, the replace of HEAD makes
it visible; who does what in which order is the settle room's business.
"""

from dataclasses import dataclass

from lakevilla.environment import Environment
from lakevilla.errors import Corrupt
from lakevilla.store import keys
from lakevilla.store.port import Changed, Created, Exists, Replaced, Store
from lakevilla.versions.records import Entry, Head


@dataclass(frozen=True, slots=True)
class ReadHead:
    """HEAD as it was read, with the tag that its replace wants."""

    head: Head
    etag: str


class GlobalLog:
    """The lake's global log. Stateless: callers keep what they read."""

    def __init__(self, store: Store, environment: Environment) -> None:
        self._store = store
        self._environment = environment

    def read_head(self) -> ReadHead | None:
        """One GET; None where no client has written to this lake yet."""
        found = self._store.get(keys.HEAD)
        if found is None:
            return None
        return ReadHead(Head.decode(found.data, self._where(keys.HEAD)), found.etag)

    def first_head(self) -> ReadHead:
        """Create HEAD with a new lake id, or read the one that a rival created first."""
        head = Head(lake=self._environment.new_id(), seq=0, put=self._environment.new_id())
        match self._store.create(keys.HEAD, head.encode()):
            case Created(etag):
                return ReadHead(head, etag)
            case Exists():
                found = self.read_head()
                assert found is not None, "HEAD is never deleted"
                return found

    def replace_head(self, read: ReadHead, head: Head) -> ReadHead | None:
        """Move HEAD on from the one that was read; None if somebody else did."""
        match self._store.replace(keys.HEAD, head.encode(), read.etag):
            case Replaced(etag):
                return ReadHead(head, etag)
            case Changed():
                return None

    def create_slot(self, entry: Entry) -> Created | Exists:
        """Decide this entry, unless the slot is taken."""
        return self._store.create(keys.slot(entry.seq), entry.encode())

    def read_slot(self, seq: int) -> Entry | None:
        where = self._where(keys.slot(seq))
        found = self._store.get(keys.slot(seq))
        entry = None if found is None else Entry.decode(found.data, where)
        if entry is not None and entry.seq != seq:
            raise Corrupt(f"{where} says that it is entry {entry.seq}")
        return entry

    def _where(self, key: str) -> str:
        return f"{self._store.url}/{key}"
