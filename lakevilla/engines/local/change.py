"""One changing statement: its translation, what it has done, and the rows that it finds.

Rows are found by the columns that the condition needs, and only in row groups that may hold some.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from sqlglot import exp

from lakevilla.engines.local.arrow import inward, outward
from lakevilla.engines.local.connections import Connections
from lakevilla.engines.local.rows import NewRows, checked, qualifiers
from lakevilla.engines.local.scan import Scan, load, projected
from lakevilla.engines.local.translation.expressions import Expressions
from lakevilla.engines.local.translation.queries.queries import Queries
from lakevilla.engines.local.translation.queries.scope import Reference, Relation, Scope
from lakevilla.engines.local.translation.types.typed import Typed
from lakevilla.engines.port import Source, Target
from lakevilla.engines.row_feed import RowFeed, feed_writer
from lakevilla.environment import Environment
from lakevilla.errors import InvalidInput
from lakevilla.files.bitmaps import Positions
from lakevilla.files.deleted_rows import DeletedRows, is_worth_keeping
from lakevilla.files.reader import Flags, OpenedFile, open_file
from lakevilla.model import DataFile
from lakevilla.predicates import Predicate
from lakevilla.sql.expressions.predicate_extraction import columns_in, predicate_of

CHUNK_BYTES = 64 * 1024 * 1024
FILE = "lv_file"
ROW = "lv_row"


@dataclass
class Change:
    """One changing statement: its translation, the tables of its subqueries, and what it has done."""

    environment: Environment
    connections: Connections
    target: Target
    source: Source
    sources: Mapping[str, Source]
    now_ms: int
    removed: list[DataFile] = field(default_factory=list)
    masked: list[DeletedRows] = field(default_factory=list)
    touched: int = 0

    def __post_init__(self) -> None:
        self.feed = RowFeed(self.target.feed, feed_writer(self.target.store, self.target.now_ms))
        schemas = {key: source.schema for key, source in self.sources.items()}
        self.queries = Queries(schemas, self.now_ms)
        columns = [(column.name, column.type) for column in self.source.schema]
        self.relation = Relation(
            self.queries.fresh("t"), qualifiers(self.source.name), self.queries.outputs(columns)
        )
        self.scope = Scope([self.relation])
        self._loaded: dict[str, Any] | None = None

    def expressions(self) -> Expressions:
        return Expressions(self.queries, self.scope)

    def condition(self, where: exp.Expr | None, scope: Scope | None = None) -> str:
        """The condition of the statement, never NULL."""
        if where is None:
            return "TRUE"
        translated = Expressions(self.queries, scope or self.scope).condition(where)
        if translated.aggregate:
            raise InvalidInput("the condition of an UPDATE, DELETE or MERGE cannot have an aggregate")
        return f"(({translated.sql}) IS TRUE)"

    def old(self) -> dict[str, Typed]:
        """The row as it is, by the target's columns."""
        return {output.name: self.relation.column(output) for output in self.relation.outputs}

    def chunks(self, files: Sequence[DataFile]) -> Iterator[tuple[list[DataFile], pa.Table]]:
        """The files' rows, several files at a time, each row with the number of its file."""
        for chunk in chunked(files):
            scan = Scan(self.environment, self.source, chunk, self.source.schema)
            tables = list(scan.tables())
            numbers = np.repeat(np.arange(len(tables), dtype=np.int32), [t.num_rows for t in tables])
            names = [output.sql for output in self.relation.outputs]
            rows = inward(pa.concat_tables(tables), names).append_column(FILE, pa.array(numbers))
            yield chunk, rows.append_column(ROW, pa.array(np.arange(rows.num_rows, dtype=np.int64)))

    def as_they_were(self, rows: pa.Table, numbers: pa.Array) -> pa.Table:
        """Those of the rows of a chunk that have these numbers, as the table has them."""
        outputs = self.relation.outputs
        return outward(rows.select(range(len(outputs))).take(numbers), outputs)

    def run(self, sql: str, rows: Mapping[str, pa.Table]) -> pa.Table:
        """The text over these rows, by the names of their relations, and the tables of subqueries."""
        if self._loaded is None:
            self._loaded = load(self.environment, self.queries.references, self.sources)
        tables = {**rows, **self._loaded}
        return self.connections.run(self.queries.finished(sql), tables, self.queries.names)


def rows_of(relation: Relation) -> str:
    """Registered rows in a FROM clause; the OFFSET keeps filters away from Arrow (see `Reference`)."""
    return f"(SELECT * FROM {relation.sql} OFFSET 0) AS {relation.sql}"


def chunked(files: Sequence[DataFile]) -> Iterator[list[DataFile]]:
    """The files in groups of a bounded number of bytes."""
    chunk: list[DataFile] = []
    size = 0
    for file in files:
        if chunk and size + file.size > CHUNK_BYTES:
            yield chunk
            chunk, size = [], 0
        chunk.append(file)
        size += file.size
    if chunk:
        yield chunk


def names_of(source: Source) -> tuple[str, ...]:
    """By what a statement's expressions may call its table."""
    return (source.name, source.name.rpartition(".")[2])


Placed = tuple[DataFile, OpenedFile, pa.Table, Positions]

