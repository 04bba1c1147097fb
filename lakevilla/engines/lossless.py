"""Columns of data brought to the columns of a table: by name, with Spark's types, without loss."""

from collections.abc import Sequence

import pyarrow as pa

from lakevilla.errors import InvalidInput
from lakevilla.files.column_mapping import COMMENT
from lakevilla.files.row_checks import as_read
from lakevilla.sql.types import TIMESTAMP, TIMESTAMP_NTZ

_DIGITS = 38
"""How many digits a decimal of Spark SQL may have."""


def table_type(data_type: pa.DataType, name: str) -> pa.DataType:
    """The type of a table's column that holds such values."""
    if pa.types.is_dictionary(data_type):
        return table_type(data_type.value_type, name)
    if pa.types.is_large_string(data_type) or pa.types.is_string_view(data_type):
        return pa.string()
    if pa.types.is_large_binary(data_type) or pa.types.is_binary_view(data_type):
        return pa.binary()
    if pa.types.is_timestamp(data_type):
        return TIMESTAMP_NTZ if data_type.tz is None else TIMESTAMP
    if pa.types.is_date64(data_type):
        return pa.date32()
    if pa.types.is_float16(data_type):
        return pa.float32()
    if pa.types.is_decimal(data_type) and _is_sql_decimal(data_type):
        return pa.decimal128(data_type.precision, data_type.scale)
    if pa.types.is_time(data_type):
        return pa.time64("us")
    if pa.types.is_unsigned_integer(data_type):
        wider = {8: pa.int16(), 16: pa.int32(), 32: pa.int64(), 64: pa.decimal128(20, 0)}
        return wider[data_type.bit_width]
    if pa.types.is_struct(data_type):
        return pa.struct(
            [pa.field(f.name, table_type(f.type, name), f.nullable, comment_of(f)) for f in data_type]
        )
    if pa.types.is_map(data_type):
        return pa.map_(table_type(data_type.key_type, name), table_type(data_type.item_type, name))
    if (
        pa.types.is_list(data_type)
        or pa.types.is_large_list(data_type)
        or pa.types.is_fixed_size_list(data_type)
    ):
        return pa.list_(pa.field("element", table_type(data_type.value_type, name)))
    if pa.types.is_null(data_type):
        raise InvalidInput(
            f"cannot infer the type of column {name!r}: all its values are missing; give a schema",
            column=name,
        )
    return data_type


def refuse_unheld(data_type: pa.DataType, name: str) -> None:
    """InvalidInput for a column of a type that no table and no query has."""
    unheld = (
        pa.types.is_duration(data_type)
        or pa.types.is_union(data_type)
        or pa.types.is_run_end_encoded(data_type)
        or pa.types.is_list_view(data_type)
        or pa.types.is_large_list_view(data_type)
        or (pa.types.is_struct(data_type) and data_type.num_fields == 0)
        or (pa.types.is_decimal(data_type) and not _is_sql_decimal(data_type))
    )
    if unheld:
        raise InvalidInput(
            f"column {name!r} has type {data_type}, which neither tables nor queries support; cast it",
            column=name,
        )
    for position in range(data_type.num_fields):
        refuse_unheld(data_type.field(position).type, name)


def _is_sql_decimal(data_type: pa.DataType) -> bool:
    return bool(data_type.precision <= _DIGITS and 0 <= data_type.scale <= data_type.precision)


def comment_of(field: pa.Field) -> dict[bytes, bytes] | None:
    return {key: value for key, value in (field.metadata or {}).items() if key == COMMENT} or None


def matched(given: pa.Schema, schema: pa.Schema) -> list[int | None]:
    """For each column of the table the position of its column in the data; None where it is missing."""
    positions: dict[str, int] = {}
    for position, name in enumerate(given.names):
        if name.lower() in positions:
            raise InvalidInput(f"duplicate column {name!r} in the data", column=name)
        positions[name.lower()] = position
    unknown = [name for name in given.names if name.lower() not in {n.lower() for n in schema.names}]
    if unknown:
        raise InvalidInput(
            f"unknown column {', '.join(map(repr, unknown))}; available: "
            f"{', '.join(map(repr, schema.names))}",
            column=unknown[0],
        )
    return [positions.get(name.lower()) for name in schema.names]


