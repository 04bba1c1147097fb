"""The records of the global version log: HEAD and its entries (module 4.1).

HEAD maps every registered table to where it lives; an entry is one decided change of the lake. Both are
JSON with a format number, a put-id that makes every write unique, and explicit encode and decode. A
client that meets a newer format number refuses, and says so.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lakevilla.errors import Corrupt, Unsupported
from lakevilla.model import TableRef

FORMAT = 1
"""The newest record format that this client reads, and the one that it writes."""


@dataclass(frozen=True, slots=True)
class Head:
    """The lake at one instant: its id, the last settled entry, and every registered table.

    `dropped` holds locations below the root that are no tables any more, although their files still
    lie there: such a folder is not found as a table, and its name gets a new folder.
    """

    lake: str
    seq: int
    put: str
    tables: Mapping[str, TableRef] = field(default_factory=dict)
    dropped: frozenset[str] = frozenset()

    def encode(self) -> bytes:
        return _encode(
            {
                "lake": self.lake,
                "seq": self.seq,
                "put": self.put,
                "tables": {
                    name: {"location": ref.location, "format": ref.format}
                    for name, ref in sorted(self.tables.items())
                },
                "dropped": sorted(self.dropped),
            }
        )

    @staticmethod
    def decode(data: bytes, where: str) -> "Head":
        record = _decode(data, where)
        try:
            return Head(
                lake=_text(record["lake"]),
                seq=_number(record["seq"]),
                put=_text(record["put"]),
                tables={
                    _text(name): TableRef(name, _text(ref["location"]), _text(ref["format"]))
                    for name, ref in record["tables"].items()
                },
                dropped=frozenset(_text(location) for location in record["dropped"]),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise Corrupt(f"{where} is not a valid HEAD: {error!r}") from error


@dataclass(frozen=True, slots=True)
class CreateTable:
    """A new table. `first` is the text of its first log entry, published when the entry is settled."""

    table: TableRef
    first: str


@dataclass(frozen=True, slots=True)
class RegisterTable:
    """An existing table gets a name in this lake. Nothing is published."""

    table: TableRef


@dataclass(frozen=True, slots=True)
class RenameTable:
    """A table gets another name; it stays where it is. `base` as in `DropTable`."""

    table: TableRef
    to: str
    base: int | None


@dataclass(frozen=True, slots=True)
class DropTable:
    """A table loses its name.

    `base` is the version at which a table below the lake's root was seen: its log gets an empty entry
    that tells of it, so that clients which still know the old name do not go by it. None for a table
    elsewhere, which is not touched.
    """

    table: TableRef
    base: int | None


RegistryChange = CreateTable | RegisterTable | RenameTable | DropTable


@dataclass(frozen=True, slots=True)
class Entry:
    """One slot of the global log: who decided what. Identity is the attempt, never the put-id."""

    seq: int
    txn: str
    attempt: str
    put: str
    time_ms: int
    change: RegistryChange

    def encode(self) -> bytes:
        return _encode(
            {
                "seq": self.seq,
                "txn": self.txn,
                "attempt": self.attempt,
                "put": self.put,
                "time_ms": self.time_ms,
                "change": _encode_change(self.change),
            }
        )

    @staticmethod
    def decode(data: bytes, where: str) -> "Entry":
        record = _decode(data, where)
        try:
            return Entry(
                seq=_number(record["seq"]),
                txn=_text(record["txn"]),
                attempt=_text(record["attempt"]),
                put=_text(record["put"]),
                time_ms=_number(record["time_ms"]),
                change=_decode_change(record["change"]),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise Corrupt(f"{where} is not a valid entry of the global log: {error!r}") from error


def _encode_change(change: RegistryChange) -> dict[str, Any]:
    ref = change.table
    record: dict[str, Any] = {"name": ref.name, "location": ref.location, "format": ref.format}
    match change:
        case CreateTable(first=first):
            return {"kind": "create", **record, "first": first}
        case RegisterTable():
            return {"kind": "register", **record}
        case RenameTable(to=to, base=base):
            return {"kind": "rename", **record, "to": to, "base": base}
        case DropTable(base=base):
            return {"kind": "drop", **record, "base": base}


def _decode_change(record: Mapping[str, Any]) -> RegistryChange:
    ref = TableRef(_text(record["name"]), _text(record["location"]), _text(record["format"]))
    match record["kind"]:
        case "create":
            return CreateTable(ref, _text(record["first"]))
        case "register":
            return RegisterTable(ref)
        case "rename":
            return RenameTable(ref, _text(record["to"]), _base(record))
        case "drop":
            return DropTable(ref, _base(record))
        case kind:
            raise TypeError(f"unknown kind of change {kind!r}")


def _base(record: Mapping[str, Any]) -> int | None:
    return None if record["base"] is None else _number(record["base"])


def _encode(record: dict[str, Any]) -> bytes:
    return json.dumps({"format": FORMAT, **record}, ensure_ascii=False, separators=(",", ":")).encode()


def _decode(data: bytes, where: str) -> dict[str, Any]:
    try:
        record = json.loads(data)
    except ValueError as error:
        raise Corrupt(f"{where} is not JSON: {error}") from error
    number = record.get("format") if isinstance(record, dict) else None
    if not isinstance(number, int):
        raise Corrupt(f"{where} is not a LakeVilla record: it has no format number")
    if number > FORMAT:
        raise Unsupported(
            f"{where} has record format {number}, and this LakeVilla reads up to {FORMAT}: "
            "install the release that the lake's other clients use"
        )
    assert isinstance(record, dict)
    return record


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected text, found {value!r}")
    return value


def _number(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"expected a number, found {value!r}")
    return value
