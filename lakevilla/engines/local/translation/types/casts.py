"""CAST and TRY_CAST as Spark does them in ANSI mode: a value that does not fit is an error.

DuckDB rounds where Spark cuts off, reads texts that Spark refuses, and writes floats in another way, so
most pairs of types have a rule of their own; a pair without a rule is refused.
"""

import pyarrow as pa

from lakevilla.engines.local.translation.types.typed import (
    Typed,
    cast_sql,
    duckdb_type,
    fails_unsupported,
    identifier,
    is_binary,
    is_list,
    is_numeric,
    is_text,
    is_uuid,
    refuse,
    text,
)
from lakevilla.errors import InvalidInput
from lakevilla.sql.types import type_name

_INTEGER_TEXT = "[+-]?[0-9]+"
_NUMBER_TEXT = "[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?"
_DOUBLE_TEXT = f"{_NUMBER_TEXT}|(?i:[+-]?(inf|infinity)|nan)"
_SUFFIXED_TEXT = f"{_NUMBER_TEXT}[dDfF]"
_DATE_TEXT = "[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}"
# What Spark may read as a day or a moment, beyond what we do: years of other lengths or without a day,
# hours alone, more than six digits of a second, zones by name, and words.
_ODD_MOMENT = (
    "(?i)[+-]?[0-9]{4,7}(-[0-9]{1,2}(-[0-9]{1,2}([ T].*)?)?)?|T?[0-9]{1,2}:.*"
    "|(epoch|now|today|yesterday|tomorrow)( .*)?"
)
_HOURS_TEXT = "[0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}([.][0-9]{1,6})?"
_UUID_TEXT = "(?i)[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_UUID_DIGITS = "(.{8})(.{4})(.{4})(.{4})(.{12})"
_TIME_TEXT = f"[ T]{_HOURS_TEXT}"


def cast(value: Typed, to: pa.DataType) -> Typed:
    """CAST(value AS to)."""
    return _cast(value, to, _Strict())


def try_cast(value: Typed, to: pa.DataType) -> Typed:
    """TRY_CAST: NULL where CAST fails."""
    return _cast(value, to, _Lenient())


class _Strict:
    """What a value does that does not fit: CAST fails."""

    def cast(self, sql: str, to: pa.DataType) -> str:
        return cast_sql(sql, to)

    def bad(self, sql: str, to: pa.DataType) -> str:
        return f"error({text(f'the value cannot be cast to {type_name(to)}: ')} || {sql})"


class _Lenient(_Strict):
    """TRY_CAST gives NULL."""

    def cast(self, sql: str, to: pa.DataType) -> str:
        return f"TRY_CAST({sql} AS {duckdb_type(to)})"

    def bad(self, sql: str, to: pa.DataType) -> str:  # noqa: ARG002 - the value does not matter
        return "NULL"


def _cast(value: Typed, to: pa.DataType, mode: _Strict) -> Typed:
    if value.type == to:
        return value
    if pa.types.is_null(value.type):
        return Typed(cast_sql("NULL", to), to, None)
    return Typed(_rule(value, to, mode), to, aggregate=value.aggregate)


def _rule(value: Typed, to: pa.DataType, mode: _Strict) -> str:
    source, sql = value.type, value.sql
    if duckdb_type(source) == duckdb_type(to) and not pa.types.is_nested(to):
        return sql
    if is_text(source):
        return _from_text(sql, to, mode)
    if is_text(to):
        return _to_text(sql, source)
    if is_numeric(source) and is_numeric(to):
        return _number_to_number(sql, source, to, mode)
    if pa.types.is_boolean(source) and is_numeric(to):
        return mode.cast(cast_sql(sql, pa.int32()), to)
    if is_numeric(source) and pa.types.is_boolean(to):
        return f"({sql} <> 0)"
    if pa.types.is_date(source) and pa.types.is_timestamp(to):
        return cast_sql(sql, to)
    if pa.types.is_timestamp(source) and pa.types.is_date(to):
        return cast_sql(sql, to)
    if pa.types.is_timestamp(source) and source.tz and pa.types.is_int64(to):
        return seconds_sql(sql)
    if pa.types.is_nested(source):
        return _nested(sql, source, to)
    if pa.types.is_timestamp(source) and source.tz and is_numeric(to):
        refuse(f"CAST of timestamp to {type_name(to)}")
    if is_numeric(source) and pa.types.is_timestamp(to) and to.tz:
        refuse(f"CAST of {type_name(source)} to timestamp")
    raise InvalidInput(f"Spark SQL has no cast from {type_name(source)} to {type_name(to)}")


