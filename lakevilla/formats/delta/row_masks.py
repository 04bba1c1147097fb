"""Rows deleted by deletion vectors: how a change spares the files that it deletes rows of.

In the log such a file goes, with the vector that it had, and comes again with one that has the new rows too
(PROTOCOL.md, "Deletion Vectors"). All else that its `add` says stays.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from lakevilla.environment import Environment
from lakevilla.files.deleted_rows import DeletedRows
from lakevilla.formats.delta.definition.features import writer_features
from lakevilla.formats.delta.definition.properties import DELETION_VECTORS
from lakevilla.formats.delta.files.deletion_vectors import store_vectors
from lakevilla.formats.delta.files.statistics import wide_statistics
from lakevilla.formats.delta.files.stored_statistics import statistics_of
from lakevilla.formats.delta.snapshot import DeltaSnapshot
from lakevilla.formats.properties import is_true
from lakevilla.formats.row_masks import Masked
from lakevilla.model import DataFile, WrittenFile
from lakevilla.store import keys
from lakevilla.store.port import Store


def wants_vectors(snapshot: DeltaSnapshot) -> bool:
    """Whether the table asks for deletion vectors. The property alone does not count: without the feature in
    the protocol a reader would not know of them."""
    listed = "deletionVectors" in writer_features(snapshot.protocol)
    return listed and is_true(snapshot.properties, DELETION_VECTORS)


@dataclass(frozen=True)
class DeltaRowMasks:
    """What `formats.row_masks.RowMasks` promises, for the files of one version."""

    snapshot: DeltaSnapshot
    environment: Environment

    def write(self, rows: Sequence[DeletedRows], store: Store, txn: str) -> Masked:
        if not rows:
            return Masked(metrics=_metrics(()))
        bitmaps = self.environment.fan_out([one.all_deleted for one in rows])
        stored = store_vectors(bitmaps, keys.vector_folder(txn), self.environment.new_id())
        if stored.file is not None:
            store.put(*stored.file)
        texts = statistics_of(self.snapshot.state, {one.file.identity for one in rows})
        files = [one.file for one in rows]
        added = [
            _masked(one, vector, texts.get(one.file.identity))
            for one, vector in zip(rows, stored.vectors, strict=True)
        ]
        return Masked(tuple(added), tuple(files), _metrics(files))


def _masked(one: DeletedRows, vector: dict[str, object], statistics: str | None) -> WrittenFile:
    file = one.file
    entry = {
        **file.entry,
        "modificationTime": file.entry.get("modificationTime", 0),
        "dataChange": True,
        "stats": wide_statistics(statistics, one.file_rows),
        "deletionVector": vector,
    }
    return WrittenFile(
        file.key, file.size, one.file_rows, {}, {}, int(entry["modificationTime"]), entry=entry
    )


def _metrics(files: Sequence[DataFile]) -> dict[str, int]:
    """As Spark names them."""
    updated = sum(file.deletes is not None for file in files)
    return {
        "numDeletionVectorsAdded": len(files) - updated,
        "numDeletionVectorsUpdated": updated,
    }
