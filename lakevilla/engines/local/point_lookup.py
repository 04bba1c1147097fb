"""Point statements, answered by Arrow alone: whole columns, of one table, where columns equal literals.

To plan and start even the smallest query takes DuckDB one to two milliseconds, more than all else that a
point read does. So what services ask most often does not go there. What is recognised is small on purpose,
and means the same beyond doubt: columns of integers or strings, compared with, or set to, a literal of
their own kind. Everything else is None here, and runs on DuckDB.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from lakevilla.engines.arrow_writer import write
from lakevilla.engines.local.change import placed
from lakevilla.engines.local.scan import Scan, projected
from lakevilla.engines.port import Rewritten, Source, Target
from lakevilla.engines.row_feed import RowFeed, feed_writer
from lakevilla.environment import Environment
from lakevilla.files.bitmaps import Positions
from lakevilla.files.deleted_rows import DeletedRows, is_worth_keeping
from lakevilla.files.reader import OpenedFile
from lakevilla.files.row_checks import optional, together
from lakevilla.model import Counts, DataFile
from lakevilla.predicates import Compare, Predicate, conjunction

_SELECT_PARTS = {"expressions", "from_", "where"}
_TABLE_PARTS = {"this", "db", "catalog", "version"}


@dataclass(frozen=True)
class Point:
    """Rows of one table by the values of some of its columns."""

    environment: Environment
    source: Source
    equal: Mapping[str, pa.Scalar]

    @property
    def predicate(self) -> Predicate:
        return conjunction([Compare((name,), "=", value.as_py()) for name, value in self.equal.items()])

    def files(self) -> list[DataFile]:
        return list(self.source.files(self.predicate))

    def hits(self, rows: pa.Table) -> pa.ChunkedArray:
        """One flag per row, never null."""
        flags = [
            pc.fill_null(pc.equal(rows.column(name), value), False) for name, value in self.equal.items()
        ]
        hits = flags[0]
        for more in flags[1:]:
            hits = pc.and_(hits, more)
        return hits

    def select(self, names: list[str], shown: list[str]) -> pa.Table:
        """These columns of the rows, under the names that the statement gives them."""
        needed = [name for name in self.source.schema.names if name in {*names, *self.equal}]
        schema = projected(self.source.schema, needed)
        scan = Scan(self.environment, self.source, self.files(), schema)
        found = [rows.filter(self.hits(rows)) for rows in scan.tables()]
        rows = together(found, schema)
        types = [optional(schema.field(column).type) for column in names]
        fields = [pa.field(name, kind) for name, kind in zip(shown, types, strict=True)]
        return pa.Table.from_arrays([rows.column(name) for name in names], schema=pa.schema(fields))

    def update(self, target: Target, assigned: Mapping[str, pa.Scalar]) -> Rewritten:
        """Set columns to values: copy on write as `copy_on_write.update` does it, or merge on read."""
        feed = RowFeed(target.feed, feed_writer(target.store, target.now_ms))
        done = _PointUpdate(self, assigned, feed)
        added = write(target, done.masked_rows() if target.merge_on_read else done.rewritten_rows())
        counts = Counts(updated=done.touched)
        return Rewritten(added, tuple(done.removed), counts, tuple(done.masked), feed.finish())


@dataclass
class _PointUpdate:
    """One UPDATE, and what it has done."""

    point: Point
    assigned: Mapping[str, pa.Scalar]
    feed: RowFeed
    removed: list[DataFile] = field(default_factory=list)
    masked: list[DeletedRows] = field(default_factory=list)
    touched: int = 0

    def rewritten_rows(self) -> Iterator[pa.Table]:
        """All rows of the files that hold one of the rows."""
        files, source = self.point.files(), self.point.source
        scan = Scan(self.point.environment, source, files, source.schema)
        for file, rows in zip(files, scan.tables(), strict=True):
            yield from self._rewritten(file, rows)

    def masked_rows(self) -> Iterator[pa.Table]:
        """The new rows alone, of files that stay; see `merge_on_read`."""
        source = self.point.source
        keys = projected(source.schema, [name for name in source.schema.names if name in self.point.equal])
        files, predicate = self.point.files(), self.point.predicate
        for chunk in placed(self.point.environment, source, files, keys, predicate):
            for file, opened, rows, positions in chunk:
                yield from self._masked(file, opened, positions[self.point.hits(rows).to_numpy()])

    def _masked(self, file: DataFile, opened: OpenedFile, found: Positions) -> Iterator[pa.Table]:
        schema = self.point.source.schema
        if len(found) and not is_worth_keeping(len(found), opened.deleted, opened.rows):
            yield from self._rewritten(file, opened.living(schema))
        elif len(found):
            self.masked.append(DeletedRows(file, found, opened.rows))
            self.touched += len(found)
            old = opened.at(schema, found)
            new = _with(old, pa.repeat(True, old.num_rows), self.assigned)
            self.feed.updated(old, new)
            yield new

    def _rewritten(self, file: DataFile, rows: pa.Table) -> Iterator[pa.Table]:
        hits = self.point.hits(rows)
        count = pc.sum(hits).as_py()
        if count:
            self.removed.append(file)
            self.touched += count
            new = _with(rows, hits, self.assigned)
            if self.feed.is_wanted:
                self.feed.updated(rows.filter(hits), new.filter(hits))
            yield new


def point_query(environment: Environment, query: exp.Query, sources: Mapping[str, Source]) -> pa.Table | None:
    """The rows of `SELECT columns FROM table WHERE column = literal AND ...`, if the query is that."""
    if len(sources) != 1 or not isinstance(query, exp.Select) or _set_parts(query) - _SELECT_PARTS:
        return None
    (source,) = sources.values()
    if source.rows is not None:
        return None
    from_, where = query.args.get("from_"), query.args.get("where")
    if from_ is None or where is None:
        return None
    if not isinstance(from_.this, exp.Table) or _set_parts(from_.this) - _TABLE_PARTS:
        return None
    point = point_of(environment, source, where.this)
    columns = _selected(query.expressions, source.schema)
    if point is None or columns is None:
        return None
    return point.select(*columns)


def point_of(environment: Environment, source: Source, where: exp.Expr | None) -> Point | None:
    """The rows that a condition names, if it is nothing but equalities with literals."""
    equal: dict[str, pa.Scalar] = {}
    for part in where.flatten() if isinstance(where, exp.And) else [where]:
        if not isinstance(part, exp.EQ):
            return None
        column = _column(part.this, source.schema)
        value = None if column is None else _value(part.expression, column.type)
        # A column that is compared twice is rare, and left to DuckDB.
        if column is None or value is None or column.name in equal:
            return None
        equal[column.name] = value
    return Point(environment, source, equal)


def literals_of(target: Target, assigned: Mapping[str, exp.Expr]) -> dict[str, pa.Scalar] | None:
    """The values that an UPDATE sets, by the table's columns, if all of them are literals."""
    if target.checks:
        return None
    values: dict[str, pa.Scalar] = {}
    for name, node in assigned.items():
        column = _field(target.schema, name)
        value = None if column is None else _value(node, column.type)
        if column is None or value is None or column.name in values:
            return None
        values[column.name] = value
    return values