def seconds_sql(sql: str) -> str:
    """Whole seconds since 1970, rounded down also before it."""
    return f"(epoch_us({sql}) // 1000000 - CASE WHEN epoch_us({sql}) % 1000000 < 0 THEN 1 ELSE 0 END)"


def _number_to_number(sql: str, source: pa.DataType, to: pa.DataType, mode: _Strict) -> str:
    if pa.types.is_integer(to) and not pa.types.is_integer(source):
        # Spark cuts the fraction off, DuckDB would round.
        return mode.cast(f"trunc({sql})", to)
    if pa.types.is_floating(source) and pa.types.is_decimal(to):
        # Spark rounds the shortest decimal text of the double, not its exact value; of NaN it makes NULL.
        return f"CASE WHEN isfinite({sql}) THEN {mode.cast(f'CAST({sql} AS VARCHAR)', to)} END"
    if pa.types.is_decimal(source) and pa.types.is_floating(to) and source.precision > 15:
        return cast_sql(f"CAST({sql} AS VARCHAR)", to)
    if pa.types.is_float64(source) and pa.types.is_float32(to):
        # DuckDB refuses what does not fit, Spark makes it infinite.
        return (
            f"CASE WHEN isfinite({sql}) AND abs({sql}) > 3.4028235677973366e38::DOUBLE "
            f"THEN {fails_unsupported('a double beyond the range of float')} ELSE {cast_sql(sql, to)} END"
        )
    return mode.cast(sql, to)


def _from_text(sql: str, to: pa.DataType, mode: _Strict) -> str:
    trimmed = f"trim({sql}, E' \\t\\n\\r\\f')"
    if pa.types.is_integer(to):
        return _read(trimmed, _INTEGER_TEXT, trimmed, to, mode)
    if pa.types.is_floating(to):
        suffixed = f"regexp_full_match({trimmed}, {text(_SUFFIXED_TEXT)})"
        number = f"CASE WHEN {suffixed} THEN ({trimmed})[:-2] ELSE {trimmed} END"
        return _read(trimmed, f"{_DOUBLE_TEXT}|{_SUFFIXED_TEXT}", number, to, mode)
    if pa.types.is_decimal(to):
        return _read(trimmed, _NUMBER_TEXT, trimmed, to, mode)
    if pa.types.is_boolean(to):
        return (
            f"CASE WHEN lower({trimmed}) IN ('t', 'true', 'y', 'yes', '1') THEN TRUE "
            f"WHEN lower({trimmed}) IN ('f', 'false', 'n', 'no', '0') THEN FALSE "
            f"WHEN {sql} IS NOT NULL THEN {mode.bad(sql, to)} END"
        )
    if pa.types.is_date(to):
        day = f"regexp_extract({trimmed}, {text(_DATE_TEXT)})"
        other = f"CASE WHEN {_odd(trimmed)} ELSE {mode.bad(sql, to)} END"
        return (
            f"CASE WHEN regexp_full_match({trimmed}, {text(f'{_DATE_TEXT}([ T].*)?')}) "
            f"THEN {mode.cast(day, to)} WHEN {sql} IS NOT NULL THEN {other} END"
        )
    if pa.types.is_timestamp(to):
        return _text_to_timestamp(trimmed, to, mode)
    if pa.types.is_time(to):
        return _read(trimmed, _HOURS_TEXT, trimmed, to, mode)
    if is_uuid(to):
        return _read(trimmed, _UUID_TEXT, f"unhex(replace({trimmed}, '-', ''))", to, mode)
    if is_binary(to):
        return f"encode({sql})"
    raise InvalidInput(f"Spark SQL has no cast from string to {type_name(to)}")


