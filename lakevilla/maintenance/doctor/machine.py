"""The versions of libraries on this machine, and its Java."""

import sys
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version

from lakevilla.maintenance.doctor.diagnosis import Check

LIBRARIES = ("pyarrow", "duckdb", "sqlglot", "obstore", "pyspark", "pyiceberg")


def look_at_machine(java: Callable[[], str | None]) -> Iterator[Check]:
    """`java` says what is wrong with Java, None if nothing is."""
    found = {name: _version(name) for name in ("lakevilla", *LIBRARIES)}
    text = ", ".join(f"{name} {number}" for name, number in found.items() if number)
    python = ".".join(map(str, sys.version_info[:3]))
    yield Check("versions", "ok", f"Python {python}, {text}")
    if found["pyspark"]:
        trouble = java()
        if trouble is None:
            yield Check("Java", "ok", "found, and Spark runs on it")
        else:
            yield Check("Java", "warning", trouble, "without it only engine='local' works")


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
