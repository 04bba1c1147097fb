"""Values as keys: of GROUP BY, DISTINCT, set operations, PARTITION BY and ORDER BY.

Spark makes -0.0 a 0.0 in a key by which it groups; DuckDB shows either of the two that it met, and in a
result that is ordered by a column shows 0.0 for both. NULLs inside nested values come first in Spark and
last in DuckDB, so nested values can be compared for equality alone.
"""

import pyarrow as pa

from lakevilla.engines.local.translation.types.typed import Typed, cast_sql, refuse
from lakevilla.errors import InvalidInput
from lakevilla.sql.types import type_name


def grouped(value: Typed) -> Typed:
    """The value as Spark groups by it."""
    if pa.types.is_floating(value.type):
        return Typed(_without_sign_of_zero(value), value.type, aggregate=value.aggregate)
    if holds(value.type, pa.types.is_map) or holds(value.type, pa.types.is_floating):
        refuse(f"grouping by {type_name(value.type)}")
    return value


def distinct(value: Typed) -> Typed:
    """The value as DISTINCT and set operations compare it."""
    if holds(value.type, pa.types.is_map):
        raise InvalidInput(f"DISTINCT and set operations cannot compare {type_name(value.type)}")
    return grouped(value)


def sorted_by(value: Typed) -> str:
    """The value as a key of ORDER BY."""
    if holds(value.type, pa.types.is_map):
        raise InvalidInput("maps have no order")
    if pa.types.is_nested(value.type):
        refuse(f"ordering by {type_name(value.type)}")
    if pa.types.is_floating(value.type):
        return _without_sign_of_zero(value)
    # A constant must not be read as a position.
    return f"({value.sql})" if value.is_constant else value.sql


def holds(data_type: pa.DataType, what: object) -> bool:
    """Whether the type, or one inside it, is of this kind (a predicate of `pyarrow.types`)."""
    assert callable(what)
    return what(data_type) or any(holds(data_type.field(i).type, what) for i in range(data_type.num_fields))


def _without_sign_of_zero(value: Typed) -> str:
    return f"({value.sql} + {cast_sql('0', value.type)})"
