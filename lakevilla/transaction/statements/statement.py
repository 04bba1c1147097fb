"""A statement as a transaction runs it, once or again."""

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lakevilla.transaction.statements.effect import Effect
from lakevilla.transaction.workspace import Workspace


class Defines(enum.Enum):
    """What a statement changes of the lake's registry."""

    NOTHING = enum.auto()
    TABLES = enum.auto()
    """It makes or drops a table."""
    NAMES = enum.auto()
    """It gives a table that exists a name."""


@dataclass(frozen=True)
class Statement:
    """`run` does the data work against the workspace, as often as it is called.

    `tables` are the names of those that it names, where that is known before it runs: with isolation the
    instant at which a transaction sees the lake is chosen by those of its first statement. `blind` says that
    it appends rows to its table and reads nothing.
    `text` with its `parameters` is the statement as Spark SQL, where that is possible: the logical record
    that a restarted client can redo. `once` says why the statement cannot run a second time, and is empty if
    it can. `ordered` says that the order of the rows that it gives means something.
    """

    run: Callable[[Workspace], Effect]
    text: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    once: str = ""
    defines: Defines = Defines.NOTHING
    ordered: bool = False
    tables: tuple[str, ...] = ()
    blind: bool = False
