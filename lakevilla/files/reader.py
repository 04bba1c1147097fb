"""Rows of data files: column projection, skipping of row groups, partition values, deleted rows.

Data files are Parquet or ORC. What comes back has exactly the columns of the logical schema that was asked
for, in its order. A predicate only skips row groups that cannot match: rows that do not match may come back,
rows that match always do.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from lakevilla.environment import Environment
from lakevilla.errors import Corrupt, Unsupported
from lakevilla.files.bitmaps import Positions
from lakevilla.files.column_mapping import Match
from lakevilla.files.orc import OrcObject
from lakevilla.files.parquet import ParquetObject
from lakevilla.files.projection import find, match_of, project, stored_columns
from lakevilla.model import DataFile, Deletes
from lakevilla.predicates import ANYTHING, Column, Predicate
from lakevilla.pruning import Bounds, may_match
from lakevilla.store.port import Store

Flags = np.ndarray[Any, np.dtype[np.bool_]]

_READABLE = ("parquet", "orc")
_WINDOW_FILES = 16
_WINDOW_BYTES = 256 * 1024 * 1024


def read_files(
    environment: Environment,
    locate: Callable[[DataFile], tuple[Store, str]],
    files: Sequence[DataFile],
    schema: pa.Schema,
    partition_columns: Sequence[str],
    predicate: Predicate = ANYTHING,
) -> Iterator[pa.Table]:
    """The rows of each file, in the files' order; a bounded number of files is read ahead."""
    for window in _windows(files):
        yield from environment.fan_out(
            [_reading(locate, file, schema, partition_columns, predicate) for file in window]
        )


def read_file(
    store: Store,
    key: str,
    file: DataFile,
    schema: pa.Schema,
    partition_columns: Sequence[str],
    predicate: Predicate = ANYTHING,
) -> pa.Table:
    """The rows of one file as the logical schema (possibly a projection of the table's) wants them."""
    return OpenedFile(store, key, file, partition_columns).living(schema, predicate)


class OpenedFile:
    """One data file that was opened: its rows by columns, some of them or all. For one thread at a time.

    What is fetched to open it is not fetched again: of a small file, that is everything.
    """

    def __init__(self, store: Store, key: str, file: DataFile, partition_columns: Sequence[str]) -> None:
        self._source = _opened(store, key, file)
        self._key = key
        self._file = file
        self._partition_columns = partition_columns
        self._starts = np.cumsum([0, *self._source.group_rows])
        self._flags: Flags | None = None

    @property
    def rows(self) -> int:
        """How many rows the file holds, deleted ones included."""
        return int(self._starts[-1])

    @property
    def deleted(self) -> int:
        """How many of them are deleted."""
        living = self._living
        return 0 if living is None else self.rows - int(np.count_nonzero(living))

    def living(self, schema: pa.Schema, predicate: Predicate = ANYTHING) -> pa.Table:
        """The rows that are not deleted."""
        return self._living_of(schema, predicate)[0]

    def placed(self, schema: pa.Schema, predicate: Predicate) -> tuple[pa.Table, Positions]:
        """The rows that are not deleted, and their positions in the file."""
        rows, groups = self._living_of(schema, predicate)
        parts = [self._positions(group) for group in groups]
        return rows, np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)

    def at(self, schema: pa.Schema, positions: Positions) -> pa.Table:
        """The rows at these positions, which are sorted."""
        wanted = np.zeros(self.rows, dtype=np.bool_)
        wanted[positions] = True
        columns = _Columns.of(self._source, self._file, schema, self._partition_columns, self._key)
        groups = np.unique(np.searchsorted(self._starts, positions, side="right") - 1).tolist()
        pieces = []
        for some in self._source.portions(columns.stored, groups):
            pieces.append(columns.read(self._source, some, self._of_groups(wanted, some)))
        return columns.complete(_joined(pieces))

    def _living_of(self, schema: pa.Schema, predicate: Predicate) -> tuple[pa.Table, list[int]]:
        """Rows that are not deleted, and the row groups that were read for that."""
        columns = _Columns.of(self._source, self._file, schema, self._partition_columns, self._key)
        groups = _matching_groups(self._source, schema, columns.known, columns.match, predicate)
        living = self._living
        if living is None:
            return columns.complete(columns.read(self._source, groups)), groups
        pieces = []
        # Piece by piece, because memory that is used again costs less than memory for all rows twice.
        for some in self._source.portions(columns.stored, groups):
            pieces.append(columns.read(self._source, some, self._of_groups(living, some)))
        return columns.complete(_joined(pieces)), groups

    def flags_of(self, positions: Positions) -> Flags:
        """One flag for each row that is not deleted: whether it is at one of these positions."""
        flags = np.zeros(self.rows, dtype=np.bool_)
        flags[positions] = True
        living = self._living
        return flags if living is None else flags[living]

    def _positions(self, group: int) -> Positions:
        """Where the rows of a row group are that are not deleted."""
        start, end = self._starts[group], self._starts[group + 1]
        living = self._living
        return np.arange(start, end) if living is None else start + np.flatnonzero(living[start:end])

    @property
    def _living(self) -> Flags | None:
        """One flag for each row of the file; None if no row is deleted. Read once: not by `cached_property`,
        which lets one thread of the process wait for another."""
        if self._flags is None and self._file.deletes is not None:
            self._flags = self._read_flags(self._file.deletes)
        return self._flags

    def _read_flags(self, deletes: Deletes) -> Flags:
        living = np.ones(self.rows, dtype=np.bool_)
        deleted = deletes.rows().to_numpy(zero_copy_only=False)
        if len(deleted) and deleted[-1] >= len(living):
            raise Corrupt(
                f"{self._file.key} has {len(living)} rows, but row {deleted[-1]} is marked as deleted"
            )
        living[deleted] = False
        return living

    def _of_groups(self, flags: Flags, groups: Sequence[int]) -> Flags:
        parts = [flags[self._starts[group] : self._starts[group + 1]] for group in groups]
        return np.concatenate(parts) if parts else flags[:0]