def _selected(items: list[exp.Expr], schema: pa.Schema) -> tuple[list[str], list[str]] | None:
    """The columns of a SELECT list, and the names that it shows them under."""
    if len(items) == 1 and isinstance(items[0], exp.Star) and not _set_parts(items[0]):
        return list(schema.names), list(schema.names)
    found = [column for item in items if (column := _column(item, schema)) is not None]
    if len(found) < len(items):
        return None
    return [column.name for column in found], [item.name for item in items]


def _column(node: exp.Expr, schema: pa.Schema) -> pa.Field | None:
    if not isinstance(node, exp.Column) or len(node.parts) != 1 or not isinstance(node.this, exp.Identifier):
        return None
    return _field(schema, node.name)


def _field(schema: pa.Schema, name: str) -> pa.Field | None:
    found = [field for field in schema if field.name.lower() == name.lower()]
    return found[0] if len(found) == 1 else None


def _value(node: exp.Expr, data_type: pa.DataType) -> pa.Scalar | None:
    """The literal as a value of the column's type, if it is one as it stands."""
    node = node.unnest()
    negative = isinstance(node, exp.Neg)
    literal = node.this if negative else node
    if not isinstance(literal, exp.Literal):
        return None
    if literal.is_string:
        return pa.scalar(literal.name, data_type) if data_type == pa.string() and not negative else None
    if not pa.types.is_signed_integer(data_type) or not literal.name.isdecimal():
        return None
    value = -int(literal.name) if negative else int(literal.name)
    highest = 1 << (data_type.bit_width - 1)
    return pa.scalar(value, data_type) if -highest <= value < highest else None


def _with(rows: pa.Table, hits: pa.Array | pa.ChunkedArray, assigned: Mapping[str, pa.Scalar]) -> pa.Table:
    for name, value in assigned.items():
        position = rows.schema.get_field_index(name)
        column = pc.if_else(hits, value, rows.column(position))
        rows = rows.set_column(position, rows.schema.field(position), column)
    return rows


def _set_parts(node: exp.Expr) -> set[str]:
    return {name for name, value in node.args.items() if value}
