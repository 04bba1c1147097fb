"""Which files come and go when a table is brought back to an earlier version. Pure."""

from dataclasses import dataclass

from lakevilla.formats.port import Snapshot
from lakevilla.model import DataFile
from lakevilla.predicates import ANYTHING

RESTORE = "RESTORE"
"""The operation that a table's history shows."""


@dataclass(frozen=True)
class RestoredFiles:
    """The files that come back, and those that go."""

    back: tuple[DataFile, ...]
    gone: tuple[DataFile, ...]

    @staticmethod
    def between(now: Snapshot, then: Snapshot) -> "RestoredFiles":
        """What differs, by the names under which the log knows files with their deleted rows."""
        current = {file.identity: file for file in now.files(ANYTHING)}
        wanted = {file.identity: file for file in then.files(ANYTHING)}
        back = tuple(file for identity, file in wanted.items() if identity not in current)
        gone = tuple(file for identity, file in current.items() if identity not in wanted)
        return RestoredFiles(back, gone)

    @property
    def metrics(self) -> dict[str, int]:
        return {
            "numRestoredFiles": len(self.back),
            "numRemovedFiles": len(self.gone),
            "restoredFilesSize": sum(file.size for file in self.back),
            "removedFilesSize": sum(file.size for file in self.gone),
        }
