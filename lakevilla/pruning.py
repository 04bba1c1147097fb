"""The one place that asks whether a file can have rows for a predicate: by bounds of its columns.

Pruning of scans, skipping of row groups and the conflict rules all go through `may_match`. It is apart from
the predicates themselves because it needs NumPy and PyArrow, and a listing of names needs neither.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakevilla.predicates import And, Anything, Column, Compare, IsNotNull, IsNull, Operator, Or, Predicate


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds of one column over many files: arrays of equal length, null where unknown.

    `minimum` and `maximum` have the column's type. `nulls` counts null rows and `rows` all rows.
    """

    minimum: pa.Array
    maximum: pa.Array
    nulls: pa.Array
    rows: pa.Array


@dataclass(frozen=True, slots=True)
class Summary:
    """What statistics say exactly of all rows for which a predicate is true: how many there are, the least
    and the greatest value of columns (null if there is none), and the identities of the files that hold
    them."""

    rows: int
    ranges: Mapping[str, tuple[pa.Scalar, pa.Scalar]]
    files: frozenset[str]


BoundsOf = Callable[[Column], Bounds | None]


def may_match(predicate: Predicate, bounds_of: BoundsOf, count: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """One flag per file: False only where no row of the file can make the predicate true."""
    match predicate:
        case Anything():
            return np.ones(count, dtype=np.bool_)
        case And(parts):
            keep = np.ones(count, dtype=np.bool_)
            for part in parts:
                keep &= may_match(part, bounds_of, count)
            return keep
        case Or(parts):
            keep = np.zeros(count, dtype=np.bool_)
            for part in parts:
                keep |= may_match(part, bounds_of, count)
            return keep
        case IsNull(column):
            bounds = bounds_of(column)
            return _all(count) if bounds is None else _not_false(pc.greater(bounds.nulls, 0))
        case IsNotNull(column):
            bounds = bounds_of(column)
            return _all(count) if bounds is None else _not_false(pc.less(bounds.nulls, bounds.rows))
        case Compare(column, operator, value):
            bounds = bounds_of(column)
            return _all(count) if bounds is None else _compare(bounds, operator, value)


def _compare(bounds: Bounds, operator: Operator, value: Any) -> np.ndarray[Any, np.dtype[np.bool_]]:
    keep = _not_false(pc.less(bounds.nulls, bounds.rows))
    if isinstance(value, float) and value != value:
        return keep
    minimum, maximum = _without_nan(bounds.minimum), _without_nan(bounds.maximum)
    try:
        literal = _literal(value, minimum.type)
        if operator in ("=", "<", "<="):
            below = pc.less if operator == "<" else pc.less_equal
            keep &= _not_false(below(minimum, literal))
        # A file may hold a NaN that its bounds do not show, and a NaN is above every value.
        if operator == "=" or (operator in (">", ">=") and not pa.types.is_floating(maximum.type)):
            above = pc.greater if operator == ">" else pc.greater_equal
            keep &= _not_false(above(maximum, literal))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, OverflowError):
        # The value has no meaning in the column's type: the engine decides, the file stays.
        return _all(len(bounds.rows))
    return keep


def _without_nan(bounds: pa.Array) -> pa.Array:
    """A bound that is NaN says nothing of the other values: writers disagree on where NaN sorts."""
    if not pa.types.is_floating(bounds.type):
        return bounds
    return pc.if_else(pc.is_nan(bounds), pa.scalar(None, bounds.type), bounds)


def _literal(value: Any, column_type: pa.DataType) -> pa.Scalar:
    """The value as a scalar that Arrow compares with the column without loss."""
    if pa.types.is_integer(column_type) and isinstance(value, int) and not isinstance(value, bool):
        return pa.scalar(value, pa.int64())
    if pa.types.is_floating(column_type) and isinstance(value, int) and not isinstance(value, bool):
        return pa.scalar(float(value), pa.float64())
    scalar = pa.scalar(value)
    if type(value) in _KINDS and not _KINDS[type(value)](column_type):
        raise pa.ArrowTypeError(f"{value!r} cannot be compared with {column_type}")
    if pa.types.is_temporal(column_type) or pa.types.is_decimal(column_type):
        return pa.scalar(value, column_type)
    return scalar


_KINDS: dict[type, Callable[[pa.DataType], bool]] = {
    str: lambda t: pa.types.is_string(t) or pa.types.is_large_string(t),
    bytes: lambda t: pa.types.is_binary(t) or pa.types.is_large_binary(t),
    bool: pa.types.is_boolean,
    float: lambda t: pa.types.is_floating(t) or pa.types.is_integer(t),
}


def _not_false(flags: pa.Array) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Unknown keeps the file."""
    if isinstance(flags, pa.ChunkedArray):
        flags = flags.combine_chunks()
    result: np.ndarray[Any, np.dtype[np.bool_]] = pc.fill_null(flags, True).to_numpy(zero_copy_only=False)
    return result.astype(np.bool_)


def _all(count: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    return np.ones(count, dtype=np.bool_)
