"""Iceberg's schemas and Arrow's, in both directions.

Every field of the Arrow schema, nested ones too, carries its column id, the names that it has in files
without ids, its default and its comment: see `files.column_mapping`.
"""

import itertools
import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from pyiceberg.schema import Schema, assign_fresh_schema_ids
from pyiceberg.table.name_mapping import NameMapping
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UnknownType,
    UUIDType,
)

from lakevilla.errors import Corrupt, InvalidInput, Unsupported
from lakevilla.files.column_mapping import BY_ID, COMMENT, DEFAULT, FIELD_ID, NAMES, encode_default
from lakevilla.formats.iceberg.definition.name_mapping import names_by_id

_PRIMITIVES: Mapping[IcebergType, pa.DataType] = {
    BooleanType(): pa.bool_(),
    IntegerType(): pa.int32(),
    LongType(): pa.int64(),
    FloatType(): pa.float32(),
    DoubleType(): pa.float64(),
    DateType(): pa.date32(),
    TimeType(): pa.time64("us"),
    TimestampType(): pa.timestamp("us"),
    TimestamptzType(): pa.timestamp("us", "UTC"),
    TimestampNanoType(): pa.timestamp("ns"),
    TimestamptzNanoType(): pa.timestamp("ns", "UTC"),
    StringType(): pa.string(),
    BinaryType(): pa.binary(),
    UUIDType(): pa.uuid(),
    UnknownType(): pa.null(),
}
# Narrower integers become int, as Spark's connector has it; unsigned ones the next wider type.
_FROM_ARROW: Mapping[pa.DataType, IcebergType] = {
    pa.bool_(): BooleanType(),
    pa.int8(): IntegerType(),
    pa.int16(): IntegerType(),
    pa.int32(): IntegerType(),
    pa.int64(): LongType(),
    pa.uint8(): IntegerType(),
    pa.uint16(): IntegerType(),
    pa.uint32(): LongType(),
    pa.uint64(): DecimalType(20, 0),
    pa.float32(): FloatType(),
    pa.float64(): DoubleType(),
    pa.date32(): DateType(),
    pa.date64(): DateType(),
    pa.string(): StringType(),
    pa.large_string(): StringType(),
    pa.string_view(): StringType(),
    pa.binary(): BinaryType(),
    pa.large_binary(): BinaryType(),
    pa.binary_view(): BinaryType(),
    pa.uuid(): UUIDType(),
}
_NO_ID = 0


def to_arrow(schema: Schema, names: NameMapping | None = None) -> pa.Schema:
    """The logical Arrow schema; `names` is the table's name mapping. Unsupported for types we do not read."""
    known = None if names is None else names_by_id(names)
    return pa.schema([_field_to_arrow(f, known) for f in schema.fields], metadata={BY_ID: b""})


def from_arrow(schema: pa.Schema, first_id: int = 1) -> Schema:
    """The Iceberg schema with fresh ids from `first_id` on; InvalidInput for types that Iceberg lacks."""
    numbers = itertools.count(first_id)
    fields = [_field_from_arrow(field) for field in schema]
    try:
        unnumbered = Schema(*fields)
    except ValueError as error:
        # A column named like the path of another one's member.
        raise InvalidInput(f"the names of these columns conflict: {error}") from error
    return assign_fresh_schema_ids(unnumbered, lambda: next(numbers))


def _field_to_arrow(field: NestedField, names: Mapping[int, list[str]] | None, above: str = "") -> pa.Field:
    arrow = _type_to_arrow(field.field_type, above + field.name, names)
    metadata = {FIELD_ID: str(field.field_id).encode()}
    if names is not None:
        metadata[NAMES] = json.dumps(names.get(field.field_id, [])).encode()
    if field.initial_default is not None:
        metadata[DEFAULT] = encode_default(_default(field, arrow))
    if field.doc is not None:
        metadata[COMMENT] = field.doc.encode()
    # A column of an unknown type has only nulls, whatever is said of it.
    nullable = field.optional or pa.types.is_null(arrow)
    return pa.field(field.name, arrow, nullable, metadata)


def _default(field: NestedField, arrow: pa.DataType) -> pa.Scalar:
    try:
        return pa.scalar(field.initial_default, arrow)
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        raise Corrupt(
            f"the default of column {field.name!r} is not a valid {field.field_type}: {error}",
            column=field.name,
        ) from error


def _type_to_arrow(kind: IcebergType, column: str, names: Mapping[int, list[str]] | None) -> pa.DataType:
    match kind:
        case StructType():
            return pa.struct([_field_to_arrow(member, names, f"{column}.") for member in kind.fields])
        case ListType():
            return pa.list_(_field_to_arrow(kind.element_field, names, f"{column}."))
        case MapType():
            parts = (kind.key_field, kind.value_field)
            return pa.map_(*(_field_to_arrow(part, names, f"{column}.") for part in parts))
        case DecimalType():
            return pa.decimal128(kind.precision, kind.scale)
        case FixedType():
            return pa.binary(len(kind))
    if kind not in _PRIMITIVES:
        raise Unsupported(
            f"column {column!r} has type {kind}, which LakeVilla cannot read; read the table with the "
            "engine that wrote it, or drop the column there",
            column=column,
        )
    return _PRIMITIVES[kind]


def _field_from_arrow(field: pa.Field) -> NestedField:
    comment = (field.metadata or {}).get(COMMENT)
    return NestedField(
        _NO_ID,
        field.name,
        _type_from_arrow(field.type, field.name),
        required=not field.nullable,
        doc=None if comment is None else comment.decode(),
    )


def _type_from_arrow(arrow: pa.DataType, column: str) -> IcebergType:
    if arrow in _FROM_ARROW:
        return _FROM_ARROW[arrow]
    if pa.types.is_dictionary(arrow):
        return _type_from_arrow(arrow.value_type, column)
    if pa.types.is_timestamp(arrow):
        return TimestampType() if arrow.tz is None else TimestamptzType()
    if pa.types.is_time(arrow):
        return TimeType()
    if pa.types.is_decimal(arrow) and arrow.precision <= 38 and 0 <= arrow.scale <= arrow.precision:
        return DecimalType(arrow.precision, arrow.scale)
    if pa.types.is_fixed_size_binary(arrow):
        return FixedType(arrow.byte_width)
    return _nested_from_arrow(arrow, column)


def _nested_from_arrow(arrow: Any, column: str) -> IcebergType:
    if pa.types.is_struct(arrow):
        return StructType(*(_field_from_arrow(child) for child in arrow))
    if pa.types.is_map(arrow):
        key, value = (_type_from_arrow(part, column) for part in (arrow.key_type, arrow.item_type))
        return MapType(_NO_ID, key, _NO_ID, value, value_required=not arrow.item_field.nullable)
    if pa.types.is_list(arrow) or pa.types.is_large_list(arrow) or pa.types.is_fixed_size_list(arrow):
        element = _type_from_arrow(arrow.value_type, column)
        return ListType(_NO_ID, element, element_required=not arrow.value_field.nullable)
    raise InvalidInput(
        f"column {column!r} has type {arrow}, which Iceberg tables do not support; cast it", column=column
    )
