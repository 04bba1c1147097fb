"""Arithmetic and comparisons with Spark's types and failures."""

from decimal import Decimal

import pyarrow as pa

from lakevilla.engines.local.translation.keys import holds
from lakevilla.engines.local.translation.types.casts import cast
from lakevilla.engines.local.translation.types.coercion import (
    common,
    decimal_of,
    decimal_result,
    wider_decimal,
)
from lakevilla.engines.local.translation.types.typed import (
    Typed,
    cast_sql,
    fails,
    is_numeric,
    is_text,
    mismatch,
    refuse,
)
from lakevilla.sql.types import type_name


def arithmetic(operator: str, one: Typed, other: Typed) -> Typed:
    """`+ - * / %` of numbers. Overflow and division by zero are errors."""
    one, other = _numbers(operator, one, other)
    inside = one.aggregate or other.aggregate
    if pa.types.is_decimal(one.type):
        sql, result = _decimal(operator, one, other)
        return Typed(sql, result, aggregate=inside)
    if operator == "/":
        one, other = cast(one, pa.float64()), cast(other, pa.float64())
    if operator in "/%":
        return Typed(f"({one.sql} {operator} {nonzero(other, one)})", one.type, aggregate=inside)
    return Typed(f"({one.sql} {operator} {other.sql})", one.type, aggregate=inside)


def integral_division(one: Typed, other: Typed) -> Typed:
    """`div` of integers: a bigint, cut off towards zero."""
    one, other = _numbers("div", one, other)
    if not pa.types.is_integer(one.type):
        refuse(f"div of {type_name(one.type)}")
    one, other = cast(one, pa.int64()), cast(other, pa.int64())
    return Typed(
        f"({one.sql} // {nonzero(other, one)})", pa.int64(), aggregate=one.aggregate or other.aggregate
    )


def nonzero(divisor: Typed, dividend: Typed) -> str:
    """The divisor, failing where it is zero; a NULL dividend makes NULL before that."""
    if divisor.is_constant and divisor.constant:
        return divisor.sql
    zero = fails("division by zero; use try_divide to get NULL instead")
    return f"CASE WHEN {divisor.sql} = 0 AND {dividend.sql} IS NOT NULL THEN {zero} ELSE {divisor.sql} END"


def negative(value: Typed) -> Typed:
    if is_text(value.type) or pa.types.is_null(value.type):
        value = cast(value, pa.float64())
    if not is_numeric(value.type):
        mismatch("-", value)
    return Typed(f"(- {value.sql})", value.type, aggregate=value.aggregate)


def bitwise(operator: str, one: Typed, other: Typed) -> Typed:
    if not pa.types.is_integer(one.type) or not pa.types.is_integer(other.type):
        mismatch(operator, one, other)
    to = common(one.type, other.type)
    left, right = cast(one, to).sql, cast(other, to).sql
    sql = f"xor({left}, {right})" if operator == "^" else f"({left} {operator} {right})"
    return Typed(sql, to, aggregate=one.aggregate or other.aggregate)


def comparison(operator: str, one: Typed, other: Typed) -> Typed:
    """`= <> < <= > >=` and IS [NOT] DISTINCT FROM, in the common type of both sides."""
    to = common(one.type, other.type)
    if holds(to, pa.types.is_map):
        mismatch(operator, one, other)
    if pa.types.is_nested(to) and operator[0] in "<>" and operator != "<>":
        refuse(f"{operator} of {type_name(to)}")
    left, right = cast(one, to), cast(other, to)
    return Typed(
        f"({left.sql} {operator} {right.sql})", pa.bool_(), aggregate=one.aggregate or other.aggregate
    )


