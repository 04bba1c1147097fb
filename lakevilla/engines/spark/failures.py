"""Spark's exceptions as ours: what the user got wrong, what the store has lost, and what else failed."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, wraps
from inspect import getmembers, isfunction
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import (
    AnalysisException,
    ArithmeticException,
    ArrayIndexOutOfBoundsException,
    DateTimeException,
    IllegalArgumentException,
    NumberFormatException,
    ParseException,
    PySparkException,
    PythonException,
    SparkRuntimeException,
)
from pyspark.logger import PySparkLogger

from lakevilla import errors
from lakevilla.errors import Corrupt, InvalidInput, LakeVillaError, Unsupported
from lakevilla.sql.words.suggestions import unknown_column, unknown_function

_USERS = (
    AnalysisException,
    ArithmeticException,
    ArrayIndexOutOfBoundsException,
    DateTimeException,
    IllegalArgumentException,
    NumberFormatException,
    ParseException,
    SparkRuntimeException,
)

Run = Callable[[Callable[[], Any]], Any]
"""Runs an action, perhaps in another thread."""

_OURS = re.compile(r"lakevilla\.errors\.(\w+): (.*)")
LOST_FILE = "LakeVilla does not know the data file that Spark reads as "
# With a path behind it: plans, which messages of Spark may show, have the sentence alone.
_LOST = re.compile(re.escape(LOST_FILE) + r"\w+:/")
_FAILED_READ = re.compile(r"(\[FAILED_READ_FILE[^\n]*)")
_CAUSE = re.compile(r"^Caused by: ([^\n]*)", re.MULTILINE)
_CONDITION = re.compile(r"\s*SQLSTATE: \w+( \(line \d+, pos \d+\))?$")
_PYTHON = "org.apache.spark.api.python.PythonException"
_STATE = re.compile(r"(?P<sentence>\[[A-Z0-9_.]+\] [^\n]*?)\s*SQLSTATE: (?P<state>\w{5})")
_USERS_STATES = ("21", "22", "23", "38", "39", "42", "P0")
"""Classes of SQLSTATE that say what is wrong with a statement or its data; P0 is `raise_error`."""
_INTERNAL = re.compile(r"lakevilla\d*_")
"""The names of the columns that a statement adds to those of its tables."""
_PART = re.compile(r"`((?:[^`]|``)*)`")
_UNREADABLE = "a data file cannot be read: {}"
_MISSING = re.compile(r"No module named '(lakevilla|numpy|obstore|pyarrow|sqlglot)\b")
_NOT_INSTALLED = (
    "{} is not installed in the Python of Spark's executors: install lakevilla there in the same version, "
    "send it with the job (spark.archives; docs/cluster.md shows how), or let PYSPARK_PYTHON name an "
    "interpreter that has it"
)


_GONE = (
    "; it was deleted after the table was read, or the table has lost it: read the table again; if that "
    "fails too, restore the file from a backup"
)
_ACTIONS = (
    *("collect", "count", "first", "foreach", "foreachPartition", "head", "isEmpty", "show", "tail", "take"),
    *("toArrow", "toPandas", "checkpoint", "localCheckpoint", "describe", "summary", "approxQuantile"),
    *("corr", "cov", "crosstab", "freqItems"),
)
_EXPLAINING = "_lakevilla_explains"
_RUN = "_lakevilla_run"
_END = object()


_OURS_RUN = ContextVar("lakevilla_explained", default=False)


@cache
def _quiet_context() -> None:
    """PySpark logs each error of a query with its plan, which names what is ours. Where we raise an exception
    of our own for it, that is all that the user gets."""
    PySparkLogger.getLogger("SQLQueryContextLogger").addFilter(lambda _: not _OURS_RUN.get())


@contextmanager
def explained() -> Iterator[None]:
    """Work with Spark whose failures become our exceptions."""
    _quiet_context()
    outer = _OURS_RUN.get()
    _OURS_RUN.set(True)
    try:
        yield
    except (Py4JJavaError, PySparkException) as error:
        raise _translated(error) from error
    except (AssertionError, AttributeError, ConnectionError) as error:
        # Where PySpark meets its stopped context, it asks None for attributes.
        if not is_stopped():
            raise
        raise stopped() from error
    finally:
        _OURS_RUN.set(outer)


def is_stopped() -> bool:
    """Whether this process had a Spark context and has none now. (With Spark Connect it never has one.)"""
    return SparkContext._gateway is not None and SparkContext._active_spark_context is None


def stopped() -> InvalidInput:
    """The error for work in a session that was stopped."""
    return InvalidInput(
        "the Spark session was stopped: open the lake again, with a running session or with engine='local'"
    )


def explaining(frame: Any, run: Run) -> Any:
    """The frame, whose actions are run by `run` and fail with our exceptions; so do those of frames that are
    made of it. Its other methods fail as PySpark has them fail."""
    kind: Any = type(frame)
    frame.__class__ = _explaining(kind)
    setattr(frame, _RUN, run)
    return frame


@cache
def _explaining(kind: type) -> type:
    """A class that does the same as this one and is called the same."""

    def explains(action: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(action)
        def run(frame: Any, /, *args: Any, **kwargs: Any) -> Any:
            def work() -> Any:
                # Here and around it: what is quiet is so in its thread.
                with explained():
                    return action(frame, *args, **kwargs)

            with explained():
                return _followed(getattr(frame, _RUN)(work), frame)

        return run

    def iterates(action: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(action)
        def run(*args: Any, **kwargs: Any) -> Iterator[Any]:
            with explained():
                rows = iter(action(*args, **kwargs))
            # Step by step: between two rows the caller's code runs.
            while True:
                with explained():
                    row = next(rows, _END)
                if row is _END:
                    return
                yield row

        return run

    def follows(method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def run(frame: Any, /, *args: Any, **kwargs: Any) -> Any:
            return _followed(method(frame, *args, **kwargs), frame)

        return run

    # The methods of grouped rows are lazy: there `count` gives a frame.
    treated = {"toLocalIterator": iterates, **dict.fromkeys(_ACTIONS, explains)} if _is_frame(kind) else {}
    methods = {
        name: treated.get(name, follows)(method)
        for name, method in getmembers(kind, isfunction)
        if not name.startswith("_")
    }
    own = {"__module__": kind.__module__, "__doc__": kind.__doc__, _EXPLAINING: True}
    return type(kind.__name__, (kind,), {**own, **methods})


def _followed(made: Any, of: Any) -> Any:
    """What a method of this frame gave: a frame, or grouped rows, whose actions explain themselves, too."""
    kind = type(made)
    known = _is_frame(kind) or (kind.__name__ == "GroupedData" and kind.__module__.startswith("pyspark.sql"))
    return explaining(made, getattr(of, _RUN)) if known and not hasattr(kind, _EXPLAINING) else made


def _is_frame(kind: type) -> bool:
    return kind.__name__ == "DataFrame" and kind.__module__.startswith("pyspark.sql")


def _translated(error: Exception) -> LakeVillaError:
    """Our exception for one of Spark's."""
    if is_stopped() or "[NO_ACTIVE_SESSION]" in str(error):
        return stopped()
    java = isinstance(error, Py4JJavaError)
    # The JVM's own exception, where PySpark has none of its kind.
    text = _sentence(str(error.java_exception.toString() if isinstance(error, Py4JJavaError) else error))
    whole = str(error)
    condition = (error.getCondition() or "") if isinstance(error, PySparkException) else ""
    if "[FAILED_READ_FILE.FILE_NOT_EXIST" in whole or condition.startswith("PATH_NOT_FOUND"):
        return Corrupt(_UNREADABLE.format(_about_file(whole, text)) + _GONE)
    if (ours := _OURS.findall(whole)) and (java or isinstance(error, PythonException)):
        # What a task of ours raised in a Python worker, or the choice of files in this process.
        return _kind(ours[-1][0])(ours[-1][1].strip())
    if condition.startswith("FAILED_READ_FILE") or "[FAILED_READ_FILE" in whole or _LOST.search(whole):
        return Corrupt(_UNREADABLE.format(_about_file(whole, text)))
    if missing := _MISSING.search(whole):
        return InvalidInput(_NOT_INSTALLED.format(missing[1]))
    if isinstance(error, PythonException) or _PYTHON in whole:
        return InvalidInput(f"a Python function of the statement failed: {_last_line(whole)}")
    if condition.startswith(("UNSUPPORTED", "NOT_SUPPORTED")):
        return Unsupported(f"Spark cannot do this: {text}")
    if isinstance(error, _USERS):
        return _users(error, condition, text)
    told = _STATE.search(whole)
    if told is not None and told["state"].startswith(_USERS_STATES):
        # Where the JVM fails while a query is planned, PySpark has no exception of its kind.
        return InvalidInput(told["sentence"].strip())
    return LakeVillaError(f"Spark failed: {_with_cause(whole, text)}")


