"""One Parquet object in a store: a small one is fetched whole, of a large one only what is asked for.

Whatever is wrong with the bytes becomes Corrupt, naming the object; pyarrow's errors do not leave here.
"""

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.parquet as pq

from lakevilla.errors import Corrupt, Unsupported
from lakevilla.store.port import Store

WHOLE_BYTES = 8 * 1024 * 1024
"""Up to this size one GET of everything beats several of parts."""

FOOTER_BYTES = 256 * 1024
"""So much of the end of an object is fetched for its footer."""

_GAP_BYTES = 1024 * 1024
_FETCH_BYTES = 16 * 1024 * 1024
_BATCH_ROWS = 8 * 1024
# Decoding less than this takes less time than to wake other threads for it.
_THREADS_BYTES = 1024 * 1024
# Reading fewer takes less time than to look which columns are worth reading as dictionaries.
_DICTIONARY_ROWS = 64 * 1024
_PLAIN_BYTES = 4
"""A text that is not in a dictionary takes more than so much of a file."""


class ParquetObject:
    """An opened Parquet object. Row groups and columns are fetched when they are read.

    One of up to `whole_bytes` is fetched whole; FOOTER_BYTES is for callers that need only its footer.
    """

    def __init__(self, store: Store, key: str, size: int | None, whole_bytes: int | None = None) -> None:
        self._name = f"{store.url}/{key}"
        self._ranges: _Ranges | None = None
        if size is not None and size > (WHOLE_BYTES if whole_bytes is None else whole_bytes):
            self._ranges = _Ranges(store, key, size, self._name)
            source = pa.PythonFile(self._ranges, mode="r")
        else:
            found = store.get(key)
            if found is None:
                raise Corrupt(f"{self._name} is missing, but the table refers to it")
            source = pa.BufferReader(found.data)
        self._source = source
        self._with_dictionaries: tuple[list[str], pq.ParquetFile] | None = None
        with self._honest():
            self._file = self._open()
            self.metadata: pq.FileMetaData = self._file.metadata
            self.schema: pa.Schema = self._file.schema_arrow
            groups = range(self.metadata.num_row_groups)
            self.group_rows = [self.metadata.row_group(group).num_rows for group in groups]
        self.in_memory = self._ranges is None
        self._threads = self._ranges is not None or source.size() > _THREADS_BYTES

    def _open(
        self, metadata: pq.FileMetaData | None = None, dictionaries: Sequence[str] = ()
    ) -> pq.ParquetFile:
        # Ranges are fetched here, ahead of the read. Arrow's own prefetching would call back into Python
        # from its threads, and a thread that does so while the interpreter exits aborts the process.
        return pq.ParquetFile(
            self._source,
            metadata=metadata,
            read_dictionary=list(dictionaries),
            coerce_int96_timestamp_unit="us",
            arrow_extensions_enabled=False,
            pre_buffer=False,
        )

    def read(self, columns: Sequence[str], row_groups: Sequence[int], dictionaries: bool = False) -> pa.Table:
        """These columns (dotted paths into structs) of these row groups.

        With `dictionaries`, texts that the file holds as dictionaries may come as such: they are read, and
        rows of them filtered, in a fraction of the time.
        """
        file = self._file
        if dictionaries and row_groups and self.metadata.num_rows >= _DICTIONARY_ROWS:
            file = self._file_for(_few_distinct(self, columns, row_groups[0]))
        tables = [self._read(file, columns, some) for some in self.portions(columns, row_groups)]
        # Joined only if there are several: without any column, joining forgets how many rows there are.
        return tables[0] if len(tables) == 1 else pa.concat_tables(tables)

    def _file_for(self, dictionaries: list[str]) -> pq.ParquetFile:
        """The file so that these columns come as dictionaries."""
        if not dictionaries:
            return self._file
        if self._with_dictionaries is None or self._with_dictionaries[0] != dictionaries:
            with self._honest():
                self._with_dictionaries = dictionaries, self._open(self.metadata, dictionaries)
        return self._with_dictionaries[1]

    def _read(self, file: pq.ParquetFile, columns: Sequence[str], row_groups: Sequence[int]) -> pa.Table:
        self._prepare(columns, row_groups)
        with self._honest():
            table = file.read_row_groups(list(row_groups), columns=list(columns), use_threads=self._threads)
        self._release()
        return table

    def portions(self, columns: Sequence[str], row_groups: Sequence[int]) -> list[list[int]]:
        """The row groups, as many at a time as are fetched together.

        Not all at once: memory for very large requests comes fresh from the system each time, and is slow.
        """
        if self._ranges is None:
            return [list(row_groups)]
        portions: list[list[int]] = [[]]
        portion_bytes = 0
        for group in row_groups:
            size = sum(end - start for start, end in _spans(self.metadata, columns, [group]))
            if portions[-1] and portion_bytes + size > _FETCH_BYTES:
                portions.append([])
                portion_bytes = 0
            portions[-1].append(group)
            portion_bytes += size
        return portions

    def batches(self, columns: Sequence[str], row_groups: Sequence[int]) -> Iterator[pa.RecordBatch]:
        """These columns of these row groups, in batches that are small in comparison."""
        for group in row_groups:
            self._prepare(columns, [group])
            with self._honest():
                yield from self._file.iter_batches(_BATCH_ROWS, row_groups=[group], columns=list(columns))
            self._release()

    def groups_with(self, column: str) -> list[int]:
        """The row groups that may hold a value in this column (a dotted path, or the top of some)."""
        leaves = _leaves(self.metadata, [column])
        return [
            group
            for group in range(self.metadata.num_row_groups)
            if any(_may_hold_values(self.metadata.row_group(group).column(leaf)) for leaf in leaves)
        ]

    def _prepare(self, columns: Sequence[str], row_groups: Sequence[int]) -> None:
        if self._ranges is not None:
            self._ranges.fetch(_spans(self.metadata, columns, row_groups))

    def _release(self) -> None:
        if self._ranges is not None:
            self._ranges.release()

    @contextmanager
    def _honest(self) -> Iterator[None]:
        try:
            yield
        except pa.ArrowNotImplementedError as error:
            raise Unsupported(f"{self._name} uses a Parquet feature that cannot be read: {error}") from error
        except (pa.ArrowException, OSError, ValueError) as error:
            raise Corrupt(f"{self._name} is not a valid Parquet file: {error}") from error


