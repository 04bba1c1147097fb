"""The records of the global version log: HEAD and its entries (module 4.1).

HEAD maps every registered table to where it lives; an entry is one decided change of the lake. Both are
JSON with a format number, a put-id that makes every write unique, and explicit encode and decode. A
client that meets a newer format number refuses, and says so.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from lakevilla.errors import Corrupt
from lakevilla.model import TableRef
from lakevilla.store.records import FORMAT, decode, encode, number, optional_number, text
from lakevilla.versions.batches import Done
from lakevilla.versions.commits import (
    Adopt,
    Commit,
    Void,
    decode_adopt,
    decode_commit,
    encode_adopt,
    encode_commit,
    encode_id,
)
from lakevilla.versions.tags import Expire, Tag, TagChange, Untag, decode_tag, encode_tag
from lakevilla.versions.views import View


@dataclass(frozen=True, slots=True)
class Head:
    """The lake at one instant: its id, the last settled entry, and every registered table.

    `dropped` holds locations below the root that are not tables any more, although their files are still
    there: such a folder is not found as a table, and its name gets a new folder. `versions` are the
    versions of this instant, by location: what entries made or adopted; `torn` are tables where a refused
    commit could not be rolled back, because another client had built on it. `owned` are locations of tables
    that are known to belong to this lake, so that no client has to ask them again. `time_ms` is when the last
    entry was written, never earlier than the one before; 0 where that is not known. `tags` are names of
    entries whose instants are kept; of others, those before the entry `horizon` may be deleted. `ticket` is
    the newest ticket in the queue for the lake's slots that an entry used up. `doomed` are dropped locations
    whose files vacuum deletes, or has deleted: no table can be there any more. `ids` are the ids that formats
    gave the tables of `versions`, by location, where they are known: a location may hold another table later.
    On the store it is packed, see `head_encoding`; a new part is added in `head_steps` too. `batches` are the
    newest batches that apps have committed, see `batches`; `views` are queries under names, see `views`.
    `given_up` is not part of the instant: of the next entry, which is not settled yet, these locations were
    found out of reach (see `settle.completion`).
    """

    lake: str
    seq: int
    put: str
    tables: Mapping[str, TableRef] = field(default_factory=dict)
    dropped: frozenset[str] = frozenset()
    versions: Mapping[str, int] = field(default_factory=dict)
    torn: frozenset[str] = frozenset()
    owned: frozenset[str] = frozenset()
    time_ms: int = 0
    tags: Mapping[str, int] = field(default_factory=dict)
    horizon: int = 0
    ticket: int = 0
    given_up: frozenset[str] = frozenset()
    doomed: frozenset[str] = frozenset()
    ids: Mapping[str, str] = field(default_factory=dict)
    batches: Mapping[str, Done] = field(default_factory=dict)
    views: Mapping[str, View] = field(default_factory=dict)


BATCH_FORMAT = 2
"""The format of an entry that commits a batch. A client of an earlier release would settle it and forget the
batch: it must refuse."""

VIEW_FORMAT = 3
"""The format of an entry that changes views, or replaces a table: a client of an earlier release would forget
the views, and could not roll the table back."""

ROW_FORMAT = 4
"""The format of an entry whose conflicts are decided by rows: a client of an earlier release would roll back
what others publish, and lose rows that were deleted since the change was computed."""

GONE = -1
"""The version of a table below the root whose log cannot be read any more: it gets no notice."""


@dataclass(frozen=True, slots=True)
class CreateTable:
    """A new table. `first` is the text of its first log entry, published when the entry is settled. `id` is
    the one that the format gave it; empty if that is not known."""

    table: TableRef
    first: str
    id: str = ""


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

    `base` is the version at which a table below the lake's root was seen: its log gets a notice, so that
    clients which still know the old name do not use it; `GONE` if it cannot be read. None for a table
    elsewhere, which is not touched.
    """

    table: TableRef
    base: int | None


RegistryChange = CreateTable | RegisterTable | RenameTable | DropTable
AnyChange = RegistryChange | Commit | Adopt | TagChange | Void

