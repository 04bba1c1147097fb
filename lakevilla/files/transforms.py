"""Partition transforms of Iceberg on Arrow arrays: from the values of a column to partition values.

NULL gives NULL. Years, months, days and hours count from 1970 on, in UTC, and are negative before. The
partition values of `identity` and `truncate` have the column's type, all others are 32-bit integers.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakevilla.errors import InvalidInput, Unsupported
from lakevilla.files.hashing import hash_bytes, hash_decimals, hash_longs

_SPELLING = re.compile(r"(identity|void|year|month|day|hour|(bucket|truncate)\[([1-9][0-9]*)\])")
PERIODS = {"year": "Y", "month": "M", "day": "D", "hour": "h"}
"""The transforms to periods of time, with the units that NumPy has for them."""
_LARGEST_WIDTH = 2**31 - 1
EXACT = Context(prec=80)
"""Exact for every decimal that a table can hold."""
MOST_YEARS = 290_000
"""So many years around 1970 fit into 64 bits of microseconds."""

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Transform:
    """A transform, taken apart. `width` is that of truncate, or the number of buckets; else 0."""

    name: str
    width: int = 0


def parsed(transform: str) -> Transform:
    """The transform of this spelling; Unsupported for one that the specification does not have (yet)."""
    found = _SPELLING.fullmatch(transform)
    if found is None:
        raise Unsupported(f"unknown partition transform {transform!r}")
    if found[2] is None:
        return Transform(transform)
    if int(found[3]) > _LARGEST_WIDTH:
        raise InvalidInput(f"the partition transform {transform!r} has a number above {_LARGEST_WIDTH}")
    return Transform(found[2], int(found[3]))


def applies(transform: str, data_type: pa.DataType) -> bool:
    """Whether columns of this type can have this transform."""
    match parsed(transform).name:
        case "void":
            return True
        case "identity":
            return not pa.types.is_nested(data_type)
        case "hour":
            return bool(pa.types.is_timestamp(data_type))
        case "year" | "month" | "day":
            return bool(pa.types.is_timestamp(data_type) or pa.types.is_date(data_type))
        case "truncate":
            return _truncates(data_type)
        case _:
            return _hashed_as(data_type) is not None


def result_type(transform: str, data_type: pa.DataType) -> pa.DataType:
    """The type of the partition values of a column of this type."""
    return data_type if parsed(transform).name in ("identity", "truncate", "void") else pa.int32()


def apply(transform: str, array: pa.Array) -> pa.Array:
    """The partition values of the column's values. InvalidInput if the column's type has no such transform,
    or where a value's partition value lies beyond the type."""
    if not applies(transform, array.type):
        raise InvalidInput(f"{transform} is not a partition transform of values of type {array.type}")
    what = parsed(transform)
    match what.name:
        case "identity":
            return array
        case "void":
            return pa.nulls(len(array), array.type)
        case "bucket":
            return _buckets(array, what.width)
        case "truncate":
            return _truncated(array, what.width)
        case _:
            return _periods(array, PERIODS[what.name])


def _periods(array: pa.Array, unit: str) -> pa.Array:
    periods = _masked(_moments(array).astype(f"datetime64[{unit}]").astype(np.int64), array)
    try:
        return periods.cast(pa.int32())
    except pa.ArrowInvalid as error:
        raise InvalidInput(f"a value of type {array.type} is too far from 1970 for its partition") from error


def _moments(array: pa.Array) -> Array:
    """Dates or timestamps as NumPy has them, which rounds towards the past where units get larger."""
    if pa.types.is_date(array.type):
        return _numbers(array.cast(pa.date32()).cast(pa.int32())).astype("datetime64[D]")
    return _numbers(array).astype(f"datetime64[{array.type.unit}]")


def _buckets(array: pa.Array, count: int) -> pa.Array:
    hashed = _hashed_as(array.type)
    assert hashed is not None
    positive = hashed(array) & np.uint32(0x7FFFFFFF)
    return _masked((positive % np.uint32(count)).astype(np.int32), array)


def _hashed_as(data_type: pa.DataType) -> Callable[[pa.Array], Array] | None:
    """How arrays of this type are hashed; None for types that have no hash."""
    if isinstance(data_type, pa.BaseExtensionType):
        stored = _hashed_as(data_type.storage_type)
        return None if stored is None else lambda array: stored(array.storage)
    if _is_text(data_type) or _is_bytes(data_type) or pa.types.is_fixed_size_binary(data_type):
        return hash_bytes
    if pa.types.is_decimal(data_type):
        return lambda array: hash_decimals(array.cast(pa.decimal128(38, data_type.scale)))
    if pa.types.is_date(data_type):
        return lambda array: hash_longs(_moments(array).astype(np.int64))
    if pa.types.is_timestamp(data_type):
        return lambda array: hash_longs(_moments(array).astype("datetime64[us]").astype(np.int64))
    if pa.types.is_time(data_type):
        return lambda array: hash_longs(_numbers(array.cast(pa.time64("us"))))
    return (lambda array: hash_longs(_numbers(array))) if _is_integer(data_type) else None


def _truncates(data_type: pa.DataType) -> bool:
    tests = (_is_integer, _is_text, _is_bytes, pa.types.is_decimal)
    return any(test(data_type) for test in tests)


def _truncated(array: pa.Array, width: int) -> pa.Array:
    if _is_text(array.type):
        return pc.utf8_slice_codeunits(array, 0, width)
    if _is_bytes(array.type):
        return pc.binary_slice(array, 0, width)
    try:
        if pa.types.is_decimal(array.type):
            return _truncated_decimals(array, width)
        return _truncated_numbers(_numbers(array), width, array)
    except pa.ArrowInvalid as error:
        raise _beyond(array.type, width) from error


def _truncated_numbers(values: Array, width: int, array: pa.Array) -> pa.Array:
    rounded = values - np.mod(values, width)
    # Below the smallest number it would begin anew at the largest, far from the values that it stands for.
    if (rounded > values).any():
        raise _beyond(array.type, width)
    return _masked(rounded, array).cast(array.type)


def _truncated_decimals(array: pa.Array, width: int) -> pa.Array:
    """Rounded down in units of the last digit; Python has integers of that size."""
    scale, encoded = array.type.scale, array.dictionary_encode()
    rounded = []
    for value in encoded.dictionary.to_pylist():
        digits = int(value.scaleb(scale, EXACT))
        rounded.append(Decimal(digits - digits % width).scaleb(-scale, EXACT))
    return pa.array(rounded, array.type).take(encoded.indices)


def _beyond(data_type: pa.DataType, width: int) -> InvalidInput:
    return InvalidInput(
        f"a value is too close to the smallest {data_type} for the partition transform truncate[{width}]"
    )


def _numbers(array: pa.Array) -> Array:
    """What the values are as 64-bit numbers; 0 for null."""
    numbers: Array = array.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    return numbers


def _masked(values: Array, like: pa.Array) -> pa.Array:
    """The values as an array, null where the other array is."""
    if not like.null_count:
        return pa.array(values)
    return pa.array(values, mask=like.is_null().to_numpy(zero_copy_only=False))


def _is_integer(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_signed_integer(data_type))


def _is_text(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_string(data_type) or pa.types.is_large_string(data_type))


def _is_bytes(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_binary(data_type) or pa.types.is_large_binary(data_type))
