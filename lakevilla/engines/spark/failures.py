"""Spark's exceptions as ours: what the user got wrong, what the store has lost, and the rest as it came."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

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

from lakevilla.errors import Corrupt, InvalidInput, Unavailable, Unsupported

_USERS = (
    AnalysisException,
    ArithmeticException,
    ArrayIndexOutOfBoundsException,
    DateTimeException,
    NumberFormatException,
    ParseException,
    SparkRuntimeException,
)


_KINDS = {kind.__name__: kind for kind in (Corrupt, InvalidInput, Unavailable, Unsupported)}
_OURS = re.compile(rf"lakevilla\.errors\.({'|'.join(_KINDS)}): (.*)")
_UNREADABLE = "a data file cannot be read: {}"
_NOT_INSTALLED = (
    "the Python of Spark's executors has no lakevilla: install it there, in the version that you have here, "
    "or let PYSPARK_PYTHON name an interpreter that has it"
)


@contextmanager
def explained() -> Iterator[None]:
    """Work with Spark whose failures are told in our words."""
    try:
        yield
    except Py4JJavaError as error:
        # The JVM's own exception, where PySpark has none of its kind.
        text = _sentence(str(error.java_exception.toString()))
        if "[FAILED_READ_FILE" in text:
            raise Corrupt(_UNREADABLE.format(text)) from error
        raise
    except PySparkException as error:
        condition = error.getCondition() or ""
        text = _sentence(str(error))
        if condition.startswith(("FAILED_READ_FILE", "PATH_NOT_FOUND")):
            raise Corrupt(_UNREADABLE.format(text)) from error
        if "No module named 'lakevilla'" in str(error):
            raise InvalidInput(_NOT_INSTALLED) from error
        if isinstance(error, PythonException) and (ours := _OURS.findall(str(error))):
            # What a task of ours raised in a Python worker.
            raise _KINDS[ours[-1][0]](ours[-1][1]) from error
        if condition.startswith(("UNSUPPORTED", "NOT_SUPPORTED")):
            raise Unsupported(f"Spark cannot do this: {text}") from error
        if isinstance(error, _USERS):
            raise InvalidInput(text) from error
        raise


def _sentence(message: str) -> str:
    """The message without the plan and the stack that Spark adds."""
    lines = message.split("; line ")[0].split("\n")
    return next((line for line in lines if line.strip()), message).strip()