def _text_to_timestamp(sql: str, to: pa.DataType, mode: _Strict) -> str:
    """DuckDB ignores an offset in a text that becomes a TIMESTAMP; the value is wanted in UTC."""
    moment = f"{_DATE_TEXT}({_TIME_TEXT})?"
    zoned = f"{_DATE_TEXT}{_TIME_TEXT}(Z|[+-][0-9]{{2}}:[0-9]{{2}})"
    minutes = f"{_DATE_TEXT}[ T][0-9]{{1,2}}:[0-9]{{1,2}}"
    shifted = f"WHEN regexp_full_match({sql}, {text(zoned)}) THEN {_shifted(sql, to, mode)} " if to.tz else ""
    whole = mode.cast(f"{sql} || ':00'", to)
    return (
        f"CASE WHEN regexp_full_match({sql}, {text(moment)}) THEN {mode.cast(sql, to)} {shifted}"
        f"WHEN regexp_full_match({sql}, {text(minutes)}) THEN {whole} "
        f"WHEN {_odd(sql)} WHEN {sql} IS NOT NULL THEN {mode.bad(sql, to)} END"
    )


def _odd(sql: str) -> str:
    refused = fails_unsupported("a day or moment written in an unusual way")
    return f"regexp_full_match({sql}, {text(_ODD_MOMENT)}) THEN {refused}"


def _shifted(sql: str, to: pa.DataType, mode: _Strict) -> str:
    zulu, local = f"rtrim({sql}, 'Z')", f"({sql})[:-7]"
    minutes = f"(CAST(({sql})[-5:-4] AS INTEGER) * 60 + CAST(({sql})[-2:] AS INTEGER))"
    return (
        f"CASE ({sql})[-6:-6] WHEN '+' THEN {mode.cast(local, to)} - to_minutes({minutes}) "
        f"WHEN '-' THEN {mode.cast(local, to)} + to_minutes({minutes}) ELSE {mode.cast(zulu, to)} END"
    )


def _read(sql: str, pattern: str, value: str, to: pa.DataType, mode: _Strict) -> str:
    """Convert texts of this pattern; another text does not fit, NULL stays NULL."""
    return (
        f"CASE WHEN regexp_full_match({sql}, {text(pattern)}) THEN {mode.cast(value, to)} "
        f"WHEN {sql} IS NOT NULL THEN {mode.bad(sql, to)} END"
    )


def _to_text(sql: str, source: pa.DataType) -> str:
    if pa.types.is_floating(source):
        # Between these bounds Java and DuckDB write the same digits; outside they use other exponents.
        return (
            f"CASE WHEN isnan({sql}) THEN 'NaN' WHEN isinf({sql}) THEN CASE WHEN {sql} > 0 THEN 'Infinity' "
            f"ELSE '-Infinity' END WHEN {sql} = 0 OR (abs({sql}) >= 0.001 AND abs({sql}) < 10000000) "
            f"THEN CAST({sql} AS VARCHAR) WHEN {sql} IS NOT NULL THEN "
            f"{fails_unsupported('text of a very large or very small float')} END"
        )
    if pa.types.is_decimal(source) or pa.types.is_integer(source) or pa.types.is_boolean(source):
        return cast_sql(sql, pa.string())
    if pa.types.is_date(source) or pa.types.is_timestamp(source):
        return (
            f"CASE WHEN year({sql}) BETWEEN 1 AND 9999 THEN CAST({sql} AS VARCHAR) WHEN {sql} IS NOT NULL "
            f"THEN {fails_unsupported('text of a year beyond 9999')} END"
        )
    if pa.types.is_time(source):
        return cast_sql(sql, pa.string())
    if is_uuid(source):
        return f"regexp_replace(lower(hex({sql})), '{_UUID_DIGITS}', '\\1-\\2-\\3-\\4-\\5')"
    if is_binary(source):
        refused = fails_unsupported("text of bytes that are not UTF-8")
        return f"CASE WHEN {sql} IS NOT NULL THEN coalesce(TRY(decode({sql})), {refused}) END"
    return refuse(f"CAST of {type_name(source)} to string")


