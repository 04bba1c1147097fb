"""Which rows a version of an Iceberg table changed, by the files that are live before and after it.

A data file that stays, and to which other deletes apply, went and came. A snapshot whose operation is
`replace` holds the same rows as the one before it (Iceberg's spec, "Snapshots").
"""

from collections.abc import Sequence

from lakevilla.formats.port import Snapshot, Taken
from lakevilla.formats.port_parts.row_changes import VersionChange
from lakevilla.model import DataFile
from lakevilla.predicates import ANYTHING

Live = dict[tuple[str, str | None], DataFile]


def row_changes(base: Snapshot, taken: Sequence[Taken]) -> list[VersionChange]:
    """What each of these versions did, of which the first follows `base`."""
    found: list[VersionChange] = []
    before = _live(base)
    for one in taken:
        after = _live(one.snapshot)
        removed = tuple(file for known, file in before.items() if known not in after)
        added = tuple(file for known, file in after.items() if known not in before)
        theirs = one.footprint
        found.append(VersionChange(theirs.version, theirs.txn, theirs.attempt, removed, added))
        before = after
    return found


def _live(snapshot: Snapshot) -> Live:
    return {
        (file.identity, None if file.deletes is None else file.deletes.identity): file
        for file in snapshot.files(ANYTHING)
    }