def _spans(
    metadata: pq.FileMetaData, columns: Sequence[str], row_groups: Sequence[int]
) -> list[tuple[int, int]]:
    leaves = _leaves(metadata, columns)
    spans = []
    for group in row_groups:
        row_group = metadata.row_group(group)
        for leaf in leaves:
            chunk = row_group.column(leaf)
            start = chunk.data_page_offset
            if chunk.dictionary_page_offset is not None:
                start = min(start, chunk.dictionary_page_offset)
            spans.append((start, start + chunk.total_compressed_size))
    return spans


def _leaves(metadata: pq.FileMetaData, columns: Sequence[str]) -> list[int]:
    schema, whole, below = metadata.schema, set(columns), tuple(f"{column}." for column in columns)
    paths = [schema.column(index).path for index in range(metadata.num_columns)]
    return [index for index, path in enumerate(paths) if path in whole or path.startswith(below)]


def _few_distinct(file: ParquetObject, columns: Sequence[str], row_group: int) -> list[str]:
    """Those of the columns that are texts of few distinct values, as far as their size in this row group
    tells. A wrong guess costs time only."""
    group = file.metadata.row_group(row_group)
    found = []
    for leaf in _leaves(file.metadata, columns):
        chunk = group.column(leaf)
        path = chunk.path_in_schema
        if chunk.physical_type != "BYTE_ARRAY" or path not in file.schema.names:
            continue
        data_type = file.schema.field(path).type
        is_text = pa.types.is_string(data_type) or pa.types.is_binary(data_type)
        nulls = chunk.statistics.null_count if chunk.statistics is not None else 0
        if is_text and chunk.total_uncompressed_size < _PLAIN_BYTES * (chunk.num_values - (nulls or 0)):
            found.append(path)
    return found


def _may_hold_values(chunk: pq.ColumnChunkMetaData) -> bool:
    known = chunk.statistics
    return known is None or not known.has_null_count or bool(known.null_count < chunk.num_values)


class _Ranges(io.RawIOBase):
    """A file of which only some ranges are here; reading elsewhere fetches more."""

    def __init__(self, store: Store, key: str, size: int, name: str) -> None:
        self._store, self._key, self._size, self._name = store, key, size, name
        self._position = 0
        self._footer = (max(0, size - FOOTER_BYTES), self._get(max(0, size - FOOTER_BYTES), size))
        self._here: list[tuple[int, bytes]] = [self._footer]

    def fetch(self, spans: list[tuple[int, int]]) -> None:
        """Bring these ranges here, near ones in one request."""
        merged: list[list[int]] = []
        for start, end in sorted(spans):
            if merged and start <= merged[-1][1] + _GAP_BYTES:
                merged[-1][1] = max(merged[-1][1], end)
            else:
                merged.append([start, end])
        self._here = [self._footer] + [(start, self._get(start, end)) for start, end in merged]

    def release(self) -> None:
        self._here = [self._footer]

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = start + offset
        return self._position

    def read(self, size: int = -1) -> bytes:
        start = self._position
        end = self._size if size < 0 else min(self._size, start + size)
        self._position = end
        for offset, data in self._here:
            if offset <= start and end <= offset + len(data):
                # Arrow takes any buffer; a view saves the copy.
                return memoryview(data)[start - offset : end - offset]  # type: ignore[return-value]
        return self._get(start, end)

    def _get(self, start: int, end: int) -> bytes:
        data = self._store.get_range(self._key, start, end - start) if end > start else b""
        if data is None or len(data) != end - start:
            raise Corrupt(f"{self._name} is missing or shorter than the table says")
        return data
