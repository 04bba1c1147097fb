"""The contents of delete files: from position deletes, deletion vectors and equality deletes to row numbers.

What was read is kept, up to a limit, because one delete file mostly concerns many data files.
"""

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from lakevilla.errors import Corrupt
from lakevilla.files.bitmaps import Positions, decode_bitmap, unframed
from lakevilla.files.column_mapping import BY_ID
from lakevilla.files.reader import read_file
from lakevilla.formats.iceberg.definition.layout import Layout
from lakevilla.formats.iceberg.deletes.equality import among, chain, keys_of
from lakevilla.formats.iceberg.deletes.position_file import POSITIONS
from lakevilla.formats.iceberg.manifests.cache import Locate
from lakevilla.formats.iceberg.manifests.entries import Entry
from lakevilla.formats.iceberg.metadata.paths import without_scheme
from lakevilla.model import DataFile

T = TypeVar("T")

_NONE: Mapping[str, Any] = {}
_KEPT_BYTES = 64 * 1024 * 1024


class DeleteReader:
    """Reads delete files of one table. Equality deletes by a column that was dropped since still count."""

    def __init__(self, locate: Locate, layout: Layout, kept: "Kept") -> None:
        self._locate = locate
        self._layout = layout
        self._kept = kept

    def rows(
        self,
        identity: str,
        data: Entry,
        vector: Entry | None,
        positions: Sequence[Entry],
        equalities: Sequence[Entry],
    ) -> pa.Int64Array:
        """The numbers of the rows of a data file that these delete files delete, sorted."""

        def read() -> tuple[pa.Int64Array, int]:
            parts = [] if vector is None else [self._vector(vector)]
            path = without_scheme(data.path)
            parts += [self._positions(entry)[path] for entry in positions if path in self._positions(entry)]
            parts += self._equal(data, equalities)
            whole = np.unique(np.concatenate(parts)) if parts else np.empty(0, dtype=np.int64)
            return pa.array(whole, pa.int64()), whole.nbytes

        return self._kept.get((data.path, identity), read)

    def _vector(self, entry: Entry) -> Positions:
        store, key = self._locate(entry.path)
        offset, size = entry.file.get("content_offset"), entry.file.get("content_size_in_bytes")
        if offset is None or size is None:
            raise Corrupt(f"the manifest has no offset or size of a deletion vector in {entry.path}")
        framed = store.get_range(key, offset, size)
        if framed is None:
            raise Corrupt(f"the deletion vectors {entry.path} are missing")
        found = decode_bitmap(unframed(framed, f"at byte {offset} of {entry.path}"))
        if len(found) != entry.rows:
            raise Corrupt(f"a deletion vector in {entry.path} has {len(found)} rows, not {entry.rows}")
        return found

    def _positions(self, entry: Entry) -> dict[str, Positions]:
        """The positions in a position delete file by data file, without scheme and authority."""

        def read() -> tuple[dict[str, Positions], int]:
            found = _by_path(self._read(entry, POSITIONS))
            return found, sum(len(path) + rows.nbytes for path, rows in found.items())

        return self._kept.get(entry.path, read)

    def _equal(self, data: Entry, equalities: Sequence[Entry]) -> list[Positions]:
        """The rows that equality deletes delete, for each set of columns that such files go by."""
        by_columns: dict[tuple[int, ...], list[Entry]] = defaultdict(list)
        for entry in equalities:
            numbers = tuple(sorted(entry.file.get("equality_ids") or ()))
            if not numbers:
                raise Corrupt(f"the equality delete file {entry.path} names no columns")
            by_columns[numbers].append(entry)
        partition = self._layout.specs[data.spec_id].identities(data.partition)
        found = []
        for numbers, entries in by_columns.items():
            columns = self._columns(numbers)
            gone = pa.concat_tables([self._keys(entry, numbers, columns) for entry in entries])
            rows = keys_of(self._read(data, columns, partition))
            found.append(np.flatnonzero(among(rows, gone)).astype(np.int64))
        return found

    def _columns(self, numbers: Sequence[int]) -> pa.Schema:
        """The columns of these ids, each with the structs around it, as in the newest schema that has it."""
        fields = []
        for number in numbers:
            chains = (
                chain(schema, number, None if position == 0 else f"dropped {number}")
                for position, schema in enumerate(self._layout.history)
            )
            field = next((found for found in chains if found is not None), None)
            if field is None:
                raise Corrupt(f"equality deletes go by column {number}, which the table never had")
            fields.append(field)
        return pa.schema(fields, metadata={BY_ID: b""})

    def _keys(self, entry: Entry, numbers: tuple[int, ...], schema: pa.Schema) -> pa.Table:
        def read() -> tuple[pa.Table, int]:
            keys = keys_of(self._read(entry, schema))
            return keys, keys.nbytes

        return self._kept.get((entry.path, numbers, str(schema.types)), read)

    def _read(self, entry: Entry, schema: pa.Schema, partition: Mapping[str, Any] = _NONE) -> pa.Table:
        store, key = self._locate(entry.path)
        file = DataFile(key, entry.path, entry.size, entry.rows, partition, format=entry.format)
        return read_file(store, key, file, schema, ())


def _by_path(rows: pa.Table) -> dict[str, Positions]:
    # What names no file or no row deletes nothing.
    rows = rows.drop_null().combine_chunks()
    encoded = rows.column("file_path").combine_chunks().dictionary_encode()
    codes = encoded.indices.to_numpy()
    positions = rows.column("pos").to_numpy()[np.argsort(codes, kind="stable")]
    ends = np.cumsum(np.bincount(codes, minlength=len(encoded.dictionary)))
    found: dict[str, Positions] = {}
    for path, start, end in zip(encoded.dictionary.to_pylist(), [0, *ends], ends, strict=False):
        plain, part = without_scheme(path), positions[start:end]
        found[plain] = np.concatenate([found[plain], part]) if plain in found else part
    return found


class Kept:
    """What was read last of a table's delete files, which never change, up to so many bytes.

    Two threads may read the same at once.
    """

    def __init__(self, limit_bytes: int = _KEPT_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._values: OrderedDict[object, tuple[object, int]] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def get(self, key: object, read: Callable[[], tuple[T, int]]) -> T:
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                found: T = self._values[key][0]  # type: ignore[assignment]
                return found
        value, size = read()
        with self._lock:
            if key not in self._values:
                self._values[key] = value, size
                self._bytes += size
            while self._bytes > self._limit_bytes:
                self._bytes -= self._values.popitem(last=False)[1][1]
        return value
