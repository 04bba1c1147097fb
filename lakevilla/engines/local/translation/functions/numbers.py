"""Functions of numbers and conditions."""

import pyarrow as pa

from lakevilla.engines.local.translation.functions.scalars import as_double, boolean, double, function
from lakevilla.engines.local.translation.operators import arithmetic, comparison, nonzero
from lakevilla.engines.local.translation.types.casts import cast
from lakevilla.engines.local.translation.types.coercion import common, common_type
from lakevilla.engines.local.translation.types.typed import (
    Typed,
    cast_sql,
    fails_unsupported,
    is_numeric,
    is_text,
    mismatch,
    refuse,
    text,
)
from lakevilla.sql.types import type_name

_NAN = "CAST('NaN' AS DOUBLE)"


@function("abs", arity=(1, 1))
def _abs(value: Typed) -> Typed:
    if is_text(value.type) or pa.types.is_null(value.type):
        value = cast(value, pa.float64())
    if not is_numeric(value.type):
        mismatch("abs", value)
    return Typed(f"abs({value.sql})", value.type)


@function("ceil", "ceiling", arity=(1, 1))
def _ceil(value: Typed) -> Typed:
    return _whole("ceil", value)


@function("floor", arity=(1, 1))
def _floor(value: Typed) -> Typed:
    return _whole("floor", value)


def _whole(name: str, value: Typed) -> Typed:
    if pa.types.is_decimal(value.type):
        to = pa.decimal128(min(38, value.type.precision - value.type.scale + 1), 0)
        if value.type.precision - value.type.scale + 1 > 38:
            refuse(f"{name} of {type_name(value.type)}")
        return Typed(cast_sql(f"{name}({value.sql})", to), to)
    if pa.types.is_integer(value.type):
        return cast(value, pa.int64())
    # Like Java: beyond the range the nearest bigint, of NaN zero.
    whole = f"{name}({as_double(value, name)})"
    return Typed(
        f"CASE WHEN isnan({whole}) THEN 0 WHEN {whole} >= 9223372036854775807 THEN 9223372036854775807 "
        f"WHEN {whole} <= -9223372036854775807 THEN -9223372036854775808 ELSE CAST({whole} AS BIGINT) END",
        pa.int64(),
    )


@function("round", arity=(1, 2))
def _round(value: Typed, digits: Typed | None = None) -> Typed:
    """Half up, away from zero. Of a double Spark rounds the shortest decimal text."""
    scale = 0 if digits is None else digits.constant
    if not isinstance(scale, int):
        refuse("round whose number of digits is not a literal")
    if pa.types.is_decimal(value.type):
        return _round_decimal(value, scale)
    if pa.types.is_integer(value.type):
        return value if scale >= 0 else _round_integer(value, 10**-scale)
    if not pa.types.is_floating(value.type) or not 0 <= scale <= 18:
        refuse(f"round of {type_name(value.type)} to {scale} digits")
    rounded = f"CAST(CAST({value.sql} AS VARCHAR) AS DECIMAL(38,{scale}))"
    near = f"isfinite({value.sql}) AND abs({value.sql}) < 100000000000000000"
    back = cast_sql(f"CAST({rounded} AS VARCHAR)", value.type)
    return Typed(f"CASE WHEN {near} THEN {back} ELSE {value.sql} END", value.type)


def _round_integer(value: Typed, unit: int) -> Typed:
    """In 128 bits, for what is rounded up may leave the type: an error."""
    if unit > 10**19:
        refuse("round to more digits than a bigint has")
    wide = f"CAST({value.sql} AS HUGEINT)"
    rounded = f"sign({wide}) * ((abs({wide}) + {unit // 2}) // {unit}) * {unit}"
    return Typed(cast_sql(rounded, value.type), value.type)


def _round_decimal(value: Typed, scale: int) -> Typed:
    whole = value.type.precision - value.type.scale + 1
    if scale < 0:
        refuse("round of a decimal to a negative number of digits")
    kept = min(value.type.scale, scale)
    to = pa.decimal128(min(38, whole + kept), kept)
    return Typed(cast_sql(value.sql, to), to)


@function("sqrt", arity=(1, 1))
def _sqrt(value: Typed) -> Typed:
    sql = as_double(value, "sqrt")
    return double(f"CASE WHEN {sql} < 0 THEN {_NAN} ELSE sqrt({sql}) END")


@function("pow", "power", arity=(2, 2))
def _power(base: Typed, exponent: Typed) -> Typed:
    """Of whole numbers, as long as the result is exact: else the last digit is Java's own.

    exp, ln and their kin are not on the list for that reason.
    """
    one, other = as_double(base, "power"), as_double(exponent, "power")
    power = f"pow({one}, {other})"
    whole = f"{one} = trunc({one}) AND {other} = trunc({other}) AND {other} >= 0"
    inexact = fails_unsupported("power of other than whole numbers")
    return double(
        f"CASE WHEN {whole} AND abs({power}) < 9e15 THEN {power} WHEN {power} IS NOT NULL THEN {inexact} END"
    )


