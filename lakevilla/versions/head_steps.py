"""What an entry changed of the lake, as the difference of two states; decided without I/O.

HEAD, and what is kept of earlier ones, hold one whole state and the differences since. They are generic:
which entry made them does not matter, so a new kind of entry needs nothing here, and a new part of the state
only its line in `MAPS`, `SETS` or `NUMBERS`.
"""

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from lakevilla.model import TableRef
from lakevilla.store.records import number, text
from lakevilla.versions.batches import Done
from lakevilla.versions.commits import Commit
from lakevilla.versions.records import Entry, Head
from lakevilla.versions.views import decode_view, encode_view


def _encode_ref(ref: TableRef) -> dict[str, str]:
    return {"location": ref.location, "format": ref.format}


def _decode_ref(name: str, record: Any) -> TableRef:
    return TableRef(name, text(record["location"]), text(record["format"]))


def _as_it_is(value: Any) -> Any:
    return value


def _decode_text(_: str, value: Any) -> str:
    return text(value)


def _decode_number(_: str, value: Any) -> int:
    return number(value)


def _encode_done(done: Done) -> list[int]:
    return [done.number, done.seq]


def _decode_done(_: str, record: Any) -> Done:
    batch, seq = record
    return Done(number(batch), number(seq))


COMMIT = "commit"
"""The kind of entries whose transactions may be tried again."""

MAPS: Mapping[str, tuple[Callable[[Any], Any], Callable[[str, Any], Any]]] = {
    "tables": (_encode_ref, _decode_ref),
    "versions": (_as_it_is, _decode_number),
    "tags": (_as_it_is, _decode_number),
    "ids": (_as_it_is, _decode_text),
    "batches": (_encode_done, _decode_done),
    "views": (encode_view, decode_view),
}
"""The parts of a state that are mappings, with how their values are written and read."""

SETS = ("dropped", "torn", "owned", "doomed")
"""The parts of a state that are sets of locations."""

LATER = ("doomed", "ids", "batches", "views")
"""Parts that earlier releases do not have: they are left out where they are empty."""

FORMATS = {"batches": 4, "views": 5}
"""Parts that no client may lose, with the format of a HEAD that has them: earlier releases refuse it."""

NUMBERS = ("horizon", "ticket")
"""The parts of a state that are numbers, except for those that every step changes."""


@dataclass(frozen=True, slots=True)
class Step:
    """One entry of the global log as HEAD keeps it: which client made it, and what is different since.

    `kind` is that of the entry; `published` is False if it had no effect. `maps` holds per part of the
    state what was set, and None for what was removed; `added` and `removed` are members of the sets;
    `numbers` are new values. Parts that did not change are left out. `final` says that the transaction of
    the entry has ended with it, also if it had no effect.
    """

    seq: int
    time_ms: int
    txn: str
    kind: str
    published: bool = True
    maps: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    added: Mapping[str, frozenset[str]] = field(default_factory=dict)
    removed: Mapping[str, frozenset[str]] = field(default_factory=dict)
    numbers: Mapping[str, int] = field(default_factory=dict)
    final: bool = False


def difference(old: Head, new: Head, entry: Entry, published: bool) -> Step:
    """The step that leads from the one state to the other."""
    maps = {part: _changed(getattr(old, part), getattr(new, part)) for part in MAPS}
    added = {part: _left(getattr(new, part), getattr(old, part)) for part in SETS}
    removed = {part: _left(getattr(old, part), getattr(new, part)) for part in SETS}
    return Step(
        new.seq,
        new.time_ms,
        entry.txn,
        entry.kind,
        published,
        _filled(maps),
        _filled(added),
        _filled(removed),
        {part: getattr(new, part) for part in NUMBERS if getattr(new, part) != getattr(old, part)},
        final=not isinstance(entry.change, Commit) or entry.change.final,
    )


