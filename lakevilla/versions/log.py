"""The global version log on the store: HEAD at a static key, entries in numbered slots (module 4.1).

Requests only; no decision is taken here but when HEAD rolls (see `head_encoding`). The create of a slot
decides an entry, the replace of HEAD makes it visible; the settle room puts them in order.
"""

import logging
import math
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from threading import Lock

from lakevilla.environment import Environment
from lakevilla.errors import CommitUnknown, Conflict, Corrupt, Unavailable
from lakevilla.store import keys
from lakevilla.store.port import Changed, Created, Exists, Replaced, Store
from lakevilla.versions.head_encoding import (
    Outline,
    Packed,
    is_small,
    must_roll,
    pack,
    pack_past,
    unpack,
    unpack_past,
)
from lakevilla.versions.head_steps import Step, difference
from lakevilla.versions.records import Entry, Head

logger = logging.getLogger("lakevilla.versions")

PREMISE_SECONDS = 3600.0
"""How long a HEAD, or what is known of a table, may be built on without reading it again (docs/protocol.md,
section 1). Vacuum never deletes what is younger than `maintenance.retention.FLOOR_MS`, many times as long."""
_STATES_KEPT = 4
_SEEN_KEPT = 64


class LakeRecreated(Conflict):
    """The lake that was read was deleted, and another one may be in its place."""


@dataclass(frozen=True, slots=True)
class ReadHead:
    """HEAD as it was read, with the tag that its replace wants, and how it is packed. `read_at` is when the
    request was sent, on the environment's clock."""

    head: Head
    etag: str
    packed: Packed
    inline: bool = True
    read_at: float = field(default=-math.inf, compare=False)


@dataclass(frozen=True, slots=True)
class Passed:
    """An entry that HEAD has passed. `step` is its result; None if that is not kept any more."""

    read: ReadHead
    step: Step | None

    def shows(self, entry: Entry) -> bool:
        """Whether it was this transaction that decided the entry, by a change of this kind."""
        step = self.step
        return step is not None and (step.txn, step.kind) == (entry.txn, entry.kind)


