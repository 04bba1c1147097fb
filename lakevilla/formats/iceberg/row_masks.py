"""Rows deleted by delete files: how a change spares the files that it deletes rows of ("merge on read").

In the change such a file goes, with the deletes that concerned it alone, and comes again with those that hold
the new rows too; what of it reaches manifests is in `manifests.file_changes`. Deletes of other clients that
concern several data files, and equality deletes, stay as they are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from lakevilla.environment import Environment
from lakevilla.files.bitmaps import Positions
from lakevilla.files.deleted_rows import DeletedRows
from lakevilla.formats.iceberg.deletes.position_file import (
    describe_position_deletes,
    encode_position_deletes,
)
from lakevilla.formats.iceberg.deletes.vector_file import describe_vector, encode_vectors
from lakevilla.formats.iceberg.manifests.entries import Entry, Mask
from lakevilla.formats.iceberg.metadata.document import format_version
from lakevilla.formats.iceberg.metadata.paths import DATA, recorded_path
from lakevilla.formats.iceberg.snapshot import IcebergSnapshot
from lakevilla.formats.iceberg.written import entry_from
from lakevilla.formats.row_masks import Masked
from lakevilla.model import DataFile, WrittenFile
from lakevilla.store import keys
from lakevilla.store.port import Store

MODES = {"UPDATE": "write.update.mode", "DELETE": "write.delete.mode", "MERGE": "write.merge.mode"}
"""The properties by which a table says how statements change it; an overwrite deletes."""
VECTORS_FROM = 3
"""The format from which on new deletes of rows are vectors, and no files of positions."""
MERGE_ON_READ, COPY_ON_WRITE = "merge-on-read", "copy-on-write"


def wants_deletes(snapshot: IcebergSnapshot, operation: str) -> bool:
    """Whether the table asks for delete files from such a statement. Format 1 has none."""
    mode = snapshot.properties.get(MODES.get(operation, MODES["DELETE"]), COPY_ON_WRITE)
    return format_version(snapshot.raw) > 1 and mode.lower() == MERGE_ON_READ


@dataclass(frozen=True)
class IcebergRowMasks:
    """What `formats.row_masks.RowMasks` promises, for the files of one version."""

    snapshot: IcebergSnapshot
    environment: Environment

    def write(self, rows: Sequence[DeletedRows], store: Store, txn: str) -> Masked:
        files = [one.file for one in rows]
        bitmaps = self.environment.fan_out([one.all_deleted for one in rows])
        write = self._vectors if format_version(self.snapshot.raw) >= VECTORS_FROM else self._position_deletes
        deletes = write(files, bitmaps, store, txn) if files else []
        added = [_masked(file, mask) for file, mask in zip(files, deletes, strict=True)]
        return Masked(tuple(added), tuple(files), _metrics(files))

    def _vectors(
        self, files: Sequence[DataFile], bitmaps: Sequence[Positions], store: Store, txn: str
    ) -> list[Mask]:
        entries: list[Entry] = [file.entry for file in files]
        key = f"{DATA}{keys.delete_file(txn, self.environment.new_id(), 'puffin')}"
        path = recorded_path(self.snapshot.raw["location"], key)
        data, places = encode_vectors(entries, bitmaps)
        store.put(key, data)
        return [
            Mask(
                key,
                entry_from(
                    describe_vector(entry, rows, place, path, len(data)), entry.spec_id, entry.partition
                ),
            )
            for entry, rows, place in zip(entries, bitmaps, places, strict=True)
        ]

    def _position_deletes(
        self, files: Sequence[DataFile], bitmaps: Sequence[Positions], store: Store, txn: str
    ) -> list[Mask]:
        placed = [f"{DATA}{keys.delete_file(txn, self.environment.new_id(), 'parquet')}" for _ in files]
        write = partial(_write_position_deletes, store, self.snapshot.raw["location"])
        given = zip(files, bitmaps, placed, strict=True)
        return self.environment.fan_out([partial(write, *one) for one in given])


def _write_position_deletes(store: Store, location: str, file: DataFile, rows: Positions, key: str) -> Mask:
    entry: Entry = file.entry
    data = encode_position_deletes(entry, rows)
    store.put(key, data)
    record = describe_position_deletes(entry, rows, recorded_path(location, key), len(data))
    return Mask(key, entry_from(record, entry.spec_id, entry.partition))


def _masked(file: DataFile, mask: Mask) -> WrittenFile:
    entry = replace(file.entry, masks=(mask,))
    return WrittenFile(file.key, file.size, entry.rows, {}, {}, 0, entry=entry)


def _metrics(files: Sequence[DataFile]) -> Mapping[str, int]:
    replaced = sum(bool(file.entry.masks) for file in files)
    return {"numDeleteFilesAdded": len(files), "numDeleteFilesReplaced": replaced}