def follow(state: Head, steps: Iterable[Step]) -> Head:
    """The state after these steps, which are those after it, in order."""
    maps: dict[str, dict[str, Any]] = {}
    sets: dict[str, set[str]] = {}
    numbers: dict[str, int] = {}
    last: Step | None = None
    for step in steps:
        last = step
        for part, changed in step.maps.items():
            values = maps.setdefault(part, _copy(getattr(state, part)))
            values.update(changed)
            for name in [name for name, value in changed.items() if value is None]:
                del values[name]
        for part in {*step.added, *step.removed}:
            members = sets.setdefault(part, set(getattr(state, part)))
            members -= step.removed.get(part, frozenset())
            members |= step.added.get(part, frozenset())
        numbers.update(step.numbers)
    if last is None:
        return state
    frozen = {part: frozenset(members) for part, members in sets.items()}
    parts: dict[str, Any] = {**maps, **frozen, **numbers}
    return replace(state, seq=last.seq, time_ms=last.time_ms, **parts)


def encode_step(step: Step) -> dict[str, Any]:
    record: dict[str, Any] = {
        "seq": step.seq,
        "time_ms": step.time_ms,
        "txn": step.txn,
        "kind": step.kind,
        "published": step.published,
    }
    for part, changed in step.maps.items():
        record[part] = encode_map(part, changed)
    for part in SETS:
        both = {"added": sorted(step.added.get(part, ())), "removed": sorted(step.removed.get(part, ()))}
        if any(both.values()):
            record[part] = both
    # For entries that are not commits, the kind decides.
    if step.final and step.kind == COMMIT:
        record["final"] = True
    return {**record, **step.numbers}


def decode_step(record: Mapping[str, Any]) -> Step:
    """A step as it was stored. It cannot be changed: clients of this process share it."""
    sets = {part: record[part] for part in SETS if part in record}
    return Step(
        number(record["seq"]),
        number(record["time_ms"]),
        text(record["txn"]),
        text(record["kind"]),
        bool(record["published"]),
        MappingProxyType({part: decode_map(part, record[part]) for part in MAPS if part in record}),
        MappingProxyType(_filled({part: decode_set(both["added"]) for part, both in sets.items()})),
        MappingProxyType(_filled({part: decode_set(both["removed"]) for part, both in sets.items()})),
        MappingProxyType({part: number(record[part]) for part in NUMBERS if part in record}),
        record["kind"] != COMMIT or bool(record.get("final")),
    )


def encode_map(part: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """A part of a state, or what changed of it, in the order of its names."""
    write = MAPS[part][0]
    return {name: None if values[name] is None else write(values[name]) for name in sorted(values)}


def decode_map(part: str, record: Mapping[str, Any]) -> Mapping[str, Any]:
    """A part of a state, or what changed of it. It cannot be changed: clients of this process share it."""
    read = MAPS[part][1]
    return MappingProxyType(
        {text(name): None if value is None else read(name, value) for name, value in record.items()}
    )


def decode_set(record: Iterable[Any]) -> frozenset[str]:
    return frozenset(text(location) for location in record)


def _copy(values: Mapping[str, Any]) -> dict[str, Any]:
    # The constructor of dict copies a proxy key by key: twenty times slower, with 10,000 tables.
    return values.copy() if isinstance(values, MappingProxyType) else dict(values)


def _changed(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    if old is new:
        return {}
    gone: dict[str, Any] = dict.fromkeys(old.keys() - new.keys())
    # Most values are the very same object, and a comparison of 10,000 references takes its time.
    changed = {
        name: value for name, value in new.items() if (was := old.get(name)) is not value and was != value
    }
    return gone | changed


def _left(members: AbstractSet[str], others: AbstractSet[str]) -> frozenset[str]:
    return frozenset() if members is others else frozenset(members - others)


def _filled(parts: Mapping[str, Any]) -> dict[str, Any]:
    return {part: changed for part, changed in parts.items() if changed}
