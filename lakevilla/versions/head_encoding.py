"""HEAD as it is stored: a whole state, and the steps since (docs/protocol.md, section 2).

    HEAD.json          {"base": the state at an entry, or that entry's number alone, "steps": [...]}
    heads/<seq>.json   {"base": the state at an entry, "steps": [... up to seq]}

When the steps get long, the client that moves HEAD **rolls**: what HEAD would hold goes to `heads/<seq>` as
it is, and HEAD begins anew with the state after it, in itself where that is small and by the number of that
object where it is not. So HEAD stays small however many tables there are, and each earlier state is in one
object: that of the first number at or after it. What lies in `heads/` is a function of the global log alone:
any client that writes it, however often, writes the same.

HEADs of format 1 were a whole state; they are read as one without steps.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from lakevilla.errors import Corrupt
from lakevilla.store.records import decode, encode, number, text
from lakevilla.versions.head_steps import (
    FORMATS,
    LATER,
    MAPS,
    NUMBERS,
    SETS,
    Step,
    decode_map,
    decode_set,
    decode_step,
    encode_map,
    encode_step,
    follow,
)
from lakevilla.versions.records import Head

FORMAT = 2
GIVEN_UP_FORMAT = 3
"""The format of a HEAD that gives up tables of the next entry."""
NEWEST = max(GIVEN_UP_FORMAT, *FORMATS.values())
STEPS_KEPT = 32
HEAD_BYTES = 64 * 1024
"""A HEAD that would be larger rolls."""
INLINE_BYTES = 32 * 1024
"""A state up to this size is stored in HEAD itself."""
_HEADS_KEPT = 16


@dataclass(frozen=True, slots=True)
class Packed:
    """A base state and the steps since. Its newest state is `head`."""

    base: Head
    steps: tuple[Step, ...] = ()

    @property
    def seq(self) -> int:
        """The last entry that it holds."""
        return self.steps[-1].seq if self.steps else self.base.seq

    @property
    def head(self) -> Head:
        """The state after the last step."""
        return follow(self.base, self.steps)

    def at(self, seq: int) -> Head:
        """The state after this entry, which is between the base and the last step."""
        return follow(self.base, self.steps[: seq - self.base.seq])


@dataclass(frozen=True, slots=True)
class Outline:
    """HEAD.json as it was read: `base` is None where only its number (`base_seq`) is there."""

    lake: str
    put: str
    base: Head | None
    base_seq: int
    steps: tuple[Step, ...]
    given_up: frozenset[str] = frozenset()


def pack(packed: Packed, put: str, inline: bool, given_up: frozenset[str] = frozenset()) -> bytes:
    """HEAD.json; with its base in itself, or by number."""
    base = _encode_state(packed.base) if inline else {"seq": packed.base.seq}
    if given_up:
        # A client of an earlier release would settle the next entry in another way: it must refuse.
        return _encode(packed, base, {"put": put, "given_up": sorted(given_up)}, GIVEN_UP_FORMAT)
    return _encode(packed, base, {"put": put})


def pack_past(packed: Packed) -> bytes:
    """An object of `heads/`: complete, and without a put-id, so that every client writes the same bytes."""
    return _encode(packed, _encode_state(packed.base), {})


def is_small(state: Head) -> bool:
    """Whether a state is stored in HEAD itself."""
    return len(encode(_encode_state(state), FORMAT)) <= INLINE_BYTES


def must_roll(packed: Packed, data: bytes) -> bool:
    """Whether the steps are to be put aside before HEAD moves on; `data` is what HEAD would be."""
    return len(packed.steps) > STEPS_KEPT or len(data) > HEAD_BYTES


def unpack(data: bytes, where: str) -> Outline:
    """HEAD.json of any format. Most clients find a HEAD that this process has read before: they share what
    was decoded, which cannot be changed. A HEAD above `HEAD_BYTES` is rare, and not kept."""
    return _unpack(data, where) if len(data) > HEAD_BYTES else _unpack_kept(data, where)


@lru_cache(maxsize=_HEADS_KEPT)
def _unpack_kept(data: bytes, where: str) -> Outline:
    return _unpack(data, where)


def _unpack(data: bytes, where: str) -> Outline:
    record = decode(data, where, NEWEST)
    try:
        if number(record["format"]) == 1:
            whole = _decode_state(record, record)
            return Outline(whole.lake, text(record["put"]), whole, whole.seq, ())
        base_record = record["base"]
        base = None if list(base_record) == ["seq"] else _decode_state(record, base_record)
        lake, put, base_seq = text(record["lake"]), text(record["put"]), number(base_record["seq"])
        given_up = decode_set(record.get("given_up", ()))
        outline = Outline(lake, put, base, base_seq, _steps(record), given_up)
        _check(base_seq, outline.steps, number(record["seq"]))
        return outline
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise Corrupt(f"{where} is not a valid HEAD: {error!r}") from error


def unpack_past(data: bytes, where: str) -> Packed:
    """An object of `heads/`."""
    record = decode(data, where, NEWEST)
    try:
        packed = Packed(_decode_state(record, record["base"]), _steps(record))
        _check(packed.base.seq, packed.steps, number(record["seq"]))
        return packed
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise Corrupt(f"{where} is not a valid record of earlier states: {error!r}") from error


def _encode(
    packed: Packed, base: Mapping[str, Any], more: Mapping[str, Any], at_least: int = FORMAT
) -> bytes:
    steps = [encode_step(step) for step in packed.steps]
    record = {"lake": packed.base.lake, "seq": packed.seq, **more, "base": base, "steps": steps}
    needed = [number for part, number in FORMATS.items() if _has(packed, part)]
    return encode(record, max([at_least, *needed]))


def _has(packed: Packed, part: str) -> bool:
    return bool(getattr(packed.base, part)) or any(part in step.maps for step in packed.steps)


def _encode_state(state: Head) -> dict[str, Any]:
    return {
        "seq": state.seq,
        "time_ms": state.time_ms,
        **{part: encode_map(part, getattr(state, part)) for part in MAPS if _is_told(state, part)},
        **{part: sorted(getattr(state, part)) for part in SETS if _is_told(state, part)},
        **{part: getattr(state, part) for part in NUMBERS},
    }


def _is_told(state: Head, part: str) -> bool:
    return part not in LATER or bool(getattr(state, part))


def _decode_state(record: Mapping[str, Any], state: Mapping[str, Any]) -> Head:
    # The first releases stored less: what is not there is empty.
    present = {*state, "tables", "dropped"}
    parts: dict[str, Any] = {part: decode_map(part, state[part]) for part in MAPS if part in present}
    parts |= {part: decode_set(state[part]) for part in SETS if part in present}
    parts |= {part: number(state[part]) for part in NUMBERS if part in present}
    return Head(
        text(record["lake"]), number(state["seq"]), put="", time_ms=number(state.get("time_ms", 0)), **parts
    )


def _steps(record: Mapping[str, Any]) -> tuple[Step, ...]:
    return tuple(decode_step(step) for step in record["steps"])


def _check(base: int, steps: tuple[Step, ...], last: int) -> None:
    numbers = [step.seq for step in steps]
    if numbers != list(range(base + 1, base + 1 + len(steps))) or last != base + len(steps):
        raise TypeError(f"after entry {base} it has steps {numbers}, and says that it is at {last}")
