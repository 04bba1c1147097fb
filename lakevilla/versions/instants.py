"""Earlier instants of the lake: found by number, by time or by tag, and listed as a history (module 4.1).

Each entry of the global log left the lake at an instant. HEAD holds the newest ones, the objects of `heads/`
the others (see `head_encoding`): any is found by one LIST and one GET in addition to HEAD, by time with a few
GETs more.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping

from lakevilla.answers import LakeEntry
from lakevilla.errors import Corrupt, InvalidInput
from lakevilla.store import keys
from lakevilla.timestamps import utc_text
from lakevilla.versions.head_encoding import Packed
from lakevilla.versions.log import GlobalLog, ReadHead
from lakevilla.versions.records import Head
from lakevilla.versions.registry import refuse_expired


class Instants:
    """The instants of one lake, as one look at HEAD finds them."""

    def __init__(self, log: GlobalLog) -> None:
        self._log = log
        self._found: ReadHead | None = None

    @property
    def now(self) -> Head:
        """The newest instant."""
        return self._read.head

    @property
    def tags(self) -> Mapping[str, int]:
        """The instants that have names, by their entries."""
        return self._read.head.tags

    def at_seq(self, seq: int) -> Head:
        """The instant after this entry; InvalidInput if there is none, or not any more."""
        refuse_expired(self.now, seq)
        return self._at(seq)

    def at_tag(self, name: str) -> Head:
        """The instant of this name."""
        if name not in self.tags:
            known = ", ".join(map(repr, sorted(self.tags))) or "none"
            raise InvalidInput(f"unknown tag {name!r}; available: {known}")
        return self._at(self.tags[name])

    def at_time(self, time_ms: int) -> Head:
        """The instant at this time: that of the newest entry that had been written by then."""
        found = _newest(self._read.packed, time_ms) or self._before(time_ms)
        if found is None or found.seq < self.now.horizon:
            raise InvalidInput(f"{utc_text(time_ms)} is too early: {self._beginning()}")
        return found

    def earliest(self, seq: int) -> Head:
        """The first instant from this entry on that is kept."""
        if seq >= self._read.packed.base.seq:
            return self._read.packed.at(seq)
        number = next(self._log.past_numbers(seq), None)
        packed = (None if number is None else self._log.read_past(number)) or self._read.packed
        return packed.at(max(packed.base.seq, seq))

    def history(self, limit: int | None = None) -> list[LakeEntry]:
        """The entries of the lake that are kept, newest first."""
        found: list[LakeEntry] = []
        if self._look() is None:
            return found
        for packed in self._all():
            for entry in reversed(_entries_of(packed)):
                if len(found) == limit or entry.seq < self.now.horizon:
                    return found
                found.append(entry)
        return found

    def objects(self) -> Iterator[Packed]:
        """All objects that hold instants, newest first; nothing where no client has written to the lake
        yet."""
        return iter(()) if self._look() is None else self._all()

    def _all(self) -> Iterator[Packed]:
        """HEAD, and what was put aside before, newest first, as far as it is without a gap."""
        yield self._read.packed
        first = self._read.packed.base.seq
        for number in reversed(list(self._log.past_numbers(0))):
            if number > first:
                continue
            past = self._log.read_past(number)
            if number < first or past is None:
                return
            yield past
            first = past.base.seq

    def _look(self) -> ReadHead | None:
        if self._found is None:
            self._found = self._log.read_head()
        return self._found

    @property
    def _read(self) -> ReadHead:
        found = self._look()
        if found is None:
            raise InvalidInput(
                "the lake has no instants yet: no client has changed its tables with LakeVilla"
            )
        return found

    def _at(self, seq: int) -> Head:
        if seq >= self._read.packed.base.seq:
            return self._read.packed.at(seq)
        number = next(self._log.past_numbers(seq), None)
        past = None if number is None else self._log.read_past(number)
        if past is None:
            raise Corrupt(
                f"entry {seq} of the lake should be kept, but no object of {keys.HEADS} holds it: restore it "
                "from a backup",
                entry=seq,
            )
        if past.base.seq > seq:
            raise InvalidInput(
                f"entry {seq} of the lake was written by a release that did not keep earlier instants: they "
                f"begin with entry {past.base.seq}",
                entry=seq,
            )
        return past.at(seq)

    def _before(self, time_ms: int) -> Head | None:
        """An instant that was put aside, by its time; None if it was before all of them."""
        numbers = list(self._log.past_numbers(0))
        place = bisect_right(numbers, time_ms, key=self._begin_ms)
        past = self._log.read_past(numbers[place - 1]) if place else None
        return None if past is None else _newest(past, time_ms)

    def _begin_ms(self, number: int) -> int:
        """The time of the first instant that this object holds; what was deleted meanwhile is old."""
        past = self._log.read_past(number)
        return 0 if past is None else past.base.time_ms

    def _beginning(self) -> str:
        first = self.earliest(self.now.horizon)
        when = f", of {utc_text(first.time_ms)}" if first.time_ms else ""
        return f"what is kept begins with entry {first.seq}{when}"


def _newest(packed: Packed, time_ms: int) -> Head | None:
    """The newest of these instants that had come by this time; None if it was before all of them."""
    count = bisect_right(packed.steps, time_ms, key=lambda step: step.time_ms)
    # Of the HEADs of the first releases the time is not known.
    if count == 0 and not 0 < packed.base.time_ms <= time_ms:
        return None
    return packed.at(packed.base.seq + count)


def _entries_of(packed: Packed) -> list[LakeEntry]:
    """The entries of these steps, with the names that tables had then."""
    names = {ref.location: name for name, ref in packed.base.tables.items()}
    versions = dict(packed.base.versions)
    found = []
    for step in packed.steps:
        named, moved = step.maps.get("tables", {}), step.maps.get("versions", {})
        versions.update(moved)
        tables = {name: None if ref is None else versions.get(ref.location) for name, ref in named.items()}
        names |= {ref.location: name for name, ref in named.items() if ref is not None}
        tables |= {names.get(place, place): v for place, v in moved.items() if v is not None}
        tables |= dict.fromkeys(step.maps.get("views", {}))
        tags = dict(step.maps.get("tags", {}))
        found.append(LakeEntry(step.seq, step.time_ms, step.txn, step.kind, step.published, tables, tags))
    return found
