"""Position delete files as we write them: the deleted rows of one data file, in Parquet.

One file for each data file ("file granularity", in Iceberg's terms), so that what replaces it needs no look
at other data files.
"""

import struct
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lakevilla.files.bitmaps import Positions
from lakevilla.files.column_mapping import BY_ID, FIELD_ID, NAMES
from lakevilla.formats.iceberg.manifests.entries import POSITION_DELETES, Entry

FILE_PATH, POSITION = 2147483546, 2147483545
"""The reserved ids of the two columns."""

_PARQUET_ID = "PARQUET:field_id"


def reserved(name: str, data_type: pa.DataType, number: int) -> pa.Field:
    """A column of delete files for readers."""
    metadata = {FIELD_ID: str(number).encode(), NAMES: f'["{name}"]'.encode()}
    return pa.field(name, data_type, metadata=metadata)


POSITIONS = pa.schema(
    [reserved("file_path", pa.string(), FILE_PATH), reserved("pos", pa.int64(), POSITION)],
    metadata={BY_ID: b""},
)

_WRITTEN = pa.schema(
    [
        pa.field("file_path", pa.string(), nullable=False, metadata={_PARQUET_ID: str(FILE_PATH)}),
        pa.field("pos", pa.int64(), nullable=False, metadata={_PARQUET_ID: str(POSITION)}),
    ],
    metadata={"delete-type": "position"},
)


def encode_position_deletes(data: Entry, rows: Positions) -> bytes:
    """The bytes of a position delete file that deletes these rows, sorted, of a data file."""
    paths = pa.repeat(pa.scalar(data.path, pa.string()), len(rows))
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table([paths, pa.array(rows, pa.int64())], schema=_WRITTEN), sink, compression="zstd")
    return bytes(sink.getvalue())


def describe_position_deletes(data: Entry, rows: Positions, path: str, size: int) -> Mapping[str, Any]:
    """The record of such a file for a manifest. Bounds of paths are whole, so that clients that do not know
    `referenced_data_file` see which data file it is for."""
    name, first, last = data.path.encode(), *(struct.pack("<q", int(rows[at])) for at in (0, -1))
    return {
        "content": POSITION_DELETES,
        "file_path": path,
        "file_format": "PARQUET",
        "record_count": len(rows),
        "file_size_in_bytes": size,
        "value_counts": _pairs(len(rows), len(rows)),
        "null_value_counts": _pairs(0, 0),
        "lower_bounds": _pairs(name, first),
        "upper_bounds": _pairs(name, last),
        "referenced_data_file": data.path,
    }


def _pairs(path: Any, position: Any) -> list[dict[str, Any]]:
    return [{"key": FILE_PATH, "value": path}, {"key": POSITION, "value": position}]
