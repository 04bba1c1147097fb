"""The global version log on the store: HEAD at a static key, entries in numbered slots (module 4.1).

Requests only; no decision is taken here but when HEAD rolls (see `packing`). The create of a slot decides an
entry, the replace of HEAD makes it visible; who does what in which order is the settle room's business.
"""

import logging
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from threading import Lock

from lakevilla.environment import Environment
from lakevilla.errors import CommitUnknown, Corrupt, Unavailable
from lakevilla.store import keys
from lakevilla.store.port import Changed, Created, Exists, Replaced, Store
from lakevilla.versions.differences import difference
from lakevilla.versions.packing import (
    Outline,
    Packed,
    is_small,
    must_roll,
    pack,
    pack_past,
    unpack,
    unpack_past,
)
from lakevilla.versions.records import Entry, Head

logger = logging.getLogger("lakevilla.versions")

PREMISE_SECONDS = 3600.0
"""How long a HEAD may be built on without another look (docs/protocol.md, section 1)."""
_STATES_KEPT = 4
_SEEN_KEPT = 64


@dataclass(frozen=True, slots=True)
class ReadHead:
    """HEAD as it was read, with the tag that its replace wants, and how it is packed."""

    head: Head
    etag: str
    packed: Packed
    inline: bool = True


class States:
    """Whole states that HEADs name by number, and when HEAD was last seen at a number.

    States never change, so who has read one needs no second look. Safe to use from many threads.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: OrderedDict[tuple[str, int], Head] = OrderedDict()
        self._seen: OrderedDict[int, float] = OrderedDict()

    def find(self, lake: str, seq: int) -> Head | None:
        with self._lock:
            return self._kept.get((lake, seq))

    def see(self, seq: int, at: float) -> None:
        """HEAD was at this number, not before this moment of the environment's clock."""
        with self._lock:
            self._seen[seq] = max(at, self._seen.get(seq, at))
            self._seen.move_to_end(seq)
            while len(self._seen) > _SEEN_KEPT:
                self._seen.popitem(last=False)

    def seen_at(self, seq: int) -> float | None:
        """When HEAD was last seen at this number."""
        with self._lock:
            return self._seen.get(seq)

    def keep(self, state: Head) -> Head:
        with self._lock:
            self._kept[state.lake, state.seq] = state
            while len(self._kept) > _STATES_KEPT:
                self._kept.popitem(last=False)
        return state


