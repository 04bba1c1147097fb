"""Data in: Spark DataFrames as they are, everything else as Arrow, as both engines take it."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from lakevilla.engines import data as given
from lakevilla.engines.spark import types
from lakevilla.engines.spark.change.assignment import Value
from lakevilla.engines.spark.types import quoted
from lakevilla.engines.spark.uuids import as_text
from lakevilla.errors import InvalidInput
from lakevilla.sql.words.suggestions import unknown_column


def is_frame(data: object) -> bool:
    """Whether this is a Spark DataFrame; those of Spark Connect have the verbs and another class."""
    return isinstance(data, DataFrame) or (
        type(data).__module__.startswith("pyspark.sql.connect") and type(data).__name__ == "DataFrame"
    )


def accepts(data: object) -> bool:
    return is_frame(data) or given.is_data(data)


def schema_of(data: Any, besides: Collection[str] = ()) -> pa.Schema:
    """The schema of a table made from the data, without columns of these names, in lower case."""
    if not is_frame(data):
        return given.schema_of(data, besides)
    schema = pa.schema([f for f in types.arrow_schema(data.schema) if f.name.lower() not in besides])
    if any(pa.types.is_null(field.type) for field in schema):
        empty = next(field.name for field in schema if pa.types.is_null(field.type))
        raise InvalidInput(
            f"cannot infer the type of column {empty!r}: all its values are missing; write a CAST",
            column=empty,
        )
    return schema


def frame_of(session: Any, table: pa.Table) -> Any:
    """Arrow rows as a DataFrame, with exactly our types."""
    plain = pa.schema([pa.field(field.name, field.type) for field in table.schema])
    struct = _struct(plain)
    shown = types.arrow_schema(struct)
    if table.num_rows == 0:
        # PySpark cannot read the type of a column without any chunk.
        return session.createDataFrame(shown.empty_table(), struct)
    columns = [as_text(column, kind) for column, kind in zip(table.columns, shown.types, strict=True)]
    return session.createDataFrame(pa.table(columns, names=plain.names), struct)


def row_of(session: Any, values: Sequence[pa.Scalar], struct: Any) -> Any:
    """One row as a DataFrame with these types, which Spark shows without a job."""
    shown = types.arrow_schema(struct)
    columns = [pa.repeat(value.cast(field.type), 1) for value, field in zip(values, shown, strict=True)]
    return session.createDataFrame(pa.Table.from_arrays(columns, schema=shown), struct)


def by_name(frame: Any, schema: pa.Schema) -> Mapping[str, Value]:
    """The frame's columns by the table's spelling of them; unknown ones are InvalidInput."""
    values: dict[str, Value] = {}
    spelt = {name.lower(): name for name in schema.names}
    for field in frame.schema.fields:
        name = spelt.get(field.name.lower())
        if name is None:
            raise unknown_column(field.name, schema.names)
        if name in values:
            raise InvalidInput("the rows to write have two columns of the same name")
        values[name] = Value(quoted(field.name), types.arrow_type(field.dataType))
    return values


def _struct(schema: pa.Schema) -> Any:
    return types.logical(pa.struct(list(schema)))
