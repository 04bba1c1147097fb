"""Entries of the global log that say which instants of the lake are kept (module 4.1)."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lakevilla.errors import InvalidInput
from lakevilla.store.records import number, text

NAME_BYTES = 200


@dataclass(frozen=True, slots=True)
class Tag:
    """The instant after entry `seq` gets a name, and is kept as long as it has one."""

    name: str
    seq: int


@dataclass(frozen=True, slots=True)
class Untag:
    """A tag is deleted."""

    name: str


@dataclass(frozen=True, slots=True)
class Expire:
    """Instants before entry `before` are not kept any more, but for those that have names. `doomed` are
    locations of dropped tables whose files vacuum deletes after this; `forgotten` are such whose files are
    deleted, and which HEAD need not list any more.

    It comes before anything is deleted: the client that names an instant after it finds out whether that is
    still kept, and the client that deletes after it knows every name that counts.
    """

    before: int
    doomed: frozenset[str] = frozenset()
    forgotten: frozenset[str] = frozenset()


TagChange = Tag | Untag | Expire


def check_tag_name(name: object) -> str:
    """The name itself, if it can be that of a tag: not empty, and neither a number nor a time, because those
    name instants too."""
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise InvalidInput(f"{name!r} cannot be a tag: expected a name, such as 'month-end'")
    if len(name.encode()) > NAME_BYTES:
        raise InvalidInput(f"tag {name[:20]!r}... is too long: at most {NAME_BYTES} bytes are allowed")
    if name.isdecimal() or _is_time(name):
        raise InvalidInput(f"{name!r} cannot be a tag: it looks like the number of an entry, or like a time")
    return name


def encode_tag(change: TagChange) -> dict[str, Any]:
    match change:
        case Tag(name, seq):
            return {"kind": "tag", "tag": name, "at": seq}
        case Untag(name):
            return {"kind": "untag", "tag": name}
        case Expire(before, doomed, forgotten):
            parts = {"doomed": sorted(doomed), "forgotten": sorted(forgotten)}
            return {"kind": "expire", "before": before, **{part: at for part, at in parts.items() if at}}


def decode_tag(record: Mapping[str, Any]) -> TagChange | None:
    """The change of such a record; None if it is of another kind."""
    match record["kind"]:
        case "tag":
            return Tag(text(record["tag"]), number(record["at"]))
        case "untag":
            return Untag(text(record["tag"]))
        case "expire":
            doomed, forgotten = (_locations(record, part) for part in ("doomed", "forgotten"))
            return Expire(number(record["before"]), doomed, forgotten)
    return None


def _locations(record: Mapping[str, Any], part: str) -> frozenset[str]:
    return frozenset(text(location) for location in record.get(part, ()))


def _is_time(name: str) -> bool:
    try:
        datetime.fromisoformat(name)
    except ValueError:
        return False
    return True
