"""Known bugs of delete files of Iceberg tables, to be planted one by one, as in `planted.commits`."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from lakevilla.files.bitmaps import Positions
from lakevilla.files.deleted_rows import DeletedRows
from lakevilla.formats.iceberg.changes import inverse
from lakevilla.formats.iceberg.log.next_version import _Work
from lakevilla.formats.iceberg.manifests.entries import Entry
from lakevilla.formats.iceberg.manifests.file_changes import FileChanges, Moves
from lakevilla.formats.iceberg.row_masks import IcebergRowMasks
from lakevilla.formats.iceberg.snapshot import IcebergSnapshot
from lakevilla.formats.row_masks import Masked
from lakevilla.model import Change, DataFile
from lakevilla.store.port import Store
from sim.planted.commits import Plant, planter

BUGS: dict[str, Plant] = {}
"""Every bug by its name."""

SUITES = {
    "statement-does-not-wait-for-its-delete-files": "recovery",
    "undone-change-leaves-its-deletes": "tables",
    "record-forgets-deletes": "recovery",
    "vacuum-does-not-know-delete-files": "world",
}
"""Where a bug shows that single statements do not show."""

_bug = planter(BUGS)

_ROOM = "lakevilla.formats.iceberg"
_of = FileChanges.of
_rewritten = _Work._rewritten


@_bug("lakevilla.files.deleted_rows.DeletedRows.all_deleted")
def new_deletes_forget_the_old_ones(one: DeletedRows) -> Positions:
    """Rows that were deleted before come back."""
    return one.rows


@_bug(f"{_ROOM}.row_masks.IcebergRowMasks.write")
def deletes_are_left_out_of_the_change(
    self: IcebergRowMasks, rows: Sequence[DeletedRows], store: Store, txn: str
) -> Masked:
    """Old rows stay, and so does each row that was deleted."""
    del self, rows, store, txn
    return Masked()


@_bug(f"{_ROOM}.log.next_version.FileChanges.of")
def replaced_deletes_are_dropped_with_the_new_ones(added: Sequence[Entry], removed: Sequence[Entry]) -> Any:
    """Where a file had deletes before, it has none afterwards."""
    found = _of(added, removed)
    gone = found.deletes.gone
    return replace(found, deletes=Moves((), gone)) if gone else found


@_bug(f"{_ROOM}.log.next_version.FileChanges.of")
def file_that_stays_is_listed_once_more(added: Sequence[Entry], removed: Sequence[Entry]) -> Any:
    """It goes and comes again in manifests too, as in the change."""
    found = _of(added, removed)
    return replace(found, data=Moves(tuple(added), found.data.gone))


@_bug(f"{_ROOM}.table.changes.inverse")
def undone_change_leaves_its_deletes(base: IcebergSnapshot, change: Change) -> Change:
    """After an inverse commit the old rows are as deleted as before it."""
    undone = inverse(base, change)
    return replace(undone, removed=tuple(_bare(file) for file in undone.removed))


def _bare(file: DataFile) -> DataFile:
    return replace(file, entry=replace(file.entry, masks=()))


@_bug(f"{_ROOM}.changes.encode_added")
def record_forgets_deletes(key: str, entry: Entry, *, stays: bool) -> Mapping[str, Any]:
    """What another client publishes or restores from a record has the rows that were deleted."""
    del stays
    from lakevilla.formats.iceberg.written import encode_masked

    return {"key": key, **encode_masked(replace(entry, masks=()))}


@_bug("lakevilla.transaction.lifecycle.uploads._keys")
def statement_does_not_wait_for_its_delete_files(file: DataFile) -> tuple[str, ...]:
    """The next statement reads them while they are on their way."""
    return (file.key,)


@_bug(f"{_ROOM}.log.references._paths_of")
def vacuum_does_not_know_delete_files(manifest: Any) -> list[str]:
    """Files that only manifests of deletes name count as not needed."""
    return [entry.path for entry in manifest.entries or ()] if manifest.is_data else []
