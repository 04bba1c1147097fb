"""Values on their way into a column: which types a column takes, and which values fit.

Spark's ANSI store assignment, whatever the session's own setting. A value that does not fit is flagged and
not raised: the task that writes rows sees the flag, and the statement fails with one plain message.
"""

from dataclasses import dataclass

import pyarrow as pa

from lakevilla.engines.spark import types
from lakevilla.errors import InvalidInput
from lakevilla.sql.types import type_name

_DIGITS = {8: 3, 16: 5, 32: 10, 64: 19}


@dataclass(frozen=True)
class Value:
    """An expression and its type."""

    sql: str
    type: pa.DataType


@dataclass(frozen=True)
class Assigned:
    """An expression with exactly a column's type; `bad` is true for rows whose value does not fit."""

    sql: str
    bad: str | None = None


def assign(value: Value, field: pa.Field, is_ansi: bool = True) -> Assigned:
    """The value as the column stores it; InvalidInput if the column takes no value of its type.

    Inside nested values Spark's CAST judges what fits, and without ANSI mode it would cut them.
    """
    if not _assignable(value.type, field.type):
        raise InvalidInput(
            f"column {field.name!r}: a {type_name(value.type)} cannot be stored as {type_name(field.type)}; "
            "write a CAST",
            column=field.name,
        )
    if types.logical(value.type) == types.logical(field.type):
        return Assigned(value.sql)
    wanted = types.sql_type(field.type)
    if pa.types.is_nested(field.type) and not is_ansi and not _all_fit(value.type, field.type):
        raise InvalidInput(
            f"column {field.name!r}: a {type_name(value.type)} may not fit into {type_name(field.type)}, and "
            "without ANSI mode Spark does not say so; set spark.sql.ansi.enabled=true, or write a CAST",
            column=field.name,
        )
    if pa.types.is_null(value.type) or pa.types.is_nested(field.type) or _always_fits(value.type, field.type):
        return Assigned(f"CAST({value.sql} AS {wanted})")
    tried = f"try_cast({value.sql} AS {wanted})"
    return Assigned(tried, f"({value.sql}) IS NOT NULL AND {tried} IS NULL")


def _assignable(source: pa.DataType, to: pa.DataType) -> bool:
    if pa.types.is_null(source) or source == to:
        return True
    if pa.types.is_nested(source) or pa.types.is_nested(to):
        return _assignable_nested(source, to)
    if _is_number(source) and _is_number(to):
        return True
    return bool(pa.types.is_string(to) or (pa.types.is_temporal(source) and pa.types.is_temporal(to)))


def _assignable_nested(source: pa.DataType, to: pa.DataType) -> bool:
    if pa.types.is_list(source) and pa.types.is_list(to):
        return _assignable(source.value_type, to.value_type)
    if pa.types.is_map(source) and pa.types.is_map(to):
        return _assignable(source.key_type, to.key_type) and _assignable(source.item_type, to.item_type)
    if pa.types.is_struct(source) and pa.types.is_struct(to) and source.num_fields == to.num_fields:
        return all(_assignable(a.type, b.type) for a, b in zip(source, to, strict=True))
    return False


def _is_number(data_type: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(data_type) or pa.types.is_floating(data_type) or pa.types.is_decimal(data_type)
    )


def _all_fit(source: pa.DataType, to: pa.DataType) -> bool:
    """Whether every value inside a nested value fits, by the types alone."""
    if pa.types.is_null(source) or types.logical(source) == types.logical(to):
        return True
    if not pa.types.is_nested(source):
        return _always_fits(source, to)
    inside = range(source.num_fields)
    return all(_all_fit(source.field(i).type, to.field(i).type) for i in inside)


def _always_fits(source: pa.DataType, to: pa.DataType) -> bool:
    """Whether every value of one type has a counterpart in the other, so that no flag is needed."""
    if pa.types.is_string(to) or pa.types.is_floating(to):
        return True
    if pa.types.is_integer(source) and pa.types.is_integer(to):
        return bool(source.bit_width <= to.bit_width)
    if pa.types.is_decimal(to):
        if pa.types.is_integer(source):
            return bool(to.precision - to.scale >= _DIGITS[source.bit_width])
        return bool(
            pa.types.is_decimal(source)
            and to.precision - to.scale > source.precision - source.scale - (to.scale >= source.scale)
        )
    return bool(pa.types.is_temporal(source))