def divided(one: Typed, other: str, scale: int, result: pa.DataType) -> str:
    """A decimal divided by an integer text, rounded half up to the scale of the result.

    `scale` is how many digits the division adds. DuckDB divides decimals as doubles, so this goes
    through 128-bit integers, and fails where they do not suffice.
    """
    numerator = f"({_unscaled(one)} * {10**scale}::HUGEINT)"
    half = f"(abs({numerator}) + abs({other}) // 2) // abs({other})"
    # `// 2` cuts off for odd divisors, where a tie cannot occur, so half up stays exact.
    sign = f"CASE WHEN ({one.sql} < 0) <> ({other} < 0) THEN -1 ELSE 1 END"
    return _scaled(f"({sign} * ({half}))", result)


def _numbers(operator: str, one: Typed, other: Typed) -> tuple[Typed, Typed]:
    """Both sides as decimals, or both in one other numeric type."""
    for value, beside in ((one, other), (other, one)):
        if not is_numeric(value.type) and not (is_text(value.type) or pa.types.is_null(value.type)):
            mismatch(operator, one, other)
        if not is_numeric(value.type) and not is_numeric(beside.type):
            refuse(f"{operator} of {type_name(one.type)} and {type_name(other.type)}")
    if pa.types.is_decimal(one.type) or pa.types.is_decimal(other.type):
        one, other = _as_decimal(one, other), _as_decimal(other, one)
        if pa.types.is_decimal(one.type) and pa.types.is_decimal(other.type):
            return one, other
    to = common(one.type, other.type)
    return cast(one, to), cast(other, to)


def _as_decimal(value: Typed, beside: Typed) -> Typed:
    """An integer in an operation with a decimal; a literal takes just as many digits as it has."""
    if not pa.types.is_integer(value.type) or not pa.types.is_decimal(beside.type):
        return value
    if value.is_constant and isinstance(value.constant, int):
        return cast(value, pa.decimal128(max(1, len(str(abs(value.constant)))), 0))
    return cast(value, decimal_of(value.type))


def _decimal(operator: str, one: Typed, other: Typed) -> tuple[str, pa.DataType]:
    result = decimal_result(operator, one.type, other.type)
    if operator == "/":
        return _decimal_division(one, other, result), result
    exact = one.type.scale + other.type.scale if operator == "*" else max(one.type.scale, other.type.scale)
    if exact != result.scale:
        refuse(f"{type_name(one.type)} {operator} {type_name(other.type)}: it needs more than 38 digits")
    if operator == "%":
        wide = wider_decimal(one.type, other.type)
        left, right = cast(one, wide), cast(other, wide)
        return cast_sql(f"({left.sql} % {nonzero(right, left)})", result), result
    if result.precision > 18:
        # DuckDB would compute in 64 bits as long as both sides fit into them.
        one = cast(one, pa.decimal128(max(19, one.type.precision), one.type.scale))
    return cast_sql(f"({one.sql} {operator} {other.sql})", result), result


def _decimal_division(one: Typed, other: Typed, result: pa.DataType) -> str:
    shift = result.scale + other.type.scale - one.type.scale
    if shift < 0:
        refuse(f"{type_name(one.type)} / {type_name(other.type)}")
    divisor = Typed(nonzero(other, one), other.type)
    return divided(one, _unscaled(divisor), shift, result)


def _unscaled(value: Typed) -> str:
    """The digits of a decimal as an integer."""
    precision, scale = value.type.precision, value.type.scale
    if scale == 0:
        return f"CAST({value.sql} AS HUGEINT)"
    if precision + scale + 1 > 38:
        refuse(f"division of {type_name(value.type)}: it needs more than 38 digits")
    return f"CAST({value.sql} * CAST({10**scale} AS DECIMAL({scale + 1},0)) AS HUGEINT)"


def _scaled(digits: str, result: pa.DataType) -> str:
    """The decimal that has these digits: its text with the point put in."""
    if result.scale == 0:
        return cast_sql(digits, result)
    unit = Decimal(1).scaleb(-result.scale)
    return cast_sql(
        f"(CAST({digits} AS DECIMAL(38,0)) * CAST('{unit:f}' AS DECIMAL({result.scale},{result.scale})))",
        result,
    )
