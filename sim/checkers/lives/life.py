"""One table in one folder, from its first entry to the deletion of the folder."""

from dataclasses import dataclass, field
from typing import Any

from sim.checkers.tables.commits import Log
from sim.checkers.tables.iceberg import IcebergLog
from sim.checkers.tables.rows import Rows

Done = tuple[int, str, int]
"""An operation, by its number, the name of a table, and 1 for what it does there, -1 for taking that back."""


@dataclass(frozen=True, slots=True)
class Version:
    """A version from when it was the newest until the next one was; its files and its rows."""

    at: float
    files: frozenset[str]
    rows: Rows
    ends: bool = False
    """Whether the table was dropped with it."""


@dataclass
class Life:
    """One table in one folder, from its first entry on."""

    root: str
    id: str
    log: Log
    first: int
    versions: list[Version] = field(default_factory=list)
    ended: float = float("inf")
    cleaned: set[int] = field(default_factory=set)
    """The versions whose entries were cleaned away."""
    checkpoints: set[int] = field(default_factory=set)
    empty: set[str] = field(default_factory=set)
    """Attempts whose versions do nothing, though their operations do something."""
    broken: dict[str, int] = field(default_factory=dict)
    """The versions whose files were not there when they were published, by their attempts."""
    attempts: dict[str, int] = field(default_factory=dict)
    """The newest version of each attempt."""
    taken_back: dict[int, tuple[float, float]] = field(default_factory=dict)
    """The versions that their clients rolled back at once, without an entry of the global log, because they
    had published them too late for their files; from when to when they counted."""
    before: tuple[dict[str, Any], Done | None] | None = None
    """The log before the newest version, and what that version did, for a client that rolls it back."""

    @property
    def newest(self) -> int:
        return self.first + len(self.versions) - 1

    def at(self, version: int) -> Version | None:
        number = version - self.first
        return self.versions[number] if 0 <= number < len(self.versions) else None

    def is_readable(self, version: int, *, entry: int = -1, checkpoint: int = -1) -> bool:
        """Whether what is left of the log tells this version, also without this entry or checkpoint. An entry
        of an Iceberg table tells all."""
        cleaned, checkpoints = self.cleaned | {entry}, self.checkpoints - {checkpoint}
        if isinstance(self.log, IcebergLog):
            return version not in cleaned
        starts = [-1, *(found for found in checkpoints if found <= version)]
        return any(not cleaned & set(range(start + 1, version + 1)) for start in starts)

    def until(self, number: int) -> float:
        """When the version with this place in the life stopped to be the newest."""
        return self.versions[number + 1].at if number + 1 < len(self.versions) else self.ended
