"""What an entry of the global log says of a commit: per table the change and what was read (module 4.2).

The change stands in the format's own terms, as actions and not as the bytes of a log entry, because those
depend on the version that publishes it. The client that finds the entry can publish it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lakevilla.encoding import decode_reads, encode_reads
from lakevilla.model import Batch, ReadSet, TableRef
from lakevilla.store.records import number, optional_number, text
from lakevilla.versions.views import ViewChange, decode_view_change, encode_view_change

NEW = -1
"""The base version of a change that creates a table: there was nothing."""


@dataclass(frozen=True, slots=True)
class Write:
    """A change of one table, validated on version `base` together with what was read of that table.

    If `base` is `NEW`, the change makes the table: there was none. `blind` says that it only appends and
    nothing was read of the table for it: no outside writer can conflict with it except by altering the table.
    `exclusive` says that the table has no outside writers. `ticket` is the ticket in the table's writer queue
    that it uses up, if any. `table_id` is the id that the format gave the table which it was validated on;
    empty if that is not known.
    """

    table: TableRef
    base: int
    change: Mapping[str, Any]
    read: ReadSet
    blind: bool
    ticket: int | None = None
    exclusive: bool = False
    table_id: str = ""

    @property
    def creates(self) -> bool:
        """Whether it makes the table."""
        return self.base == NEW

    @property
    def by_rows(self) -> bool:
        """Whether it deletes rows of files that stay: then its conflicts are decided by rows."""
        return bool(self.change.get("rows"))


@dataclass(frozen=True, slots=True)
class Read:
    """What was read of a table that the commit does not change, at version `base`. `table_id` as in
    `Write`."""

    table: TableRef
    base: int
    read: ReadSet
    table_id: str = ""


@dataclass(frozen=True, slots=True)
class Drop:
    """A table that loses its name when all else of the commit is published.

    `base` is the version at which a table below the lake's root was seen: its log gets a notice. None for a
    table elsewhere, which is not touched.
    """

    table: TableRef
    base: int | None


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit on several tables, or on one with reads of others; it may make tables and drop some.

    `ticket` is the place in the queue for the lake's slots that it uses up, if any. `final` says that its
    transaction ends if it is refused, and is not tried again. `once` is the batch that it commits, if it has
    one. `views` are views that it makes, replaces and drops.
    """

    writes: tuple[Write, ...]
    reads: tuple[Read, ...] = ()
    drops: tuple[Drop, ...] = ()
    ticket: int | None = None
    final: bool = False
    once: Batch | None = None
    views: tuple[ViewChange, ...] = ()

    @property
    def replaces(self) -> bool:
        """Whether it gives a table another definition and other rows."""
        return any(write.change.get("replaces") for write in self.writes)

    @property
    def by_rows(self) -> bool:
        """Whether conflicts of one of its changes are decided by rows."""
        return any(write.by_rows for write in self.writes)

    @property
    def tables(self) -> list[TableRef]:
        """Every table whose log the commit changes or whose name it takes."""
        return [write.table for write in self.writes] + [drop.table for drop in self.drops]


@dataclass(frozen=True, slots=True)
class Adopted:
    """A table and a version of it that is part of the lake's instant from here on. `table_id` as in
    `Write`."""

    table: TableRef
    version: int
    table_id: str = ""


@dataclass(frozen=True, slots=True)
class Adopt:
    """Versions that were written without the global log, or before there was one, become part of it.

    `repaired` are locations of torn tables that are accepted as they are: they are not torn any more.
    """

    tables: tuple[Adopted, ...]
    repaired: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Void:
    """An entry that decides nothing. It takes a slot in which another one, whose create went unanswered,
    could otherwise still appear."""


@dataclass(frozen=True, slots=True)
class Settled:
    """The result of an entry on its tables, fixed by their logs: the same for every client that settles it.

    `published` is False if it was rolled back or found its place taken. `versions` are the newest
    versions of its tables that came from it, or that it met in its way, by location; `torn` are tables where
    another client built on a version before it could be rolled back. `dropped` are tables below the root that
    it created and rolled back, `owned` those that it created and that belong to the lake from then on.
    """

    published: bool
    versions: Mapping[str, int] = field(default_factory=dict)
    torn: frozenset[str] = frozenset()
    dropped: frozenset[str] = frozenset()
    owned: frozenset[str] = frozenset()


def encode_commit(commit: Commit) -> dict[str, Any]:
    return {
        "kind": "commit",
        "writes": [
            {
                **_encode_ref(write.table),
                "base": write.base,
                "change": dict(write.change),
                "read": encode_reads(write.read),
                "blind": write.blind,
                "ticket": write.ticket,
                "exclusive": write.exclusive,
                **encode_id(write.table_id),
            }
            for write in commit.writes
        ],
        "reads": [
            {
                **_encode_ref(read.table),
                "base": read.base,
                "read": encode_reads(read.read),
                **encode_id(read.table_id),
            }
            for read in commit.reads
        ],
        "drops": [{**_encode_ref(drop.table), "base": drop.base} for drop in commit.drops],
        "ticket": commit.ticket,
        **({"final": True} if commit.final else {}),
        **({} if commit.once is None else {"once": [commit.once.app, commit.once.number]}),
        **({"views": [encode_view_change(change) for change in commit.views]} if commit.views else {}),
    }


def decode_commit(record: Mapping[str, Any]) -> Commit:
    return Commit(
        tuple(
            Write(
                _decode_ref(write),
                number(write["base"]),
                dict(write["change"]),
                decode_reads(write["read"]),
                bool(write["blind"]),
                optional_number(write["ticket"]),
                bool(write.get("exclusive")),
                _decode_id(write),
            )
            for write in record["writes"]
        ),
        tuple(
            Read(_decode_ref(read), number(read["base"]), decode_reads(read["read"]), _decode_id(read))
            for read in record["reads"]
        ),
        tuple(Drop(_decode_ref(drop), optional_number(drop["base"])) for drop in record.get("drops", ())),
        optional_number(record.get("ticket")),
        bool(record.get("final")),
        _decode_once(record.get("once")),
        tuple(decode_view_change(change) for change in record.get("views", ())),
    )


def _decode_once(record: Any) -> Batch | None:
    if record is None:
        return None
    app, batch = record
    return Batch(text(app), number(batch))


def encode_adopt(adopt: Adopt) -> dict[str, Any]:
    return {
        "kind": "adopt",
        "tables": [
            {**_encode_ref(found.table), "version": found.version, **encode_id(found.table_id)}
            for found in adopt.tables
        ],
        "mended": sorted(adopt.repaired),
    }


def decode_adopt(record: Mapping[str, Any]) -> Adopt:
    tables = (
        Adopted(_decode_ref(found), number(found["version"]), _decode_id(found)) for found in record["tables"]
    )
    return Adopt(tuple(tables), frozenset(text(location) for location in record["mended"]))


def encode_id(table_id: str) -> dict[str, str]:
    """The id that the format gave a table; entries of earlier releases have none."""
    return {"id": table_id} if table_id else {}


def _decode_id(record: Mapping[str, Any]) -> str:
    return text(record.get("id", ""))


def _encode_ref(ref: TableRef) -> dict[str, str]:
    return {"name": ref.name, "location": ref.location, "format": ref.format}


def _decode_ref(record: Mapping[str, Any]) -> TableRef:
    return TableRef(text(record["name"]), text(record["location"]), text(record["format"]))
