"""Bringing an Iceberg table back to an earlier version: its rows and columns.

Files come back with the sequence numbers that they had, so that deletes apply to them as before, and with the
deletes that concerned only them. Properties
stay as they are, and so does the partitioning of new files: each file tells its own.
"""

from lakevilla.errors import Unsupported
from lakevilla.formats.iceberg.definition.alter import restore_columns
from lakevilla.formats.iceberg.deletes.scope import only_data_file
from lakevilla.formats.iceberg.manifests.entries import PUFFIN
from lakevilla.formats.iceberg.metadata.document import format_version
from lakevilla.formats.iceberg.row_masks import VECTORS_FROM
from lakevilla.formats.iceberg.snapshot import IcebergSnapshot
from lakevilla.formats.iceberg.written import removed_entry
from lakevilla.formats.restored_files import RESTORE, RestoredFiles
from lakevilla.model import Change, DataFile, WrittenFile


def restore(now: IcebergSnapshot, then: IcebergSnapshot) -> Change:
    """The change that makes of `now` what `then` was."""
    if _shared_deletes(now) != _shared_deletes(then):
        raise Unsupported(
            "another client has deleted rows since, by delete files that concern several data files, or has "
            "removed such files; let that client roll the table back, or read the version and overwrite the "
            "table with its rows",
            version=then.version,
        )
    columns = restore_columns(now.raw, then.raw)
    files = RestoredFiles.between(now, then)
    masks = [mask.entry for file in files.back for mask in removed_entry(file).masks]
    if format_version(now.raw) >= VECTORS_FROM and any(mask.format != PUFFIN for mask in masks):
        raise Unsupported(
            "the version has position delete files, and none can be added to a table of format 3; read the "
            "version and overwrite the table with its rows",
            version=then.version,
        )
    return Change(
        operation=RESTORE,
        parameters={"version": str(then.version)},
        added=tuple(_back(file) for file in files.back),
        removed=files.gone,
        metadata=None if columns is None else columns.metadata,
        metrics=files.metrics,
    )


def _back(file: DataFile) -> WrittenFile:
    return WrittenFile(file.key, file.size, file.rows or 0, {}, {}, 0, entry=removed_entry(file))


def _shared_deletes(snapshot: IcebergSnapshot) -> set[str]:
    """The delete files that concern several data files: those of one file come and go with it."""
    manifests = [m for m in snapshot.manifests if not m.is_data and not m.is_empty]
    snapshot.reader.load(manifests)
    entries = [entry for manifest in manifests for entry in manifest.entries or ()]
    return {entry.path for entry in entries if only_data_file(entry) is None}
