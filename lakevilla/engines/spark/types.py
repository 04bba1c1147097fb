"""Arrow's types and Spark's, in both directions, one of each for the other; UUIDs are text to Spark.

Everything is nullable towards Spark: whether a value may be missing is checked where rows are written, and a
promise that a file breaks would make Spark read garbage.
"""

from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa
from pyspark.sql import types as spark

from lakevilla.errors import InvalidInput, Unsupported
from lakevilla.files.column_mapping import COMMENT, DEFAULT, default_of, field_id, physical_name
from lakevilla.files.partitioning import partition_text
from lakevilla.sql.types import TIMESTAMP, TIMESTAMP_NTZ, type_name

_PAIRS: list[tuple[pa.DataType, spark.DataType]] = [
    (pa.null(), spark.NullType()),
    (pa.bool_(), spark.BooleanType()),
    (pa.int8(), spark.ByteType()),
    (pa.int16(), spark.ShortType()),
    (pa.int32(), spark.IntegerType()),
    (pa.int64(), spark.LongType()),
    (pa.float32(), spark.FloatType()),
    (pa.float64(), spark.DoubleType()),
    (pa.string(), spark.StringType()),
    (pa.binary(), spark.BinaryType()),
    (pa.date32(), spark.DateType()),
    (TIMESTAMP, spark.TimestampType()),
    (TIMESTAMP_NTZ, spark.TimestampNTZType()),
]
# Spark has no UUIDs, and shows them as text, as Spark + Iceberg does.
_TO_SPARK = {str(arrow): ours for arrow, ours in [*_PAIRS, (pa.uuid(), spark.StringType())]}
_TO_ARROW = {type(ours): arrow for arrow, ours in _PAIRS}
_FIELD_ID = "parquet.field.id"
_DEFAULT = "EXISTS_DEFAULT"
_COMMENT = "comment"


def logical(data_type: pa.DataType) -> spark.DataType:
    """The Spark type with the names that users see."""
    return _spark_type(data_type, lambda field: spark.StructField(field.name, logical(field.type)))


def stored(field: pa.Field, with_id: bool) -> spark.StructField:
    """The column as data files have it: physical names, ids where files are matched by id, and defaults.

    Spark goes by a default only if it is that of a whole column.
    """
    number = field_id(field) if with_id else None
    metadata: dict[str, Any] = {} if number is None else {_FIELD_ID: number}
    if DEFAULT in (field.metadata or {}):
        metadata[_DEFAULT] = _literal(default_of(field).as_py(), field.type)
    data_type = _spark_type(field.type, lambda child: stored(child, with_id))
    return spark.StructField(physical_name(field), data_type, True, metadata or None)


def _literal(value: Any, data_type: pa.DataType) -> str:
    """A value in SQL."""
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    text = partition_text(value, data_type)
    if text is None:
        return "NULL"
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"CAST('{escaped}' AS {sql_type(data_type)})"


def arrow_schema(schema: spark.StructType) -> pa.Schema:
    """The Arrow schema of a DataFrame, with the comments of its columns."""
    return pa.schema(map(_arrow_field, schema.fields))


def _arrow_field(field: spark.StructField) -> pa.Field:
    comment = (field.metadata or {}).get(_COMMENT)
    metadata = {COMMENT: comment.encode()} if isinstance(comment, str) and comment else None
    return pa.field(field.name, arrow_type(field.dataType), metadata=metadata)


def arrow_type(data_type: spark.DataType) -> pa.DataType:
    """The Arrow type that stands for Spark's."""
    if isinstance(data_type, spark.DecimalType):
        return pa.decimal128(data_type.precision, data_type.scale)
    if isinstance(data_type, spark.ArrayType):
        return pa.list_(pa.field("element", arrow_type(data_type.elementType)))
    if isinstance(data_type, spark.MapType):
        if isinstance(data_type.keyType, spark.NullType):
            raise InvalidInput("map() has no type for its keys: write CAST(map() AS MAP<...>)")
        return pa.map_(arrow_type(data_type.keyType), pa.field("value", arrow_type(data_type.valueType)))
    if isinstance(data_type, spark.StructType):
        return pa.struct(map(_arrow_field, data_type.fields))
    if type(data_type) not in _TO_ARROW:
        raise Unsupported(f"type {data_type.simpleString()} cannot be stored in a table")
    return _TO_ARROW[type(data_type)]


def sql_type(data_type: pa.DataType) -> str:
    """The type in SQL, names of members quoted."""
    if pa.types.is_struct(data_type):
        members = (f"{quoted(child.name)}: {sql_type(child.type)}" for child in data_type)
        return f"STRUCT<{', '.join(members)}>"
    if pa.types.is_list(data_type):
        return f"ARRAY<{sql_type(data_type.value_type)}>"
    if pa.types.is_map(data_type):
        return f"MAP<{sql_type(data_type.key_type)}, {sql_type(data_type.item_type)}>"
    return type_name(data_type)


def is_ambiguous(fields: Iterable[pa.Field]) -> bool:
    """Whether two of these columns, or two members of one of them, have names that differ in case alone."""
    known = list(fields)
    names = {field.name.lower() for field in known}
    inside = ([field.type.field(i) for i in range(field.type.num_fields)] for field in known)
    return len(names) < len(known) or any(map(is_ambiguous, inside))


def has_uuid(data_type: pa.DataType) -> bool:
    """Whether values of the type are or hold UUIDs, which Spark only shows."""
    inside = (data_type.field(position).type for position in range(data_type.num_fields))
    return data_type == pa.uuid() or any(map(has_uuid, inside))


def quoted(name: str) -> str:
    """A name in Spark SQL."""
    return "`" + name.replace("`", "``") + "`"


def _spark_type(data_type: pa.DataType, member: Callable[[pa.Field], spark.StructField]) -> spark.DataType:
    if pa.types.is_decimal(data_type):
        return spark.DecimalType(data_type.precision, data_type.scale)
    if pa.types.is_struct(data_type):
        return spark.StructType([member(field) for field in data_type])
    if pa.types.is_list(data_type):
        return spark.ArrayType(_spark_type(data_type.value_type, member))
    if pa.types.is_map(data_type):
        key = _spark_type(data_type.key_type, member)
        return spark.MapType(key, _spark_type(data_type.item_type, member))
    found = _TO_SPARK.get(str(data_type))
    if found is None:
        raise Unsupported(f"Spark has no type for {data_type} that keeps its values: use engine='local'")
    return found