@dataclass(frozen=True)
class _Columns:
    """Columns that are wanted of a file: which of them it stores, and the values that the log knows."""

    schema: pa.Schema
    fields: list[pa.Field]
    stored: list[str]
    known: Mapping[str, Any]
    match: Match
    key: str

    @staticmethod
    def of(
        source: ParquetObject | OrcObject,
        file: DataFile,
        schema: pa.Schema,
        partition_columns: Sequence[str],
        key: str,
    ) -> "_Columns":
        match = match_of(schema, source.schema, key) if len(schema) else Match.NAME
        stored = {field.name: find(field, source.schema, match) for field in schema}
        # The log's value counts, also where the file holds the column itself.
        known = {
            name: file.partition.get(name)
            for name, found in stored.items()
            if name in partition_columns or (found is None and name in file.partition)
        }
        fields = [field for field in schema if field.name not in known]
        columns = []
        for field in fields:
            found = stored[field.name]
            if found is not None:
                columns += stored_columns(field, found, match)
        return _Columns(schema, fields, columns, known, match, key)

    def read(
        self, source: ParquetObject | OrcObject, groups: Sequence[int], flags: Flags | None = None
    ) -> pa.Table:
        """What the file stores of them, in these row groups: of the rows with a flag, if flags are given."""
        rows = source.read(self.stored, groups, dictionaries=True)
        if flags is not None:
            rows = rows.filter(pa.array(flags))
        return project(rows, self.fields, self.match, self.key)

    def complete(self, rows: pa.Table) -> pa.Table:
        """All columns, in the order of the schema."""
        return _with_known(rows, self.schema, self.known)


def open_file(
    locate: Callable[[DataFile], tuple[Store, str]], file: DataFile, partition_columns: Sequence[str]
) -> OpenedFile:
    """A data file, opened where it is."""
    return OpenedFile(*locate(file), file, partition_columns)


def refuse_unreadable(file: DataFile) -> None:
    """Raise Unsupported for a file whose format we do not read."""
    if file.format not in _READABLE:
        raise Unsupported(
            f"{file.key} is a data file of the format {file.format}, which LakeVilla cannot read; it reads "
            f"{' and '.join(_READABLE)}"
        )


