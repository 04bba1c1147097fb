"""A change that deletes rows of files, on a version where others have deleted other rows of the same files.

The change says which vector a file had and which one it has then: the difference are its rows. On a version
where the file has another vector, the file goes with that one and comes again with that one and the rows of
the change. So the change itself, and the records that hold it, stay what they were on the version that it was
computed on: what is published is a function of the change and of the version below it.

A merged vector has the name of its content and of the attempt, in the folder of the transaction: whichever
client publishes the change on this version, or computes its inverse, names the same file with the same bytes.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakevilla.errors import Corrupt
from lakevilla.files.bitmaps import Positions, encode_bitmap
from lakevilla.formats.delta.files.deletion_vectors import (
    StoredVectors,
    deletes_of,
    inline_vectors,
    store_vectors,
)
from lakevilla.formats.delta.log.entry import identity_of
from lakevilla.formats.delta.log.replay import LiveBlock
from lakevilla.formats.delta.snapshot import DeltaSnapshot, entries_of
from lakevilla.model import Author, Change, DataFile, Shrunk, WrittenFile
from lakevilla.store import keys

Entry = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Rebased:
    """The change as its version holds it, and the file of merged vectors that has to be uploaded for it."""

    change: Change
    upload: tuple[str, bytes] | None = None


def shrunk_by(change: Change, base: DeltaSnapshot) -> dict[str, Callable[[], Shrunk]]:
    """The files that stay while the change deletes rows of them, by path; `base` knows where vectors are."""
    return {
        _path(removed): lambda removed=removed, added=added: Shrunk(  # type: ignore[misc]
            replace(removed, deletes=_deletes(removed.entry, base)),
            replace(removed, identity=identity_of(added.entry), deletes=_deletes(added.entry, base)),
        )
        for removed, added in pairs(change)
    }


def pairs(change: Change) -> list[tuple[DataFile, WrittenFile]]:
    """The files that stay while the change deletes rows of them, as they go and as they come again."""
    if not change.removed or not change.added:
        return []
    again = {file.key: file for file in change.added if file.entry is not None}
    return [(file, again[file.key]) for file in change.removed if file.key in again]


def onto(base: DeltaSnapshot, change: Change, author: Author | None = None) -> Rebased:
    """The change as the version after `base` holds it.

    Without an author nothing will be published: then merged vectors need no file. Corrupt if a file is not
    there, of which the change deletes rows: no rule lets a change come here.
    """
    old = [file for file in change.removed if file.identity not in base.state.added]
    if not old or not base.has_deletes:
        return Rebased(change)
    live = _live(base, {_path(file) for file in old})
    again = {come.key: come for _, come in pairs(change)}
    removed: dict[str, DataFile] = {}
    moved: list[tuple[DataFile, WrittenFile, Entry]] = []
    for gone in old:
        found = live.get(_path(gone), [])
        if any(identity_of(entry) == gone.identity for entry in found):
            continue
        if gone.key in again and len(found) != 1:
            raise Corrupt(
                f"{gone.key}, of which {change.operation} deletes rows, is not a file of version "
                f"{base.version}",
                version=base.version,
            )
        if len(found) == 1:
            # A file that goes as a whole: an earlier statement of the transaction has deleted rows of it.
            removed[gone.identity] = _file(gone, found[0])
            moved += [(gone, again[gone.key], found[0])] if gone.key in again else []
    merged = [_merged(base, *each) for each in moved]
    stored = inline_vectors(merged) if author is None else _stored(merged, author)
    added = {
        come.key: replace(come, entry={**come.entry, "deletionVector": vector})
        for (_, come, _), vector in zip(moved, stored.vectors, strict=True)
    }
    rebased = replace(
        change,
        removed=tuple(removed.get(file.identity, file) for file in change.removed),
        added=tuple(added.get(file.key, file) for file in change.added),
    )
    return Rebased(rebased, stored.file)


def _merged(base: DeltaSnapshot, gone: DataFile, come: WrittenFile, now: Entry) -> Positions:
    """The rows that are deleted on this version, and those that the change deletes."""
    before, after, live = (_rows(entry, base) for entry in (gone.entry, come.entry, now))
    if len(np.setdiff1d(before, after)) or len(np.setdiff1d(before, live)):
        raise Corrupt(
            f"rows of {gone.key} would come back with a change that was computed before others were deleted",
            version=base.version,
        )
    return np.union1d(live, np.setdiff1d(after, before))


def _stored(merged: Sequence[Positions], author: Author) -> StoredVectors:
    digest = hashlib.sha256(author.attempt.encode())
    for rows in merged:
        data = encode_bitmap(rows)
        digest.update(len(data).to_bytes(8, "big") + data)
    return store_vectors(merged, keys.vector_folder(author.txn), digest.hexdigest()[:32])


def _path(file: DataFile) -> str:
    return str(file.entry["path"])


def _file(gone: DataFile, entry: Entry) -> DataFile:
    return replace(gone, identity=identity_of(entry), deletes=None, entry=dict(entry))


def _rows(entry: Entry, base: DeltaSnapshot) -> Positions:
    deletes = _deletes(entry, base)
    if deletes is None:
        return np.empty(0, dtype=np.int64)
    rows: Positions = deletes.rows().to_numpy(zero_copy_only=False)
    return rows


def _deletes(entry: Entry, base: DeltaSnapshot) -> Any:
    vector = entry.get("deletionVector")
    return None if vector is None else deletes_of(vector, base.store.url, base.locate)


def _live(base: DeltaSnapshot, paths: set[str]) -> dict[str, list[Entry]]:
    """The live files at these paths, as the log has them."""
    found: dict[str, list[Entry]] = {}
    for identity, entry in base.state.added.items():
        if entry["path"] in paths:
            assert identity == identity_of(entry), "files are known by their identities"
            found.setdefault(entry["path"], []).append(entry)
    wanted = pa.array(sorted(paths), pa.string())
    for block in base.state.blocks:
        for entry in _at(block, wanted):
            if identity_of(entry) not in base.state.hidden:
                found.setdefault(entry["path"], []).append(entry)
    return found


def _at(live: LiveBlock, paths: pa.Array) -> Iterator[Entry]:
    for _, batch, flags in live.batches():
        near = pc.is_in(batch.column("path"), paths).to_numpy(zero_copy_only=False) & flags
        if near.any():
            yield from entries_of(batch.take(pa.array(np.flatnonzero(near))))
