"""Types of columns and constructors of values, as PEP 249 asks for them.

The type code of a column is the name of its Spark type, such as `bigint` or `decimal(12,2)`.
"""

from datetime import UTC, date, datetime, time

import pyarrow as pa

from lakevilla.sql.types import type_name

Date = date
Time = time
Timestamp = datetime
Binary = bytes


def DateFromTicks(ticks: float) -> date:
    """The day of a number of seconds since 1970, in UTC."""
    return datetime.fromtimestamp(ticks, UTC).date()


def TimeFromTicks(ticks: float) -> time:
    """The time of day of a number of seconds since 1970, in UTC."""
    return datetime.fromtimestamp(ticks, UTC).time()


def TimestampFromTicks(ticks: float) -> datetime:
    """The moment of a number of seconds since 1970."""
    return datetime.fromtimestamp(ticks, UTC)


class TypeGroup:
    """Equal to the type codes of a kind of columns."""

    def __init__(self, *names: str) -> None:
        self._names = frozenset(names)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str):
            return other.partition("(")[0].partition("<")[0] in self._names
        return self is other

    def __hash__(self) -> int:
        return hash(self._names)


STRING = TypeGroup("string", "varchar", "char")
BINARY = TypeGroup("binary")
NUMBER = TypeGroup("tinyint", "smallint", "int", "bigint", "float", "double", "decimal", "boolean")
DATETIME = TypeGroup("date", "timestamp", "timestamp_ntz", "time")
ROWID = TypeGroup()


def type_code(data_type: pa.DataType) -> str:
    """The name of a column's type."""
    return "void" if pa.types.is_null(data_type) else type_name(data_type).lower()
