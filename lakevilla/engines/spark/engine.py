"""The Spark engine: table data is read and written by Spark jobs. It implements `engines.port.Engine`.

Results are Spark's own DataFrames, lazy as ever: files are chosen, and noted as read, when a query over
them is planned.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, TypeAlias

import pyarrow as pa
from sqlglot import exp

from lakevilla.engines import data as arrow
from lakevilla.engines.port import MergeClauses, Rewritten, Source, Target
from lakevilla.engines.row_counts import counted, length_of
from lakevilla.engines.spark import data as given
from lakevilla.engines.spark import types
from lakevilla.engines.spark.change.assignment import Value
from lakevilla.engines.spark.change.copy_on_write import Change, column_of
from lakevilla.engines.spark.change.merge import Merge
from lakevilla.engines.spark.change.merge_on_read import MaskingChange
from lakevilla.engines.spark.failures import explained, explaining
from lakevilla.engines.spark.names import beside, names_in
from lakevilla.engines.spark.scan.file_urls import Access
from lakevilla.engines.spark.scan.pruning import certain
from lakevilla.engines.spark.scan.queries import statement
from lakevilla.engines.spark.scan.relation import Reader
from lakevilla.engines.spark.session import catalog
from lakevilla.engines.spark.session.catalog import Tables
from lakevilla.engines.spark.session.frames import in_session
from lakevilla.engines.spark.session.own_names import is_file, is_view
from lakevilla.engines.spark.session.session import Session
from lakevilla.engines.spark.write.compaction import GroupWriter
from lakevilla.engines.spark.write.writer import Done, Writer, new_rows, rows_in
from lakevilla.engines.summary_query import summary_of
from lakevilla.environment import Environment
from lakevilla.errors import InvalidInput
from lakevilla.files.reader import read_files
from lakevilla.files.row_checks import together
from lakevilla.model import Counts, DataFile, WrittenFile
from lakevilla.progress import Reporter
from lakevilla.sql.expressions.row_expressions import refuse_beyond_rows, refuse_in_merge

P = ParamSpec("P")


Changing: TypeAlias = Callable[Concatenate[Any, Target, P], Rewritten]


def _stoppable(what: str) -> Callable[[Changing[P]], Changing[P]]:
    """A change that Ctrl-C ends, wherever it is, whose progress is reported as what it does to its target,
    and whose failures are ours."""

    def wrapped(change: Changing[P]) -> Changing[P]:
        def run(self: Any, target: Target, /, *args: P.args, **kwargs: P.kwargs) -> Rewritten:
            with explained():
                work = partial(change, self, target, *args, **kwargs)
                done: Rewritten = self._session.run(work, f"{what} {target.name}")
            return done

        return wraps(change)(run)

    return wrapped


class SparkEngine:
    """Statements on Spark: the session that you have, or a local one that starts at the first statement."""

    def __init__(
        self,
        environment: Environment,
        session: Any = None,
        storage_options: Mapping[str, str] | None = None,
        credentials: Callable[..., Any] | None = None,
        url: str = "",
        reporter: Reporter | None = None,
    ) -> None:
        self._environment = environment
        self._reporter = reporter or Reporter(None, environment)
        self._session = Session(environment, session, url, self._reporter)
        self._access = Access(dict(storage_options or {}), credentials)
        self._writer = Writer(self._session, self._access)

    @property
    def name(self) -> str:
        return "spark"

    @property
    def composes(self) -> bool:
        return True

    def read(self, source: Source) -> Any:
        """The table as a DataFrame."""
        with explained():
            frame = self._session.fetch(lambda: self._reader().table(source))
        return self._answering(frame, f"reading {source.name}")

    def file_rows(self, source: Source, files: Sequence[DataFile]) -> Iterator[pa.Table]:
        """The rows of each of these files in turn, read by this process."""
        place, columns = source.open, source.partition_columns
        return read_files(self._environment, place, files, source.schema, columns)

    def result(self, table: pa.Table) -> Any:
        return given.frame_of(self._session(), table)

    def query(self, query: exp.Query, sources: Mapping[str, Source], now_ms: int) -> Any:
        """A SELECT as a DataFrame: analysed now, run when rows are asked for. What statistics answer is noted
        as read now, and needs no job."""

        def analysed() -> Any:
            with self._statement(sources, now_ms) as opened:
                frame = opened.run(opened.text(query))
            known = summary_of(query, sources, certain)
            return frame if known is None else given.row_of(self._session(), known, frame.schema)

        with explained():
            frame = self._session.fetch(analysed)
        return self._answering(frame, f"reading {', '.join(sources)}" if sources else "SELECT")

    def columns_of(self, query: exp.Query, sources: Mapping[str, Source], now_ms: int) -> pa.Schema:
        """The columns that a SELECT gives: the text is analysed, and not run."""
        with self._statement(sources, now_ms) as opened:
            return given.schema_of(opened.run(opened.text(query)))

    def accepts(self, data: object) -> bool:
        return given.accepts(data)

    def knows(self, name: str) -> bool:
        """A temporary view of the session, or files as in parquet.`path`."""
        session = self._session.started
        return is_file(name) or (session is not None and is_view(session, name))

    def schema_of(self, data: object, besides: Collection[str] = ()) -> pa.Schema:
        return given.schema_of(data, besides)

    def append(self, target: Target, data: object) -> Rewritten:
        done = self._given(target, data, None)
        return Rewritten(done.added, (), Counts(inserted=done.counts[1]))

    @_stoppable("INSERT INTO")
    def insert(
        self,
        target: Target,
        query: exp.Query,
        columns: Sequence[str],
        sources: Mapping[str, Source],
        now_ms: int,
    ) -> Rewritten:
        """INSERT INTO target (columns) query; without columns all of the target's, in order."""
        names = [column_of(target, name) for name in columns] or list(target.schema.names)
        if len(set(names)) != len(names):
            raise InvalidInput("INSERT names a column more than once")
        with self._statement(sources, now_ms) as opened:
            frame = opened.run(opened.text(query))
            if len(names) != len(frame.columns):
                raise InvalidInput(
                    f"INSERT needs {len(names)} columns ({', '.join(map(repr, names))}); "
                    f"the query has {len(frame.columns)}"
                )
            values = {
                name: Value(f"c{i}", types.arrow_type(field.dataType))
                for i, (name, field) in enumerate(zip(names, frame.schema.fields, strict=True))
            }
            view = opened.view(frame.toDF(*(f"c{i}" for i in range(len(names)))))
            rows = new_rows(opened, target, values, view)
            done = self._writer.write(target, rows, rows_in(frame), spread=True)
        return Rewritten(done.added, (), Counts(inserted=done.counts[1]))

    @_stoppable("overwriting")
    def overwrite(
        self, target: Target, source: Source, data: object, where: exp.Expr | None, now_ms: int
    ) -> Rewritten:
        """Replace the rows for which `where` is true by the data."""
        refuse_beyond_rows(where)
        new = self._given(target, data, where)
        with self._statement({}, now_ms) as opened:
            gone = self._change(opened, target, source).delete(where)
        counts = Counts(inserted=new.counts[1], deleted=gone.counts.deleted)
        return Rewritten(new.added + gone.added, gone.removed, counts, gone.masked, new.feed + gone.feed)

    @_stoppable("UPDATE")
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
        with self._statement(sources, now_ms) as opened:
            return self._change(opened, target, source).update(set, where)

    @_stoppable("DELETE FROM")
    def delete(
        self,
        target: Target,
        source: Source,
        where: exp.Expr | None,
        sources: Mapping[str, Source],
        now_ms: int,
    ) -> Rewritten:
        refuse_beyond_rows(where)
        with self._statement(sources, now_ms) as opened:
            return self._change(opened, target, source).delete(where)

    @_stoppable("MERGE INTO")
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
        with self._statement(sources, now_ms) as opened:
            if isinstance(using, exp.Query):
                rows = opened.run(opened.text(using))
            else:
                rows = self._bound(using) if given.is_frame(using) else self._frame(using)
            return Merge(self._change(opened, target, source, rows.columns), clauses, rows).run()

    def rewrite(
        self, target: Target, source: Source, groups: Sequence[Sequence[DataFile]], order: Sequence[str]
    ) -> Sequence[tuple[WrittenFile, ...]]:
        with explained():
            writer = GroupWriter(self._environment, self._session, self._access)
            return self._session.run(lambda: writer.rewrite(target, source, groups, order))

    def attach(self, name: str, tables: Tables) -> None:
        """Show tables that this engine reads to its session as a catalog of this name."""
        catalog.attach(self._session(), name, tables)

    def _change(self, opened: Any, target: Target, source: Source, columns: Sequence[str] = ()) -> Change:
        """A change of the target's rows; `columns` are those that it uses other than the target's."""
        names = beside(names_in(source.schema), target.schema.names, columns)
        kind = MaskingChange if target.merge_on_read else Change
        return kind(opened, self._writer, target, source, names)

    def _given(self, target: Target, data: object, where: exp.Expr | None) -> Done:
        """Write rows given as data, by name: a frame as store assignment has it, others without loss."""
        if not given.is_frame(data):
            if not target.checks and where is None:
                return self._written_here(target, data)
            data = self._frame(data, target.schema)
        frame = self._bound(data)
        with explained():
            what = f"INSERT INTO {target.name}"
            return self._session.run(lambda: self._given_frame(target, frame, where), what)

    def _written_here(self, target: Target, data: object) -> Done:
        """Rows of this process, which need no job."""
        batches = arrow.batches_of(data, target.schema)
        with self._reporter.work(f"INSERT INTO {target.name}", "rows", length_of(data)) as work:
            return self._writer.write_here(target, counted(batches, work.add))

    def _given_frame(self, target: Target, frame: Any, where: exp.Expr | None) -> Done:
        with self._statement({}, target.now_ms()) as opened:
            values = given.by_name(frame, target.schema)
            rows = new_rows(opened, target, values, opened.view(frame), matching=where)
            return self._writer.write(target, rows, rows_in(frame), spread=True)

    def _bound(self, frame: object) -> Any:
        """A DataFrame, whichever session it comes from, in the session that the lake uses."""
        return in_session(self._session(), frame)

    def _frame(self, data: object, schema: pa.Schema | None = None) -> Any:
        known = arrow.schema_of(data) if schema is None else schema
        pieces = list(arrow.batches_of(data, known))
        return given.frame_of(self._session(), together(pieces, known))

    def _answering(self, frame: Any, what: str) -> Any:
        """The frame, whose actions Ctrl-C ends, are reported, and fail with our exceptions."""
        return explaining(frame, partial(self._session.fetch, what=what))

    def _reader(self) -> Reader:
        return Reader(self._session(), self._access, self._environment)

    def _statement(self, sources: Mapping[str, Source], now_ms: int) -> Any:
        return statement(self._reader(), self._environment, sources, now_ms)
