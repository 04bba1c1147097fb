"""An engine for speed: rows are JSON in the data files, statements are evaluated in Python.

Contract: implements `lakevilla.engines.port.Engine` for the statements that the actors use, with exact
bounds for every column of every file, so that pruning and the conflict rules see what they see in
production. MERGE, and expressions that `expressions` does not know, are `Unsupported`. A statement reads
every file that may match, also where bounds would prove the answer.
"""

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sqlglot import exp

from lakevilla.engines.port import MergeClauses, Rewritten, Source, Target
from lakevilla.engines.row_feed import RowFeed, feed_writer
from lakevilla.environment import Environment
from lakevilla.errors import Corrupt, InvalidInput, Unsupported
from lakevilla.files.bitmaps import Positions
from lakevilla.files.deleted_rows import DeletedRows, is_worth_keeping
from lakevilla.model import ColumnStatistics, Counts, DataFile, WrittenFile
from lakevilla.predicates import Column, Predicate, columns_of, disjunction
from lakevilla.pruning import Bounds, may_match
from lakevilla.settle.row_test import may_hold
from lakevilla.sql.expressions.predicate_extraction import columns_in, predicate_of
from lakevilla.store.port import Store
from sim.world.row_expressions import compile_row, project

Row = dict[str, Any]


class RowsResult:
    """What a read gives back, with the verbs of `engines.port.Result`."""

    def __init__(self, schema: pa.Schema, load: Callable[[], list[Row]]) -> None:
        self._schema = schema
        self._load = load

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    @property
    def columns(self) -> list[str]:
        return list(self._schema.names)

    def rows(self) -> list[Row]:
        return self._load()

    def toArrow(self) -> pa.Table:
        return pa.Table.from_pylist(self._load(), schema=self._schema)

    def toPandas(self) -> Any:
        return self.toArrow().to_pandas()

    def collect(self) -> list[Any]:
        return [tuple(row.get(name) for name in self._schema.names) for row in self._load()]

    def count(self) -> int:
        return len(self._load())

    def show(self, n: int = 20, truncate: bool | int = True) -> None:  # noqa: ARG002
        print(self._load()[:n])


def rows_engine(environment: Environment) -> "RowsEngine":
    """An engine for one client, which writes one row into a file, or two."""
    return RowsEngine(1 if environment.random() < 0.5 else 2)


