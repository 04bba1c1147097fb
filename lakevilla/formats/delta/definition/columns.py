"""The columns of a new or changed schema: ids given for column mapping.

Schemas are in Delta's JSON form here, so that what we do not know of a column survives a change.
"""

from collections.abc import Callable, Iterator
from typing import Any

from lakevilla.formats.delta.definition.schema import COLUMN_ID, COLUMN_PHYSICAL_NAME


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
