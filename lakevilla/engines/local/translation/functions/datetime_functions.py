"""Dates and timestamps. The session's zone is UTC."""

from collections.abc import Callable

import pyarrow as pa

from lakevilla.engines.local.translation.functions.scalars import (
    as_integer,
    as_text,
    constant_text,
    function,
    integer,
    string,
)
from lakevilla.engines.local.translation.types.casts import cast, seconds_sql
from lakevilla.engines.local.translation.types.typed import (
    Typed,
    cast_sql,
    fails,
    is_text,
    mismatch,
    refuse,
    text,
)
from lakevilla.errors import InvalidInput
from lakevilla.sql.types import TIMESTAMP, TIMESTAMP_NTZ

_DAY = "day"
_UNITS = {
    "year": "years",
    "quarter": "quarters",
    "month": "months",
    "week": "weeks",
    "day": "days",
    "hour": "hours",
    "minute": "minutes",
    "second": "seconds",
    "millisecond": "milliseconds",
    "microsecond": "microseconds",
}
_DATE_UNITS = ("year", "quarter", "month", "week", "day")
_MICROSECONDS = {
    "week": 604_800_000_000,
    "day": 86_400_000_000,
    "hour": 3_600_000_000,
    "minute": 60_000_000,
    "second": 1_000_000,
    "millisecond": 1000,
    "microsecond": 1,
}
_PATTERNS = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S"}


def as_date(value: Typed, name: str) -> str:
    if not (pa.types.is_date(value.type) or pa.types.is_timestamp(value.type) or _maybe(value)):
        mismatch(name, value)
    return cast(value, pa.date32()).sql


def as_timestamp(value: Typed, name: str) -> str:
    if not (pa.types.is_date(value.type) or pa.types.is_timestamp(value.type) or _maybe(value)):
        mismatch(name, value)
    return value.sql if pa.types.is_timestamp(value.type) else cast(value, TIMESTAMP).sql


def _maybe(value: Typed) -> bool:
    return is_text(value.type) or bool(pa.types.is_null(value.type))


def _field(sql: Callable[[str], str], of: Callable[[Typed, str], str], *names: str) -> None:
    @function(*names, arity=(1, 1))
    def part(value: Typed) -> Typed:
        return integer(sql(of(value, names[0])))


_field(lambda d: f"year({d})", as_date, "year")
_field(lambda d: f"quarter({d})", as_date, "quarter")
_field(lambda d: f"month({d})", as_date, "month")
_field(lambda d: f"day({d})", as_date, "day", "dayofmonth")
_field(lambda d: f"dayofyear({d})", as_date, "dayofyear")
_field(lambda d: f"dayofweek({d}) + 1", as_date, "dayofweek")
_field(lambda d: f"isodow({d}) - 1", as_date, "weekday")
_field(lambda d: f"weekofyear({d})", as_date, "weekofyear")
_field(lambda t: f"hour({t})", as_timestamp, "hour")
_field(lambda t: f"minute({t})", as_timestamp, "minute")
_field(lambda t: f"second({t})", as_timestamp, "second")

_EXTRACTED = {
    "year": "year",
    "quarter": "quarter",
    "month": "month",
    "day": "day",
    "doy": "dayofyear",
    "dow": "dayofweek",
    "dayofweek": "dayofweek",
    "week": "weekofyear",
    "hour": "hour",
    "minute": "minute",
}


def extracted(unit: str) -> str:
    """The function that EXTRACT(unit FROM ...) stands for; of seconds Spark makes a decimal."""
    if unit.lower() not in _EXTRACTED:
        refuse(f"EXTRACT({unit.upper()} ...)")
    return _EXTRACTED[unit.lower()]


def shifted(value: Typed, sign: str, count: str, unit: str) -> Typed:
    """A date or timestamp plus or minus so many units; a date stays one for units of days and more."""
    unit = unit.lower().removesuffix("s")
    if unit not in _UNITS:
        refuse(f"an interval in {unit}")
    interval = f"to_{_UNITS[unit]}({count})"
    if pa.types.is_date(value.type):
        if unit in _DATE_UNITS:
            return Typed(f"CAST({value.sql} {sign} {interval} AS DATE)", value.type)
        return Typed(f"(CAST({value.sql} AS TIMESTAMP) {sign} {interval})", TIMESTAMP)
    if not pa.types.is_timestamp(value.type):
        mismatch(f"{sign} INTERVAL", value)
    return Typed(f"({value.sql} {sign} {interval})", value.type)