def _users(error: Exception, condition: str, text: str) -> InvalidInput:
    """What the user got wrong; names that mean nothing as every engine says it."""
    assert isinstance(error, PySparkException)
    parameters = error.getMessageParameters() or {}
    if condition.startswith("UNRESOLVED_COLUMN") and parameters.get("objectName"):
        proposed = [_last_part(name) for name in (parameters.get("proposal") or "").split(", ") if name]
        proposed = [name for name in proposed if not _INTERNAL.match(name)]
        return unknown_column(_plain(parameters["objectName"]), list(dict.fromkeys(proposed)))
    if condition.startswith("UNRESOLVED_USING_COLUMN") and parameters.get("colName"):
        return unknown_column(
            _plain(parameters["colName"]), _PART.findall(parameters.get("suggestion") or "")
        )
    if condition.startswith("UNRESOLVED_ROUTINE") and parameters.get("routineName"):
        return unknown_function(_plain(parameters["routineName"]))
    found = InvalidInput(_CONDITION.sub("", text).replace("[PARSE_SYNTAX_ERROR] Syntax", "SQL syntax"))
    found.fragment = _named_piece(error)
    return found


def _named_piece(error: PySparkException) -> str:
    """The piece of the statement that Spark names; empty if none."""
    try:
        contexts = error.getQueryContext()
        return str(contexts[0].fragment()) if contexts else ""
    except (Py4JJavaError, PySparkException):
        # Of a DataFrame's call, which is not in a text.
        return ""


