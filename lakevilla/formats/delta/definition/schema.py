"""Delta's schema JSON and Arrow schemas, in both directions (PROTOCOL.md, "Schema Serialization Format").

The metadata that Delta keeps with a column (comments, generation expressions, defaults, identity, column
mapping ids, type changes) travels as JSON under the field metadata key `DELTA`, so that a schema that is
read and written back loses nothing. Column mapping is translated into the annotations of
`files.column_mapping`, which is all that readers and writers of data files know of it.
"""

import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Literal

import pyarrow as pa

from lakevilla.errors import Corrupt, InvalidInput, Unsupported
from lakevilla.files.column_mapping import BY_ID, COMMENT, FIELD_ID, PHYSICAL_NAME

DELTA = b"delta"
"""Field metadata key: the column's metadata in Delta's schema, as JSON."""

_COMMENT = "comment"
COLUMN_ID = "delta.columnMapping.id"
COLUMN_PHYSICAL_NAME = "delta.columnMapping.physicalName"

MappingMode = Literal["none", "name", "id"]

_PRIMITIVES: Mapping[str, pa.DataType] = {
    "string": pa.string(),
    "long": pa.int64(),
    "integer": pa.int32(),
    "short": pa.int16(),
    "byte": pa.int8(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "void": pa.null(),
}
_NAMES: Mapping[pa.DataType, str] = {arrow: name for name, arrow in _PRIMITIVES.items()} | {
    # Unsigned types fit into the next wider signed one; Delta has no others.
    pa.uint8(): "short",
    pa.uint16(): "integer",
    pa.uint32(): "long",
    pa.date64(): "date",
    pa.large_string(): "string",
    pa.string_view(): "string",
    pa.large_binary(): "binary",
    pa.binary_view(): "binary",
}
_DECIMAL = re.compile(r"decimal(?:\(\s*(\d+)\s*,\s*(-?\d+)\s*\))?")


@lru_cache(maxsize=256)
def to_arrow(schema_string: str, mode: MappingMode = "none") -> pa.Schema:
    """The logical Arrow schema of a Delta schema; `mode` is the table's column mapping mode."""
    try:
        schema = json.loads(schema_string)
        fields = _fields_to_arrow(schema["fields"], mode)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise Corrupt(f"the table's schema cannot be parsed: {error!r}") from error
    return pa.schema(fields, metadata={BY_ID: b""} if mode == "id" else None)


def to_delta(schema: pa.Schema) -> str:
    """The Delta schema of an Arrow schema; InvalidInput for types that Delta does not have."""
    fields = [_field_to_delta(field) for field in schema]
    return json.dumps({"type": "struct", "fields": fields}, separators=(",", ":"), ensure_ascii=False)


def delta_metadata(field: pa.Field) -> dict[str, Any]:
    """What Delta's schema says about this column, except for name, type and nullability."""
    text = (field.metadata or {}).get(DELTA)
    result: dict[str, Any] = {} if text is None else json.loads(text)
    return result


def schema_fields(schema_string: str) -> Iterator[dict[str, Any]]:
    """Every struct field of a Delta schema, nested ones too, as Delta's JSON objects."""
    for node in _nodes(schema_string):
        if isinstance(node, dict):
            yield from node.get("fields", ())


def type_names(schema_string: str) -> Iterator[str]:
    """The name of every primitive type that a Delta schema uses, at any depth."""
    for node in _nodes(schema_string):
        if isinstance(node, str):
            yield node


def _nodes(schema_string: str) -> list[Any]:
    """All types in a Delta schema: JSON objects, and names of primitive types."""
    try:
        found = [json.loads(schema_string)]
        for node in found:
            if isinstance(node, dict):
                found.extend(field["type"] for field in node.get("fields", ()))
                found.extend(node[part] for part in ("elementType", "keyType", "valueType") if part in node)
        return found
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Corrupt(f"the table's schema cannot be parsed: {error!r}") from error


def _fields_to_arrow(fields: list[dict[str, Any]], mode: MappingMode) -> list[pa.Field]:
    names = [field["name"] for field in fields]
    if len(set(names)) < len(names):
        raise Corrupt(f"the table's schema names a column twice: {names}")
    return [_field_to_arrow(field, mode) for field in fields]


def _field_to_arrow(field: dict[str, Any], mode: MappingMode) -> pa.Field:
    name = field["name"]
    arrow_type = _type_to_arrow(field["type"], name, mode)
    metadata = _annotations(field.get("metadata") or {}, name, mode)
    # A void column has only nulls, whatever is said of it.
    nullable = bool(field.get("nullable", True)) or pa.types.is_null(arrow_type)
    return pa.field(name, arrow_type, nullable, metadata)


def _annotations(metadata: Mapping[str, Any], name: str, mode: MappingMode) -> dict[bytes, bytes] | None:
    annotations: dict[bytes, bytes] = {}
    if isinstance(metadata.get(_COMMENT), str):
        annotations[COMMENT] = metadata[_COMMENT].encode()
    if metadata:
        annotations[DELTA] = json.dumps(metadata, separators=(",", ":"), ensure_ascii=False).encode()
    if mode != "none":
        if COLUMN_PHYSICAL_NAME not in metadata or COLUMN_ID not in metadata:
            raise Corrupt(
                f"column mapping is on, but column {name!r} has no physical name or id", column=name
            )
        annotations[PHYSICAL_NAME] = str(metadata[COLUMN_PHYSICAL_NAME]).encode()
        annotations[FIELD_ID] = str(int(metadata[COLUMN_ID])).encode()
    return annotations or None


def _type_to_arrow(node: Any, column: str, mode: MappingMode) -> pa.DataType:
    if isinstance(node, str):
        return _primitive_to_arrow(node, column)
    match node["type"]:
        case "struct":
            return pa.struct(_fields_to_arrow(node["fields"], mode))
        case "array":
            element = _type_to_arrow(node["elementType"], column, mode)
            return pa.list_(pa.field("element", element, bool(node.get("containsNull", True))))
        case "map":
            key = _type_to_arrow(node["keyType"], column, mode)
            value = _type_to_arrow(node["valueType"], column, mode)
            nullable = bool(node.get("valueContainsNull", True))
            return pa.map_(pa.field("key", key, nullable=False), pa.field("value", value, nullable))
        case other:
            raise Unsupported(
                f"column {column!r} has type {other!r}, which LakeVilla cannot read", column=column
            )


def _primitive_to_arrow(name: str, column: str) -> pa.DataType:
    if name in _PRIMITIVES:
        return _PRIMITIVES[name]
    decimal = _DECIMAL.fullmatch(name)
    if decimal is None:
        raise Unsupported(
            f"column {column!r} has type {name!r}, which LakeVilla cannot read; "
            "read the table with the engine that wrote it, or drop the column there",
            column=column,
        )
    precision, scale = int(decimal[1] or 10), int(decimal[2] or 0)
    if not 1 <= precision <= 38 or not 0 <= scale <= precision:
        raise Corrupt(f"column {column!r} has type {name!r}, which is out of range", column=column)
    return pa.decimal128(precision, scale)


def _field_to_delta(field: pa.Field) -> dict[str, Any]:
    return {
        "name": field.name,
        "type": _type_to_delta(field.type, field.name),
        "nullable": field.nullable,
        "metadata": delta_metadata(field) | _comment(field),
    }


def _comment(field: pa.Field) -> dict[str, str]:
    text = (field.metadata or {}).get(COMMENT)
    return {} if text is None else {_COMMENT: text.decode()}


def _type_to_delta(arrow: pa.DataType, column: str) -> Any:
    if arrow in _NAMES:
        return _NAMES[arrow]
    if pa.types.is_timestamp(arrow):
        return "timestamp" if arrow.tz else "timestamp_ntz"
    if pa.types.is_decimal(arrow) and arrow.precision <= 38 and 0 <= arrow.scale <= arrow.precision:
        return f"decimal({arrow.precision},{arrow.scale})"
    if pa.types.is_fixed_size_binary(arrow):
        return "binary"
    if pa.types.is_dictionary(arrow):
        return _type_to_delta(arrow.value_type, column)
    if pa.types.is_struct(arrow):
        return {"type": "struct", "fields": [_field_to_delta(child) for child in arrow]}
    if pa.types.is_map(arrow):
        return {
            "type": "map",
            "keyType": _type_to_delta(arrow.key_type, column),
            "valueType": _type_to_delta(arrow.item_type, column),
            "valueContainsNull": arrow.item_field.nullable,
        }
    if pa.types.is_list(arrow) or pa.types.is_large_list(arrow) or pa.types.is_fixed_size_list(arrow):
        return {
            "type": "array",
            "elementType": _type_to_delta(arrow.value_type, column),
            "containsNull": arrow.value_field.nullable,
        }
    raise InvalidInput(
        f"column {column!r} has type {arrow}, which Delta tables do not support; cast it", column=column
    )
