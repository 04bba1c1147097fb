"""Rows in the canonical form of the golden tables, and their checksum.

Written from the manifest's `checksum_method`; deliberately plain, because it judges the reader.
"""

import hashlib
import json
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa


def checksum(table: pa.Table) -> str:
    """The checksum of a table's rows, whatever their order."""
    return hashlib.sha256("\n".join(lines(table)).encode()).hexdigest()


def lines(table: pa.Table) -> list[str]:
    """One JSON text for each row, sorted by bytes."""
    columns = [_values(column.combine_chunks(), column.type) for column in table.columns]
    if not columns:
        return ["{}"] * table.num_rows
    rows = [dict(zip(table.schema.names, values, strict=True)) for values in zip(*columns, strict=True)]
    return sorted((_json(row) for row in rows), key=str.encode)


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _values(array: Any, data_type: pa.DataType) -> list[Any]:
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if pa.types.is_timestamp(data_type):
        units = array.cast(pa.int64()).to_pylist()
        return [None if unit is None else _moment(unit, data_type) for unit in units]
    if pa.types.is_date(data_type):
        return [None if days is None else f"{days}d" for days in array.cast(pa.int32()).to_pylist()]
    if pa.types.is_time(data_type):
        assert data_type.unit == "us"
        return [None if micros is None else f"{micros}t" for micros in array.cast(pa.int64()).to_pylist()]
    if pa.types.is_struct(data_type):
        children = [_values(array.field(i), field.type) for i, field in enumerate(data_type)]
        names = [field.name for field in data_type]
        rows = [dict(zip(names, row, strict=True)) for row in zip(*children, strict=True)]
        return [row if valid else None for row, valid in zip(rows, array.is_valid().to_pylist(), strict=True)]
    if pa.types.is_map(data_type):
        keys, items = _values(array.keys, data_type.key_type), _values(array.items, data_type.item_type)
        pairs = [[key, item] for key, item in zip(keys, items, strict=True)]
        return [row if row is None else sorted(row, key=_json) for row in _sliced(array, pairs)]
    if pa.types.is_list(data_type):
        return _sliced(array, _values(array.values, data_type.value_type))
    return [_scalar(value, data_type) for value in array.to_pylist()]


def _moment(unit: int, data_type: pa.TimestampType) -> str:
    zone = "Z" if data_type.tz else ""
    if data_type.unit == "ns":
        return f"{unit}ns{zone}" if unit % 1000 else f"{unit // 1000}us{zone}"
    assert data_type.unit == "us"
    return f"{unit}us{zone}"


def _sliced(array: Any, values: list[Any]) -> list[Any]:
    offsets = array.offsets.to_pylist()
    valid = array.is_valid().to_pylist()
    return [values[offsets[i] : offsets[i + 1]] if valid[i] else None for i in range(len(array))]


def _scalar(value: Any, data_type: pa.DataType) -> Any:
    if value is None:
        return None
    if isinstance(value, float):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(repr(value), repr(value))
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, bytes):
        return "0x" + value.hex()
    if isinstance(value, UUID):
        return str(value)
    return value