def _opened(store: Store, key: str, file: DataFile) -> ParquetObject | OrcObject:
    refuse_unreadable(file)
    return OrcObject(store, key) if file.format == "orc" else ParquetObject(store, key, file.size)


def _joined(pieces: Sequence[pa.Table]) -> pa.Table:
    """The pieces as one; without any column, joining forgets how many rows there are."""
    return pieces[0] if len(pieces) == 1 else pa.concat_tables(pieces)


def _windows(files: Sequence[DataFile]) -> Iterator[list[DataFile]]:
    window: list[DataFile] = []
    window_bytes = 0
    for file in files:
        if window and (len(window) == _WINDOW_FILES or window_bytes + file.size > _WINDOW_BYTES):
            yield window
            window, window_bytes = [], 0
        window.append(file)
        window_bytes += file.size
    if window:
        yield window


def _reading(
    locate: Callable[[DataFile], tuple[Store, str]],
    file: DataFile,
    schema: pa.Schema,
    partition_columns: Sequence[str],
    predicate: Predicate,
) -> Callable[[], pa.Table]:
    def read() -> pa.Table:
        store, key = locate(file)
        return read_file(store, key, file, schema, partition_columns, predicate)

    return read


def _with_known(rows: pa.Table, schema: pa.Schema, known: Mapping[str, Any]) -> pa.Table:
    arrays = []
    for field in schema:
        if field.name in known:
            arrays.append(pa.repeat(pa.scalar(known[field.name], field.type), rows.num_rows))
        else:
            arrays.append(rows.column(rows.schema.names.index(field.name)))
    return pa.Table.from_arrays(arrays, schema=schema) if arrays else rows.select([])


def _matching_groups(
    source: ParquetObject | OrcObject,
    schema: pa.Schema,
    known: Collection[str],
    match: Match,
    predicate: Predicate,
) -> list[int]:
    count = len(source.group_rows)
    if count <= 1 or predicate == ANYTHING or not isinstance(source, ParquetObject):
        return list(range(count))

    def bounds_of(column: Column) -> Bounds | None:
        return None if column[0] in known else _group_bounds(source, schema, match, column)

    keep = may_match(predicate, bounds_of, count)
    return [int(group) for group in np.flatnonzero(keep)]


def _group_bounds(source: ParquetObject, schema: pa.Schema, match: Match, column: Column) -> Bounds | None:
    """Bounds of one leaf column for every row group, from the file's footer; None if it has none."""
    fields, stored, path = list(schema), list(source.schema), []
    data_type = pa.null()
    for name in column:
        field = next((field for field in fields if field.name == name), None)
        found = None if field is None else find(field, stored, match)
        if field is None or found is None:
            return None
        path.append(found.name)
        data_type = field.type
        nested = pa.types.is_struct(field.type) and pa.types.is_struct(found.type)
        fields, stored = (list(field.type), list(found.type)) if nested else ([], [])
    metadata = source.metadata
    dotted = ".".join(path)
    index = next((i for i in range(metadata.num_columns) if metadata.schema.column(i).path == dotted), None)
    if index is None or pa.types.is_nested(data_type):
        return None
    groups = [metadata.row_group(group) for group in range(metadata.num_row_groups)]
    statistics = [group.column(index).statistics for group in groups]
    bounded = [s if s is not None and s.has_min_max else None for s in statistics]
    try:
        minimum = pa.array([None if s is None else _bound(s.min) for s in bounded], data_type)
        maximum = pa.array([None if s is None else _bound(s.max) for s in bounded], data_type)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        # The file spells its bounds in a type that says nothing of the column's: they do not count.
        return None
    nulls = [None if s is None or not s.has_null_count else s.null_count for s in statistics]
    rows = [group.num_rows for group in groups]
    return Bounds(minimum, maximum, pa.array(nulls, pa.int64()), pa.array(rows, pa.int64()))


def _bound(value: Any) -> Any:
    return None if isinstance(value, float) and value != value else value