def conformed(piece: pa.Table | pa.RecordBatch, order: Sequence[int | None], schema: pa.Schema) -> pa.Table:
    """The columns of the table in its order. Whether a value may be missing is asked where it is written."""
    columns, loose = [], as_read(schema)
    for position, field in zip(order, loose, strict=True):
        if position is None:
            columns.append(pa.nulls(piece.num_rows, field.type))
        else:
            columns.append(_sound(_casted(piece.column(position), field), field))
    return pa.Table.from_arrays(columns, schema=pa.schema([f.with_nullable(True) for f in loose]))


def _sound(column: pa.Array | pa.ChunkedArray, field: pa.Field) -> pa.Array | pa.ChunkedArray:
    """The column, whose texts are UTF-8: Arrow takes any bytes for a text, and other clients of the table
    could not read it."""
    if pa.types.is_string(field.type) or pa.types.is_nested(field.type):
        try:
            column.validate(full=True)
        except pa.ArrowInvalid as error:
            raise InvalidInput(f"column {field.name!r}: {error}", column=field.name) from error
    return column


def _casted(column: pa.Array | pa.ChunkedArray, field: pa.Field) -> pa.Array | pa.ChunkedArray:
    if column.type == field.type:
        return column
    if not _lossless(column.type, field.type):
        raise InvalidInput(
            f"column {field.name!r}: {column.type} cannot be stored as {field.type} without loss",
            column=field.name,
        )
    try:
        if pa.types.is_dictionary(column.type):
            column = _decoded(column)
        if pa.types.is_integer(column.type) and pa.types.is_decimal(field.type):
            # Arrow judges this cast by the types alone; through a wide decimal the values are judged.
            column = column.cast(pa.decimal256(76, field.type.scale))
        return column.cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidInput(f"column {field.name!r}: {error}", column=field.name) from error


def _decoded(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """The values of a dictionary column. Those of polars are views, which Arrow does not take from there."""
    kind = table_type(column.type.value_type, "")
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    values = [chunk.dictionary.cast(kind).take(chunk.indices) for chunk in chunks]
    return pa.chunked_array(values, kind)


def _lossless(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Kinds between which a checked cast keeps the meaning; the cast refuses values that do not fit."""
    if pa.types.is_dictionary(given):
        return _lossless(given.value_type, wanted)
    if pa.types.is_null(given):
        return True
    if pa.types.is_nested(wanted) or pa.types.is_nested(given):
        return _lossless_nested(given, wanted)
    if pa.types.is_integer(wanted):
        return bool(pa.types.is_integer(given))
    if pa.types.is_floating(wanted):
        narrower = pa.types.is_floating(given) and given.bit_width <= wanted.bit_width
        return bool(narrower or pa.types.is_integer(given))
    if pa.types.is_decimal(wanted):
        return bool(pa.types.is_decimal(given) or pa.types.is_integer(given))
    if pa.types.is_timestamp(wanted):
        return bool(pa.types.is_timestamp(given) and (given.tz is None or wanted.tz is not None))
    if pa.types.is_fixed_size_binary(wanted):
        return bool(pa.types.is_fixed_size_binary(given) or table_type(given, "") == pa.binary())
    if wanted == pa.uuid():
        return bool(given in (wanted, wanted.storage_type))
    return bool(table_type(given, "") == wanted)


def _lossless_nested(given: pa.DataType, wanted: pa.DataType) -> bool:
    if pa.types.is_struct(wanted) and pa.types.is_struct(given):
        names = {child.name for child in wanted}
        return all(f.name in names and _lossless(f.type, wanted.field(f.name).type) for f in given)
    if pa.types.is_map(wanted) and pa.types.is_map(given):
        return _lossless(given.key_type, wanted.key_type) and _lossless(given.item_type, wanted.item_type)
    lists = pa.types.is_list(given) or pa.types.is_large_list(given) or pa.types.is_fixed_size_list(given)
    return bool(pa.types.is_list(wanted) and lists and _lossless(given.value_type, wanted.value_type))
