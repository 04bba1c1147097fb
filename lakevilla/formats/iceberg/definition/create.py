"""A new table: the whole metadata of its first version, from a schema and properties.

Pure; nothing is written here.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyiceberg.exceptions import ValidationError
from pyiceberg.schema import Schema
from pyiceberg.transforms import Transform, UnknownTransform, parse_transform
from pyiceberg.types import NestedField, StructType

from lakevilla.errors import InvalidInput, Unsupported
from lakevilla.formats.columns import check_columns
from lakevilla.formats.iceberg.definition.properties import refuse_write
from lakevilla.formats.iceberg.definition.schema import from_arrow
from lakevilla.formats.iceberg.definition.settings import FORMAT_VERSION, check_properties
from lakevilla.formats.uuids import dashed
from lakevilla.model import Change, PartitionField
from lakevilla.sql.words.suggestions import unknown_column

_FIRST_PARTITION_ID = 1000
_TIMES = ("year", "month", "day", "hour")
_NO_WIDTH = ("bucket[0]", "truncate[0]")


def create_table(
    schema: pa.Schema,
    *,
    partition_by: Sequence[PartitionField] = (),
    properties: Mapping[str, str] | None = None,
    comment: str | None = None,
    location: str,
    now_ms: int,
    new_id: Callable[[], str],
) -> Change:
    """The change that makes the first version of a table. InvalidInput for what Iceberg cannot hold.

    `location` is the table's root as other clients will find it.
    """
    if not len(schema):
        raise InvalidInput("a table needs at least one column")
    check_columns(schema)
    wanted = dict(properties or {})
    version = _format_version(wanted.pop(FORMAT_VERSION, "2"))
    check_properties(wanted)
    if comment is not None:
        wanted["comment"] = comment
    columns = from_arrow(schema)
    fields = partition_fields_of(columns, partition_by)
    raw = _metadata(version, columns, fields, wanted, now_ms)
    raw |= {"table-uuid": dashed(new_id()), "location": location}
    # Nothing may be published that we could not write to afterwards.
    refuse_write(raw)
    by = ", ".join(field_text(field) for field in partition_by)
    return Change("CREATE TABLE", {"partitionBy": by} if by else {}, metadata=raw)


def _format_version(text: str) -> int:
    if text in ("1", "2", "3"):
        return int(text)
    if text.isdigit():
        raise Unsupported(f"cannot write tables with {FORMAT_VERSION!r} = {text}; available: '1', '2', '3'")
    raise InvalidInput(f"invalid value {text!r} of {FORMAT_VERSION!r}; available: '1', '2', '3'")


def _metadata(
    version: int,
    columns: Schema,
    partition_fields: list[dict[str, Any]],
    properties: Mapping[str, str],
    now_ms: int,
) -> dict[str, Any]:
    schema = json.loads(columns.model_dump_json())
    raw: dict[str, Any] = {
        "format-version": version,
        "last-updated-ms": now_ms,
        "last-column-id": columns.highest_field_id,
        "current-schema-id": columns.schema_id,
        "schemas": [schema],
        "default-spec-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": partition_fields}],
        "last-partition-id": _FIRST_PARTITION_ID - 1 + len(partition_fields),
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "properties": properties,
        # As Iceberg's own writers say that there is no snapshot.
        "current-snapshot-id": -1,
        "refs": {},
        "snapshots": [],
        "statistics": [],
        "partition-statistics": [],
        "snapshot-log": [],
        "metadata-log": [],
    }
    if version == 1:
        return raw | {"schema": schema, "partition-spec": partition_fields}
    return raw | {"last-sequence-number": 0} | ({"next-row-id": 0} if version > 2 else {})


def partition_fields_of(columns: Schema, partition_by: Sequence[PartitionField]) -> list[dict[str, Any]]:
    """The fields of a partition spec over these columns."""
    fields: list[dict[str, Any]] = []
    seen: set[Any] = set()
    for number, field in enumerate(partition_by, _FIRST_PARTITION_ID):
        source = _source(columns, field)
        transform = _transform(field, source)
        _check_name(columns, field, source)
        # The same value twice, or a day together with its hour, divides nothing further.
        spelt = "time" if field.transform in _TIMES else field.transform
        for key in (("name", field.name.lower()), ("value", source.field_id, spelt)):
            if key in seen:
                raise InvalidInput(
                    f"redundant partition field {field_text(field)}: another one divides the rows already; "
                    "leave it out"
                )
            seen.add(key)
        fields.append(
            {
                "source-id": source.field_id,
                "field-id": number,
                "transform": str(transform),
                "name": field.name,
            }
        )
    return fields


def _source(columns: Schema, field: PartitionField) -> NestedField:
    """The column that a partition field goes by: one value a row, maybe a member of a struct."""
    found: NestedField | None = None
    members = columns.as_struct()
    for name in field.source:
        found = members.field_by_name(name)
        if found is None:
            known = [member.name for member in members.fields]
            raise unknown_column(".".join(field.source), known, kind="partition column")
        members = found.field_type if isinstance(found.field_type, StructType) else StructType()
    if found is None or not found.field_type.is_primitive:
        raise InvalidInput(
            f"cannot partition by {field_text(field)}: the column must have a simple type, and may be in "
            "a struct"
        )
    return found


def _transform(field: PartitionField, source: NestedField) -> Transform[Any, Any]:
    try:
        transform = parse_transform(field.transform)
    except (ValidationError, ValueError) as error:
        raise InvalidInput(f"{field.transform!r} is not a partition transform: {error}") from error
    if isinstance(transform, UnknownTransform) or field.transform in _NO_WIDTH:
        raise InvalidInput(
            f"unknown partition transform {field.transform!r}; available: identity, year, month, day, hour, "
            "bucket[N], truncate[W]"
        )
    if not transform.can_transform(source.field_type):
        raise InvalidInput(
            f"cannot partition by {field_text(field)}: {field.transform} does not apply to "
            f"{source.field_type}"
        )
    return transform


def _check_name(columns: Schema, field: PartitionField, source: NestedField) -> None:
    same = next((column for column in columns.fields if column.name.lower() == field.name.lower()), None)
    own = same is not None and same.field_id == source.field_id and field.transform == "identity"
    if not field.name or (same is not None and not own):
        raise InvalidInput(
            f"cannot name the partition field {field_text(field)} {field.name!r}: the name is empty or that "
            "of a column; choose another one"
        )


def field_text(field: PartitionField) -> str:
    source = ".".join(field.source)
    return source if field.transform == "identity" else f"{field.transform}({source})"
