"""Bounds of a column by the partition values that come from it, for pruning. Pure.

Everything here may say less than is true, never more: an unknown bound is null, and an unknown set of buckets
is None.
"""

from collections.abc import Callable
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakevilla.errors import Unsupported
from lakevilla.files.transforms import EXACT, MOST_YEARS, PERIODS, Transform, apply, parsed
from lakevilla.predicates import And, Column, Compare, Or, Predicate

Bounds = tuple[pa.Array, pa.Array]

_LARGEST_CHARACTER = 0x10FFFF
# So many years around 1970 fit into 64 bits of nanoseconds.
_YEARS = {"ns": 290}


def source_bounds(transform: str, values: pa.Array, source_type: pa.DataType) -> Bounds | None:
    """The least and the greatest value that a column can have in each partition.

    `values` are partition values as `apply` gives them; `source_type` is the column's type. None if the
    transform does not keep the order, or is not known.
    """
    try:
        what = parsed(transform)
    except Unsupported:
        return None
    if what.name == "identity":
        return values, values
    if what.name in PERIODS:
        return _of_periods(what.name, values, source_type)
    return _of_truncated(what, values) if what.name == "truncate" else None


def buckets(
    predicate: Predicate, column: Column, count: int, source_type: pa.DataType
) -> frozenset[int] | None:
    """The buckets in which the column's values lie in rows for which the predicate can be true; NULL lies
    in none. None if these may be any, NULL included."""
    match predicate:
        case Compare(of, "=", value) if of == column:
            found = _bucket(value, count, source_type)
            return None if found is None else frozenset([found])
        case And(parts):
            each = [buckets(part, column, count, source_type) for part in parts]
            known = [some for some in each if some is not None]
            return frozenset.intersection(*known) if known else None
        case Or(parts):
            each = [buckets(part, column, count, source_type) for part in parts]
            known = [some for some in each if some is not None]
            return frozenset().union(*known) if len(known) == len(each) else None
    return None


def _bucket(value: Any, count: int, source_type: pa.DataType) -> int | None:
    """The bucket of a value; None if it is not of the column's type: only the engine knows what equals what
    then."""
    fits = next((kinds for test, kinds in _KINDS if test(source_type)), ())
    if type(value) not in fits:
        return None
    if isinstance(value, datetime) and (value.tzinfo is None) != (source_type.tz is None):
        return None
    plain = value.bytes if isinstance(value, UUID) else value
    try:
        found: int = apply(f"bucket[{count}]", pa.array([plain], source_type))[0].as_py()
    except (pa.ArrowException, OverflowError, ValueError):
        return None
    return found


_KINDS: tuple[tuple[Callable[[pa.DataType], bool], tuple[type, ...]], ...] = (
    (pa.types.is_signed_integer, (int,)),
    (pa.types.is_decimal, (Decimal, int)),
    (pa.types.is_string, (str,)),
    (pa.types.is_large_string, (str,)),
    (pa.types.is_binary, (bytes,)),
    (pa.types.is_large_binary, (bytes,)),
    (pa.types.is_fixed_size_binary, (bytes,)),
    (pa.types.is_date, (date,)),
    (pa.types.is_timestamp, (datetime,)),
    (pa.types.is_time, (time,)),
    (lambda data_type: data_type == pa.uuid(), (bytes, UUID)),
)


def _of_periods(name: str, values: pa.Array, source_type: pa.DataType) -> Bounds | None:
    is_date = pa.types.is_date32(source_type)
    if not is_date and not pa.types.is_timestamp(source_type):
        return None
    unit = "D" if is_date else source_type.unit
    counts = values.cast(pa.int32()).cast(pa.int64())
    known = counts.fill_null(0).to_numpy()
    years = np.abs(known.astype(f"datetime64[{PERIODS[name]}]").astype("datetime64[Y]").astype(np.int64))
    unknown = (years > _YEARS.get(unit, MOST_YEARS)) | values.is_null().to_numpy(zero_copy_only=False)
    # Iceberg rounded towards 1970 in its first years: what lies before it may be filed one period too late.
    first = known if is_date and name == "day" else np.where(known <= 0, known - 1, known)

    def moments(counts: Any, before: int = 0) -> pa.Array:
        ticks = counts.astype(f"datetime64[{PERIODS[name]}]").astype(f"datetime64[{unit}]").astype(np.int64)
        array = pa.array(np.where(unknown, 0, ticks - before), mask=unknown)
        return array.cast(pa.int32()).cast(source_type) if is_date else array.cast(source_type)

    return moments(first), moments(known + 1, before=1)


def _of_truncated(what: Transform, values: pa.Array) -> Bounds | None:
    if pa.types.is_signed_integer(values.type):
        return _of_truncated_numbers(what.width, values)
    ends: list[Any]
    if pa.types.is_decimal(values.type):
        ends = [_last_decimal(value, what.width, values.type) for value in values.to_pylist()]
    elif pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        ends = [_last_text(text, what.width) for text in values.to_pylist()]
    elif pa.types.is_binary(values.type) or pa.types.is_large_binary(values.type):
        ends = [_last_bytes(data, what.width) for data in values.to_pylist()]
    else:
        return None
    return values, pa.array(ends, values.type)


def _of_truncated_numbers(width: int, values: pa.Array) -> Bounds:
    # Where numbers end, some writers begin anew at the other end: such a partition may hold anything.
    highest = 2 ** (values.type.bit_width - 1) - width
    known = pc.if_else(pc.less_equal(values.cast(pa.int64()), highest), values, pa.scalar(None, values.type))
    return known, pc.add(known, pa.scalar(width - 1, values.type)).cast(values.type)


def _last_decimal(value: Decimal | None, width: int, data_type: pa.DataType) -> Decimal | None:
    if value is None:
        return None
    last = int(value.scaleb(data_type.scale, EXACT)) + width - 1
    return None if abs(last) >= 10**data_type.precision else Decimal(last).scaleb(-data_type.scale, EXACT)


def _last_text(text: str | None, width: int) -> str | None:
    """The text itself if nothing was cut off, else one that no text with this beginning exceeds."""
    if text is None or len(text) < width:
        return text
    letters = list(text)
    while letters and ord(letters[-1]) == _LARGEST_CHARACTER:
        letters.pop()
    if not letters:
        return None
    following = ord(letters[-1]) + 1
    letters[-1] = chr(0xE000 if following == 0xD800 else following)
    return "".join(letters)


def _last_bytes(data: bytes | None, width: int) -> bytes | None:
    if data is None or len(data) < width:
        return data
    kept = data.rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else None