Numbers = np.ndarray[tuple[int], np.dtype[np.int64]]


@dataclass(frozen=True)
class Hits:
    """Rows of one file that a statement found: their positions, sorted and distinct, and those of their
    columns that were read to find them."""

    file: DataFile
    opened: OpenedFile
    rows: Positions
    known: pa.Table

    @property
    def keep_file(self) -> bool:
        return is_worth_keeping(len(self.rows), self.opened.deleted, self.opened.rows)

    @property
    def deleted_rows(self) -> DeletedRows:
        return DeletedRows(self.file, self.rows, self.opened.rows)

    def only(self, flags: Flags) -> "Hits":
        """Those of the rows that have a flag."""
        return replace(self, rows=self.rows[flags], known=self.known.filter(pa.array(flags)))

    def whole(self, schema: pa.Schema) -> pa.Table:
        """All columns of the rows."""
        known = set(self.known.schema.names)
        rest = projected(schema, [name for name in schema.names if name not in known])
        read = self.opened.at(rest, self.rows) if len(rest) else self.known
        columns = [(self.known if name in known else read).column(name) for name in schema.names]
        return pa.Table.from_arrays(columns, schema=schema)


@dataclass(frozen=True)
class Portion:
    """Some columns of some files, as one table in which `ROW` numbers the rows."""

    placed: Sequence[Placed]
    table: pa.Table

    def hits(self, rows: Numbers) -> list[Hits]:
        """These rows, which are sorted and distinct, by the files that hold them, in the same order."""
        found, start = [], 0
        for file, opened, table, positions in self.placed:
            first, last = np.searchsorted(rows, (start, start + len(positions)))
            if last > first:
                flags = np.zeros(len(positions), dtype=np.bool_)
                flags[rows[first:last] - start] = True
                found.append(Hits(file, opened, positions[flags], table.filter(pa.array(flags))))
            start += len(positions)
        return found


def narrowed(relation: Relation, schema: pa.Schema) -> tuple[Relation, Reference]:
    """The statement's table, and a note of which of its columns are used."""
    names = {output.name: output.sql for output in relation.outputs}
    reference = Reference("", relation.sql, schema, names)
    return replace(relation, reference=reference), reference


def portions(
    change: Change, reference: Reference, files: Sequence[DataFile], predicate: Predicate
) -> Iterator[Portion]:
    """The columns that were noted, of the rows that may satisfy the predicate, several files at a time."""
    wanted = projected(change.source.schema, reference.needed)
    names = [reference.columns[name] for name in reference.needed]
    for chunk in placed(change.environment, change.source, files, wanted, predicate):
        rows = inward(pa.concat_tables([table for _, _, table, _ in chunk]), names)
        numbered = rows.append_column(ROW, pa.array(np.arange(rows.num_rows, dtype=np.int64)))
        yield Portion(chunk, numbered)


def placed(
    environment: Environment,
    source: Source,
    files: Sequence[DataFile],
    wanted: pa.Schema,
    predicate: Predicate,
) -> Iterator[list[Placed]]:
    """The files, opened, with these columns of the rows that may satisfy the predicate and the rows'
    positions; several files at a time."""

    def read(file: DataFile) -> Placed:
        opened = open_file(source.open, file, source.partition_columns)
        return file, opened, *opened.placed(wanted, predicate)

    for chunk in chunked(files):
        found = environment.fan_out([partial(read, file) for file in chunk])
        for file in chunk:
            source.was_read(file)
        yield found


def whole_rows(change: Change, hits: Sequence[Hits]) -> pa.Table:
    """All columns of these rows, as the statement's relation has them."""
    tasks = [partial(hit.whole, change.source.schema) for hit in hits]
    return pa.concat_tables(change.environment.fan_out(tasks))


def found(change: Change, files: Sequence[DataFile], where: exp.Expr) -> Iterator[list[Hits]]:
    """The rows for which the condition is true, several files at a time."""
    relation, reference = narrowed(change.relation, change.source.schema)
    condition = change.condition(where, Scope([relation]))
    sql = f"SELECT {relation.sql}.{ROW} FROM {rows_of(relation)} WHERE {condition}"
    resolve = columns_in(change.source.schema, names_of(change.source))
    for portion in portions(change, reference, files, predicate_of(where, resolve)):
        result = change.run(sql, {relation.sql: portion.table})
        yield portion.hits(np.sort(result.column(0).to_numpy()))


def computed(change: Change, rows: NewRows, old: pa.Table) -> pa.Table:
    """The new rows for these old ones, checked and in the same order; the query takes `FILE` along."""
    names = [output.sql for output in change.relation.outputs]
    numbers = pa.array(np.arange(old.num_rows, dtype=np.int64))
    numbered = inward(old, names).append_column(FILE, numbers).append_column(ROW, numbers)
    result = change.run(rows.sql, {change.relation.sql: numbered})
    found = result.column(len(rows.outputs) + rows.extra.index(FILE)).to_numpy()
    new = checked(result, rows, change.target)
    # A subquery in a new value may be a join, after which rows come in any order.
    new = new if bool(np.all(found[1:] > found[:-1])) else new.take(pa.array(np.argsort(found)))
    change.feed.updated(old, new)
    return new