class States:
    """Whole states that HEADs name by number, and when HEAD was last seen at a number.

    States never change, so a client that has read one needs no second look. Safe to use from many threads.
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
            outline = self._outline(found.data)
            base = self._base(outline)
            if base is not None:
                packed = Packed(base, outline.steps)
                head = replace(packed.head, put=outline.put, given_up=outline.given_up)
                self._states.see(head.seq, now)
                return ReadHead(head, found.etag, packed, outline.base is not None, now)
            # A state goes only long after HEAD has left it: this client slept between the two requests.
            if outline.base_seq == gone:
                missing = self._where(keys.past_head(gone))
                raise Corrupt(f"{missing}, which HEAD is built on, is missing: restore it from a backup")
            gone = outline.base_seq
        return None

    def _outline(self, data: bytes) -> Outline:
        try:
            return unpack(data, self._where(keys.HEAD))
        except Corrupt as error:
            raise Corrupt(
                f"{error}. Restore it from a backup. If there is none, and entry 1 of the global log still "
                f"exists ({self._where(keys.slot(1))}), delete the damaged record and run "
                "`lakevilla recover`, which creates it again"
            ) from error

    def read_head_of(self, lake: str) -> ReadHead:
        """HEAD of the lake with this id, whichever it is if the id is empty; LakeRecreated if it was
        deleted."""
        read = self.read_head()
        if read is None or lake not in ("", read.head.lake):
            raise self.recreated()
        return read

    def recreated(self) -> LakeRecreated:
        """The error for a lake that is not the one that was read any more."""
        return LakeRecreated(
            f"the lake at {self._store.url} was deleted or recreated while the transaction was open. Nothing "
            "was changed; run the transaction again to work on the lake that is there now"
        )

    def first_head(self) -> ReadHead:
        """Create HEAD, or read the one that a rival created first.

        Where HEAD was lost and the log is whole, the new one belongs to the same lake, and the entries are
        settled again. Corrupt if older entries were cleaned away: a HEAD that begins with nothing would
        forget the lake's tables.
        """
        lake, put = self._lake_of_the_log() or self._environment.new_id(), self._environment.new_id()
        packed = Packed(Head(lake, 0, "", time_ms=self._environment.now_ms()))
        now = self._environment.elapsed()
        match self._store.create(keys.HEAD, pack(packed, put, inline=True)):
            case Created(etag):
                self._states.see(0, now)
                return ReadHead(replace(packed.base, put=put), etag, packed, read_at=now)
            case Exists():
                found = self.read_head()
                assert found is not None, "HEAD is never deleted"
                return found

    def lost_head(self) -> ReadHead | None:
        """A new HEAD for a lake that lost it: before the first entry, so that all are settled again. None if
        the lake has no entries."""
        return None if self.first_entry() is None else self.first_head()

    def first_entry(self) -> int | None:
        """The number of the first entry that this log still has; None if it has none. One LIST."""
        return next(self._slots(), None)

    def _slots(self) -> Iterator[int]:
        """The numbers of the entries in this log, in order."""
        numbers = (keys.seq_of(meta.key) for meta in self._store.list(keys.GLOBAL_LOG))
        return (number for number in numbers if number is not None)

    def _lake_of_the_log(self) -> str:
        """The id of the lake whose entries are in this log; empty if there are none, or if an earlier release
        wrote them. One LIST, and one GET if there are any.

        Vacuum leaves 16 entries at least. A single one that is not the first was written by a client of a
        lake that was deleted right before: it belongs to no lake that could be restored.
        """
        numbers = self._slots()
        first, second = next(numbers, None), next(numbers, None)
        if first is None or (first > 1 and second != first + 1):
            return ""
        if first > 1 and self._store.head(keys.HEAD) is None:
            raise Corrupt(
                f"{self._where(keys.HEAD)} is missing, and the entries before {first} were cleaned away: "
                "restore it from a backup. If the lake was deleted on purpose, delete "
                f"{self._where(keys.GLOBAL_LOG)} as well to create a new lake here"
            )
        entry = self.read_slot(first)
        return "" if entry is None else entry.lake

    def replace_head(self, read: ReadHead, head: Head, entry: Entry, published: bool) -> ReadHead | None:
        """Move HEAD on from the one that was read, by this entry; None if another client did."""
        assert head.seq == entry.seq == read.head.seq + 1, "HEAD goes from one entry to the next"
        assert head.lake == read.head.lake, "HEAD stays the same lake's"
        packed, inline, data = self._pack(read, head, entry, published)
        now = self._environment.elapsed()
        match self._store.replace(keys.HEAD, data, read.etag):
            case Replaced(etag):
                self._states.see(head.seq, now)
                return ReadHead(head, etag, packed, inline, now)
            case Changed():
                return None

    def give_up(self, read: ReadHead, location: str, put: str) -> ReadHead | None:
        """Record in HEAD, which stays where it is, that this table of the next entry is out of reach; None if
        another client replaced HEAD."""
        given_up = read.head.given_up | {location}
        match self._store.replace(keys.HEAD, pack(read.packed, put, read.inline, given_up), read.etag):
            case Replaced(etag):
                return replace(read, head=replace(read.head, put=put, given_up=given_up), etag=etag)
            case Changed():
                return None

    def step_of(self, read: ReadHead, seq: int) -> Step | None:
        """What this entry, up to which HEAD has come, changed; None if that is not kept any more. No request
        if HEAD itself holds it."""
        packed: Packed | None = read.packed
        if seq <= read.packed.base.seq:
            packed = self.read_past(next(self.past_numbers(seq), 0))
        return None if packed is None else next((step for step in packed.steps if step.seq == seq), None)

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
            raise Corrupt(f"{where} is misplaced: its record is of entry {past.seq}", entry=past.seq)
        return past

    def past_numbers(self, since: int) -> Iterator[int]:
        """The numbers from `since` on under which states were put aside, in order. One LIST."""
        after = keys.past_head(since - 1) if since > 0 else ""
        found = (keys.past_seq_of(meta.key) for meta in self._store.list(keys.HEADS, after))
        return (seq for seq in found if seq is not None)

    def create_slot(self, entry: Entry) -> Created | Exists:
        """Decide this entry, unless the slot is taken, or was: it may have been cleaned away since HEAD was
        read, if that is long ago. Then the entry decided nothing. CommitUnknown if nothing can say."""
        if not self._is_fresh(entry.seq) and self.passed(entry) is not None:
            return Exists()
        answer = self._store.create(keys.slot(entry.seq), entry.encode())
        try:
            if isinstance(answer, Exists) or self._is_fresh(entry.seq):
                return answer
            passed = self._passed_after_create(entry)
            if passed is None or passed.shows(entry):
                return answer
            # Ours, in the place of one that was cleaned away.
            logger.warning("entry %d of the global log was cleaned away and is not free", entry.seq)
            self._store.delete(keys.slot(entry.seq))
        except Unavailable as error:
            raise CommitUnknown(
                f"the outcome of transaction {entry.txn} is unknown: it wrote entry {entry.seq} of the "
                "global log, and the store stopped answering before it was clear whether that number was "
                f"still free. Ask lake.outcome({entry.txn!r}) when the store answers again; do not rerun it "
                "blindly",
                transaction=entry.txn,
                entry=entry.seq,
            ) from error
        if passed.step is None:
            raise unknown_outcome(entry)
        return Exists()

    def _is_fresh(self, seq: int) -> bool:
        """Whether HEAD was before this entry so short a time ago that its slot cannot have been deleted."""
        read_at = self._states.seen_at(seq - 1)
        return read_at is not None and self._environment.elapsed() - read_at < PREMISE_SECONDS

    def _passed_after_create(self, entry: Entry) -> Passed | None:
        """The same after the slot was created. CommitUnknown if that lake was deleted: it may have settled
        the entry before it was deleted. What is left of our entry in the log of another lake is deleted."""
        try:
            return self.passed(entry)
        except LakeRecreated as error:
            found = self._store.get(keys.slot(entry.seq))
            if found is not None and found.data == entry.encode():
                self._store.delete(keys.slot(entry.seq))
            raise lost_with_its_lake(entry) from error

    def passed(self, entry: Entry) -> Passed | None:
        """How HEAD came past this entry; None if it has not come to it yet. LakeRecreated if it is another
        lake's HEAD. One GET, and two more if the entry is older than what HEAD holds."""
        read = self.read_head_of(entry.lake)
        if read.head.seq < entry.seq:
            return None
        return Passed(read, self.step_of(read, entry.seq))

    def decided_ms(self, entry: Entry) -> int | None:
        """When the slot of an entry was created, by the store's clock; None if it is not there."""
        meta = self._store.head(keys.slot(entry.seq))
        return None if meta is None else meta.modified_ms

    def is_late(self, entry: Entry) -> bool:
        """Whether the slot of an entry was created long after the entry was made, by the store's clock and
        its client's. Clocks that are apart only cost a look."""
        decided_ms = self.decided_ms(entry)
        return decided_ms is not None and decided_ms - entry.time_ms > PREMISE_SECONDS * 1000

    def is_aged(self, entry: Entry) -> bool:
        """Whether the slot of an entry is so old that the logs of its tables may have been cleaned up since,
        by the store's clock and ours. Clocks that are apart only cost a look."""
        decided_ms = self.decided_ms(entry)
        return decided_ms is None or abs(self._environment.now_ms() - decided_ms) > PREMISE_SECONDS * 1000

    def read_slot(self, seq: int) -> Entry | None:
        where = self._where(keys.slot(seq))
        found = self._store.get(keys.slot(seq))
        try:
            entry = None if found is None else Entry.decode(found.data, where)
        except Corrupt as error:
            raise Corrupt(
                f"{error}. Restore it from a backup. If there is none, delete it: what its transaction has "
                "published stays, and the rest of that transaction is lost"
            ) from error
        if entry is not None and entry.seq != seq:
            raise Corrupt(f"{where} is misplaced: its record is of entry {entry.seq}", entry=entry.seq)
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


def lost_with_its_lake(entry: Entry) -> CommitUnknown:
    """The error for an entry that may have been decided in a lake that was deleted since."""
    return CommitUnknown(
        f"transaction {entry.txn} was written as entry {entry.seq} of a lake that was deleted or recreated "
        "since. What it wrote below the lake's root was deleted; tables outside of the root may hold a part "
        "of it. Look at the data before you run it again",
        transaction=entry.txn,
        entry=entry.seq,
    )


def unknown_outcome(entry: Entry) -> CommitUnknown:
    """The error for a client that was suspended until the result of its entry had expired."""
    return CommitUnknown(
        f"the outcome of transaction {entry.txn} is unknown: it may have been entry {entry.seq} of the "
        "global log, and its client was suspended until this entry expired. Look at the data before you run "
        "it again",
        transaction=entry.txn,
        entry=entry.seq,
    )
