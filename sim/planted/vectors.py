"""Known bugs of deletion vectors, to be planted one by one, as in `planted.commits`."""

from collections.abc import Mapping, Sequence
from typing import Any

from lakevilla.files.bitmaps import Positions
from lakevilla.files.deleted_rows import DeletedRows
from lakevilla.formats.delta import row_changes
from lakevilla.formats.delta.changes import _added_again
from lakevilla.formats.delta.row_changes import Rebased
from lakevilla.formats.delta.row_masks import DeltaRowMasks
from lakevilla.formats.delta.snapshot import DeltaSnapshot
from lakevilla.formats.row_masks import Masked
from lakevilla.model import Author, Change, DataFile, WrittenFile
from lakevilla.store.port import Store
from sim.planted.commits import Plant, planter

BUGS: dict[str, Plant] = {}
"""Every bug by its name."""

SUITES = {
    "rows-that-were-read-are-not-tested": "recovery",
    "statement-does-not-wait-for-its-vectors": "recovery",
    "undone-file-comes-back-without-its-vector": "tables",
    "vacuum-does-not-know-vectors": "world",
}
"""Where a bug shows that single statements do not show."""

_bug = planter(BUGS)

_DELTA = "lakevilla.formats.delta"
_ROW_FACTS = "lakevilla.settle.row_facts"
_write = DeltaRowMasks.write
_onto = row_changes.onto


@_bug("lakevilla.files.deleted_rows.DeletedRows.all_deleted")
def new_vector_forgets_the_old_one(one: DeletedRows) -> Positions:
    """Rows that were deleted before come back."""
    return one.rows


@_bug(f"{_DELTA}.row_masks.DeltaRowMasks.write")
def file_with_a_vector_is_not_removed(
    self: DeltaRowMasks, rows: Sequence[DeletedRows], store: Store, txn: str
) -> Masked:
    """It is in the table with its old vector, and with the new one."""
    return Masked(_write(self, rows, store, txn).added)


@_bug(f"{_DELTA}.changes._added_again")
def undone_file_comes_back_without_its_vector(
    remove: Mapping[str, Any], statistics: Mapping[str, str]
) -> dict[str, Any]:
    """An inverse commit brings rows back that had been deleted before."""
    added = _added_again(remove, statistics)
    return {name: value for name, value in added.items() if name != "deletionVector"}


@_bug("lakevilla.transaction.lifecycle.uploads._keys")
def statement_does_not_wait_for_its_vectors(file: DataFile) -> tuple[str, ...]:
    """The next statement reads them while they are on their way."""
    return (file.key,)


@_bug(f"{_DELTA}.log.references.vector_key")
def vacuum_does_not_know_vectors(*_: object) -> None:
    """Files that only vectors name count as not needed."""


# Conflicts by rows.


@_bug(f"{_DELTA}.row_changes._merged")
def merged_vector_forgets_the_rows_of_others(
    base: DeltaSnapshot, _gone: DataFile, come: WrittenFile, _now: Mapping[str, Any]
) -> Positions:
    """The union is dropped: rows that others deleted come back."""
    return row_changes._rows(come.entry, base)


@_bug(f"{_DELTA}.log.publish.onto")
def merged_vector_is_kept_for_the_next_version(
    base: DeltaSnapshot, change: Change, author: Author | None = None
) -> Rebased:
    """A lost race does not merge again: what was merged with an older version is published."""
    global _KEPT
    key = None if author is None else (author.attempt, frozenset(file.key for file in change.added))
    if _KEPT is None or _KEPT[0] != key:
        _KEPT = key, _onto(base, change, author)
    return _KEPT[1]


_KEPT: tuple[Any, Rebased] | None = None


@_bug(f"{_ROW_FACTS}.RowReader._is_apart")
def same_row_counts_as_another(*_: object) -> bool:
    """Two updates of one row both leave a row."""
    return True


@_bug(f"{_ROW_FACTS}._Reading._holds")
def rows_that_were_read_are_not_tested(*_: object) -> bool:
    """Nor are files that bounds do not exclude."""
    return False
