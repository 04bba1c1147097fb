"""Rows made to fit a table's schema: columns by name, exact types, NOT NULL kept.

This is the last gate before bytes are written, whichever engine produced the rows. It changes only how
Arrow represents a value (`large_string`, dictionaries, units of time, wider integers); an engine that
converts values does so before. CHECK constraints are the engine's as well.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakevilla.errors import NOT_NULL, InvalidInput
from lakevilla.files.column_mapping import FIELD_ID, physical_name


def conform(rows: pa.RecordBatch | pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows as a table with the columns of this schema, or InvalidInput naming the column that does
    not fit. All fields of the result are nullable; `relabel` gives them their final names."""
    unknown = [name for name in rows.schema.names if schema.get_field_index(name) < 0]
    if unknown:
        raise InvalidInput(
            f"unknown column in the rows to write: {', '.join(map(repr, unknown))}", column=unknown[0]
        )
    columns = {field.name: _column(rows, field) for field in schema}
    for field in schema:
        _refuse_nulls(field, columns[field.name], field.name)
    return pa.table(columns)


def together(pieces: Sequence[pa.Table], schema: pa.Schema) -> pa.Table:
    """The pieces as one table; without any, one of this schema. (Arrow's own `empty_table` fails where a
    UUID is inside of something.)"""
    return pa.concat_tables(pieces) if pieces else pa.Table.from_batches([], as_read(schema))


def as_read(schema: pa.Schema) -> pa.Schema:
    """The schema of rows that were read: every value inside of a column may be missing, because a required
    field has no value where the struct around it is NULL, which Arrow's casts do not know."""
    return pa.schema([field.with_type(optional(field.type)) for field in schema], metadata=schema.metadata)


def optional(data_type: pa.DataType) -> pa.DataType:
    """The type, in which every value inside may be missing."""
    if pa.types.is_struct(data_type):
        return pa.struct([child.with_type(optional(child.type)).with_nullable(True) for child in data_type])
    if pa.types.is_map(data_type):
        item = data_type.item_field
        return pa.map_(
            data_type.key_field.with_type(optional(data_type.key_type)),
            item.with_type(optional(item.type)).with_nullable(True),
        )
    if pa.types.is_list(data_type):
        element = data_type.value_field
        return pa.list_(element.with_type(optional(element.type)).with_nullable(True))
    return data_type


def physical_schema(schema: pa.Schema) -> pa.Schema:
    """The schema as data files spell it: physical names and field ids, no other metadata.

    Every field is optional in the file: below a null struct even a required field has no value.
    """
    return pa.schema([_rebuild(field, physical_name, _id_only) for field in schema])