class RowsEngine:
    """The simulator's engine. `file_rows` rows go into one data file."""

    name = "rows"
    composes = False

    def __init__(self, file_rows: int = 2) -> None:
        self._file_rows = file_rows

    def write_larger_files(self) -> None:
        """For tables whose files may stay when rows of them are deleted: a file of one or two rows seldom
        does."""
        self._file_rows *= 4

    def read(self, source: Source) -> RowsResult:
        return RowsResult(source.schema, lambda: _scan(source, None))

    def file_rows(self, source: Source, files: Sequence[DataFile]) -> Iterator[pa.Table]:
        for file in files:
            rows = list(_load(source, file)[0].values())
            yield pa.Table.from_pylist(rows, schema=pa.schema([f.remove_metadata() for f in source.schema]))

    def result(self, table: pa.Table) -> RowsResult:
        return RowsResult(table.schema, table.to_pylist)

    def query(self, query: exp.Query, sources: Mapping[str, Source], now_ms: int) -> RowsResult:  # noqa: ARG002
        names, records = _select(query, sources)
        rows = [dict(zip(names, record, strict=True)) for record in records]
        schema = pa.Table.from_pylist(rows).schema if rows else pa.schema([(n, pa.int64()) for n in names])
        return RowsResult(schema, lambda: rows)

    def columns_of(self, query: exp.Query, sources: Mapping[str, Source], now_ms: int) -> pa.Schema:  # noqa: ARG002
        return pa.schema([(item.alias_or_name, pa.int64()) for item in query.expressions])

    def accepts(self, data: object) -> bool:
        return isinstance(data, list | pa.Table | RowsResult)

    def knows(self, name: str) -> bool:  # noqa: ARG002
        return False

    def schema_of(self, data: object, besides: Collection[str] = ()) -> pa.Schema:
        found = pa.Table.from_pylist(_rows(data)).schema
        return pa.schema([field for field in found if field.name.lower() not in besides])

    def append(self, target: Target, data: object) -> Rewritten:
        rows = _rows(data)
        return Rewritten(self._write(target, rows), (), Counts(inserted=len(rows)))

    def insert(
        self,
        target: Target,
        query: exp.Query,
        columns: Sequence[str],
        sources: Mapping[str, Source],
        now_ms: int,  # noqa: ARG002
    ) -> Rewritten:
        _, records = _select(query, sources)
        names = list(columns) or list(target.schema.names)
        rows = [dict(zip(names, record, strict=True)) for record in records]
        return Rewritten(self._write(target, rows), (), Counts(inserted=len(rows)))

    def overwrite(
        self,
        target: Target,
        source: Source,
        data: object,
        where: exp.Expr | None,
        now_ms: int,  # noqa: ARG002
    ) -> Rewritten:
        rows = _rows(data)
        if where is not None and not all(map(compile_row(where), rows)):
            raise InvalidInput("a row of the data does not satisfy the condition of the overwrite")
        gone = self._rewrite(target, source, where, lambda _: None, rows)
        added = gone.added + self._write(target, rows)
        counts = Counts(inserted=len(rows), deleted=gone.counts.updated)
        return Rewritten(added, gone.removed, counts, gone.masked, gone.feed)

    def update(
        self,
        target: Target,
        source: Source,
        set: Mapping[str, exp.Expr],
        where: exp.Expr | None,
        sources: Mapping[str, Source],  # noqa: ARG002
        now_ms: int,  # noqa: ARG002
    ) -> Rewritten:
        if unknown := [name for name in set if name not in target.schema.names]:
            raise InvalidInput(f"the table {target.name} has no column {unknown[0]!r}")
        values = {name: compile_row(tree) for name, tree in set.items()}
        return self._rewrite(
            target, source, where, lambda row: {**row, **{name: value(row) for name, value in values.items()}}
        )

    def delete(
        self,
        target: Target,
        source: Source,
        where: exp.Expr | None,
        sources: Mapping[str, Source],  # noqa: ARG002
        now_ms: int,  # noqa: ARG002
    ) -> Rewritten:
        done = self._rewrite(target, source, where, lambda _: None)
        return Rewritten(
            done.added, done.removed, Counts(deleted=done.counts.updated), done.masked, done.feed
        )

    def merge(
        self,
        target: Target,  # noqa: ARG002
        source: Source,  # noqa: ARG002
        using: object,  # noqa: ARG002
        clauses: MergeClauses,  # noqa: ARG002
        sources: Mapping[str, Source],  # noqa: ARG002
        now_ms: int,  # noqa: ARG002
    ) -> Rewritten:
        raise Unsupported("the simulator's engine has no MERGE")

    def rewrite(
        self,
        target: Target,
        source: Source,
        groups: Sequence[Sequence[DataFile]],
        order: Sequence[str],  # noqa: ARG002
    ) -> Sequence[tuple[WrittenFile, ...]]:
        """Write the rows of each group as one file."""
        rows = [[row for file in group for row in _load(source, file)[0].values()] for group in groups]
        return [self._write(target, found, len(found)) for found in rows]

    def _rewrite(
        self,
        target: Target,
        source: Source,
        where: exp.Expr | None,
        change: Callable[[Row], Row | None],
        new: Sequence[Row] = (),
    ) -> Rewritten:
        """Write each file that holds a matching row again, or where it may stay only the new rows; `change`
        gives the new row, None deletes."""
        matches = (lambda _: True) if where is None else compile_row(where)
        added: list[WrittenFile] = []
        removed: list[DataFile] = []
        masked: list[DeletedRows] = []
        touched = 0
        feed = RowFeed(target.feed, feed_writer(target.store, target.now_ms))
        feed.inserted(_table(target, new))
        for file in source.files(predicate_of(where, columns_in(source.schema))):
            rows, file_rows = _load(source, file)
            hits = {position for position, row in rows.items() if matches(row)}
            if not hits:
                continue
            touched += len(hits)
            if target.merge_on_read and is_worth_keeping(len(hits), file_rows - len(rows), file_rows):
                masked.append(DeletedRows(file, np.array(sorted(hits), dtype=np.int64), file_rows))
                rows = {position: row for position, row in rows.items() if position in hits}
            else:
                removed.append(file)
            found = [row for position, row in rows.items() if position in hits]
            left = [changed for row in found if (changed := change(row)) is not None]
            feed.updated(
                *((_table(target, found), _table(target, left)) if left else [_table(target, [])] * 2)
            )
            feed.deleted(_table(target, [] if left else found))
            after = [change(row) if position in hits else row for position, row in rows.items()]
            added.extend(self._write(target, [row for row in after if row is not None]))
        counts = Counts(updated=touched)
        return Rewritten(tuple(added), tuple(removed), counts, tuple(masked), feed.finish())

    def _write(
        self, target: Target, rows: Sequence[Row], file_rows: int | None = None
    ) -> tuple[WrittenFile, ...]:
        names = target.schema.names
        if unknown := {name for row in rows for name in row if name not in names}:
            raise InvalidInput(f"the table {target.name} has no column {min(unknown)!r}")
        written = []
        size = file_rows or self._file_rows
        for start in range(0, len(rows), size):
            chunk = [{name: row.get(name) for name in names} for row in rows[start : start + size]]
            key, data = target.new_key(), json.dumps(chunk).encode()
            target.store.put(key, data)
            bounds: dict[tuple[str, ...], ColumnStatistics] = {
                (name,): _bounds([row[name] for row in chunk]) for name in names
            }
            written.append(WrittenFile(key, len(data), len(chunk), {}, bounds, target.now_ms()))
        return tuple(written)