class GlobalLog:
    """The lake's global log. Callers keep what they read; `states` is what all of a client's logs share."""

    def __init__(self, store: Store, environment: Environment, states: States | None = None) -> None:
        self._store = store
        self._environment = environment
        self._states = states or States()

    def read_head(self) -> ReadHead | None:
        """One GET, and one more if HEAD names a state that this client has not read yet; None where no client
        has written to this lake yet."""
        gone = -1
        now = self._environment.elapsed()
        while (found := self._store.get(keys.HEAD)) is not None:
            outline = unpack(found.data, self._where(keys.HEAD))
            base = self._base(outline)
            if base is not None:
                packed = Packed(base, outline.steps)
                head = replace(packed.head, put=outline.put)
                self._states.see(head.seq, now)
                return ReadHead(head, found.etag, packed, outline.base is not None)
            # A state goes only long after HEAD has left it: this client slept between the two requests.
            if outline.base_seq == gone:
                missing = self._where(keys.past_head(gone))
                raise Corrupt(f"{missing}, which HEAD is built on, is gone: restore it from a backup")
            gone = outline.base_seq
        return None

    def first_head(self) -> ReadHead:
        """Create HEAD with a new lake id, or read the one that a rival created first."""
        lake, put = self._environment.new_id(), self._environment.new_id()
        packed = Packed(Head(lake, 0, "", time_ms=self._environment.now_ms()))
        now = self._environment.elapsed()
        match self._store.create(keys.HEAD, pack(packed, put, inline=True)):
            case Created(etag):
                self._states.see(0, now)
                return ReadHead(replace(packed.base, put=put), etag, packed)
            case Exists():
                found = self.read_head()
                assert found is not None, "HEAD is never deleted"
                return found

    def replace_head(self, read: ReadHead, head: Head, entry: Entry, published: bool) -> ReadHead | None:
        """Move HEAD on from the one that was read, by this entry; None if somebody else did."""
        packed, inline, data = self._pack(read, head, entry, published)
        now = self._environment.elapsed()
        match self._store.replace(keys.HEAD, data, read.etag):
            case Replaced(etag):
                self._states.see(head.seq, now)
                return ReadHead(head, etag, packed, inline)
            case Changed():
                return None

    def _pack(self, read: ReadHead, head: Head, entry: Entry, published: bool) -> tuple[Packed, bool, bytes]:
        """The new HEAD. If it rolls, what it is built on is put first."""
        step = difference(read.head, head, entry, published)
        packed, inline = Packed(read.packed.base, (*read.packed.steps, step)), read.inline
        data = pack(packed, head.put, inline)
        if must_roll(packed, data):
            self._store.put(keys.past_head(head.seq), pack_past(packed))
            packed = Packed(replace(head, put=""))
            inline = is_small(head)
            if not inline:
                self._states.keep(packed.base)
            data = pack(packed, head.put, inline)
        return packed, inline, data

    def read_past(self, seq: int) -> Packed | None:
        """The states of the lake that were put aside under this number."""
        where = self._where(keys.past_head(seq))
        found = self._store.get(keys.past_head(seq))
        past = None if found is None else unpack_past(found.data, where)
        if past is not None and past.seq != seq:
            raise Corrupt(f"{where} says that it is of entry {past.seq}")
        return past

    def past_numbers(self, since: int) -> Iterator[int]:
        """The numbers from `since` on under which states were put aside, in order. One LIST."""
        after = keys.past_head(since - 1) if since > 0 else ""
        found = (keys.past_seq_of(meta.key) for meta in self._store.list(keys.HEADS, after))
        return (seq for seq in found if seq is not None)

    def create_slot(self, entry: Entry) -> Created | Exists:
        """Decide this entry, unless the slot is taken, or was: it may have been cleaned away since HEAD was
        read, if that is long ago. Then the entry decided nothing. CommitUnknown if the store does not say."""
        answer = self._store.create(keys.slot(entry.seq), entry.encode())
        read_at = self._states.seen_at(entry.seq - 1)
        fresh = read_at is not None and self._environment.elapsed() - read_at < PREMISE_SECONDS
        try:
            if isinstance(answer, Exists) or fresh or self._is_next(entry):
                return answer
        except Unavailable as error:
            raise CommitUnknown(
                f"transaction {entry.txn} wrote entry {entry.seq} of the global log, and the store went away "
                f"before it was clear whether that number was still free: ask lake.outcome({entry.txn!r}) "
                "once it answers again, and do not rerun it blindly"
            ) from error
        logger.warning("entry %d of the global log was cleaned away and is not free", entry.seq)
        self._store.delete(keys.slot(entry.seq))
        return Exists()

    def _is_next(self, entry: Entry) -> bool:
        """Whether HEAD has not come to this entry yet, or came to it as it is here."""
        read = self.read_head()
        if read is None or read.head.seq < entry.seq:
            return True
        number = next(self.past_numbers(entry.seq), 0)
        told = read.packed if entry.seq > read.packed.base.seq else self.read_past(number)
        return told is not None and any((s.seq, s.txn) == (entry.seq, entry.txn) for s in told.steps)

    def read_slot(self, seq: int) -> Entry | None:
        where = self._where(keys.slot(seq))
        found = self._store.get(keys.slot(seq))
        entry = None if found is None else Entry.decode(found.data, where)
        if entry is not None and entry.seq != seq:
            raise Corrupt(f"{where} says that it is entry {entry.seq}")
        return entry

    def _base(self, outline: Outline) -> Head | None:
        """The state that a HEAD is built on; None if it is not there."""
        if outline.base is not None:
            return outline.base
        known = self._states.find(outline.lake, outline.base_seq)
        if known is not None:
            return known
        past = self.read_past(outline.base_seq)
        if past is not None and past.base.lake != outline.lake:
            raise Corrupt(
                f"{self._where(keys.past_head(past.seq))} belongs to another lake: {past.base.lake}"
            )
        return None if past is None else self._states.keep(past.head)

    def _where(self, key: str) -> str:
        return f"{self._store.url}/{key}"
