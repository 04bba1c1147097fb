"""Data files out: rows become Parquet files, put straight to their final keys.

A file is encoded in memory and uploaded with one put, so no reader ever sees half of it, and a failure
leaves only orphans whose keys name the transaction. Memory stays bounded: rows wait until they make
a row group, groups are compressed at once, and the largest file is finished early when many partitions
are open.
"""

import io
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakevilla.files.leaves import Leaf, leaves
from lakevilla.files.partitioning import Division, Values
from lakevilla.files.row_checks import conform, physical_schema, relabel
from lakevilla.files.statistics import count_nulls, file_statistics, holds_nan
from lakevilla.model import Partitioning, WrittenFile
from lakevilla.store.port import Store

_GROUP_ROWS = 256 * 1024
_GROUP_BYTES = 64 * 1024 * 1024
_WAITING_BYTES = 256 * 1024 * 1024
_ENCODED_BYTES = 512 * 1024 * 1024
_SAMPLE_ROWS = 8 * 1024


def write_files(
    batches: Iterable[pa.RecordBatch | pa.Table],
    *,
    schema: pa.Schema,
    partitioning: Partitioning,
    store: Store,
    new_key: Callable[[], str],
    now_ms: Callable[[], int],
    file_bytes: int = 128 * 1024 * 1024,
    file_rows: int = 8_000_000,
    folders: bool = True,
) -> tuple[WrittenFile, ...]:
    """Write all rows, and return for each file what a table's log needs.

    `schema` is the logical schema with its mapping metadata; batches have its columns, in any order.
    Files have about `file_bytes` and at most `file_rows`. Without `folders` those of all partitions lie
    side by side.
    InvalidInput if the rows do not fit the schema, NOT NULL included. No rows make no file.
    """
    writing = _Writing(schema, partitioning, store, new_key, now_ms, file_bytes, file_rows, folders)
    for batch in batches:
        for part in _portions(conform(batch, schema), min(_GROUP_BYTES, file_bytes)):
            writing.add(part)
    return writing.finish()


