"""Single values as Iceberg stores them in bounds (spec, "Binary single-value serialization")."""

import struct
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

from pyiceberg import conversions
from pyiceberg.types import (
    DateType,
    DecimalType,
    PrimitiveType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UUIDType,
)
from pyiceberg.utils.datetime import date_to_days, datetime_to_micros, time_to_micros

from lakevilla.errors import InvalidInput

_DAY_BYTES = 4
_DAY_MICROS = 86_400_000_000


def to_bytes(kind: PrimitiveType, value: Any) -> bytes:
    """A Python value of the type; dates and times may be given as Iceberg counts them too."""
    if isinstance(kind, DecimalType):
        unscaled = _unscaled(kind, value)
        # Two's complement in as few bytes as there is room for the sign.
        magnitude = unscaled if unscaled >= 0 else -unscaled - 1
        return unscaled.to_bytes(magnitude.bit_length() // 8 + 1, "big", signed=True)
    return conversions.to_bytes(kind, value)


def from_bytes(kind: PrimitiveType, data: bytes) -> Any:
    """The Python value; None where Python has no such value (a year above 9999, nanoseconds), or the bytes
    are not of the type: such a bound counts as unknown.

    Bounds that were written before a column got a wider type are understood.
    """
    if isinstance(kind, TimestampNanoType | TimestamptzNanoType):
        return None
    try:
        if isinstance(kind, TimestampType | TimestamptzType) and len(data) == _DAY_BYTES:
            value: Any = conversions.from_bytes(DateType(), data) * _DAY_MICROS
        else:
            value = conversions.from_bytes(kind, data)
        if isinstance(kind, DateType | TimeType | TimestampType | TimestamptzType | UUIDType):
            value = conversions.from_json(kind, value)
    except (struct.error, ValueError, OverflowError):
        return None
    return value


def counted(value: Any) -> Any:
    """Days and times as Iceberg counts them, UUIDs as bytes; other values as they are."""
    match value:
        case datetime():
            plain = value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
            return datetime_to_micros(plain)
        case date():
            return date_to_days(value)
        case time():
            return time_to_micros(value)
        case UUID():
            return value.bytes
    return value


def _unscaled(kind: DecimalType, value: Decimal) -> int:
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise InvalidInput(f"{value} is not a decimal number")
    number = int("".join(map(str, digits)))
    shift = exponent + kind.scale
    ten: int = 10 ** abs(shift)
    number, rest = (number * ten, 0) if shift >= 0 else divmod(number, ten)
    if rest or len(str(number)) > kind.precision:
        raise InvalidInput(f"{value} does not fit into {kind}")
    return -number if sign else number