def _table(target: Target, rows: Sequence[Row]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=pa.schema([f.remove_metadata() for f in target.schema]))


def _bounds(values: list[Any]) -> ColumnStatistics:
    known = [value for value in values if value is not None]
    return ColumnStatistics(
        min(known) if known else None, max(known) if known else None, len(values) - len(known)
    )


def _scan(source: Source, where: exp.Expr | None) -> list[Row]:
    rows = [
        row
        for file in source.files(predicate_of(where, columns_in(source.schema)))
        for row in _load(source, file)[0].values()
    ]
    return rows if where is None else list(filter(compile_row(where), rows))


def _load(source: Source, file: DataFile) -> tuple[dict[int, Row], int]:
    """The rows that are not deleted by their positions, and how many rows the file holds."""
    store, key = source.open(file)
    found = store.get(key)
    if found is None:
        raise Corrupt(f"the data file {file.key} of {source.name} is missing")
    # The rows that statements changed are kept as in production.
    is_feed = found.data.startswith(b"PAR1")
    rows: list[Row] = _parquet(found.data) if is_feed else json.loads(found.data)
    if any(name not in source.schema.names for row in rows[:1] for name in row):
        # A column that was dropped or renamed since; those that the simulator renames have no values.
        rows = [{name: row.get(name) for name in source.schema.names} for row in rows]
    gone = set() if file.deletes is None else set(file.deletes.rows().to_pylist())
    return {position: row for position, row in enumerate(rows) if position not in gone}, len(rows)


def _parquet(data: bytes) -> list[Row]:
    rows: list[Row] = (
        pq.ParquetFile(pa.BufferReader(data), pre_buffer=False).read(use_threads=False).to_pylist()
    )
    return rows


def may_hold_row(
    locate: Callable[[DataFile], tuple[Store, str]],
    file: DataFile,
    schema: pa.Schema,
    partition_columns: Sequence[str],
    predicates: Sequence[Predicate],
    positions: Positions | None = None,
) -> bool:
    """What `settle.row_test.may_hold` tells, of the files of this engine."""
    store, key = locate(file)
    found = store.get(key)
    if found is None:
        raise Corrupt(f"the data file {key} is missing")
    if found.data.startswith(_PARQUET):
        return may_hold(locate, file, schema, partition_columns, predicates, positions)
    rows: list[Row] = json.loads(found.data)
    gone = set() if file.deletes is None else set(file.deletes.rows().to_pylist())
    living = [place for place in range(len(rows)) if place not in gone]
    places = living if positions is None else positions.tolist()
    predicate = disjunction(list(predicates))
    names = {column[0] for column in columns_of(predicate)}
    if not names:
        return True
    table = pa.table({name: [rows[place].get(name) for place in places] for name in sorted(names)})
    ones = pa.array([1] * len(places), pa.int64())

    def bounds_of(column: Column) -> Bounds:
        values = table.column(column[0]).combine_chunks()
        return Bounds(values, values, values.is_null().cast(pa.int64()), ones)

    return bool(may_match(predicate, bounds_of, len(places)).any())


_PARQUET = b"PAR1"


def _select(query: exp.Query, sources: Mapping[str, Source]) -> tuple[list[str], list[list[Any]]]:
    """SELECT items FROM one table, or a subquery over one, WHERE condition."""
    if not isinstance(query, exp.Select):
        raise Unsupported("the simulator's engine knows plain SELECTs only")
    table = query.find(exp.Table)
    where = query.args.get("where")
    inner = None if query.args.get("from_") is None else query.args["from_"].this
    if isinstance(inner, exp.Subquery):
        columns, found = _select(inner.this, sources)
        rows = [dict(zip(columns, record, strict=True)) for record in found]
    elif table is None:
        rows = [{}]
        columns = []
    else:
        source = sources[table.name]
        rows = _scan(source, None if where is None else where.this)
        columns = list(source.schema.names)
    names = columns if query.is_star else [item.alias_or_name or "value" for item in query.expressions]
    return names, project(query.expressions, rows, columns)


def _rows(data: object) -> list[Row]:
    match data:
        case RowsResult():
            return data.rows()
        case pa.Table():
            rows: list[Row] = data.to_pylist()
            return rows
        case list():
            return data
    raise InvalidInput(f"cannot append {type(data).__name__}")