def _portions(rows: pa.Table, limit_bytes: int) -> Iterable[pa.Table]:
    """The rows in slices that each make about one row group at most."""
    count = max(1, min(_GROUP_ROWS, rows.num_rows * limit_bytes // max(1, rows.nbytes)))
    return (rows.slice(start, count) for start in range(0, rows.num_rows, count))


@dataclass
class _Partition:
    """The rows and the open file of one combination of partition values."""

    values: Values
    waiting: list[pa.Table] = field(default_factory=list)
    waiting_rows: int = 0
    waiting_bytes: int = 0
    with_nan: frozenset[Leaf] = frozenset()
    encoder: "_Encoder | None" = None

    @property
    def encoded_bytes(self) -> int:
        return 0 if self.encoder is None else self.encoder.size

    def wait(self, rows: pa.Table) -> None:
        self.waiting.append(rows)
        self.waiting_rows += rows.num_rows
        self.waiting_bytes += rows.nbytes

    def take(self) -> pa.Table:
        rows = pa.concat_tables(self.waiting)
        self.waiting, self.waiting_rows, self.waiting_bytes = [], 0, 0
        return rows


class _Writing:
    """One call of `write_files`: the open partitions and the files that are done."""

    def __init__(
        self,
        schema: pa.Schema,
        partitioning: Partitioning,
        store: Store,
        new_key: Callable[[], str],
        now_ms: Callable[[], int],
        file_bytes: int,
        file_rows: int,
        folders: bool,
    ) -> None:
        self._division = Division(schema, partitioning)
        self._stored = self._division.stored
        self._leaves = leaves(self._stored)
        self._store, self._new_key, self._now_ms = store, new_key, now_ms
        self._file_bytes, self._file_rows = file_bytes, file_rows
        self._folders = folders
        self._partitions: dict[tuple[Any, ...], _Partition] = {}
        self._written: list[WrittenFile] = []

    def add(self, rows: pa.Table) -> None:
        for values, part in self._division.split(rows):
            partition = self._partitions.setdefault(self._division.texts(values), _Partition(values))
            partition.wait(part)
            if partition.waiting_rows >= min(_GROUP_ROWS, self._file_rows) or partition.waiting_bytes >= min(
                _GROUP_BYTES, self._file_bytes
            ):
                self._encode(partition)
        self._relieve()

    def finish(self) -> tuple[WrittenFile, ...]:
        for partition in self._partitions.values():
            if partition.waiting:
                self._encode(partition)
            self._close(partition)
        return tuple(self._written)

    def _encode(self, partition: _Partition) -> None:
        """Turn the waiting rows into row groups, beginning new files where one gets too large."""
        rows = partition.take()
        # Statistics of a leaf cannot be removed from a file: the first NaN in it begins a new file.
        found = frozenset(leaf for leaf in self._leaves if holds_nan(rows, leaf))
        if not found <= partition.with_nan:
            partition.with_nan |= found
            self._close(partition)
        while rows.num_rows:
            encoder = partition.encoder
            if encoder is not None and (
                encoder.rows >= self._file_rows or encoder.expected_size(rows.nbytes) > self._file_bytes
            ):
                self._close(partition)
                encoder = None
            if encoder is None:
                encoder = partition.encoder = _Encoder(self._stored, rows, partition.with_nan)
            room = min(self._file_rows - encoder.rows, _GROUP_ROWS * 2)
            encoder.write(rows.slice(0, room))
            rows = rows.slice(room)

    def _relieve(self) -> None:
        partitions = self._partitions.values()
        while sum(partition.waiting_bytes for partition in partitions) > _WAITING_BYTES:
            self._encode(max(partitions, key=lambda partition: partition.waiting_bytes))
        while sum(partition.encoded_bytes for partition in partitions) > max(
            _ENCODED_BYTES, self._file_bytes
        ):
            self._close(max(partitions, key=lambda partition: partition.encoded_bytes))

    def _close(self, partition: _Partition) -> None:
        if partition.encoder is None:
            return
        data, rows, statistics = partition.encoder.finish()
        partition.encoder = None
        parent, slash, name = self._new_key().rpartition("/")
        folder = self._division.folder(partition.values) if self._folders else ""
        key = f"{parent}{slash}{folder}{name}"
        self._store.put(key, data)
        self._written.append(WrittenFile(key, len(data), rows, partition.values, statistics, self._now_ms()))


class _Encoder:
    """One Parquet file in memory."""

    def __init__(self, schema: pa.Schema, first: pa.Table, with_nan: frozenset[Leaf]) -> None:
        self._schema = physical_schema(schema)
        self._leaves = leaves(schema)
        self._sink = io.BytesIO()
        self._footers: list[pq.FileMetaData] = []
        self._nulls_with_nan = dict.fromkeys(with_nan, 0)
        self._given_bytes = 0
        self.rows = 0
        self._writer = pq.ParquetWriter(
            self._sink,
            self._schema,
            compression="snappy",
            use_dictionary=_dictionary_columns(first, self._leaves),
            write_statistics=[leaf.stored for leaf in self._leaves if leaf not in with_nan]
            if with_nan
            else True,
            store_decimal_as_integer=True,
            store_schema=False,
            metadata_collector=self._footers,
        )

    @property
    def size(self) -> int:
        return self._sink.tell()

    def expected_size(self, more_bytes: int) -> int:
        """The size of the file if so many bytes of Arrow data compress like those before."""
        return self.size + (more_bytes * self.size // self._given_bytes if self._given_bytes else 0)

    def write(self, rows: pa.Table) -> None:
        for leaf in self._nulls_with_nan:
            self._nulls_with_nan[leaf] += count_nulls(rows, leaf)
        self._given_bytes += rows.nbytes
        self.rows += rows.num_rows
        whole = rows.combine_chunks().to_batches()
        batches = [relabel(batch, self._schema) for batch in whole]
        self._writer.write_table(pa.Table.from_batches(batches, self._schema), rows.num_rows)

    def finish(self) -> tuple[bytes, int, dict[tuple[str, ...], Any]]:
        self._writer.close()
        statistics = file_statistics(self._footers[0], self._leaves, self._nulls_with_nan)
        return self._sink.getvalue(), self.rows, statistics


def _dictionary_columns(rows: pa.Table, stored: tuple[Leaf, ...]) -> list[str]:
    """The leaves worth a dictionary: a dictionary of mostly different values costs time and bytes."""
    if rows.num_rows <= _SAMPLE_ROWS:
        return [leaf.stored for leaf in stored]
    sample = rows.take(np.linspace(0, rows.num_rows - 1, _SAMPLE_ROWS).astype(np.int64))
    return [leaf.stored for leaf in stored if _repeats(sample, leaf)]


def _repeats(sample: pa.Table, leaf: Leaf) -> bool:
    if leaf.path is None or len(leaf.path) > 1 or pa.types.is_boolean(leaf.type):
        return True
    column = sample.column(leaf.path[0])
    if isinstance(leaf.type, pa.BaseExtensionType):
        column = column.cast(leaf.type.storage_type)
    return bool(pc.count_distinct(column).as_py() <= _SAMPLE_ROWS * 3 // 4)
