"""Known bugs of deletion vectors, to be planted one by one, as in `planted.commits`."""

from collections.abc import Mapping, Sequence
from typing import Any

from lakevilla.files.bitmaps import Positions
from lakevilla.files.deleted_rows import DeletedRows
from lakevilla.formats.delta.changes import _added_again
from lakevilla.formats.delta.row_masks import DeltaRowMasks
from lakevilla.formats.row_masks import Masked
from lakevilla.model import DataFile
from lakevilla.store.port import Store
from sim.planted.commits import Plant, planter

BUGS: dict[str, Plant] = {}
"""Every bug by its name."""

SUITES = {
    "statement-does-not-wait-for-its-vectors": "recovery",
    "undone-file-comes-back-without-its-vector": "tables",
    "vacuum-does-not-know-vectors": "world",
}
"""Where a bug shows that single statements do not show."""

_bug = planter(BUGS)

_DELTA = "lakevilla.formats.delta"
_write = DeltaRowMasks.write


@_bug(f"{_DELTA}.row_masks._all_deleted")
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