_KINDS: Mapping[type[AnyChange], str] = {
    CreateTable: "create",
    RegisterTable: "register",
    RenameTable: "rename",
    DropTable: "drop",
    Commit: "commit",
    Adopt: "adopt",
    Tag: "tag",
    Untag: "untag",
    Expire: "expire",
    Void: "void",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """One slot of the global log: which attempt decided what. Identity is the attempt, never the put-id.

    `lake` is the id of the lake that it was made for; empty in entries of earlier releases.
    """

    seq: int
    txn: str
    attempt: str
    put: str
    time_ms: int
    change: AnyChange
    lake: str = ""

    def seen_from(self, lake: str) -> "Entry":
        """What this entry is for the lake in whose log it is: nothing, if it was made for another lake.

        A folder may be deleted and used for another lake while a client is about to write its entry.
        """
        return self if self.lake in ("", lake) else replace(self, change=Void())

    @property
    def kind(self) -> str:
        """What kind of change it is, in one word."""
        return _KINDS[type(self.change)]

    @property
    def tables(self) -> list[TableRef]:
        """The tables that it is about."""
        match self.change:
            case Commit() as commit:
                return commit.tables
            case Adopt(tables=adopted):
                return [found.table for found in adopted]
            case Void() | Tag() | Untag() | Expire():
                return []
        return [self.change.table]

    def encode(self) -> bytes:
        return encode(
            {
                "seq": self.seq,
                "txn": self.txn,
                "attempt": self.attempt,
                "put": self.put,
                "time_ms": self.time_ms,
                "change": _encode_change(self.change),
                **({"lake": self.lake} if self.lake else {}),
            },
            _format_of(self.change),
        )

    @staticmethod
    def decode(data: bytes, where: str) -> "Entry":
        record = decode(data, where, ROW_FORMAT)
        try:
            return Entry(
                seq=number(record["seq"]),
                txn=text(record["txn"]),
                attempt=text(record["attempt"]),
                put=text(record["put"]),
                time_ms=number(record["time_ms"]),
                change=_decode_change(record["change"]),
                lake=text(record.get("lake", "")),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise Corrupt(f"{where} is not a valid entry of the global log: {error!r}") from error


def _format_of(change: AnyChange) -> int:
    """The least format that says what the change needs of the clients that settle it."""
    if not isinstance(change, Commit):
        return FORMAT
    if change.by_rows:
        return ROW_FORMAT
    if change.views or change.replaces:
        return VIEW_FORMAT
    return FORMAT if change.once is None else BATCH_FORMAT


def _encode_change(change: AnyChange) -> dict[str, Any]:
    match change:
        case Commit():
            return encode_commit(change)
        case Adopt():
            return encode_adopt(change)
        case Tag() | Untag() | Expire():
            return encode_tag(change)
        case Void():
            return {"kind": "void"}
    ref = change.table
    record: dict[str, Any] = {"name": ref.name, "location": ref.location, "format": ref.format}
    match change:
        case CreateTable(first=first, id=table_id):
            return {"kind": "create", **record, "first": first, **encode_id(table_id)}
        case RegisterTable():
            return {"kind": "register", **record}
        case RenameTable(to=to, base=base):
            return {"kind": "rename", **record, "to": to, "base": base}
        case DropTable(base=base):
            return {"kind": "drop", **record, "base": base}


def _decode_change(record: Mapping[str, Any]) -> AnyChange:
    match record["kind"]:
        case "commit":
            return decode_commit(record)
        case "adopt":
            return decode_adopt(record)
        case "void":
            return Void()
    tag = decode_tag(record)
    if tag is not None:
        return tag
    ref = TableRef(text(record["name"]), text(record["location"]), text(record["format"]))
    match record["kind"]:
        case "create":
            return CreateTable(ref, text(record["first"]), text(record.get("id", "")))
        case "register":
            return RegisterTable(ref)
        case "rename":
            return RenameTable(ref, text(record["to"]), optional_number(record["base"]))
        case "drop":
            return DropTable(ref, optional_number(record["base"]))
        case kind:
            raise TypeError(f"unknown kind of change {kind!r}")
