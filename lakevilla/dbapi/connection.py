"""Connections: a lake, and the transaction that is open on it."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from functools import wraps
from threading import RLock
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from lakevilla import Aborted, Counts, Lake, Transaction
from lakevilla.dbapi import exceptions
from lakevilla.dbapi.cursor import Cursor
from lakevilla.dbapi.exceptions import InterfaceError, OperationalError, ProgrammingError, translated
from lakevilla.sql.parameters import plain
from lakevilla.sql.script.command_parser import command
from lakevilla.sql.tables import sql_name

P = ParamSpec("P")
T = TypeVar("T")

_ENDS = re.compile(r"\s*(COMMIT|ROLLBACK)(\s+(WORK|TRANSACTION))?\s*;?\s*", re.IGNORECASE)
_CONTROLS = re.compile(r"\s*(BEGIN|START|SET)\b", re.IGNORECASE)
"""Statements before which no transaction begins."""
_ROWS = "lakevilla_rows"
"""The name under which a statement reads the rows of `executemany`."""


def connect(
    root: Any = None,
    *,
    lake: Lake | None = None,
    isolation: str = "serializable",
    autocommit: bool = False,
    **options: Any,
) -> "Connection":
    """Connect to the lake at a root; `options` are those of `lakevilla.Lake`. Or to one that is open: `lake`.

    `isolation` is `serializable` or `snapshot`. With `autocommit` each statement is its own transaction.
    """
    if lake is not None and (root is not None or options):
        raise InterfaceError("give either a lake that is open (lake=...), or a root and its options")
    with translated():
        opened = Lake(root, **options) if lake is None else lake
    return Connection(opened, isolation, autocommit, owned=lake is None)


def _one_at_a_time(
    call: "Callable[Concatenate[Connection, P], T]",
) -> "Callable[Concatenate[Connection, P], T]":
    """A call of a connection that waits until those of other threads have ended."""

    @wraps(call)
    def run(connection: "Connection", /, *args: P.args, **kwargs: P.kwargs) -> T:
        with connection._lock:
            return call(connection, *args, **kwargs)

    return run


class Connection:
    """One lake, and at most one open transaction on it. Threads that share it share the transaction."""

    Warning = exceptions.Warning
    Error = exceptions.Error
    InterfaceError = exceptions.InterfaceError
    DatabaseError = exceptions.DatabaseError
    DataError = exceptions.DataError
    OperationalError = exceptions.OperationalError
    IntegrityError = exceptions.IntegrityError
    InternalError = exceptions.InternalError
    ProgrammingError = exceptions.ProgrammingError
    NotSupportedError = exceptions.NotSupportedError

    def __init__(self, lake: Lake, isolation: str, autocommit: bool, owned: bool) -> None:
        self.lake = lake
        self._autocommit = autocommit
        self._owned = owned
        self._lock = RLock()
        self._closed = False
        with translated():
            self._session = lake.session(isolation=isolation)

    @property
    def autocommit(self) -> bool:
        """Whether each statement is its own transaction. Cannot be changed while a transaction is open."""
        return self._autocommit

    @autocommit.setter
    def autocommit(self, value: bool) -> None:
        if bool(value) == self._autocommit:
            return
        if self._session.state != "idle":
            raise ProgrammingError(
                "autocommit cannot be changed while a transaction is open: commit() or rollback() comes first"
            )
        self._autocommit = bool(value)

    @property
    def isolation(self) -> str:
        """The isolation of the next transactions: `serializable` or `snapshot`."""
        return self._session.settings["isolation"]

    @isolation.setter
    def isolation(self, level: str) -> None:
        with translated():
            self._session.set("isolation", level)

    def cursor(self) -> Cursor:
        """A new cursor. All cursors of a connection share its transaction."""
        self._check_open()
        return Cursor(self)

    def execute(self, operation: str, parameters: Any = None) -> Cursor:
        """Run one statement with a new cursor, and give the cursor."""
        return self.cursor().execute(operation, parameters)

    @_one_at_a_time
    def begin(self) -> None:
        """Start a transaction now, also with `autocommit`, if none is open."""
        self._check_open()
        self._refuse_failed()
        if self._session.state == "idle":
            with translated():
                self._session.sql("BEGIN")

    @_one_at_a_time
    def commit(self) -> None:
        """Make the transaction visible. OperationalError if another client's commit came first: then nothing
        of it is visible, and it can be run again."""
        self._check_open()
        self._refuse_failed()
        if self._session.state == "open":
            with translated():
                self._session.sql("COMMIT")

    @_one_at_a_time
    def rollback(self) -> None:
        """End the transaction; nothing of it was or will be visible."""
        self._check_open()
        with translated():
            self._session.close()

    @_one_at_a_time
    def savepoint(self, name: str) -> None:
        """A place to which `rollback_to` can return."""
        self.begin()
        transaction = self._session.transaction
        assert transaction is not None
        with translated():
            transaction.savepoint(name)

    @_one_at_a_time
    def rollback_to(self, name: str) -> None:
        """Undo what the transaction did since the savepoint, which stays."""
        self._check_open()
        self._refuse_failed()
        transaction = self._session.transaction
        if transaction is None:
            raise OperationalError(f"there is no savepoint {name!r}: no transaction is open")
        with translated():
            transaction.rollback_to(name)

    @_one_at_a_time
    def close(self) -> None:
        """Roll back what is open, and close the lake if `connect` opened it."""
        if self._closed:
            return
        self.rollback()
        self._closed = True
        if self._owned:
            self.lake.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Commit at the end of a `with` block, or roll back after an exception. The connection stays open."""
        if kind is None:
            self.commit()
        else:
            self.rollback()

    @_one_at_a_time
    def _run(self, text: str, parameters: Mapping[str, Any]) -> Any:
        self._check_open()
        ends = _ENDS.fullmatch(text)
        if ends is not None:
            return self.rollback() if ends[1].upper() == "ROLLBACK" else self.commit()
        with translated():
            is_statement = command(text, parameters) is None
        if is_statement:
            return self._work(lambda tx: tx.sql(text, **parameters))
        self._refuse_failed()
        if not self.autocommit and not _CONTROLS.match(text):
            self.begin()
        with translated():
            return self._session.sql(text, **parameters)

    @_one_at_a_time
    def _append(self, table: str, rows: list[dict[str, Any]]) -> Counts | None:
        """Rows of plain values, without a text for each of them. They are assigned to the columns as INSERT
        does, which takes more than `append`: a number for a text, say. None for rows that only statements of
        their own can write, because a column has values of several kinds."""
        counts: Counts
        try:
            counts = self._work(lambda tx: tx.append(table, rows))
        except ProgrammingError:
            # A column without any value has no type; a missing column is NULL too.
            columns = [name for name in rows[0] if any(row[name] is not None for row in rows)]
            given = [{name: plain(row[name]) for name in columns} for row in rows]
            if not columns:
                raise
            if not all(_has_one_kind([row[name] for row in given]) for name in columns):
                return None
            listed = ", ".join(sql_name(name) for name in columns)
            text = f"INSERT INTO {sql_name(table)} ({listed}) SELECT {listed} FROM {_ROWS}"
            counts = self._work(lambda tx: tx.sql(text, views={_ROWS: given}))
        return counts

    @contextmanager
    def _as_one(self) -> Iterator[None]:
        """Several statements as one transaction, also with `autocommit`."""
        with self._lock:
            self._check_open()
            alone = self.autocommit and self._session.state == "idle"
            if not alone:
                yield
                return
            self.begin()
            try:
                yield
            except BaseException:
                self.rollback()
                raise
            self.commit()

    def _work(self, work: Callable[[Transaction], Any]) -> Any:
        """A statement in the session's transaction, which it looks at no more than the program does: a
        result that was not seen can be redone."""
        self._check_open()
        self._refuse_failed()
        if self.autocommit and self._session.state == "idle":
            with translated(), self.lake.transaction(isolation=self.isolation) as alone:
                return work(alone)
        self.begin()
        transaction = self._session.transaction
        assert transaction is not None
        with translated():
            try:
                return work(transaction)
            except Aborted:
                self._session.abort(transaction)
                raise

    def _refuse_failed(self) -> None:
        if self._session.state == "aborted":
            raise OperationalError(
                "the transaction was aborted by the statement that failed: call rollback(), and run it again"
            )

    def _check_open(self) -> None:
        if self._closed:
            raise InterfaceError("the connection is closed")


def _has_one_kind(values: list[Any]) -> bool:
    """Whether the values have the same type, also in SQL: then none of them changes by standing in a column
    with the others."""
    present = [value for value in values if value is not None]
    scales = {value.as_tuple().exponent for value in present if isinstance(value, Decimal)}
    return len({type(value) for value in present}) == 1 and len(scales) <= 1
