"""A translated expression: DuckDB text and Spark type; and how Spark types are called in DuckDB.

Both of Spark's timestamp types are DuckDB's TIMESTAMP, which has no zone: the session's zone is UTC, so
they hold the same microseconds, and the Spark type with the text tells them apart. A UUID is a BLOB: DuckDB
would give its own type back as text.
"""

from dataclasses import dataclass
from typing import Any, NoReturn

import pyarrow as pa
from sqlglot import exp

from lakevilla.errors import InvalidInput, Unsupported
from lakevilla.sql.dialect import spark_text
from lakevilla.sql.types import type_name

UNSUPPORTED = "lakevilla:unsupported:"
"""Begins the messages of errors that DuckDB raises on our behalf for values we cannot treat as Spark."""

NOT_CONSTANT = object()

_NAMES: dict[pa.DataType, str] = {
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INTEGER",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.string(): "VARCHAR",
    pa.large_string(): "VARCHAR",
    pa.binary(): "BLOB",
    pa.large_binary(): "BLOB",
    pa.date32(): "DATE",
    pa.time64("us"): "TIME",
    pa.uuid(): "BLOB",
    pa.null(): "INTEGER",
}


@dataclass(frozen=True, slots=True)
class Typed:
    """`constant` is the Python value of a literal; `aggregate` says that an aggregate is inside."""

    sql: str
    type: pa.DataType
    constant: Any = NOT_CONSTANT
    aggregate: bool = False

    @property
    def is_constant(self) -> bool:
        return self.constant is not NOT_CONSTANT


def duckdb_type(data_type: pa.DataType) -> str:
    """The DuckDB type that holds values of this Spark type."""
    if data_type in _NAMES:
        return _NAMES[data_type]
    if pa.types.is_decimal(data_type):
        return f"DECIMAL({data_type.precision},{data_type.scale})"
    if pa.types.is_timestamp(data_type):
        return "TIMESTAMP"
    if pa.types.is_fixed_size_binary(data_type):
        return "BLOB"
    if pa.types.is_map(data_type):
        return f"MAP({duckdb_type(data_type.key_type)}, {duckdb_type(data_type.item_type)})"
    if pa.types.is_list(data_type) or pa.types.is_large_list(data_type):
        return f"{duckdb_type(data_type.value_type)}[]"
    if pa.types.is_struct(data_type):
        fields = ", ".join(f"{identifier(f.name)} {duckdb_type(f.type)}" for f in data_type)
        return f"STRUCT({fields})"
    raise Unsupported(f"the local engine does not support the type {data_type}; use engine='spark'")


def identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """A string literal of DuckDB, in which nothing but the quote is special."""
    if "\0" in value:
        raise Unsupported(
            "the local engine cannot hold the character U+0000 in a literal; use engine='spark'"
        )
    return "'" + value.replace("'", "''") + "'"


def cast_sql(sql: str, to: pa.DataType) -> str:
    """DuckDB's own cast, for where it means what Spark's does."""
    return f"CAST({sql} AS {duckdb_type(to)})"


def fails(message: str) -> str:
    """An expression that fails when a row reaches it."""
    return f"error({text(message)})"


def fails_unsupported(message: str) -> str:
    return fails(f"{UNSUPPORTED}{message}; use engine='spark'")


def refuse(what: str) -> NoReturn:
    """This engine cannot mean it exactly as Spark does."""
    raise Unsupported(f"the local engine does not support {what}; use engine='spark'")


def only(node: exp.Expr, *known: str) -> None:
    """Refuse a node that says more than we read of it: nothing may be overlooked."""
    more = [key for key, value in node.args.items() if value and key not in known and key != "_type"]
    if more:
        refuse(f"{more[0].strip('_')} in {spark_text(node)[:80]}")


def mismatch(what: str, *given: Typed) -> NoReturn:
    """Spark refuses these types too."""
    types = ", ".join(type_name(one.type) for one in given)
    raise InvalidInput(f"{what} cannot be applied to {types}")


def is_text(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_string(data_type) or pa.types.is_large_string(data_type))


def is_binary(data_type: pa.DataType) -> bool:
    return bool(
        pa.types.is_binary(data_type)
        or pa.types.is_large_binary(data_type)
        or pa.types.is_fixed_size_binary(data_type)
    )


def is_uuid(data_type: pa.DataType) -> bool:
    return bool(data_type == pa.uuid())


def is_numeric(data_type: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(data_type) or pa.types.is_floating(data_type) or pa.types.is_decimal(data_type)
    )


def is_list(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_list(data_type) or pa.types.is_large_list(data_type))


def list_of(element: pa.DataType) -> pa.DataType:
    return pa.list_(pa.field("element", element))
