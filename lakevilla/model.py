"""Small frozen values that rooms share. No behaviour beyond what follows from the value itself."""

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from lakevilla.predicates import Column, Predicate

if TYPE_CHECKING:
    import pyarrow as pa


class Features(enum.Flag):
    """The modules that a transaction picks. `NONE` is the plain format: one table, one statement."""

    NONE = 0
    R = enum.auto()
    CT = enum.auto()
    I = enum.auto()  # noqa: E741 - the paper's name


@dataclass(frozen=True, slots=True)
class TableRef:
    """A table as the lake's registry knows it. `location` is relative to the lake's root, or a URL."""

    name: str
    location: str
    format: str

    @property
    def is_inside(self) -> bool:
        """Whether the table lies below the lake's root."""
        return "://" not in self.location


@dataclass(frozen=True, slots=True)
class PartitionField:
    """A value by which the files of a table are divided: a transform of the column `source`.

    `transform` is in Iceberg's spelling: identity, year, month, day, hour, bucket[N], truncate[W] or void.
    """

    name: str
    source: Column
    transform: str = "identity"


@dataclass(frozen=True, slots=True)
class Partitioning:
    """How new files of a table are divided. `stored` tells whether they hold the source columns too."""

    fields: tuple[PartitionField, ...] = ()
    stored: bool = False

    @staticmethod
    def by_columns(names: Sequence[str]) -> "Partitioning":
        """By the values of top-level columns, which files leave out."""
        return Partitioning(tuple(PartitionField(name, (name,)) for name in names))

    @property
    def unstored(self) -> frozenset[str]:
        """The columns that files leave out."""
        return frozenset() if self.stored else frozenset(field.source[0] for field in self.fields)


@dataclass(frozen=True, slots=True)
class Deletes:
    """Rows of one data file that are deleted.

    `rows()` gives their sorted positions in the file as int64; it may read the store: `keys` are our files
    that it reads. `count` is how many they are, None where only `rows()` can tell.
    """

    identity: str
    count: int | None
    rows: Callable[[], "pa.Int64Array"]
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DataFile:
    """One live data file of a snapshot, as engines and conflict rules see it.

    `key` is relative to the table's root, or an absolute URL for a file elsewhere. `identity` is the
    name under which the table's log knows the file: conflicts and removals go by it. `partition`
    holds typed Python values by logical column name; they count where the file does not hold the column. A
    day or moment that Python's calendar does not have is the number that Arrow counts it as.
    `format` is parquet, orc or avro. `entry` is the file as its table's format has it, and only for that.
    """

    key: str
    identity: str
    size: int
    rows: int | None
    partition: Mapping[str, Any]
    deletes: Deletes | None = None
    entry: Any = field(default=None, compare=False, repr=False)
    format: str = "parquet"

    @property
    def living_rows(self) -> int | None:
        """How many rows are not deleted, if that is known without reading."""
        if self.rows is None or self.deletes is None:
            return self.rows
        return None if self.deletes.count is None else self.rows - self.deletes.count


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """Bounds of one leaf column in one file. A bound is None where none can be given safely.

    `minimum` and `maximum` are plain Python values of the column's type. A column that holds a NaN
    has no bounds, because readers disagree on where NaN sorts.
    """

    minimum: Any
    maximum: Any
    nulls: int


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """One data file that an engine has uploaded for a statement, not yet part of any snapshot.

    `partition` has typed Python values by the names of partition fields, `statistics` go by the path of
    the leaf in logical names, structs unfolded, lists and maps left out. A file that comes from a
    transaction's record has an `entry` instead, which belongs to the format that made the record.
    """

    key: str
    size: int
    rows: int
    partition: Mapping[str, Any]
    statistics: Mapping[tuple[str, ...], ColumnStatistics]
    modified_ms: int
    entry: Any = field(default=None, compare=False, repr=False)


class FileSet(Protocol):
    """Files that a commit added, kept so that a predicate can be asked against them."""

    def matching(self, predicate: Predicate) -> Sequence[str]:
        """Identities of the files that may hold a row for which the predicate is true."""
        ...

    def files(self, predicate: Predicate) -> Sequence[DataFile]:
        """The same files, to read their rows."""
        ...


@dataclass(frozen=True, slots=True)
class NoFiles:
    def matching(self, predicate: Predicate) -> tuple[str, ...]:  # noqa: ARG002 - the port's signature
        return ()

    def files(self, predicate: Predicate) -> tuple[DataFile, ...]:  # noqa: ARG002 - the port's signature
        return ()


