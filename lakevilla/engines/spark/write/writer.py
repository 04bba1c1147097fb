"""Rows of a DataFrame, written by tasks (see `tasks`): one job, whose reports make up what the statement did.

Python workers cost more than a few rows do. So where few rows are to come, the job brings them here, and this
process does what a task would do with them. Rows that are in this process already are written without a job.
"""

import pickle
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
from py4j.protocol import Py4JJavaError
from sqlglot import exp

from lakevilla.engines.arrow_writer import write
from lakevilla.engines.port import Target
from lakevilla.engines.row_feed import RowFeed, feed_writer
from lakevilla.engines.spark.change.assignment import Assigned, Value, assign
from lakevilla.engines.spark.failures import explained
from lakevilla.engines.spark.names import Names, beside
from lakevilla.engines.spark.scan.file_urls import Access, refuse_memory
from lakevilla.engines.spark.scan.queries import Statement
from lakevilla.engines.spark.session.connect import is_connect
from lakevilla.engines.spark.session.jvm import driver_side
from lakevilla.engines.spark.session.session import Session
from lakevilla.engines.spark.types import has_uuid, quoted
from lakevilla.engines.spark.write import tasks
from lakevilla.engines.spark.write.batches import bounded_by_rows
from lakevilla.engines.spark.write.repartition import spread as spread_out
from lakevilla.errors import InvalidInput, Unsupported
from lakevilla.files.bitmaps import Positions, decode_bitmap
from lakevilla.model import DataFile, WrittenFile
from lakevilla.sql.dialect import spark_text
from lakevilla.sql.types import type_name

FEW_ROWS = 10_000
"""So many rows are written here. Judged, not measured: a job with Python workers costs more than they do."""
_FEW_BYTES = 8 * 1024 * 1024
_TOO_LARGE = "is bigger than spark.driver.maxResultSize"


@dataclass(frozen=True)
class NewRows:
    """A DataFrame of the target's columns and of some of our own, and why rows may be refused."""

    frame: Any
    refusals: tuple[InvalidInput, ...]
    names: Names


@dataclass(frozen=True)
class Done:
    """What a write job did. `changed` has the files in which a row changed, `positions` the rows that were,
    sorted, of statements that write only new rows."""

    added: tuple[WrittenFile, ...]
    counts: tuple[int, ...]
    changed: frozenset[int]
    positions: Mapping[int, Positions] = field(default_factory=dict)
    feed: tuple[WrittenFile, ...] = ()


def new_rows(
    statement: Statement,
    target: Target,
    values: Mapping[str, Value | Assigned],
    source_sql: str,
    extra: Mapping[str, str] | None = None,
    only_if: str = "TRUE",
    matching: exp.Expr | None = None,
    names: Names | None = None,
) -> NewRows:
    """SELECT the values, assigned to the target's columns, FROM `source_sql`; a missing column is NULL.

    `extra` columns are taken along. Rows for which `only_if` (over those) is false are not checked: they
    are in the table already. `matching` is a condition that every row must satisfy.
    """
    _refuse_uuids(target)
    names = names or beside(target.schema.names)
    extra = extra or {}
    listed: list[str] = []
    refusals: list[InvalidInput] = []
    tests: list[str] = []
    for column in target.schema:
        value = values.get(column.name, Value("NULL", pa.null()))
        given = value if isinstance(value, Assigned) else assign(value, column, statement.is_ansi)
        listed.append(f"{given.sql} AS {quoted(column.name)}")
        if given.bad is not None:
            listed.append(f"{given.bad} AS {names.bad(len(tests))}")
            tests.append(names.bad(len(tests)))
            message = f"column {column.name!r}: a value does not fit into {type_name(column.type)}"
            refusals.append(InvalidInput(message, column=column.name))
    for name, check in target.checks.items():
        # As Delta has it, a constraint that is NULL is violated.
        tests.append(f"{only_if} AND NOT coalesce(({statement.text(check)}), FALSE)")
        message = (
            f"CHECK constraint {name!r} ({spark_text(check)}) is violated by a row for table {target.name!r}"
        )
        refusals.append(InvalidInput(message, table=target.name, rule=name))
    if matching is not None:
        tests.append(f"NOT coalesce(({statement.text(matching)}), FALSE)")
        refusals.append(InvalidInput("a new row does not satisfy the condition of the overwrite"))
    listed += [f"{sql} AS {name}" for name, sql in extra.items()]
    sql = f"SELECT {', '.join(listed)} FROM {source_sql}"
    if tests:
        kept = ", ".join([*(quoted(name) for name in target.schema.names), *extra])
        cases = " ".join(f"WHEN {test} THEN {number}" for number, test in enumerate(tests))
        called = quoted(target.name.rpartition(".")[2])
        sql = f"SELECT {kept}, CASE {cases} END AS {names.refused} FROM ({sql}) AS {called}"
    return NewRows(statement.run(sql), tuple(refusals), names)


