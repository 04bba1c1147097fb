"""Rows divided by their partition values, and the folders that such files are put into.

Folders follow Hive's convention because people and older tools expect it. No reader of ours takes a
value from a folder: the table's log holds the values.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from lakevilla.errors import InvalidInput

_NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"
_ESCAPED = frozenset("\"#%'*/:=?\\{[]^\x7f") | frozenset(map(chr, range(32)))
# File systems limit a name to 255 bytes, object stores a key to 1024: what is longer is left out.
_FOLDER_BYTES = 200
_FOLDERS_BYTES = 600


def split(rows: pa.Table, columns: Sequence[str]) -> Iterator[tuple[dict[str, Any], pa.Table]]:
    """The rows of each combination of partition values, in their order, without the partition columns."""
    if not columns:
        yield {}, rows
        return
    if not rows.num_rows:
        return
    codes = np.zeros(rows.num_rows, dtype=np.int64)
    for name in columns:
        encoded = rows.column(name).combine_chunks().dictionary_encode(null_encoding="encode")
        codes = codes * (len(encoded.dictionary) + 1) + encoded.indices.to_numpy()
        # Dense again, so that the next column cannot overflow.
        _, codes = np.unique(codes, return_inverse=True)
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    values, stored = rows.select(columns), rows.drop_columns(list(columns))
    arranged = stored if len(starts) == 1 else stored.take(pa.array(order))
    for start, end in zip(starts, [*starts[1:], rows.num_rows], strict=True):
        row = int(order[start])
        yield {name: _value(values, name, row) for name in columns}, arranged.slice(start, end - start)


def _value(rows: pa.Table, name: str, row: int) -> Any:
    try:
        return rows.column(name)[row].as_py()
    except (ValueError, OverflowError) as error:
        raise InvalidInput(f"a value of the partition column {name!r} is out of range: {error}") from error


def partition_text(value: Any, data_type: pa.DataType) -> str | None:
    """A partition value as text, as table logs and folders spell it; None for null.

    Instants are given in UTC with a `Z`, so that no reader applies its own time zone.
    """
    match value:
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case float():
            return _float_text(value, data_type)
        case datetime():
            if value.tzinfo is None:
                return value.isoformat(sep=" ", timespec="microseconds")
            utc = value.astimezone(UTC).replace(tzinfo=None)
            return utc.isoformat(timespec="microseconds") + "Z"
        case Decimal():
            return format(value, "f")
        case bytes():
            return _binary_text(value)
        case _:
            return str(value)


def folder(texts: Mapping[str, str | None]) -> str:
    """`column=value/` for each partition column, escaped as Hive does it."""
    names = (f"{_escape(name)}={_NULL_FOLDER if not text else _escape(text)}" for name, text in texts.items())
    folders = "".join(f"{name}/" for name in names if len(name.encode()) <= _FOLDER_BYTES)
    return folders if len(folders.encode()) <= _FOLDERS_BYTES else ""


def _escape(text: str) -> str:
    return "".join(f"%{ord(letter):02X}" if letter in _ESCAPED else letter for letter in text)


def _binary_text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{value!r} is not UTF-8, so it cannot be a partition value") from error


def _float_text(value: float, data_type: pa.DataType) -> str:
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    return str(np.float32(value)) if pa.types.is_float32(data_type) else repr(value)
