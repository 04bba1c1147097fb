"""The engine port: data work behind one interface.

An engine reads pinned tables and writes data files. It knows the store and Parquet, nothing of logs,
versions or transactions: it is handed sources and targets, and hands back what it wrote. Expressions
and queries reach it as sqlglot trees in Spark's dialect, with parameters already bound as literals.

Contracts:
- A statement either returns or raises; files that it had uploaded before it raised are orphans that
  vacuum finds by their prefix. An engine never deletes.
- `InvalidInput` for what the user got wrong (a missing column, a violated constraint, a MERGE in
  which two source rows match one target row), `Unsupported` for what this engine cannot mean exactly
  as Spark does. Both before anything is uploaded where that is possible.
- Each source is read through `Source.files(predicate)`; the predicate may be weaker than the
  statement's, never stronger: it is recorded as what the transaction read.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa
from sqlglot import exp

from lakevilla.engines.row_feed import FeedPlace
from lakevilla.files.deleted_rows import DeletedRows
from lakevilla.model import Counts, DataFile, Partitioning, WrittenFile
from lakevilla.predicates import Predicate
from lakevilla.pruning import Summary
from lakevilla.sql.statements import MatchedClause, MergeClauses, NotMatchedClause
from lakevilla.store.port import Store

__all__ = [
    "ADJACENT_LITERALS",
    "Engine",
    "MatchedClause",
    "MergeClauses",
    "NotMatchedClause",
    "Result",
    "Rewritten",
    "Source",
    "Target",
]

ADJACENT_LITERALS = "adjacent literals"
"""The `rule` of the error for `'it''s'`. Most SQL reads a quote there, Spark joins the two strings: no engine
may guess which of the two was meant, where the user did not choose Spark."""


@dataclass(frozen=True)
class Source:
    """A pinned table as an engine reads it, under the name by which expressions call it.

    `schema` is the logical Arrow schema; field metadata carries physical names and ids (see
    `files.column_mapping`). `files` prunes by a predicate and records it. `open` finds the store and the key
    of a data file, which may lie outside the table's root. `about_bytes` estimates the size of the whole
    table, for plans; `has_deletes` is False where no file can have deleted rows; `formats` are those of its
    data files. `unstored` are the columns other than `partition_columns` that a file may not hold, because
    `DataFile.partition` has their value: one set for each kind of file. `rows` are rows that a client gave
    instead of a table, as a Spark DataFrame or as Arrow of this schema: then there are no files. The local
    engine calls `was_read` with each file that it has read. `summary` is `Snapshot.summary` of the version,
    and records what it said as read.
    """

    name: str
    schema: pa.Schema
    partition_columns: tuple[str, ...]
    files: Callable[[Predicate], Sequence[DataFile]]
    open: Callable[[DataFile], tuple[Store, str]]
    about_bytes: Callable[[], int] = lambda: 1 << 40
    has_deletes: bool = True
    formats: Callable[[], frozenset[str]] = lambda: frozenset({"parquet"})
    unstored: Callable[[], frozenset[frozenset[str]]] = lambda: frozenset({frozenset()})
    rows: Any = None
    was_read: Callable[[DataFile], None] = lambda _: None
    summary: Callable[[Predicate, Predicate, Sequence[str]], Summary | None] = lambda *_: None


@dataclass(frozen=True)
class Target:
    """Where and how an engine writes the data files of one statement.

    `new_key()` gives a fresh key for each file; every key names the transaction, so that vacuum finds
    orphans, and its last segment is prefixed with partition folders by the writer. `checks` are CHECK
    constraints by name, as Spark SQL; non-nullable fields of `schema` are NOT NULL. `merge_on_read` says that
    rows of a file may be deleted while the file stays, see `Rewritten.masked`. `feed` is where the rows that
    change are written too, if the table keeps them.
    """

    name: str
    schema: pa.Schema
    partitioning: Partitioning
    store: Store
    new_key: Callable[[], str]
    now_ms: Callable[[], int]
    checks: Mapping[str, exp.Expr] = field(default_factory=dict)
    file_bytes: int = 128 * 1024 * 1024
    file_rows: int = 8_000_000
    merge_on_read: bool = False
    feed: FeedPlace | None = None


@dataclass(frozen=True)
class Rewritten:
    """What an engine did for one changing statement.

    `masked` are the rows that go of files that stay: only where the target allows it, each file at most once,
    and none that is in `removed`. A file is in it or rewritten as `is_worth_keeping` decides. `feed` are the
    files with the rows that changed.
    """

    added: tuple[WrittenFile, ...]
    removed: tuple[DataFile, ...]
    counts: Counts
    masked: tuple[DeletedRows, ...] = ()
    feed: tuple[WrittenFile, ...] = ()


class Result(Protocol):
    """What a read gives back; the verbs are those of a Spark DataFrame, so user code runs on both."""

    @property
    def schema(self) -> Any: ...
    @property
    def columns(self) -> list[str]: ...
    def toArrow(self) -> pa.Table: ...
    def toPandas(self) -> Any: ...
    def collect(self) -> list[Any]: ...
    def count(self) -> int: ...
    def show(self, n: int = 20, truncate: bool | int = True) -> None: ...


class Engine(Protocol):
    """Data work. `sources` maps the name by which a query calls a table to the table."""

    @property
    def name(self) -> str: ...

    @property
    def composes(self) -> bool:
        """Whether clients can build on a result before it is read. Then what was read of a table may be less
        than the whole result needs."""
        ...

    def read(self, source: Source) -> Result:
        """The whole table, lazily."""
        ...

    def file_rows(self, source: Source, files: Sequence[DataFile]) -> Iterator[pa.Table]:
        """The rows of each of these files in turn, in their order, in this process; without the source's
        `files`."""
        ...

    def result(self, table: pa.Table) -> Result:
        """Rows that we have already, as this engine gives results."""
        ...

    def query(self, query: exp.Query, sources: Mapping[str, Source], now_ms: int) -> Result:
        """The result of a SELECT. `now_ms` is what current_timestamp() and its kin give."""
        ...

    def columns_of(self, query: exp.Query, sources: Mapping[str, Source], now_ms: int) -> pa.Schema:
        """The columns that a SELECT gives. Reads no rows."""
        ...

    def accepts(self, data: object) -> bool:
        """Whether `data` is something that this engine can append or merge from."""
        ...

    def knows(self, name: str) -> bool:
        """Whether statements can read something by this name that is not a table of the lake: a view of the
        engine's own session, or files in place."""
        ...

    def schema_of(self, data: object, besides: Collection[str] = ()) -> pa.Schema:
        """The Arrow schema of such data, for tables that are created from it, or get its columns: without
        those of these names, in lower case."""
        ...

    def append(self, target: Target, data: object) -> Rewritten:
        """Write rows given as data, or as the Result of a query of this engine.

        Columns go by name; missing nullable ones become NULL; unknown ones are InvalidInput; values
        are cast to the table's types where nothing is lost, else InvalidInput.
        """
        ...

    def insert(
        self,
        target: Target,
        query: exp.Query,
        columns: Sequence[str],
        sources: Mapping[str, Source],
        now_ms: int,
    ) -> Rewritten:
        """INSERT INTO target (columns) query: columns go by position."""
        ...

    def overwrite(
        self, target: Target, source: Source, data: object, where: exp.Expr | None, now_ms: int
    ) -> Rewritten:
        """Replace the rows for which `where` is true (all rows if None) by the data.

        Every row of the data must satisfy `where`, else InvalidInput.
        """
        ...

    def update(
        self,
        target: Target,
        source: Source,
        set: Mapping[str, exp.Expr],
        where: exp.Expr | None,
        sources: Mapping[str, Source],
        now_ms: int,
    ) -> Rewritten:
        """UPDATE. Files without a matching row stay as they are."""
        ...

    def delete(
        self,
        target: Target,
        source: Source,
        where: exp.Expr | None,
        sources: Mapping[str, Source],
        now_ms: int,
    ) -> Rewritten:
        """DELETE. Files whose rows all go are removed without being read where bounds or partition
        values prove it; files without a matching row stay as they are."""
        ...

    def merge(
        self,
        target: Target,
        source: Source,
        using: object,
        clauses: MergeClauses,
        sources: Mapping[str, Source],
        now_ms: int,
    ) -> Rewritten:
        """MERGE INTO target USING data, or a query (an `exp.Query` over `sources`)."""
        ...

    def rewrite(
        self, target: Target, source: Source, groups: Sequence[Sequence[DataFile]], order: Sequence[str]
    ) -> Sequence[tuple[WrittenFile, ...]]:
        """Write the living rows of each group of files anew, and give what was written for each group.

        With `order` the rows of a group are clustered by these columns. No rule of the table is asked: the
        rows are in it already."""
        ...
