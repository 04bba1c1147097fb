"""DuckDB, in memory and locked in: it sees what a statement registers, and nothing of the machine.

One database per engine and process, one cursor per running statement; a forked child makes its own.
Errors of DuckDB become ours here. It is imported with the first query: most commands that open a lake run
none.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from lakevilla.engines.local.translation.types.typed import UNSUPPORTED
from lakevilla.environment import Environment, hears_interrupts
from lakevilla.errors import InvalidInput, Unsupported

if TYPE_CHECKING:
    import duckdb

T = TypeVar("T")

_CONFIGURATION: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
}

# How DuckDB reports Ctrl-C, which it catches.
_INTERRUPTED = ("Query interrupted", "KeyboardInterrupt: ")

# What messages of DuckDB hold that is not the user's: the kind of an error, columns by our names, types.
_KIND = re.compile(r"^[A-Z][A-Za-z ]* Error: ")
_UNGROUPED = re.compile(r'^column "?(?P<column>\w+)"? must appear in the GROUP BY clause')
_TYPES = {"INT8": "tinyint", "INT16": "smallint", "INT32": "int", "INT64": "bigint"}
_TYPE = re.compile(r"\bINT(?:8|16|32|64)\b")

_OWN_COLUMN = re.compile(r" when casting from source column c\d+$")

_STOP_SECONDS = 0.01

_BATCH_ROWS = 128 * 1024
_FEW_BYTES = 4 * 1024 * 1024
_NO_NAMES: Mapping[str, str] = {}


class Connections:
    """Runs texts over registered tables. Safe to use from many threads, and after a fork.

    Few rows are worked on by the caller's thread alone: to wake others costs more than they help.
    """

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._few, self._many = _Database(threads=1), _Database(threads=None)

    def run(self, sql: str, tables: Mapping[str, Any], names: Mapping[str, str] = _NO_NAMES) -> pa.Table:
        """The whole result of a query. `names` are the user's names of columns, by ours."""
        with _our_errors(tables, names), self._database(tables).cursor(tables) as cursor:
            return self._apart(cursor, lambda: cursor.execute(sql).to_arrow_table())

    def stream(
        self, sql: str, tables: Mapping[str, Any], names: Mapping[str, str] = _NO_NAMES
    ) -> Iterator[pa.RecordBatch]:
        """The result of a query, batch by batch."""
        with _our_errors(tables, names), self._database(tables).cursor(tables) as cursor:
            reader = self._apart(cursor, lambda: cursor.execute(sql).to_arrow_reader(_BATCH_ROWS))
            while (batch := self._apart(cursor, lambda: next(reader, None))) is not None:
                yield batch

    def _apart(self, cursor: "duckdb.DuckDBPyConnection", action: Callable[[], T]) -> T:
        """Run what may take long in another thread, so that Ctrl-C ends it at once.

        DuckDB looks for Ctrl-C between its own tasks only, and one task of a join may take minutes. When
        another thread asks, it stops inside of a task.

        That thread lets go of the action before it says that it is done: to drop the last reference to an
        object of DuckDB while the interpreter ends would abort the process.
        """
        if not hears_interrupts():
            return action()
        given = [action]
        done: list[T] = []
        failed: list[BaseException] = []
        ended: list[bool] = []

        def work() -> None:
            try:
                done.append(given.pop()())
            except BaseException as failure:  # noqa: BLE001 - raised below; the thread must not keep it
                failed.append(failure)
            finally:
                ended.append(True)

        wait = self._environment.background(work)
        try:
            wait()
        except BaseException:
            # What is asked before the query begins is forgotten. A thread left inside of DuckDB would abort
            # the process at its end.
            while not ended:
                cursor.interrupt()
                self._environment.sleep(_STOP_SECONDS)
            done.clear()
            failed.clear()
            raise
        if failed:
            raise failed.pop()
        return done.pop()

    def _database(self, tables: Mapping[str, Any]) -> "_Database":
        few = all(isinstance(table, pa.Table) and table.nbytes <= _FEW_BYTES for table in tables.values())
        return self._few if few else self._many


class _Database:
    """One DuckDB database per process, and its idle cursors."""

    def __init__(self, threads: int | None) -> None:
        self._configuration = _CONFIGURATION if threads is None else {**_CONFIGURATION, "threads": threads}
        self._lock = Lock()
        self._pid = 0
        self._root: duckdb.DuckDBPyConnection | None = None
        self._idle: list[duckdb.DuckDBPyConnection] = []

    @contextmanager
    def cursor(self, tables: Mapping[str, Any]) -> "Iterator[duckdb.DuckDBPyConnection]":
        """A cursor that sees these tables and that no other statement uses."""
        cursor = self._take()
        try:
            for name, table in tables.items():
                cursor.register(name, table)
            yield cursor
        except BaseException:
            # The next text on this cursor would forget that the one before was interrupted, and wait for it.
            cursor.interrupt()
            cursor.close()
            raise
        for name in tables:
            cursor.unregister(name)
        with self._lock:
            if self._pid == os.getpid():
                self._idle.append(cursor)

    def _take(self) -> "duckdb.DuckDBPyConnection":
        import duckdb

        with self._lock:
            if self._root is None or self._pid != os.getpid():
                # The parent's database belongs to the parent: its threads did not survive the fork.
                self._pid, self._idle = os.getpid(), []
                self._root = duckdb.connect(":memory:", config=self._configuration)
                # A join would hand the bounds of one side as filters to the Arrow scan of the other, and to
                # Arrow NaN lies within no bounds.
                self._root.execute("SET disabled_optimizers = 'join_filter_pushdown'")
                self._root.execute("SET lock_configuration = true")
            return self._idle.pop() if self._idle else self._root.cursor()


@contextmanager
def _our_errors(tables: Mapping[str, Any], names: Mapping[str, str]) -> Iterator[None]:
    import duckdb

    try:
        yield
    except (duckdb.Error, RuntimeError, OSError) as error:
        # What DuckDB finds out while its result is streamed comes through Arrow, as an OSError.
        for table in tables.values():
            failure = getattr(table, "failure", None)
            if failure is not None:
                raise failure from error
        message = str(error).split("\n\nLINE ")[0]
        if any(words in message for words in _INTERRUPTED):
            raise KeyboardInterrupt from error
        _, _, reason = message.partition(UNSUPPORTED)
        if reason:
            raise Unsupported(f"the local engine does not support {reason}") from error
        # Deviations and variances of NaN or of huge numbers: Spark has a value, DuckDB gives up.
        gave_up = message.startswith("Out of Range Error") and message.endswith("is out of range!")
        if gave_up or message.startswith(("Out of Memory Error", "Not implemented Error")):
            raise Unsupported(
                f"the local engine cannot compute this: {message}; use engine='spark'"
            ) from error
        if message.startswith(("INTERNAL Error", "FATAL Error")) or isinstance(error, RuntimeError):
            raise
        raise _users(_KIND.sub("", message), names) from error


def _users(message: str, names: Mapping[str, str]) -> InvalidInput:
    """A mistake of the user in the user's words."""
    ungrouped = _UNGROUPED.match(message)
    if ungrouped is not None:
        column = names.get(ungrouped["column"], "")
        what = f"column {column!r}" if column else "a column"
        found = InvalidInput(
            f"{what} must be in GROUP BY or inside of an aggregate function; any_value(...) takes one of its "
            "values",
            column=column,
        )
        found.unknown = column
        return found
    sentence = _OWN_COLUMN.sub("", message.partition("\n")[0])
    return InvalidInput(_TYPE.sub(lambda found: _TYPES[found[0]], sentence))
