"""Files written anew with the rows that they have: packed into fewer files, and clustered if asked for.

Rows are copied as Arrow, without an engine's own types in between, so both engines write the same. Memory
holds one window of files and one open file; with clustering it holds the rows of a group.
"""

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakevilla.engines.arrow_writer import write
from lakevilla.engines.port import Source, Target
from lakevilla.environment import Environment
from lakevilla.files.reader import read_file
from lakevilla.model import DataFile, WrittenFile

Codes = np.ndarray[tuple[int], np.dtype[np.uint64]]

_CODE_BITS = 64
_WINDOW_BYTES = 64 * 1024 * 1024
_WINDOW_FILES = 512
_PART_FILES = 16
"""So many files are read by one thread after another: to hand a small file to a thread costs more than it."""


def rewrite_files(
    environment: Environment, target: Target, source: Source, files: Sequence[DataFile], order: Sequence[str]
) -> tuple[WrittenFile, ...]:
    """Write the living rows of these files anew, clustered by these columns if there are any."""
    pieces = _rows(environment, source, files)
    if order:
        rows = pa.concat_tables(list(pieces))
        pieces = iter([rows.take(clustered(rows, order))]) if rows.num_rows else iter(())
    return write(target, pieces)


def clustered(rows: pa.Table, columns: Sequence[str]) -> pa.Array:
    """The positions of the rows in the order of a Z-curve through these columns.

    A curve through one column is its order. NULL comes first.
    """
    bits = _CODE_BITS // len(columns)
    curve = np.zeros(rows.num_rows, dtype=np.uint64)
    for number, name in enumerate(columns):
        codes, known_bits = _codes(rows.column(name), bits)
        for bit in range(known_bits):
            # The first bit of each column, then the second of each, from the highest on.
            place = _CODE_BITS - 1 - (bit * len(columns) + number)
            taken = (codes >> np.uint64(known_bits - 1 - bit)) & np.uint64(1)
            curve |= taken << np.uint64(place)
    return pa.array(np.argsort(curve, kind="stable"))


def _codes(column: pa.ChunkedArray, bits: int) -> tuple[Codes, int]:
    """The rank of each value among the different ones, in at most so many bits, and in how many it is."""
    encoded = column.combine_chunks()
    if isinstance(encoded.type, pa.BaseExtensionType):
        encoded = encoded.cast(encoded.type.storage_type)
    encoded = encoded if pa.types.is_dictionary(encoded.type) else encoded.dictionary_encode()
    values = encoded.dictionary
    ranks = np.empty(len(values) + 1, dtype=np.uint64)
    ranks[pc.array_sort_indices(values).to_numpy()] = np.arange(1, len(values) + 1, dtype=np.uint64)
    ranks[len(values)] = 0
    places = encoded.indices.fill_null(len(values)).to_numpy(zero_copy_only=False)
    needed = len(values).bit_length()
    return ranks[places] >> np.uint64(max(0, needed - bits)), min(needed, bits)


def _rows(environment: Environment, source: Source, files: Sequence[DataFile]) -> Iterator[pa.Table]:
    """The rows of the files in their order. Those of small files come together: every piece costs."""
    for window in _windows(files):
        parts = [window[start : start + _PART_FILES] for start in range(0, len(window), _PART_FILES)]
        read = environment.fan_out([partial(_read, source, part) for part in parts])
        for file in window:
            source.was_read(file)
        yield pa.concat_tables(read)


def _read(source: Source, files: Sequence[DataFile]) -> pa.Table:
    schema, columns = source.schema, source.partition_columns
    return pa.concat_tables([read_file(*source.open(file), file, schema, columns) for file in files])


def _windows(files: Sequence[DataFile]) -> Iterator[Sequence[DataFile]]:
    """The files in groups that are read at once, bounded by bytes and by number."""
    window: list[DataFile] = []
    size = 0
    for file in files:
        if window and (size + file.size > _WINDOW_BYTES or len(window) == _WINDOW_FILES):
            yield window
            window, size = [], 0
        window.append(file)
        size += file.size
    if window:
        yield window
