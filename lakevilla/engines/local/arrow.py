"""Arrow on its way into DuckDB and out of it.

Inside, timestamps have no zone and UUIDs are bytes (see `translation.types.typed`), and columns have our
names; outside, a result has exactly the types that the translation promised.
"""

from collections.abc import Sequence

import pyarrow as pa

from lakevilla.engines.local.translation.queries.scope import Output
from lakevilla.engines.local.translation.types.typed import is_uuid
from lakevilla.errors import InvalidInput
from lakevilla.files.row_checks import optional


def inward(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """The table under these names, as DuckDB reads it. No value is copied."""
    columns = [
        column.cast(_inner(column.type)) if _differs(column.type) else column for column in table.columns
    ]
    return pa.table(columns, names=list(names))


def inward_schema(schema: pa.Schema, names: Sequence[str]) -> pa.Schema:
    """The types that `inward` gives to rows of this schema."""
    types = [_inner(optional(field.type)) for field in schema]
    return pa.schema([pa.field(name, kind) for name, kind in zip(names, types, strict=True)])


def outward(table: pa.Table, outputs: Sequence[Output]) -> pa.Table:
    """A result with the names and types of its columns."""
    schema = pa.schema([pa.field(output.name, output.type) for output in outputs])
    columns = [as_type(column, output.type) for column, output in zip(table.columns, outputs, strict=True)]
    return pa.Table.from_arrays(columns, schema=schema)


def row_of(values: Sequence[pa.Scalar], outputs: Sequence[Output]) -> pa.Table:
    """A result of one row."""
    schema = pa.schema([pa.field(output.name, output.type) for output in outputs])
    columns = [pa.repeat(value.cast(field.type), 1) for value, field in zip(values, schema, strict=True)]
    return pa.Table.from_arrays(columns, schema=schema)


def as_type(column: pa.ChunkedArray | pa.Array, data_type: pa.DataType) -> pa.ChunkedArray | pa.Array:
    """The column as this type; only names of children, zones and widths of offsets change.

    InvalidInput for bytes that are longer or shorter than the type has them.
    """
    if column.type == data_type:
        return column
    if pa.types.is_null(data_type):
        return pa.nulls(len(column))
    if _void(data_type):
        return pa.array(column.to_pylist(), data_type)
    try:
        return column.cast(data_type)
    except pa.ArrowInvalid as error:
        if _holds_fixed(data_type):
            raise InvalidInput(f"a value does not have the length of type {data_type}: {error}") from error
        raise


def _holds_fixed(data_type: pa.DataType) -> bool:
    """Whether values of a fixed number of bytes are inside."""
    inside = [data_type.field(i).type for i in range(data_type.num_fields)]
    fixed = pa.types.is_fixed_size_binary(data_type) or is_uuid(data_type)
    return bool(fixed or any(map(_holds_fixed, inside)))


def _void(data_type: pa.DataType) -> bool:
    """Whether values of no type are inside, which DuckDB holds as integers."""
    inside = [data_type.field(i).type for i in range(data_type.num_fields)]
    return any(pa.types.is_null(one) or _void(one) for one in inside)


def _differs(data_type: pa.DataType) -> bool:
    """Whether the type, or one inside it, is another one in DuckDB."""
    if pa.types.is_timestamp(data_type):
        return data_type.tz is not None
    return is_uuid(data_type) or any(_differs(data_type.field(i).type) for i in range(data_type.num_fields))


def _inner(data_type: pa.DataType) -> pa.DataType:
    if not _differs(data_type):
        return data_type
    if is_uuid(data_type):
        return data_type.storage_type
    if pa.types.is_timestamp(data_type):
        return pa.timestamp(data_type.unit)
    if pa.types.is_struct(data_type):
        return pa.struct([f.with_type(_inner(f.type)) for f in data_type])
    if pa.types.is_map(data_type):
        item = data_type.item_field
        return pa.map_(_inner(data_type.key_type), item.with_type(_inner(item.type)))
    element = data_type.value_field
    return pa.list_(element.with_type(_inner(element.type)))