@function("sign", "signum", arity=(1, 1))
def _sign(value: Typed) -> Typed:
    sql = as_double(value, "sign")
    # Like Java: NaN and both zeros come back as they are.
    return double(
        f"CASE WHEN isnan({sql}) OR {sql} = 0 THEN {sql} WHEN {sql} > 0 THEN 1.0::DOUBLE "
        f"WHEN {sql} < 0 THEN -1.0::DOUBLE END"
    )


@function("mod", arity=(2, 2))
def _mod(one: Typed, other: Typed) -> Typed:
    return arithmetic("%", one, other)


@function("pmod", arity=(2, 2))
def _pmod(one: Typed, other: Typed) -> Typed:
    to = common(one.type, other.type)
    if not pa.types.is_integer(to):
        refuse(f"pmod of {type_name(to)}")
    left, right = cast(one, to), cast(other, to)
    rest = f"({left.sql} % {nonzero(right, left)})"
    return Typed(f"CASE WHEN {rest} < 0 THEN ({rest} + {right.sql}) % {right.sql} ELSE {rest} END", to)


@function("try_divide", arity=(2, 2))
def _try_divide(one: Typed, other: Typed) -> Typed:
    if pa.types.is_decimal(one.type) or pa.types.is_decimal(other.type):
        refuse("try_divide of decimals")
    left, right = as_double(one, "try_divide"), as_double(other, "try_divide")
    return double(f"CASE WHEN {right} <> 0 THEN {left} / {right} END")


@function("isnan", arity=(1, 1))
def _isnan(value: Typed) -> Typed:
    """Not null-propagating: NULL is not NaN."""
    if not is_numeric(value.type) and not pa.types.is_null(value.type):
        mismatch("isnan", value)
    return boolean(f"coalesce(isnan({as_double(value, 'isnan')}), FALSE)")


@function("nanvl", arity=(2, 2))
def _nanvl(value: Typed, other: Typed) -> Typed:
    left, right = as_double(value, "nanvl"), as_double(other, "nanvl")
    if pa.types.is_float32(value.type) and pa.types.is_float32(other.type):
        return Typed(f"CASE WHEN isnan({value.sql}) THEN {other.sql} ELSE {value.sql} END", pa.float32())
    return double(f"CASE WHEN isnan({left}) THEN {right} ELSE {left} END")


@function("coalesce", arity=(1, -1))
def _coalesce(*values: Typed) -> Typed:
    to = common_type(value.type for value in values)
    if pa.types.is_null(to):
        return Typed("NULL", to, None)
    return Typed(f"coalesce({', '.join(cast(value, to).sql for value in values)})", to)


@function("nvl", "ifnull", arity=(2, 2))
def _nvl(value: Typed, other: Typed) -> Typed:
    return _coalesce(value, other)


@function("nvl2", arity=(3, 3))
def _nvl2(value: Typed, present: Typed, absent: Typed) -> Typed:
    return choose(boolean(f"({value.sql} IS NOT NULL)"), present, absent)


@function("nullif", arity=(2, 2))
def _nullif(value: Typed, other: Typed) -> Typed:
    return Typed(f"CASE WHEN {comparison('=', value, other).sql} THEN NULL ELSE {value.sql} END", value.type)


@function("if", arity=(3, 3))
def choose(condition: Typed, one: Typed, other: Typed) -> Typed:
    if not pa.types.is_boolean(condition.type) and not pa.types.is_null(condition.type):
        mismatch("if", condition)
    to = common(one.type, other.type)
    return Typed(f"CASE WHEN {condition.sql} THEN {cast(one, to).sql} ELSE {cast(other, to).sql} END", to)


@function("isnull", arity=(1, 1))
def _isnull(value: Typed) -> Typed:
    return boolean(f"({value.sql} IS NULL)")


@function("isnotnull", arity=(1, 1))
def _isnotnull(value: Typed) -> Typed:
    return boolean(f"({value.sql} IS NOT NULL)")


def _extreme(name: str) -> None:
    @function(name, arity=(2, -1))
    def extreme(*values: Typed) -> Typed:
        to = common_type(value.type for value in values)
        if pa.types.is_nested(to):
            refuse(f"{name} of {type_name(to)}")
        return Typed(f"{name}({', '.join(cast(value, to).sql for value in values)})", to)


_extreme("greatest")
_extreme("least")


@function("typeof", arity=(1, 1))
def _typeof(value: Typed) -> Typed:
    return Typed(text(type_name(value.type)), pa.string())
