"""Constants in expressions: which expression is one, and its value as seen by a column's type.

Values are plain Python values. What Spark would do by a lossy or failing cast has no value here, and
the caller weakens its predicate.
"""

import math
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa
from sqlglot import exp

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_TIMESTAMP = re.compile(r"\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?(Z|[+-]\d{2}:\d{2})?)?")
_INTEGER = re.compile(r"[+-]?\d{1,18}")

EXACT_DOUBLE = 2**53
"""Below this every integer is a double of its own; this one is also what its neighbour rounds to."""


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant; `value` is None for NULL."""

    value: Any


def constant(expression: exp.Expr) -> Constant | None:
    """The constant that an expression is, or None if it is something else."""
    match expression:
        case exp.Paren():
            return constant(expression.this)
        case exp.Null():
            return Constant(None)
        case exp.Boolean():
            return Constant(bool(expression.this))
        case exp.Literal():
            return Constant(expression.name) if expression.is_string else _number(expression.name)
        case exp.HexString() if len(expression.name) % 2 == 0:
            return Constant(bytes.fromhex(expression.name))
        case exp.Neg():
            inner = constant(expression.this)
            numeric = inner is not None and isinstance(inner.value, int | float | Decimal)
            return Constant(-inner.value) if inner is not None and numeric else None
        case exp.TryCast():
            return None
        case exp.Cast():
            return _cast(constant(expression.this), expression.to)
    return None


def in_column(value: Any, column: pa.DataType) -> Any:
    """The value as comparisons with a column of this type see it; None if that is not certain."""
    if pa.types.is_boolean(column):
        return value if isinstance(value, bool) else None
    if isinstance(value, bool):
        return None
    if pa.types.is_integer(column):
        return _for_integers(value)
    if pa.types.is_floating(column):
        return _for_doubles(value)
    if pa.types.is_decimal(column):
        return Decimal(value) if isinstance(value, int | Decimal) else None
    if pa.types.is_string(column) or pa.types.is_large_string(column):
        return value if isinstance(value, str) else None
    if pa.types.is_binary(column) or pa.types.is_large_binary(column):
        return value if isinstance(value, bytes) else None
    if pa.types.is_date(column):
        return _date(value) if isinstance(value, str) else value if type(value) is date else None
    if pa.types.is_timestamp(column):
        return _moment(value, zoned=column.tz is not None)
    return None


def _number(text: str) -> Constant | None:
    try:
        if "e" in text.lower():
            return Constant(float(text))
        return Constant(int(text) if text.isdecimal() else Decimal(text))
    except (ValueError, InvalidOperation):
        return None


def _cast(inner: Constant | None, to: exp.DataType) -> Constant | None:
    """Casts that the parser and parameters make for typed literals; no other is followed."""
    if inner is None or inner.value is None:
        return None
    value, kind = inner.value, to.this
    integers = {"TINYINT": 7, "SMALLINT": 15, "INT": 31, "BIGINT": 63}
    if kind.name in integers and type(value) is int:
        bits = integers[kind.name]
        return Constant(value) if -(2**bits) <= value < 2**bits else None
    if kind == exp.DType.DATE and isinstance(value, str):
        day = _date(value)
        return None if day is None else Constant(day)
    if kind.name in ("TIMESTAMPTZ", "TIMESTAMPLTZ") and isinstance(value, str):
        moment = _moment(value, zoned=True)
        return None if moment is None else Constant(moment)
    if kind == exp.DType.DOUBLE and isinstance(value, int | Decimal | str):
        try:
            return Constant(float(value))
        except ValueError:
            return None
    if kind == exp.DType.DECIMAL and isinstance(value, str) and len(to.expressions) == 2:
        return _decimal(value, int(to.expressions[1].name))
    return None


def _decimal(text: str, scale: int) -> Constant | None:
    try:
        value = Decimal(text)
    except InvalidOperation:
        return None
    exponent = value.as_tuple().exponent
    return Constant(value) if isinstance(exponent, int) and -exponent <= scale else None


def _for_integers(value: Any) -> Any:
    if isinstance(value, str):
        return int(value) if _INTEGER.fullmatch(value) else None
    if isinstance(value, float):
        # The column is compared as doubles, which is exact around such a value.
        return value if math.isfinite(value) and abs(value) < EXACT_DOUBLE else None
    return value if isinstance(value, int | Decimal) else None


def _for_doubles(value: Any) -> Any:
    if isinstance(value, str | bytes) or not isinstance(value, int | float | Decimal):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def _date(text: str) -> date | None:
    if not _DATE.fullmatch(text):
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def _moment(value: Any, zoned: bool) -> datetime | None:
    """The session's zone is UTC."""
    if isinstance(value, str):
        if not _TIMESTAMP.fullmatch(value):
            return None
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return None
        if value.tzinfo is not None and not zoned:
            # Engines differ: the zone is ignored, or the text is refused.
            return None
    elif type(value) is date:
        value = datetime.combine(value, time())
    if not isinstance(value, datetime):
        return None
    moment = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    return moment if zoned else moment.replace(tzinfo=None)
