"""A job: what somebody wants to have done, what counts as done, and how many lines it takes a system."""

import ast
import inspect
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

Rows = list[tuple[Any, ...]]
Other = Callable[[], None]
"""What another client does in the middle of the job; some jobs call it."""

Way = Callable[[Any, Other], Any]
"""How a system does a job: it takes the open system and `Other`, and returns what the job asks for."""


@dataclass(frozen=True)
class Job:
    """A job by its key, which is the name of a function in the module of each system."""

    key: str
    title: str
    value: Any = None
    """What the function returns: sorted rows, a number, or None."""
    kind: type | None = None
    """The type that the returned object must have, where the job asks for one."""
    tables: Mapping[str, Rows] = field(default_factory=dict)
    """What a new client finds in tables afterwards."""
    columns: Mapping[str, list[str]] = field(default_factory=dict)
    """The sorted columns of tables afterwards."""
    spoiled: bool = False
    """Whether a client then tries to make the amounts of all orders negative, before anything is checked."""
    check: Callable[[Path, "System"], None] | None = None
    """Further conditions, which raise AssertionError."""
    before: str = ""
    """The function of the system that runs first and is not counted."""
    other: Callable[["System", Path], Any] | None = None
    """What another client of the same system does when the job calls `other`; what it returns is `seen`."""
    seen: Any = None


class System(Protocol):
    """A system: a module with these names and one function for each job that it can do."""

    NAME: str
    CANNOT: Mapping[str, str]
    """Why it cannot do a job, by the job's key. A function of that name, if there is one, shows it: it fails,
    or its result is not what the job asks for."""

    def open(self, folder: Path) -> Any:
        """The open system, with the tables of `world`, below this folder, which is the working directory."""

    def rows(self, folder: Path, table: str) -> Rows:
        """All rows of a table, as a new client reads them."""

    def columns(self, folder: Path, table: str) -> list[str]:
        """The columns of a table, as a new client reads them."""

    def spoil(self, folder: Path) -> None:
        """Make the amounts of all orders negative, or fail."""

    def file_count(self, folder: Path, table: str) -> int:
        """The data files of the newest version of a table."""

    def add_hundred(self, folder: Path) -> None:
        """Another client adds 100 to the amount of order 1, and to the pieces of apples, in this order."""


def lines_of(way: Way) -> int:
    """The lines of a function's body as the formatter leaves it, without comments and blank lines."""
    source = textwrap.dedent(inspect.getsource(way))
    body = ast.parse(source).body[0]
    assert isinstance(body, ast.FunctionDef)
    first, last = body.body[0].lineno, body.body[-1].end_lineno
    found = [line.strip() for line in source.splitlines()[first - 1 : last]]
    # `other()` is not part of the job: it stands for what another client does at that moment.
    return sum(1 for line in found if line and line != "other()" and not line.startswith("#"))


def plain(value: Any) -> Any:
    """A returned object as plain Python: tables of any library as sorted rows."""
    if hasattr(value, "itertuples"):
        return sorted(tuple(row) for row in value.itertuples(index=False))
    if hasattr(value, "__arrow_c_stream__"):
        return sorted(tuple(row.values()) for row in pa.table(value).to_pylist())
    return sorted(map(tuple, value)) if isinstance(value, list) else value