def _plain(name: str) -> str:
    """A name as Spark quotes it, without its back quotes."""
    return ".".join(_PART.findall(name)).replace("``", "`")


def _last_part(name: str) -> str:
    return str((_PART.findall(name) or [name])[-1]).replace("``", "`")


def _about_file(whole: str, text: str) -> str:
    """What Spark says of a file that it could not read, and why. The outermost exception may say neither."""
    found = _FAILED_READ.search(whole)
    if found is None:
        return text
    causes = [cause for cause in _CAUSE.findall(whole) if "[FAILED_READ_FILE" not in cause]
    return found[1].strip() + (f" ({causes[-1].strip()})" if causes else "")


def _with_cause(whole: str, text: str) -> str:
    causes = _CAUSE.findall(whole)
    return f"{text} ({causes[-1].strip()})" if causes and causes[-1].strip() not in text else text


def _kind(name: str) -> Callable[[str], LakeVillaError]:
    found = getattr(errors, name, None)
    known = isinstance(found, type) and issubclass(found, LakeVillaError)
    return found if known and found is not None else LakeVillaError


def _last_line(message: str) -> str:
    """The exception at the end of a Python traceback, without the stack of the JVM behind it."""
    python = message.split("\n\tat ")[0].split("JVM stacktrace:")[0]
    lines = [line.strip() for line in python.splitlines() if line.strip()]
    return lines[-1] if lines else message


def _sentence(message: str) -> str:
    """The message without the plan and the stack that Spark adds."""
    lines = message.split("; line ")[0].split("\n")
    return next((line for line in lines if line.strip()), message).strip()