@function("date_add", "dateadd", arity=(2, 2))
def date_add(day: Typed, days: Typed) -> Typed:
    return Typed(f"({as_date(day, 'date_add')} + {as_integer(days, 'date_add')})", pa.date32())


@function("date_sub", arity=(2, 2))
def date_sub(day: Typed, days: Typed) -> Typed:
    return Typed(f"({as_date(day, 'date_sub')} - {as_integer(days, 'date_sub')})", pa.date32())


@function("add_months", arity=(2, 2))
def _add_months(day: Typed, months: Typed) -> Typed:
    interval = f"to_months({as_integer(months, 'add_months')})"
    return Typed(f"CAST({as_date(day, 'add_months')} + {interval} AS DATE)", pa.date32())


@function("datediff", "date_diff", arity=(2, 2))
def _datediff(end: Typed, start: Typed) -> Typed:
    return integer(f"{as_date(end, 'datediff')} - {as_date(start, 'datediff')}")


@function("last_day", arity=(1, 1))
def _last_day(day: Typed) -> Typed:
    return Typed(f"last_day({as_date(day, 'last_day')})", pa.date32())


@function("date_trunc", arity=(2, 2))
def _date_trunc(unit: Typed, moment: Typed) -> Typed:
    names = {"yyyy": "year", "yy": "year", "mon": "month", "mm": "month", "dd": "day"}
    wanted = constant_text(unit, "date_trunc", "unit").lower()
    wanted = names.get(wanted, wanted)
    if wanted not in _UNITS:
        refuse(f"date_trunc to {wanted}")
    truncated = f"date_trunc({text(wanted)}, {as_timestamp(moment, 'date_trunc')})"
    return Typed(cast_sql(truncated, TIMESTAMP), TIMESTAMP)


@function("trunc", arity=(2, 2))
def _trunc(day: Typed, unit: Typed) -> Typed:
    names = {
        "year": "year",
        "yyyy": "year",
        "yy": "year",
        "quarter": "quarter",
        "month": "month",
        "mon": "month",
        "mm": "month",
        "week": "week",
    }
    wanted = constant_text(unit, "trunc", "unit").lower()
    if wanted not in names:
        refuse(f"trunc to {wanted}")
    return Typed(
        cast_sql(f"date_trunc({text(names[wanted])}, {as_date(day, 'trunc')})", pa.date32()), pa.date32()
    )


@function("to_date", "date", arity=(1, 2))
def _to_date(value: Typed, pattern: Typed | None = None) -> Typed:
    if pattern is None:
        return cast(value, pa.date32())
    return _parsed(value, pattern, "to_date", {"yyyy-MM-dd": "[0-9]{4}-[0-9]{2}-[0-9]{2}"}, pa.date32())


@function("to_timestamp", "timestamp", arity=(1, 2))
def _to_timestamp(value: Typed, pattern: Typed | None = None) -> Typed:
    if pattern is None:
        return cast(value, TIMESTAMP)
    known = {
        "yyyy-MM-dd HH:mm:ss": "[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}",
        "yyyy-MM-dd": "[0-9]{4}-[0-9]{2}-[0-9]{2}",
    }
    return _parsed(value, pattern, "to_timestamp", known, TIMESTAMP)


def _parsed(value: Typed, pattern: Typed, name: str, known: dict[str, str], to: pa.DataType) -> Typed:
    wanted = constant_text(pattern, name, "pattern")
    if wanted not in known:
        refuse(f"{name} with the pattern {wanted!r}")
    sql = as_text(value, name)
    return Typed(
        f"CASE WHEN regexp_full_match({sql}, {text(known[wanted])}) THEN {cast_sql(sql, to)} "
        f"WHEN {sql} IS NOT NULL THEN {fails(f'{name}: a text is not like {wanted}')} END",
        to,
    )


@function("date_format", arity=(2, 2))
def _date_format(moment: Typed, pattern: Typed) -> Typed:
    rest, translated = constant_text(pattern, "date_format", "pattern"), ""
    while rest:
        letters = len(rest) - len(rest.lstrip(rest[0]))
        token = rest[:letters]
        if token in _PATTERNS:
            translated += _PATTERNS[token]
        elif token[0].isalpha() or token[0] in "'[]{}#%":
            refuse(f"date_format with {token!r} in the pattern")
        else:
            translated += token
        rest = rest[letters:]
    sql = as_timestamp(moment, "date_format")
    return string(f"strftime({sql}, {text(translated)})")