NO_FILES = NoFiles()


@dataclass(frozen=True, slots=True)
class Shrunk:
    """A file that a commit keeps with other deleted rows: as it was, and as it is."""

    before: DataFile
    after: DataFile


@dataclass(frozen=True, slots=True)
class ReadSet:
    """What a statement read of one table: whole predicates, and the files that it looked into."""

    predicates: tuple[Predicate, ...] = ()
    files: frozenset[str] = frozenset()

    def union(self, other: "ReadSet") -> "ReadSet":
        seen = self.predicates + tuple(p for p in other.predicates if p not in self.predicates)
        return ReadSet(seen, self.files | other.files)


@dataclass(frozen=True, slots=True)
class Notice:
    """An entry in a table's own log which says that entry `seq` of the lake's global log concerns its name.

    A client of that lake whose HEAD is older must read it again before it goes by the name it knows.
    """

    lake: str
    seq: int
    dropped: bool


@dataclass(frozen=True, slots=True)
class Batch:
    """One piece of work of an app that commits its work in order: batch `number` of `app`."""

    app: str
    number: int

    def __str__(self) -> str:
        return f"batch {self.number} of {self.app!r}"


@dataclass(frozen=True, slots=True)
class Footprint:
    """What one published commit did to its table, for the conflict rules.

    `txn` and `attempt` are the LakeVilla transaction and attempt that wrote it, None for any other client's
    commit. `summary` names it to people: operation, engine, time. `unreadable` says why nothing is known of
    what it did: the version is damaged. `keeps_rows`: it rewrote files, and all rows are as before.

    A file that stays with other deleted rows is in `removed` by its identity before, and in `added` by the
    new one. `shrunk` has it too, by the name that does not change with its deleted rows, which `file_of`
    finds in an identity. What a format does not tell so counts as another file.
    """

    version: int
    txn: str | None
    attempt: str | None
    summary: str
    removed: frozenset[str]
    added: FileSet
    metadata_changed: bool
    protocol_changed: bool
    dropped: bool = False
    unreadable: str = ""
    keeps_rows: bool = False
    shrunk: Mapping[str, Callable[[], Shrunk]] = field(default_factory=dict, compare=False, repr=False)
    file_of: Callable[[str], str] = field(default=str, compare=False, repr=False)

    @staticmethod
    def of_damaged(version: int, reason: str) -> "Footprint":
        """The footprint of a version that cannot be parsed. It conflicts with every change."""
        summary = f"version {version}, which cannot be read"
        return Footprint(version, None, None, summary, frozenset(), NO_FILES, False, False, unreadable=reason)


@dataclass(frozen=True, slots=True)
class Change:
    """What a statement wants to do to one table: files in, files out, or new metadata.

    `metadata` and `protocol` belong to the format. A blind change appends and has read nothing. An inverse
    undoes a published change, so rules such as append-only do not apply to it. `once` is the batch that the
    version names as committed (negative: none). `replaces`: definition and rows are replaced as a whole.
    `feed` are change data files, which say which rows changed where `added` and `removed` do not.
    """

    operation: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    added: tuple[WrittenFile, ...] = ()
    removed: tuple[DataFile, ...] = ()
    metadata: Any = None
    protocol: Any = None
    read: ReadSet = ReadSet()
    metrics: Mapping[str, int] = field(default_factory=dict)
    notice: Notice | None = None
    inverse: bool = False
    once: Batch | None = None
    replaces: bool = False
    feed: tuple[WrittenFile, ...] = ()

    @property
    def blind(self) -> bool:
        return not (self.removed or self.read.predicates or self.read.files or self.metadata or self.notice)


@dataclass(frozen=True, slots=True)
class Author:
    """What commits: the transaction, its attempt, and the id of this very write (the put-id).

    `ticket` is the ticket in the table's writer queue that the commit uses up, if it had one. `slot` is
    the entry of the lake's global log that decided the commit, if one did.
    """

    txn: str
    attempt: str
    put: str
    ticket: int | None = None
    slot: int | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Counts:
    """How many rows a change touched."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0

    def __repr__(self) -> str:
        return f"Counts(inserted={self.inserted}, updated={self.updated}, deleted={self.deleted})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Counts, (self.inserted, self.updated, self.deleted)

    def __eq__(self, other: object) -> bool:
        return self.__reduce__() == other.__reduce__() if isinstance(other, Counts) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.inserted, self.updated, self.deleted))
