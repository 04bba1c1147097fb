"""Predicates that can be asked of a file without reading it, and the one place that asks them.

A predicate here is a promise in one direction: if `may_match` says no for a file, no row of the file
makes the predicate true. So whatever a statement filters by may be weakened to a predicate of this
module (an expression that we cannot read becomes `ANYTHING`), never strengthened. Pruning of scans,
skipping of row groups and the conflict rules all go through `may_match`.

Comparisons follow Spark SQL: a comparison with NULL is never true, NaN is greater than every other
number and equal to itself. Columns are paths of logical names, `("address", "city")`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Operator = Literal["=", "<", "<=", ">", ">="]
Column = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Anything:
    """True for every row, as far as we can tell."""


@dataclass(frozen=True, slots=True)
class Compare:
    """`column operator value`; the value is a plain Python value and not None."""

    column: Column
    operator: Operator
    value: Any


@dataclass(frozen=True, slots=True)
class IsNull:
    column: Column


@dataclass(frozen=True, slots=True)
class IsNotNull:
    column: Column


@dataclass(frozen=True, slots=True)
class And:
    parts: "tuple[Predicate, ...]"


@dataclass(frozen=True, slots=True)
class Or:
    """True if one part is; without parts it is never true."""

    parts: "tuple[Predicate, ...]"


Predicate = Anything | Compare | IsNull | IsNotNull | And | Or

ANYTHING = Anything()
NOTHING = Or(())


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds of one column over many files: arrays of equal length, null where unknown.

    `minimum` and `maximum` have the column's type. `nulls` counts null rows and `rows` all rows.
    """

    minimum: pa.Array
    maximum: pa.Array
    nulls: pa.Array
    rows: pa.Array


BoundsOf = Callable[[Column], Bounds | None]


def conjunction(parts: "list[Predicate]") -> Predicate:
    """All parts together, flattened; ANYTHING when nothing restricts."""
    flat: list[Predicate] = []
    for part in parts:
        if isinstance(part, And):
            flat.extend(part.parts)
        elif not isinstance(part, Anything):
            flat.append(part)
    if not flat:
        return ANYTHING
    return flat[0] if len(flat) == 1 else And(tuple(flat))


def disjunction(parts: "list[Predicate]") -> Predicate:
    """Any of the parts; ANYTHING as soon as one part is."""
    if any(isinstance(part, Anything) for part in parts):
        return ANYTHING
    return parts[0] if len(parts) == 1 else Or(tuple(parts))


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