@function("unix_timestamp", "to_unix_timestamp", arity=(1, 1))
def _unix_timestamp(moment: Typed) -> Typed:
    """Cut off towards 1970, while unix_seconds rounds down."""
    return Typed(f"(epoch_us({as_timestamp(moment, 'unix_timestamp')}) // 1000000)", pa.int64())


@function("unix_seconds", arity=(1, 1))
def _unix_seconds(moment: Typed) -> Typed:
    return Typed(seconds_sql(_as_instant(moment, "unix_seconds")), pa.int64())


@function("unix_millis", arity=(1, 1))
def _unix_millis(moment: Typed) -> Typed:
    micros = f"epoch_us({_as_instant(moment, 'unix_millis')})"
    return Typed(f"({micros} // 1000 - CASE WHEN {micros} % 1000 < 0 THEN 1 ELSE 0 END)", pa.int64())


@function("unix_micros", arity=(1, 1))
def _unix_micros(moment: Typed) -> Typed:
    return Typed(f"epoch_us({_as_instant(moment, 'unix_micros')})", pa.int64())


def _as_instant(moment: Typed, name: str) -> str:
    """Without a zone a timestamp is not an instant, and Spark takes none."""
    if moment.type == TIMESTAMP_NTZ:
        mismatch(name, moment)
    return as_timestamp(moment, name)


@function("unix_date", arity=(1, 1))
def _unix_date(day: Typed) -> Typed:
    return integer(f"{as_date(day, 'unix_date')} - DATE '1970-01-01'")


@function("timestamp_seconds", arity=(1, 1))
def _timestamp_seconds(value: Typed) -> Typed:
    return _since_epoch(value, 1_000_000, "timestamp_seconds")


@function("timestamp_millis", arity=(1, 1))
def _timestamp_millis(value: Typed) -> Typed:
    return _since_epoch(value, 1000, "timestamp_millis")


@function("timestamp_micros", arity=(1, 1))
def _timestamp_micros(value: Typed) -> Typed:
    return _since_epoch(value, 1, "timestamp_micros")


def _since_epoch(value: Typed, unit: int, name: str) -> Typed:
    if not pa.types.is_integer(value.type):
        refuse(f"{name} of a fraction")
    return Typed(f"make_timestamp(CAST({value.sql} AS BIGINT) * {unit})", TIMESTAMP)


@function("make_date", arity=(3, 3))
def _make_date(year: Typed, month: Typed, day: Typed) -> Typed:
    parts = ", ".join(as_integer(part, "make_date") for part in (year, month, day))
    return Typed(f"make_date({parts})", pa.date32())


def added(unit: str, count: Typed, moment: Typed) -> Typed:
    """dateadd(unit, count, moment) and timestampadd: always a timestamp."""
    to = moment.type if pa.types.is_timestamp(moment.type) else TIMESTAMP
    value = Typed(as_timestamp(moment, "timestampadd"), to)
    return shifted(value, "+", as_integer(count, "timestampadd"), unit)


def difference(unit: str, start: Typed, end: Typed) -> Typed:
    """datediff(unit, start, end) and timestampdiff: whole units, cut off towards zero."""
    size = _MICROSECONDS.get(unit.lower())
    if size is None:
        refuse(f"timestampdiff in {unit}")
    first, last = as_timestamp(start, "timestampdiff"), as_timestamp(end, "timestampdiff")
    return Typed(f"((epoch_us({last}) - epoch_us({first})) // {size})", pa.int64())


def instant(now_ms: int, zoned: bool = True) -> Typed:
    """What current_timestamp gives throughout a statement."""
    return Typed(f"make_timestamp({now_ms * 1000})", TIMESTAMP if zoned else TIMESTAMP_NTZ)


def today(now_ms: int) -> Typed:
    return Typed(f"CAST({instant(now_ms).sql} AS DATE)", pa.date32())


def interval_count(written: str) -> str:
    """The number of an INTERVAL literal, as an integer."""
    if not written.strip().lstrip("+-").isdecimal():
        raise InvalidInput(f"INTERVAL {written!r}: write a whole number and a unit")
    return str(int(written))
