"""Spark's rules for types that meet: the common type of two, and the results of decimal arithmetic.

These are the rules of ANSI mode (`AnsiTypeCoercion`, `DecimalPrecision` in Spark's source): a string is cast
to the type of the other side, integers and floats meet in double, decimals keep their integral digits.
"""

from collections.abc import Iterable
from functools import reduce

import pyarrow as pa

from lakevilla.engines.local.translation.types.typed import is_binary, is_list, is_text, refuse
from lakevilla.errors import InvalidInput
from lakevilla.sql.types import TIMESTAMP, type_name

_INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_INTEGER_DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 20}


def common_type(types: Iterable[pa.DataType]) -> pa.DataType:
    """The type in which values of all these types meet, as in CASE, COALESCE, IN, UNION."""
    return reduce(common, types)


def common(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """The type in which two values are compared or put together; InvalidInput if there is none."""
    if one == other or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    if is_text(one) or is_text(other):
        return _with_text(one, other)
    if pa.types.is_decimal(one) or pa.types.is_decimal(other):
        return _with_decimal(one, other)
    if one in _INTEGERS and other in _INTEGERS:
        return max(one, other, key=_INTEGERS.index)
    if _plain_number(one) and _plain_number(other):
        # Not float: an int would lose digits in it.
        return pa.float64()
    if is_binary(one) and is_binary(other):
        return pa.binary()
    if _moment(one) and _moment(other):
        return TIMESTAMP if TIMESTAMP in (one, other) else one if pa.types.is_timestamp(one) else other
    return _nested(one, other)


def decimal_of(integer: pa.DataType) -> pa.DataType:
    """The decimal that holds every value of an integer type."""
    return pa.decimal128(_INTEGER_DIGITS[integer], 0)


def decimal_result(operator: str, one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """The type of `one operator other`, both decimals."""
    p1, s1, p2, s2 = one.precision, one.scale, other.precision, other.scale
    match operator:
        case "+" | "-":
            scale = max(s1, s2)
            return adjusted(max(p1 - s1, p2 - s2) + scale + 1, scale)
        case "*":
            return adjusted(p1 + p2 + 1, s1 + s2)
        case "/":
            scale = max(6, s1 + p2 + 1)
            return adjusted(p1 - s1 + s2 + scale, scale)
        case "%":
            scale = max(s1, s2)
            return adjusted(min(p1 - s1, p2 - s2) + scale, scale)
    raise AssertionError(operator)


def adjusted(precision: int, scale: int) -> pa.DataType:
    """At most 38 digits: integral digits are kept, of the scale at least 6 digits stay."""
    if precision <= 38:
        return pa.decimal128(precision, scale)
    return pa.decimal128(38, max(38 - (precision - scale), min(scale, 6)))


def wider_decimal(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """The decimal that holds both without loss."""
    scale = max(one.scale, other.scale)
    precision = max(one.precision - one.scale, other.precision - other.scale) + scale
    if precision > 38:
        refuse(f"{type_name(one)} together with {type_name(other)}: they need more than 38 digits")
    return pa.decimal128(precision, scale)


def _with_text(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """A string is read as the other side's type; numbers are read widely."""
    if is_text(one) and is_text(other):
        return pa.string()
    typed = other if is_text(one) else one
    if pa.types.is_integer(typed):
        return pa.int64()
    if pa.types.is_floating(typed) or pa.types.is_decimal(typed):
        return pa.float64()
    if pa.types.is_nested(typed):
        raise InvalidInput(f"string and {type_name(typed)} have no common type")
    return typed


def _with_decimal(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    if pa.types.is_floating(one) or pa.types.is_floating(other):
        return pa.float64()
    left = decimal_of(one) if one in _INTEGERS else one
    right = decimal_of(other) if other in _INTEGERS else other
    if not pa.types.is_decimal(left) or not pa.types.is_decimal(right):
        raise InvalidInput(f"{type_name(one)} and {type_name(other)} have no common type")
    return wider_decimal(left, right)


def _plain_number(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_integer(data_type) or pa.types.is_floating(data_type))


def _moment(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_date(data_type) or pa.types.is_timestamp(data_type))


def _nested(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    if is_list(one) and is_list(other):
        return pa.list_(pa.field("element", common(one.value_type, other.value_type)))
    if pa.types.is_map(one) and pa.types.is_map(other):
        key, item = common(one.key_type, other.key_type), common(one.item_type, other.item_type)
        return pa.map_(key, pa.field("value", item))
    same_shape = pa.types.is_struct(one) and pa.types.is_struct(other) and one.num_fields == other.num_fields
    if same_shape and all(a.name.lower() == b.name.lower() for a, b in zip(one, other, strict=True)):
        pairs = zip(one, other, strict=True)
        return pa.struct([pa.field(a.name, common(a.type, b.type)) for a, b in pairs])
    if same_shape:
        refuse("structs together whose fields have other names")
    raise InvalidInput(f"{type_name(one)} and {type_name(other)} have no common type")
