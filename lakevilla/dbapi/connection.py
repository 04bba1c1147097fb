"""Connections: a lake, and the transaction that is open on it."""

import re
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, ClassVar, Self

from lakevilla import Aborted, Counts, Lake, Transaction
from lakevilla.dbapi import exceptions
from lakevilla.dbapi.cursor import Cursor
from lakevilla.dbapi.exceptions import InterfaceError, OperationalError, translated

_END = re.compile(r"\s*(COMMIT|ROLLBACK|BEGIN|START)(\s+(WORK|TRANSACTION))?\s*;?\s*", re.IGNORECASE)


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
    with translated():
        opened = Lake(root, **options) if lake is None else lake
    return Connection(opened, isolation, autocommit, owned=lake is None)


class Connection:
    """One lake, and at most one open transaction on it. For one thread at a time."""

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

    _words: ClassVar[Mapping[str, str]] = {"BEGIN": "begin", "START": "begin"}

    def __init__(self, lake: Lake, isolation: str, autocommit: bool, owned: bool) -> None:
        self.lake = lake
        self.isolation = isolation
        self.autocommit = autocommit
        self._owned = owned
        self._transaction: Transaction | None = None
        self._failed = False
        self._closed = False

    def cursor(self) -> Cursor:
        """A new cursor. All cursors of a connection share its transaction."""
        self._check_open()
        return Cursor(self)

    def execute(self, operation: str, parameters: Any = None) -> Cursor:
        """Run one statement with a new cursor, and give the cursor."""
        return self.cursor().execute(operation, parameters)

    def begin(self) -> None:
        """Start a transaction now, also with `autocommit`, if none is open."""
        self._check_open()
        if self._transaction is None:
            with translated():
                self._transaction = self.lake.transaction(isolation=self.isolation)

    def commit(self) -> None:
        """Make the transaction visible. OperationalError if another client's commit came first: then nothing
        of it is visible, and it can be run again."""
        self._check_open()
        self._refuse_failed()
        transaction, self._transaction = self._transaction, None
        if transaction is not None:
            with translated():
                transaction.commit()

    def rollback(self) -> None:
        """End the transaction; nothing of it was or will be visible."""
        self._check_open()
        transaction, self._transaction, self._failed = self._transaction, None, False
        if transaction is not None:
            with translated():
                transaction.abort()

    def savepoint(self, name: str) -> None:
        """A place to which `rollback_to` can return."""
        self.begin()
        assert self._transaction is not None
        with translated():
            self._transaction.savepoint(name)

    def rollback_to(self, name: str) -> None:
        """Undo what the transaction did since the savepoint, which stays."""
        self._refuse_failed()
        if self._transaction is None:
            raise OperationalError(f"there is no savepoint {name!r}: no transaction is open")
        with translated():
            self._transaction.rollback_to(name)

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

    def _run(self, text: str, parameters: Mapping[str, Any]) -> Any:
        word = _END.fullmatch(text)
        if word is not None:
            getattr(self, self._words.get(word[1].upper(), word[1].lower()))()
            return None
        return self._work(lambda on: on.sql(text, **parameters))

    def _append(self, table: str, rows: list[dict[str, Any]]) -> Counts:
        counts: Counts = self._work(lambda on: on.append(table, rows))
        return counts

    def _work(self, work: Callable[[Lake | Transaction], Any]) -> Any:
        self._check_open()
        self._refuse_failed()
        if self.autocommit and self._transaction is None:
            with translated(), self.lake.transaction(isolation=self.isolation) as alone:
                return work(alone)
        self.begin()
        assert self._transaction is not None
        try:
            with translated():
                return work(self._transaction)
        except OperationalError as error:
            if isinstance(error.__cause__, Aborted):
                # What the program has done so far is not there any more: it must not go on without it.
                self._transaction.abort()
                self._transaction, self._failed = None, True
            raise

    def _refuse_failed(self) -> None:
        if self._failed:
            raise OperationalError(
                "the transaction was aborted by the statement that failed: call rollback(), and run it again"
            )

    def _check_open(self) -> None:
        if self._closed:
            raise InterfaceError("the connection is closed")