def relabel(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch under another schema of the same shape, without a copy.

    A cast would match nested fields by name, which is just what differs here.
    """
    return pa.record_batch(_Relabelled(batch, schema))


@dataclass(frozen=True)
class _Relabelled:
    """One batch's values with another's schema, as Arrow's C data interface hands them over."""

    batch: pa.RecordBatch
    schema: pa.Schema

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[Any, Any]:
        return self.schema.__arrow_c_schema__(), self.batch.__arrow_c_array__()[1]


def _column(rows: pa.RecordBatch | pa.Table, field: pa.Field) -> pa.ChunkedArray | pa.Array:
    position = rows.schema.get_field_index(field.name)
    if position < 0:
        raise InvalidInput(
            f"column {field.name!r} is missing from the rows to write, or is there more than once",
            column=field.name,
        )
    column = rows.column(position)
    wanted = _rebuild(field, lambda field: field.name, _no_metadata).type
    if column.type == wanted:
        return column
    try:
        if _same_kind(column.type, wanted):
            return column.cast(wanted)
        reason = "the types differ"
    except pa.ArrowInvalid as error:
        reason = str(error)
    raise InvalidInput(
        f"column {field.name!r}: cannot write {column.type} as {wanted}: {reason}", column=field.name
    )


def _rebuild(
    field: pa.Field,
    name: Callable[[pa.Field], str],
    metadata: Callable[[pa.Field], dict[bytes, bytes] | None],
) -> pa.Field:
    """The field with other names and metadata, and nullable, at every level."""

    def again(data_type: pa.DataType) -> pa.DataType:
        if pa.types.is_struct(data_type):
            return pa.struct([_rebuild(child, name, metadata) for child in data_type])
        if pa.types.is_map(data_type):
            key, item = data_type.key_field, data_type.item_field
            return pa.map_(
                pa.field("key", again(key.type), nullable=False, metadata=metadata(key)),
                pa.field("value", again(item.type), metadata=metadata(item)),
            )
        if pa.types.is_list(data_type):
            element = data_type.value_field
            return pa.list_(pa.field("element", again(element.type), metadata=metadata(element)))
        return data_type

    return pa.field(name(field), again(field.type), metadata=metadata(field))


def _id_only(field: pa.Field) -> dict[bytes, bytes] | None:
    number = (field.metadata or {}).get(FIELD_ID)
    return None if number is None else {FIELD_ID: number}


def _no_metadata(_: pa.Field) -> None:
    return None


_FAMILIES: tuple[Callable[[pa.DataType], bool], ...] = (
    lambda t: pa.types.is_string(t) or pa.types.is_large_string(t) or pa.types.is_string_view(t),
    lambda t: (
        pa.types.is_binary(t)
        or pa.types.is_large_binary(t)
        or pa.types.is_binary_view(t)
        or pa.types.is_fixed_size_binary(t)
    ),
    pa.types.is_integer,
    pa.types.is_decimal,
    pa.types.is_date,
    lambda t: pa.types.is_timestamp(t) and t.tz is None,
    lambda t: pa.types.is_timestamp(t) and t.tz is not None,
)


def _same_kind(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether a checked cast keeps every value's meaning."""
    if pa.types.is_dictionary(given):
        return _same_kind(given.value_type, wanted)
    if pa.types.is_null(given) or given == wanted:
        return True
    if pa.types.is_floating(given) and pa.types.is_floating(wanted):
        return bool(given.bit_width <= wanted.bit_width)
    if pa.types.is_struct(given) and pa.types.is_struct(wanted):
        fields = {child.name: child.type for child in given}
        return fields.keys() == {child.name for child in wanted} and all(
            _same_kind(fields[child.name], child.type) for child in wanted
        )
    if pa.types.is_map(given) and pa.types.is_map(wanted):
        return _same_kind(given.key_type, wanted.key_type) and _same_kind(given.item_type, wanted.item_type)
    if pa.types.is_list(wanted) and (
        pa.types.is_list(given) or pa.types.is_large_list(given) or pa.types.is_fixed_size_list(given)
    ):
        return _same_kind(given.value_type, wanted.value_type)
    return any(family(given) and family(wanted) for family in _FAMILIES)


def _refuse_nulls(field: pa.Field, column: pa.ChunkedArray | pa.Array, path: str) -> None:
    """A required field may be null only where the struct around it is null."""
    if not field.nullable and column.null_count:
        raise InvalidInput(
            f"column {path!r} is NOT NULL, but {column.null_count} of the rows to write have no value in it",
            column=path,
            rule=NOT_NULL,
        )
    if not _requires(field.type):
        return
    for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
        _refuse_nulls_below(field.type, chunk, path)


def _refuse_nulls_below(data_type: pa.DataType, array: pa.Array, path: str) -> None:
    if pa.types.is_struct(data_type):
        present = array.filter(pc.is_valid(array)) if array.null_count else array
        for position, child in enumerate(data_type):
            _refuse_nulls(child, present.field(position), f"{path}.{child.name}")
    elif pa.types.is_map(data_type):
        # Arrow flattens lists, not maps; a map is a list of its entries.
        entry = pa.struct([pa.field("key", array.type.key_type), pa.field("value", array.type.item_type)])
        entries = array.cast(pa.list_(entry)).flatten()
        _refuse_nulls(data_type.key_field, entries.field(0), f"{path}.key")
        _refuse_nulls(data_type.item_field, entries.field(1), f"{path}.value")
    elif pa.types.is_list(data_type):
        _refuse_nulls(data_type.value_field, array.flatten(), f"{path}.element")


def _requires(data_type: pa.DataType) -> bool:
    """Whether a required field lies below, so that flat and all-nullable columns cost no scan."""
    if pa.types.is_struct(data_type):
        return any(not child.nullable or _requires(child.type) for child in data_type)
    if pa.types.is_map(data_type):
        item = data_type.item_field
        return not item.nullable or _requires(item.type) or _requires(data_type.key_type)
    if pa.types.is_list(data_type):
        return not data_type.value_field.nullable or _requires(data_type.value_type)
    return False
