"""Spark's exceptions as ours: what the user got wrong, what the store has lost, and the rest as it came."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import (
    AnalysisException,
    ArithmeticException,
    ArrayIndexOutOfBoundsException,
    DateTimeException,
    NumberFormatException,
    ParseException,
    PySparkException,
    PythonException,
    SparkRuntimeException,
)

from lakevilla import errors
from lakevilla.errors import Corrupt, InvalidInput, LakeVillaError, Unsupported
from lakevilla.sql.words.suggestions import unknown_column, unknown_function

_USERS = (
    AnalysisException,
    ArithmeticException,
    ArrayIndexOutOfBoundsException,
    DateTimeException,
    NumberFormatException,
    ParseException,
    SparkRuntimeException,
)


_OURS = re.compile(r"lakevilla\.errors\.(\w+): (.*)")
LOST_FILE = "LakeVilla does not know the data file that Spark reads as "
# With a path behind it: plans, which messages of Spark may show, have the sentence alone.
_LOST = re.compile(re.escape(LOST_FILE) + r"\w+:/")
_FAILED_READ = re.compile(r"(\[FAILED_READ_FILE[^\n]*)")
_CAUSE = re.compile(r"^Caused by: ([^\n]*)", re.MULTILINE)
_CONDITION = re.compile(r"\s*SQLSTATE: \w+$")
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
    *("toArrow", "toPandas"),
)


@contextmanager
def explained() -> Iterator[None]:
    """Work with Spark whose failures become our exceptions."""
    try:
        yield
    except (Py4JJavaError, PySparkException) as error:
        ours = _translated(error)
        if ours is None:
            raise
        raise ours from error


def explaining(frame: Any) -> Any:
    """The frame, whose own actions fail with our exceptions. Frames that are made of it are Spark's alone."""
    kind: Any = type(frame)
    frame.__class__ = _explaining(kind)
    return frame


@cache
def _explaining(kind: type) -> type:
    """A class that does the same as this one and is called the same."""

    def explains(action: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(action)
        def run(*args: Any, **kwargs: Any) -> Any:
            with explained():
                return action(*args, **kwargs)

        return run

    actions = {name: explains(getattr(kind, name)) for name in _ACTIONS if hasattr(kind, name)}
    return type(kind.__name__, (kind,), {"__module__": kind.__module__, "__doc__": kind.__doc__, **actions})


def _translated(error: Exception) -> LakeVillaError | None:
    """Our exception for one of Spark's; None for what we know nothing about."""
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
    if isinstance(error, PythonException):
        return InvalidInput(f"a Python function of the statement failed: {_last_line(whole)}")
    if condition.startswith(("UNSUPPORTED", "NOT_SUPPORTED")):
        return Unsupported(f"Spark cannot do this: {text}")
    return _users(error, condition, text) if isinstance(error, _USERS) else None


def _users(error: Exception, condition: str, text: str) -> InvalidInput:
    """What the user got wrong; names that mean nothing as every engine says it."""
    assert isinstance(error, PySparkException)
    parameters = error.getMessageParameters() or {}
    if condition.startswith("UNRESOLVED_COLUMN") and parameters.get("objectName"):
        proposed = [_last_part(name) for name in (parameters.get("proposal") or "").split(", ") if name]
        return unknown_column(_plain(parameters["objectName"]), list(dict.fromkeys(proposed)))
    if condition.startswith("UNRESOLVED_ROUTINE") and parameters.get("routineName"):
        return unknown_function(_plain(parameters["routineName"]))
    return InvalidInput(_CONDITION.sub("", text))


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
