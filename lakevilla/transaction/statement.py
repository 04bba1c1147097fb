"""A statement as a transaction runs it, once or again."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lakevilla.transaction.effect import Effect
from lakevilla.transaction.workspace import Workspace


@dataclass(frozen=True)
class Statement:
    """`run` does the data work against the workspace, as often as it is called.

    `text` with its `parameters` is the statement as Spark SQL, where it can be said so: the logical record
    that a restarted client can redo. `once` says why the statement cannot run a second time, and is empty if
    it can. `defines` is True for what changes the lake's registry. `ordered` says that the order of the rows
    that it gives means something.
    """

    run: Callable[[Workspace], Effect]
    text: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    once: str = ""
    defines: bool = False
    ordered: bool = False
