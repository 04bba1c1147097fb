"""The plain format's own clients, for the table: deltalake, and Spark + Delta. Neither has transactions.

A script's transaction is for deltalake a `DeltaTable` that is opened at its first step and used for all of
them: it reads the version that it was opened at until it writes, and its writes are checked from there on.
For Spark + Delta each step is a statement on the newest version. An abort takes nothing back.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError

from tests.hermitage.player import Program
from tests.hermitage.scripts.notation import (
    Condition,
    Delete,
    Insert,
    Layout,
    Operation,
    Read,
    Rows,
    Update,
    sql_of,
)
from tests.hermitage.scripts.script import FIRST_ROWS

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.int64())])


def fill(folder: Path, layout: Layout) -> None:
    """Make the tables and the first rows, as Delta tables below the folder."""
    for name in layout.tables:
        DeltaTable.create(folder / name, SCHEMA)
    for name, rows in layout.inserts(FIRST_ROWS):
        write_deltalake(folder / name, _arrow(rows), mode="append")


class DeltalakePlace:
    """Delta tables in an empty folder, as deltalake uses them."""

    refusals = (CommitFailedError,)

    def __init__(self, folder: Path, layout: Layout) -> None:
        fill(folder, layout)
        self._folder, self._layout = folder, layout

    def run(self, program: Program) -> None:
        opened: dict[str, DeltaTable] = {}

        def execute(operation: Operation) -> Rows | None:
            for name in self._layout.tables if not opened else ():
                opened[name] = DeltaTable(self._folder / name)
            return _do(operation, [opened[name] for name in self._layout.tables_of(operation)])

        program(execute)

    def rows(self) -> Rows:
        tables = [DeltaTable(self._folder / name) for name in self._layout.tables]
        return tuple(sorted(row for table in tables for row in _rows(table)))


def _do(operation: Operation, tables: list[DeltaTable]) -> Rows | None:
    if isinstance(operation, Read):
        return operation.on(tuple(sorted(row for table in tables for row in _rows(table))))
    for table in tables:
        match operation:
            case Update(where):
                table.update(predicate=_predicate(where), updates={"v": operation.expression})
            case Delete(where):
                table.delete(_predicate(where))
            case Insert(row):
                write_deltalake(table, _arrow((row,)), mode="append")
    return None


def _rows(table: DeltaTable) -> Iterator[tuple[int, int]]:
    for row in table.to_pyarrow_table().to_pylist():
        yield row["id"], row["v"]


def _predicate(where: Condition | None) -> str | None:
    return None if where is None else where.sql


def _arrow(rows: Rows) -> pa.Table:
    return pa.table({"id": [row[0] for row in rows], "v": [row[1] for row in rows]}, schema=SCHEMA)


class DeltaRefused(Exception):
    """Spark + Delta gave up a statement because of another commit."""


class SparkDeltaPlace:
    """Delta tables in an empty folder, as a session of Spark + Delta uses them."""

    refusals = (DeltaRefused,)

    def __init__(self, session: Any, folder: Path, layout: Layout) -> None:
        fill(folder, layout)
        self._session, self._folder, self._layout = session, folder, layout

    def run(self, program: Program) -> None:
        program(self._execute)

    def rows(self) -> Rows:
        rows = self._execute(Read(None))
        assert rows is not None
        return rows

    def _execute(self, operation: Operation) -> Rows | None:
        tables = [f"delta.`{self._folder / name}`" for name in self._layout.tables_of(operation)]
        try:
            results = [self._session.sql(text) for text in sql_of(operation, tables)]
        except Exception as error:
            # Its classes are the JVM's: ConcurrentAppendException and others of that kind.
            if "io.delta.exceptions.Concurrent" in str(error):
                raise DeltaRefused(str(error).splitlines()[0]) from error
            raise
        if not isinstance(operation, Read):
            return None
        (result,) = results
        return tuple(sorted((row.id, row.v) for row in result.collect()))
