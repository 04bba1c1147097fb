"""What a change means for manifests: which data files and which delete files come and go. Pure.

In a change, a data file of which more rows are deleted goes and comes again, with other deletes. In manifests
it stays, and only the delete files that concern it are exchanged. Where a data file goes for good, so do
they.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from lakevilla.formats.iceberg.manifests.entries import Entry


@dataclass(frozen=True, slots=True)
class Moves:
    """The files of one kind that come, and those that go."""

    come: tuple[Entry, ...] = ()
    gone: tuple[Entry, ...] = ()


@dataclass(frozen=True, slots=True)
class FileChanges:
    """The files that a change moves. `staying` are data files that only get other deletes."""

    data: Moves
    deletes: Moves
    staying: tuple[Entry, ...]

    @staticmethod
    def of(added: Sequence[Entry], removed: Sequence[Entry]) -> "FileChanges":
        coming, going = {entry.path for entry in added}, {entry.path for entry in removed}
        before = {mask.entry.name: mask.entry for entry in removed for mask in entry.masks}
        after = {mask.entry.name: mask.entry for entry in added for mask in entry.masks}
        return FileChanges(
            data=Moves(
                tuple(entry for entry in added if entry.path not in going),
                tuple(entry for entry in removed if entry.path not in coming),
            ),
            deletes=Moves(
                tuple(mask for name, mask in after.items() if name not in before),
                tuple(mask for name, mask in before.items() if name not in after),
            ),
            staying=tuple(entry for entry in removed if entry.path in coming),
        )
