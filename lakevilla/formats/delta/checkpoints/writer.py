"""Checkpoints, written: classic in one file, or V2 where the table asks for it (PROTOCOL.md, "Checkpoints").

A classic checkpoint has one key for a version, and the first client has written it: its rows are the same
in each case, but not its bytes, and a reader that has seen its footer must find the rest. The hint
`_last_checkpoint` follows the checkpoint and may go back; it only saves a LIST.
"""

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakevilla.environment import Environment
from lakevilla.errors import Corrupt
from lakevilla.files.column_mapping import Match
from lakevilla.files.projection import adapt_column
from lakevilla.formats.delta.checkpoints.columns import REMOVE
from lakevilla.formats.delta.checkpoints.reader import gather, part_readers
from lakevilla.formats.delta.checkpoints.rows import Shape, checkpoint_tables, remove_column
from lakevilla.formats.delta.checkpoints.schedule import Unfolded, is_due
from lakevilla.formats.delta.log.actions import Commit
from lakevilla.formats.delta.log.entry import VECTOR_MARK, identity_of
from lakevilla.formats.delta.log.listing import Checkpoint, Listing, Segment, list_log, read_hint
from lakevilla.formats.delta.log.paths import LAST_CHECKPOINT, LOG, checkpoint_key, checkpoint_v2_key
from lakevilla.formats.delta.log.tail import piece_readers
from lakevilla.formats.delta.snapshot import DeltaSnapshot
from lakevilla.formats.uuids import dashed
from lakevilla.store.port import Exists, Store


def write_if_due(store: Store, environment: Environment, snapshot: DeltaSnapshot) -> str | None:
    """Write the checkpoint of this version, which is considered for one, if it pays off (`schedule`). Gives
    what `write_checkpoint` does."""
    before = _Before.find(store, snapshot.version)
    return (
        _write(store, environment, snapshot, before)
        if is_due(snapshot.properties, before.unfolded())
        else None
    )


def write_checkpoint(store: Store, environment: Environment, snapshot: DeltaSnapshot) -> str | None:
    """Write the checkpoint of this version, and the hint that points to it; the checkpoint's key, or None if
    another client has written it."""
    return _write(store, environment, snapshot, _Before.find(store, snapshot.version))


@dataclass(frozen=True)
class _Before:
    """What makes a version without a checkpoint of its own: the one before and the entries since.
    `hinted_bytes` is that checkpoint's size with its sidecars, as far as the hint names it."""

    listing: Listing
    segment: Segment
    hinted_bytes: int

    @staticmethod
    def find(store: Store, version: int) -> "_Before":
        hint = read_hint(store)
        start = hint.version if hint is not None and hint.version < version else 0
        listing = list_log(store, start)
        if start not in listing.checkpoints and start:
            listing = list_log(store)
        # The checkpoint of this version itself may be there already, or be the one that we replace.
        listing.checkpoints.pop(version, None)
        segment = listing.segment(version)
        if segment is None:
            raise Corrupt(f"the Delta log that held version {version} was deleted", version=version)
        found = segment.checkpoint
        known = hint is not None and found is not None and hint.version == found.version
        return _Before(listing, segment, (hint.sizes[0] or 0) if hint is not None and known else 0)

    def unfolded(self) -> Unfolded:
        found, version = self.segment.checkpoint, self.segment.version
        first = 0 if found is None else found.version + 1
        entries = [meta.size for number, meta in self.listing.commits.items() if first <= number <= version]
        size = None if found is None else max(self.hinted_bytes, sum(part or 0 for part in found.sizes))
        return Unfolded(size, len(entries), sum(entries))


