"""The local engine: DuckDB over Arrow, in process, no JVM. It implements `engines.port.Engine`."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
from sqlglot import exp

from lakevilla.engines import data as given
from lakevilla.engines.arrow_writer import write
from lakevilla.engines.compaction import rewrite_files
from lakevilla.engines.local import copy_on_write, merge_on_read
from lakevilla.engines.local.arrow import inward, outward, row_of
from lakevilla.engines.local.change import Change, rows_of
from lakevilla.engines.local.connections import Connections
from lakevilla.engines.local.copy_on_write import matching
from lakevilla.engines.local.masking_merge import MaskingMerge
from lakevilla.engines.local.merge import Merge
from lakevilla.engines.local.point_lookup import literals_of, point_of, point_query
from lakevilla.engines.local.result import Result
from lakevilla.engines.local.rows import checked, column_of, new_rows, qualifiers
from lakevilla.engines.local.scan import Scan, load
from lakevilla.engines.local.translation.queries.queries import Queries
from lakevilla.engines.local.translation.queries.scope import Relation
from lakevilla.engines.local.translation.types.typed import Typed
from lakevilla.engines.local.watch import reading, writing
from lakevilla.engines.port import MergeClauses, Rewritten, Source, Target
from lakevilla.engines.row_counts import counted, length_of
from lakevilla.engines.summary_query import summary_of
from lakevilla.environment import Environment
from lakevilla.errors import Corrupt, InvalidInput
from lakevilla.files.row_checks import as_read, together
from lakevilla.model import Counts, DataFile, WrittenFile
from lakevilla.predicates import ANYTHING
from lakevilla.progress import Reporter
from lakevilla.sql.expressions.row_expressions import refuse_beyond_rows, refuse_in_merge


class LocalEngine:
    """Statements of Spark SQL on DuckDB. Safe to use from many threads, and after a fork."""

    def __init__(self, environment: Environment, reporter: Reporter | None = None) -> None:
        self._environment = environment
        self._reporter = reporter or Reporter(None, environment)
        self._connections = Connections(environment)

    @property
    def name(self) -> str:
        return "local"

    @property
    def composes(self) -> bool:
        return False

    def read(self, source: Source) -> Result:
        """The whole table. Files are chosen now and read when rows are asked for."""
        scan = Scan(self._environment, source, source.files(ANYTHING), source.schema)
        plain = as_read(pa.schema([field.remove_metadata() for field in source.schema]))

        def batches() -> Iterator[pa.Table]:
            with reading(self._reporter, f"reading {source.name}") as watch:
                watched = replace(scan, source=watch.source(source, scan.files))
                for table in watched.tables():
                    yield _as_told(table, plain, source.name)

        def rows() -> int | None:
            counts = [file.living_rows for file in scan.files]
            return None if None in counts else sum(count for count in counts if count is not None)

        return Result(plain, batches, rows)

    def file_rows(self, source: Source, files: Sequence[DataFile]) -> Iterator[pa.Table]:
        """The rows of each of these files in turn."""
        return Scan(self._environment, source, files, source.schema).tables()

    def result(self, table: pa.Table) -> Result:
        """Rows that are there already."""
        return Result.of(table)

    def query(self, query: exp.Query, sources: Mapping[str, Source], now_ms: int) -> Result:
        """The result of a SELECT, computed at once."""
        with reading(self._reporter, f"reading {', '.join(sources)}" if sources else "SELECT") as watch:
            return self._query(query, watch.sources(sources), now_ms)

    def _query(self, query: exp.Query, sources: Mapping[str, Source], now_ms: int) -> Result:
        rows = point_query(self._environment, query, sources)
        if rows is not None:
            return Result.of(rows)
        queries = self._queries(sources, now_ms)
        translated = queries.translate(query)
        known = summary_of(query, sources)
        if known is not None:
            return Result.of(row_of(known, translated.outputs))
        tables = load(self._environment, queries.references, sources)
        result = self._connections.run(queries.finished(translated.sql), tables, queries.names)
        return Result.of(outward(result, translated.outputs))

    def columns_of(self, query: exp.Query, sources: Mapping[str, Source], now_ms: int) -> pa.Schema:
        """The columns that a SELECT gives."""
        outputs = self._queries(sources, now_ms).translate(query).outputs
        return pa.schema([(output.name, output.type) for output in outputs])

    def accepts(self, data: object) -> bool:
        return given.is_data(data)

    def knows(self, name: str) -> bool:  # noqa: ARG002 - the port's signature
        return False

    def schema_of(self, data: object, besides: Collection[str] = ()) -> pa.Schema:
        return given.schema_of(data, besides)

    def append(self, target: Target, data: object) -> Rewritten:
        """Write rows given as data; columns go by name."""
        count = _Count()
        rows = None if isinstance(data, Result) else length_of(data)
        with self._reporter.work(f"INSERT INTO {target.name}", "rows", rows) as work:
            pieces = counted(counted(self._given(target, data), count.add), work.add)
            added = write(target, pieces)
        return Rewritten(added, (), Counts(inserted=count.rows))

    def insert(
        self,
        target: Target,
        query: exp.Query,
        columns: Sequence[str],
        sources: Mapping[str, Source],
        now_ms: int,
    ) -> Rewritten:
        """INSERT INTO target (columns) query; without columns all of the target's, in order."""
        count = _Count()
        with writing(self._reporter, f"INSERT INTO {target.name}", bool(sources)) as watch:
            pieces = self._selected(target, query, columns, watch.sources(sources), now_ms)
            added = write(target, counted(counted(pieces, count.add), watch.add_rows))
        return Rewritten(added, (), Counts(inserted=count.rows))

    def overwrite(
        self,
        target: Target,
        source: Source,
        data: object,
        where: exp.Expr | None,
        now_ms: int,
    ) -> Rewritten:
        """Replace the rows for which `where` is true by the data."""
        refuse_beyond_rows(where)
        count = _Count()
        with reading(self._reporter, f"overwriting {target.name}") as watch:
            change = self._change(target, watch.source(source), {}, now_ms)
            pieces = self._given(target, data)
            if where is not None:
                pieces = matching(self._change(target, source, {}, now_ms), pieces, where)

            def rows() -> Iterator[pa.Table]:
                yield from change.feed.watched(counted(pieces, count.add))
                yield from _surviving(change, where)

            added = write(target, rows())
        counts = Counts(inserted=count.rows, deleted=change.touched)
        return Rewritten(added, tuple(change.removed), counts, tuple(change.masked), change.feed.finish())

    def update(
        self,
        target: Target,
        source: Source,
        set: Mapping[str, exp.Expr],
        where: exp.Expr | None,
        sources: Mapping[str, Source],
        now_ms: int,
    ) -> Rewritten:
        refuse_beyond_rows(where, *set.values())
        with reading(self._reporter, f"UPDATE {target.name}") as watch:
            watched = watch.source(source)
            return self._update(target, watched, set, where, watch.sources(sources), now_ms)

    def _update(
        self,
        target: Target,
        source: Source,
        set: Mapping[str, exp.Expr],
        where: exp.Expr | None,
        sources: Mapping[str, Source],
        now_ms: int,
    ) -> Rewritten:
        point, values = point_of(self._environment, source, where), literals_of(target, set)
        if point is not None and values:
            return point.update(target, values)
        change = self._change(target, source, sources, now_ms)
        if where is not None and target.merge_on_read:
            return merge_on_read.update(change, set, where)
        return copy_on_write.update(change, set, where)

    def delete(
        self,
        target: Target,
        source: Source,
        where: exp.Expr | None,
        sources: Mapping[str, Source],
        now_ms: int,
    ) -> Rewritten:
        refuse_beyond_rows(where)
        with reading(self._reporter, f"DELETE FROM {target.name}") as watch:
            change = self._change(target, watch.source(source), watch.sources(sources), now_ms)
            added = write(target, _surviving(change, where))
        counts = Counts(deleted=change.touched)
        return Rewritten(added, tuple(change.removed), counts, tuple(change.masked), change.feed.finish())

    def merge(
        self,
        target: Target,
        source: Source,
        using: object,
        clauses: MergeClauses,
        sources: Mapping[str, Source],
        now_ms: int,
    ) -> Rewritten:
        refuse_in_merge(clauses)
        with reading(self._reporter, f"MERGE INTO {target.name}") as watch:
            watched = watch.source(source)
            return self._merge(target, watched, using, clauses, watch.sources(sources), now_ms)

    def _merge(
        self,
        target: Target,
        source: Source,
        using: object,
        clauses: MergeClauses,
        sources: Mapping[str, Source],
        now_ms: int,
    ) -> Rewritten:
        if isinstance(using, exp.Query):
            rows = self._query(using, sources, now_ms).toArrow()
        else:
            arrow = given.arrow_of(using)
            schema = given.schema_of(arrow)
            pieces = list(given.batches_of(arrow, schema))
            rows = together(pieces, schema)
        kind = MaskingMerge if target.merge_on_read else Merge
        return kind(self._change(target, source, sources, now_ms), clauses, rows).run()

    def rewrite(
        self, target: Target, source: Source, groups: Sequence[Sequence[DataFile]], order: Sequence[str]
    ) -> Sequence[tuple[WrittenFile, ...]]:
        with reading(self._reporter, f"OPTIMIZE {target.name}") as watch:
            watched = watch.source(source, [file for group in groups for file in group])
            return [rewrite_files(self._environment, target, watched, group, order) for group in groups]

    def _queries(self, sources: Mapping[str, Source], now_ms: int) -> Queries:
        return Queries({key: source.schema for key, source in sources.items()}, now_ms)

    def _change(self, target: Target, source: Source, sources: Mapping[str, Source], now_ms: int) -> Change:
        return Change(self._environment, self._connections, target, source, sources, now_ms)

    def _selected(
        self,
        target: Target,
        query: exp.Query,
        columns: Sequence[str],
        sources: Mapping[str, Source],
        now_ms: int,
    ) -> Iterator[pa.Table]:
        """The rows of a query, assigned to the target's columns by position, and checked."""
        queries = self._queries(sources, now_ms)
        translated = queries.translate(query)
        names = [column_of(target.schema, name) for name in columns] or list(target.schema.names)
        if len(set(names)) != len(names):
            raise InvalidInput("INSERT names a column more than once")
        if len(names) != len(translated.outputs):
            raise InvalidInput(
                f"INSERT needs {len(names)} columns ({', '.join(map(repr, names))}); "
                f"the query has {len(translated.outputs)}"
            )
        alias = queries.fresh("i")
        values = {
            name: Typed(f"{alias}.{output.sql}", output.type)
            for name, output in zip(names, translated.outputs, strict=True)
        }
        rows = new_rows(queries, target, values, f"({translated.sql}) AS {alias}")
        tables = load(self._environment, queries.references, sources)
        for batch in self._connections.stream(queries.finished(rows.sql), tables, queries.names):
            yield checked(batch, rows, target)

    def _given(self, target: Target, data: object) -> Iterator[pa.Table]:
        """Rows given as data, by name: those of a query as store assignment has it, others without loss."""
        if isinstance(data, Result):
            schema = pa.schema([(column_of(target.schema, f.name), f.type) for f in data.schema])
            if len(set(schema.names)) != len(schema.names):
                raise InvalidInput("the rows to write have two columns of the same name")
            pieces: Iterator[pa.Table | pa.RecordBatch] = data.batches()
        else:
            schema, pieces = target.schema, given.batches_of(data, target.schema)
        plain = schema.names == target.schema.names and schema.types == target.schema.types
        if plain and not target.checks:
            yield from (_table(piece) for piece in pieces)
            return
        queries = Queries({}, target.now_ms())
        outputs = queries.outputs([(field.name, field.type) for field in schema])
        relation = Relation(queries.fresh("t"), qualifiers(target.name), outputs)
        values = {output.name: relation.column(output) for output in outputs}
        rows = new_rows(queries, target, values, rows_of(relation))
        names = [output.sql for output in outputs]
        for piece in pieces:
            result = self._connections.run(rows.sql, {relation.sql: inward(_table(piece), names)})
            yield checked(result, rows, target)


def _surviving(change: Change, where: exp.Expr | None) -> Iterator[pa.Table]:
    """The rows that stay and have to be written again, when those go for which the condition is true."""
    if change.target.merge_on_read:
        return merge_on_read.surviving(change, where)
    return copy_on_write.surviving(change, where)


class _Count:
    """How many rows went by."""

    def __init__(self) -> None:
        self.rows = 0

    def add(self, rows: int) -> None:
        self.rows += rows


def _table(piece: pa.Table | pa.RecordBatch) -> pa.Table:
    return piece if isinstance(piece, pa.Table) else pa.Table.from_batches([piece])


def _as_told(rows: pa.Table, schema: pa.Schema, name: str) -> pa.Table:
    """The rows in the types of the table's schema; Corrupt where files violate it."""
    try:
        return rows.cast(schema)
    except ValueError as error:
        raise Corrupt(
            f"table {name!r} has rows that its schema does not allow, such as NULL in a column that is NOT "
            f"NULL: {error}; a query such as SELECT * shows them",
            table=name,
        ) from error