def _nested(sql: str, source: pa.DataType, to: pa.DataType) -> str:
    """Element by element, only where DuckDB's own cast of the elements means the same."""
    if _same_cast(source, to):
        if pa.types.is_struct(to):
            return _by_position(sql, source, to)
        return cast_sql(sql, to)
    return refuse(f"CAST of {type_name(source)} to {type_name(to)}")


def _by_position(sql: str, source: pa.DataType, to: pa.DataType) -> str:
    fields = ", ".join(
        f"{identifier(new.name)} := {cast(Typed(f'({sql})[{text(old.name)}]', old.type), new.type).sql}"
        for old, new in zip(source, to, strict=True)
    )
    return f"CASE WHEN ({sql}) IS NOT NULL THEN struct_pack({fields}) END"


def _same_cast(source: pa.DataType, to: pa.DataType) -> bool:
    if source == to or pa.types.is_null(source):
        return True
    if is_list(source) and is_list(to):
        return _same_cast(source.value_type, to.value_type) and not _renames(source.value_type, to.value_type)
    if pa.types.is_map(source) and pa.types.is_map(to):
        pairs = ((source.key_type, to.key_type), (source.item_type, to.item_type))
        return all(_same_cast(a, b) and not _renames(a, b) for a, b in pairs)
    if pa.types.is_struct(source) and pa.types.is_struct(to) and source.num_fields == to.num_fields:
        return all(_same_cast(a.type, b.type) for a, b in zip(source, to, strict=True))
    if pa.types.is_integer(source):
        return is_numeric(to)
    return is_numeric(source) and pa.types.is_float64(to) and not pa.types.is_decimal(source)


def _renames(source: pa.DataType, to: pa.DataType) -> bool:
    """DuckDB casts structs by name, Spark by position: below a list we can only follow equal names."""
    if pa.types.is_struct(source):
        return [f.name for f in source] != [f.name for f in to]
    return False


def store_assignable(source: pa.DataType, to: pa.DataType) -> bool:
    """Whether Spark's ANSI store assignment takes a value of one type for a column of another."""
    if source == to or pa.types.is_null(source):
        return True
    if is_numeric(source) and is_numeric(to):
        return True
    if is_text(to):
        return not pa.types.is_nested(source)
    if is_text(source) and is_uuid(to):
        # As with Spark and Iceberg, where a UUID is a text.
        return True
    if _is_time(source) and _is_time(to):
        return True
    if is_list(source) and is_list(to):
        return store_assignable(source.value_type, to.value_type)
    if pa.types.is_map(source) and pa.types.is_map(to):
        return store_assignable(source.key_type, to.key_type) and store_assignable(
            source.item_type, to.item_type
        )
    if pa.types.is_struct(source) and pa.types.is_struct(to) and source.num_fields == to.num_fields:
        return all(store_assignable(a.type, b.type) for a, b in zip(source, to, strict=True))
    return duckdb_type(source) == duckdb_type(to)


def assign(value: Typed, to: pa.DataType, column: str) -> Typed:
    """The value as a column stores it; what store assignment does not allow is InvalidInput."""
    if not store_assignable(value.type, to):
        raise InvalidInput(
            f"column {column!r}: a {type_name(value.type)} cannot be stored as {type_name(to)}; write a CAST",
            column=column,
        )
    return cast(value, to)


def _is_time(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_date(data_type) or pa.types.is_timestamp(data_type))