@dataclass(frozen=True)
class Writer:
    """Writes the rows of statements."""

    session: Session
    access: Access

    def write(
        self,
        target: Target,
        rows: NewRows,
        at_most: int | None,
        files: Sequence[DataFile] | None = None,
        spread: bool = False,
    ) -> Done:
        """Write the rows in one job. `at_most` is a bound of how many there are, if one is known.

        With `files`, rows name the file that they come from, and files without a changed row are left alone.
        With `spread`, rows of one partition of the table are brought together, so that not every task writes
        a file of each.
        """
        refuse_memory(target.store)
        _refuse_uuids(target)
        whole = None if files is None else {n: file.living_rows for n, file in enumerate(files)}
        task = tasks.WriteTask(
            place=tasks.packed_place(target.store.url, self.access),
            schema=target.schema,
            partitioning=target.partitioning,
            # The key names the transaction, so every file of the job does.
            stem=target.new_key().removesuffix(".parquet"),
            file_bytes=target.file_bytes,
            file_rows=target.file_rows,
            refusals=rows.refusals,
            whole_rows=whole,
            names=rows.names,
            feed_stem="" if target.feed is None else target.feed.new_key().removesuffix(".parquet"),
        )
        few = self._few(rows.frame, at_most)
        if few is not None:
            return joined([task.run_here(few, target.store)])
        frame = spread_out(rows.frame, target, rows.names) if spread else rows.frame
        # PySpark takes the names of columns apart at dots and backquotes.
        numbered = frame.toDF(*(f"c{number}" for number in range(len(frame.columns))))
        task = replace(task, columns=tuple(frame.columns))
        written = numbered.mapInArrow(task.function(), tasks.REPORT)

        def collect() -> Any:
            with bounded_by_rows(self.session(), target.schema):
                return written.collect()

        with explained():
            found = self.session.run(collect)
        return joined([pickle.loads(row[0]) for row in found])

    def _few(self, frame: Any, at_most: int | None) -> Sequence[pa.RecordBatch] | None:
        """The rows if they are surely few and fit into what a session may bring to its driver."""
        side = driver_side(self.session())
        if at_most is None or at_most > FEW_ROWS or side is None:
            return None

        def rows() -> Any:
            try:
                return side.rows(frame._jdf)
            except Py4JJavaError as error:
                if _TOO_LARGE not in str(error):
                    raise
                return None

        with explained():
            stream = self.session.run(rows)
        if stream is None:
            return None
        found: Sequence[pa.RecordBatch] = list(pa.ipc.open_stream(stream))
        return found

    def write_here(self, target: Target, pieces: Iterable[pa.Table]) -> Done:
        """Write rows that are in this process."""
        feed = RowFeed(target.feed, feed_writer(target.store, target.now_ms), alone=False)
        added = write(target, feed.watched(pieces))
        counts = (0, sum(file.rows for file in added), 0, 0)
        return Done(added, counts, frozenset(), feed=feed.finish())


def _refuse_uuids(target: Target) -> None:
    for column in target.schema:
        if has_uuid(column.type):
            raise Unsupported(
                f"cannot write table {target.name!r} with Spark: column {column.name!r} has UUIDs, which "
                "Spark reads as text; use engine='local'",
                column=column.name,
            )


def rows_of(files: Sequence[DataFile]) -> int | None:
    """A bound of how many rows the files have, if that is known and they are small."""
    rows = [file.rows for file in files if file.rows is not None]
    small = sum(file.size for file in files) <= _FEW_BYTES
    return sum(rows) if small and len(rows) == len(files) else None


def rows_in(frame: Any) -> int | None:
    """A bound of how many rows the frame has, if Spark can tell without running it."""
    if is_connect(frame.sparkSession):
        # The plan is in the server.
        return None
    found = frame._jdf.queryExecution().analyzed().maxRows()
    return int(found.get()) if found.isDefined() else None


def joined(reports: Sequence[tasks.Report]) -> Done:
    """What all tasks did together; InvalidInput if one of them refused a row."""
    refused = next((report.refused for report in reports if report.refused is not None), None)
    if refused is not None:
        raise refused
    changed = frozenset(number for report in reports for number in report.changed)
    added = [file for report in reports for file in report.written]
    for report in reports:
        added += [file for number, files in report.doubtful if number in changed for file in files]
    counts = tuple(sum(report.counts[kind] for report in reports) for kind in range(4))
    parts: dict[int, list[Positions]] = {}
    for report in reports:
        for number, bitmap in report.masked.items():
            parts.setdefault(number, []).append(decode_bitmap(bitmap))
    positions = {number: np.unique(np.concatenate(found)) for number, found in parts.items()}
    feed = tuple(file for report in reports for file in report.feed)
    return Done(tuple(added), counts, changed, positions, feed)
