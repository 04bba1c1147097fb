"""The columns of a new or changed schema: names and types checked, ids given for column mapping.

Schemas are in Delta's JSON form here, so that what we do not know of a column survives a change.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa

from lakevilla.errors import InvalidInput
from lakevilla.formats.delta.schema import COLUMN_ID, COLUMN_PHYSICAL_NAME


def check_columns(fields: Iterable[pa.Field], inside: str = "") -> None:
    """InvalidInput if these cannot be the columns of a table (or of a struct column `inside`)."""
    seen: set[str] = set()
    for field in fields:
        where = f"{inside}{field.name}"
        if not field.name:
            raise InvalidInput("a column has an empty name")
        if field.name.lower() in seen:
            raise InvalidInput(
                f"column {where!r} is there twice; names that differ only in case are the same"
            )
        seen.add(field.name.lower())
        _check_type(field.type, where)


def _check_type(data_type: pa.DataType, where: str) -> None:
    if pa.types.is_null(data_type):
        raise InvalidInput(f"column {where!r} has no type (all its values are null): give the table a schema")
    if pa.types.is_struct(data_type):
        if not data_type.num_fields:
            raise InvalidInput(f"column {where!r} is a struct without fields, which Parquet cannot store")
        check_columns(data_type, f"{where}.")
    elif pa.types.is_map(data_type):
        _check_type(data_type.key_type, f"{where}.key")
        _check_type(data_type.item_type, f"{where}.value")
    elif (
        pa.types.is_list(data_type)
        or pa.types.is_large_list(data_type)
        or pa.types.is_fixed_size_list(data_type)
    ):
        _check_type(data_type.value_type, f"{where}.element")


def struct_fields(node: Any) -> Iterator[dict[str, Any]]:
    """Every struct field of a type in Delta's JSON form, parents before children."""
    if not isinstance(node, dict):
        return
    for field in node.get("fields", ()):
        yield field
        yield from struct_fields(field["type"])
    for part in ("elementType", "keyType", "valueType"):
        yield from struct_fields(node.get(part))


def strip_metadata(schema: dict[str, Any]) -> None:
    """Leave only comments: ids, defaults and generation expressions belong to the table that had them."""
    for field in struct_fields(schema):
        metadata = field.get("metadata") or {}
        field["metadata"] = {"comment": metadata["comment"]} if "comment" in metadata else {}


def assign_ids(schema: dict[str, Any], largest: int, new_name: Callable[[str], str]) -> int:
    """Give every field that lacks them an id and a physical name for column mapping.

    `new_name` makes the physical name of a column from its logical one. Returns the largest id now.
    """
    fields = list(struct_fields(schema))
    largest = max([largest, *(int(field["metadata"].get(COLUMN_ID, 0)) for field in fields)])
    for field in fields:
        metadata = field["metadata"]
        if COLUMN_ID not in metadata:
            largest += 1
            metadata[COLUMN_ID] = largest
        metadata.setdefault(COLUMN_PHYSICAL_NAME, new_name(field["name"]))
    return largest