def _write(store: Store, environment: Environment, snapshot: DeltaSnapshot, before: _Before) -> str | None:
    oldest_ms = environment.now_ms() - snapshot.retention_ms
    tombstones = _tombstones(store, environment, before.segment, oldest_ms)
    shape = Shape.of(snapshot.layout)
    data, actions, files = _encode(checkpoint_tables(snapshot, tombstones, shape), shape.schema)
    hint: dict[str, Any] = {
        "version": snapshot.version,
        "size": actions,
        "sizeInBytes": len(data),
        "numOfAddFiles": files,
    }
    key = checkpoint_key(snapshot.version)
    if shape.v2:
        key = checkpoint_v2_key(snapshot.version, dashed(environment.new_id()))
        hint["v2Checkpoint"] = {
            "path": key.removeprefix(LOG),
            "sizeInBytes": len(data),
            "modificationTime": environment.now_ms(),
        }
    if isinstance(store.create(key, data), Exists):
        return None
    store.put(LAST_CHECKPOINT, json.dumps(hint, separators=(",", ":")).encode())
    return key


def delete_checkpoint(store: Store, key: str) -> None:
    """Take the checkpoint that we have written out of the log again, and the hint if it points to it."""
    hint = read_hint(store)
    store.delete(key)
    if hint is not None and hint.keys == (key,):
        store.delete(LAST_CHECKPOINT)


def _encode(tables: Iterator[pa.Table], schema: pa.Schema) -> tuple[bytes, int, int]:
    """The checkpoint's bytes, how many actions it holds, and how many of them are live files."""
    sink, actions, files = io.BytesIO(), 0, 0
    with pq.ParquetWriter(sink, schema, compression="snappy", store_schema=False) as writer:
        for table in tables:
            writer.write_table(table)
            actions += table.num_rows
            files += table.num_rows - table.column("add").null_count
    return sink.getvalue(), actions, files


def _tombstones(store: Store, environment: Environment, segment: Segment, oldest_ms: int) -> pa.ChunkedArray:
    """The `remove` actions at this version that vacuum still needs.

    A snapshot does not carry them, because reading never needs them: they are collected here from the
    checkpoint before and the entries since.
    """
    commits = [commit for part in environment.fan_out(piece_readers(store, segment.tail)) for commit in part]
    old = checkpoint_removes(store, environment, segment.checkpoint)
    return _reconciled(old, commits, oldest_ms)


def checkpoint_removes(
    store: Store, environment: Environment, checkpoint: Checkpoint | None
) -> list[pa.Array]:
    """The `remove` actions of a checkpoint, as structs."""
    if checkpoint is None:
        return []
    content = gather(store, environment, environment.fan_out(part_readers(store, checkpoint)))
    found = [remove_column(content.removes)] if content.removes else []
    for source in content.parquet:
        if source.schema.get_field_index("remove") >= 0:
            for batch in source.batches(["remove"], source.groups_with("remove.path")):
                removes = batch.column("remove")
                present = removes.filter(pc.and_(removes.is_valid(), removes.field("path").is_valid()))
                found += adapt_column(pa.chunked_array([present]), REMOVE, Match.NAME).chunks
    return found


def _reconciled(old: Sequence[pa.Array], commits: Sequence[Commit], oldest_ms: int) -> pa.ChunkedArray:
    """The last action on each file: a removal without a later `add`, and not too old."""
    last: dict[str, Mapping[str, Any] | None] = {}
    for commit in commits:
        last |= {identity_of(remove): remove for remove in commit.removes}
        last |= dict.fromkeys(map(identity_of, commit.adds))
    recent = remove_column([remove for remove in last.values() if remove is not None])
    paths = pa.array({key.partition(VECTOR_MARK)[0] for key in last}, pa.string())
    kept = [_not_in(array, paths, last) for array in old]
    young = [array.filter(_since(array, oldest_ms)) for array in [*kept, recent]]
    return pa.chunked_array(young, REMOVE)


def _not_in(removes: pa.Array, paths: pa.Array, keys: Mapping[str, object]) -> pa.Array:
    """The removals of other files than these. Paths sort out nearly all of them in columns."""
    touched = pc.is_in(removes.field("path"), paths)
    if not pc.any(touched).as_py():
        return removes
    rows = removes.to_pylist()
    return removes.filter(pa.array([identity_of(row) not in keys for row in rows]))


def _since(removes: pa.Array, oldest_ms: int) -> pa.Array:
    # A removal without a time is taken as old, as the protocol says.
    return pc.greater(pc.fill_null(removes.field("deletionTimestamp"), 0), oldest_ms)
