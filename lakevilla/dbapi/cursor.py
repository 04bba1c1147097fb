"""Cursors: statements and their rows."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from lakevilla import Counts
from lakevilla.dbapi.exceptions import InterfaceError, ProgrammingError, translated
from lakevilla.dbapi.types import type_code
from lakevilla.sql.parameters import marks, with_names
from lakevilla.sql.parser import plain_insert

if TYPE_CHECKING:
    from lakevilla.dbapi.connection import Connection

Parameters = Mapping[str, Any] | Sequence[Any]
Column = tuple[str, str, None, None, None, None, bool]


class Cursor:
    """One statement at a time, and the rows that it gave.

    `fetch_arrow_table()` gives the rows that were not fetched yet as an Arrow table.
    """

    def __init__(self, connection: "Connection") -> None:
        self.connection = connection
        self.arraysize = 1
        self.description: tuple[Column, ...] | None = None
        self.lastrowid = None
        self._rows: pa.Table | None = None
        self._at = 0
        self._counts: list[Counts] = []
        self._closed = False

    @property
    def rowcount(self) -> int:
        """How many rows the last statement gave or changed; -1 if it did neither.

        To look at it after a change makes the number part of the transaction: if another commit changes it,
        the transaction ends with `OperationalError` at its commit, instead of being redone.
        """
        if self._rows is not None:
            return int(self._rows.num_rows)
        if not self._counts:
            return -1
        return sum(counts.inserted + counts.updated + counts.deleted for counts in self._counts)

    @property
    def rownumber(self) -> int | None:
        """The position of the next row, from 0 on."""
        return None if self._rows is None else self._at

    def execute(self, operation: str, parameters: Parameters | None = None) -> Self:
        """Run one statement: with `:name` and a mapping, or with `?` and a sequence."""
        self._begin()
        _refuse_odd(operation)
        with translated():
            text, named = with_names(operation, () if parameters is None else parameters)
        self._take(self.connection._run(text, named))
        return self

    def executemany(self, operation: str, seq_of_parameters: Iterable[Parameters]) -> Self:
        """Run a statement for each set of parameters, all of them as one transaction. An INSERT of them as
        plain values is one write."""
        self._begin()
        _refuse_odd(operation)
        with translated():
            marked = marks(operation)
            given = [marked.named(parameters) for parameters in seq_of_parameters]
            insert = plain_insert(marked.text) if given else None
        with self.connection._as_one():
            if insert is not None and all(set(insert.values.values()) == set(named) for named in given):
                rows = [{column: named[name] for column, name in insert.values.items()} for named in given]
                counts = self.connection._append(insert.table, rows)
                if counts is not None:
                    self._counts.append(counts)
                    return self
            for named in given:
                self._take(self.connection._run(marked.text, named))
                if self.description is not None:
                    raise ProgrammingError("executemany is for statements that give no rows")
        return self

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row; None at the end."""
        found = self.fetchmany(1)
        return found[0] if found else None

    def fetchmany(self, size: int | None = None) -> list[tuple[Any, ...]]:
        """The next rows, `arraysize` of them if no size is given."""
        wanted = self.arraysize if size is None else size
        if wanted < 0:
            raise ProgrammingError(f"fetchmany takes a number of rows; found {wanted}")
        return _tuples(self._next(wanted))

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows that are left."""
        return _tuples(self._next(None))

    def fetch_arrow_table(self) -> pa.Table:
        """All rows that are left, as an Arrow table."""
        return self._next(None)

    def fetch_df(self) -> Any:
        """All rows that are left, as a pandas DataFrame."""
        return self._next(None).to_pandas()

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        while (row := self.fetchone()) is not None:
            yield row

    def setinputsizes(self, sizes: Sequence[Any]) -> None:
        """Does nothing, as PEP 249 allows."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Does nothing, as PEP 249 allows."""

    def close(self) -> None:
        """The cursor cannot be used any more."""
        self._closed, self._rows = True, None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _begin(self) -> None:
        self._check_open()
        self.description, self._rows, self._at, self._counts = None, None, 0, []

    def _take(self, result: Any) -> None:
        if isinstance(result, Counts):
            self._counts.append(result)
        elif isinstance(result, pa.Table) or hasattr(result, "toArrow"):
            rows: pa.Table = result if isinstance(result, pa.Table) else result.toArrow()
            self._rows = rows
            self.description = tuple(
                (field.name, type_code(field.type), None, None, None, None, field.nullable)
                for field in rows.schema
            )

    def _next(self, size: int | None) -> pa.Table:
        self._check_open()
        if self._rows is None:
            raise ProgrammingError("there are no rows to fetch: execute a query first")
        rows = self._rows.slice(self._at, size)
        self._at += rows.num_rows
        return rows

    def _check_open(self) -> None:
        if self._closed:
            raise InterfaceError("the cursor is closed")
        self.connection._check_open()


def _refuse_odd(operation: object) -> None:
    if not isinstance(operation, str):
        raise ProgrammingError(f"a statement is a text; found {operation!r}")


def _tuples(rows: pa.Table) -> list[tuple[Any, ...]]:
    columns = [column.to_pylist() for column in rows.columns]
    return list(zip(*columns, strict=True)) if columns else [()] * rows.num_rows
