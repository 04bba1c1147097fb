"""Another definition for a table that exists: CREATE OR REPLACE TABLE, and an overwrite with other columns.

Pure. The table stays the same one, with its `table-uuid` and its snapshots, so that earlier versions stay
readable. Schemas and specs are only added. A column that keeps its name and its simple type keeps its id.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyiceberg.schema import Schema

from lakevilla.errors import InvalidInput, Unsupported
from lakevilla.formats.columns import check_columns
from lakevilla.formats.iceberg.definition.create import field_text, partition_fields_of
from lakevilla.formats.iceberg.definition.name_mapping import NAME_MAPPING, name_mapping, with_columns
from lakevilla.formats.iceberg.definition.properties import refuse_write, shown
from lakevilla.formats.iceberg.definition.schema import from_arrow
from lakevilla.formats.iceberg.definition.settings import FORMAT_VERSION, check_properties
from lakevilla.formats.iceberg.metadata.document import (
    Raw,
    current_schema,
    format_version,
    properties,
    schemas,
    specs,
)
from lakevilla.formats.properties import MARKERS, check_markers_stay
from lakevilla.model import Change, PartitionField

_UNSORTED = 0
_FIRST_PARTITION_ID = 1000


def replace_definition(
    raw: Raw,
    schema: pa.Schema,
    partition_by: Sequence[PartitionField],
    given: Mapping[str, str] | None,
    comment: str | None,
) -> Change:
    """The change that gives the table these columns. Without properties its own stay, and its comment."""
    if not len(schema):
        raise InvalidInput("a table needs at least one column")
    check_columns(schema)
    kept = shown(properties(raw))
    wanted = dict(kept) if given is None else _properties(raw, kept, given, comment)
    columns = _columns(raw, schema)
    metadata: dict[str, Any] = {"properties": wanted}
    metadata |= _schema_parts(raw, columns)
    metadata |= _spec_parts(raw, columns, partition_by)
    metadata |= _sort_parts(raw)
    mapping = name_mapping(kept)
    if mapping is not None:
        # Files of earlier versions may have no ids.
        wanted[NAME_MAPPING] = with_columns(mapping, current_schema(raw), columns)
    check_markers_stay(properties(raw), wanted)
    # Nothing may be published that we could not write to afterwards.
    refuse_write({**raw, **metadata})
    by = ", ".join(field_text(field) for field in partition_by)
    parameters = {"partitionBy": by} if by else {}
    return Change("CREATE OR REPLACE TABLE", parameters, metadata=metadata, replaces=True)


def _properties(
    raw: Raw, kept: Mapping[str, str], given: Mapping[str, str], comment: str | None
) -> dict[str, str]:
    wanted = dict(given)
    _refuse_upgrade(raw, wanted.pop(FORMAT_VERSION, None))
    check_properties(wanted)
    if comment is not None:
        wanted["comment"] = comment
    return {name: value for name, value in kept.items() if name == MARKERS} | wanted


def _refuse_upgrade(raw: Raw, wanted: str | None) -> None:
    """A table that is replaced keeps its format."""
    now = format_version(raw)
    if wanted is not None and wanted != str(now):
        raise Unsupported(
            f"cannot change {FORMAT_VERSION!r} from {now} to {wanted} while the table is replaced: use ALTER "
            f"TABLE ... SET TBLPROPERTIES ('{FORMAT_VERSION}' = '{wanted}') for that"
        )


def _columns(raw: Raw, schema: pa.Schema) -> Schema:
    """The new columns, with ids that no other column ever had."""
    fresh = from_arrow(schema, int(raw["last-column-id"]) + 1)
    known = {field.name: field for field in current_schema(raw).fields}
    fields = []
    for field in fresh.fields:
        old = known.get(field.name)
        same = old is not None and field.field_type.is_primitive and old.field_type == field.field_type
        number = old.field_id if old is not None and same else field.field_id
        fields.append(field.model_copy(update={"field_id": number}))
    known_schemas = schemas(raw)
    for number, one in known_schemas.items():
        if tuple(one.fields) == tuple(fields) and not one.identifier_field_ids:
            return Schema(*fields, schema_id=number)
    return Schema(*fields, schema_id=max(known_schemas) + 1)


def _schema_parts(raw: Raw, columns: Schema) -> dict[str, Any]:
    encoded = json.loads(columns.model_dump_json())
    known = [{"schema-id": 0, **schema} for schema in raw.get("schemas") or [raw["schema"]]]
    is_new = all(schema["schema-id"] != columns.schema_id for schema in known)
    parts: dict[str, Any] = {
        "schemas": [*known, encoded] if is_new else known,
        "current-schema-id": columns.schema_id,
        "last-column-id": max(int(raw["last-column-id"]), columns.highest_field_id),
    }
    return parts | ({"schema": encoded} if format_version(raw) == 1 else {})


def _spec_parts(raw: Raw, columns: Schema, partition_by: Sequence[PartitionField]) -> dict[str, Any]:
    known = {number: _spec_fields(spec) for number, spec in specs(raw).items()}
    used = {key: field["field-id"] for fields in known.values() for key, field in _by_meaning(fields).items()}
    last = max(
        int(raw.get("last-partition-id") or _FIRST_PARTITION_ID - 1),
        *(used.values() or [_FIRST_PARTITION_ID - 1]),
    )
    fields = partition_fields_of(columns, partition_by)
    for key, field in _by_meaning(fields).items():
        if key not in used:
            last += 1
        field["field-id"] = used.get(key, last)
    same = next((number for number, other in known.items() if other == fields), None)
    if same is None and format_version(raw) == 1:
        raise Unsupported(
            "a table of Iceberg's format 1 cannot be partitioned in another way: its partition fields "
            "stay for good. Keep them, or drop the table and create it anew in one transaction"
        )
    number = max(known) + 1 if same is None else same
    encoded = [{"spec-id": one, "fields": other} for one, other in known.items()]
    parts: dict[str, Any] = {
        "partition-specs": encoded if same is not None else [*encoded, {"spec-id": number, "fields": fields}],
        "default-spec-id": number,
        "last-partition-id": last,
    }
    return parts | ({"partition-spec": fields} if format_version(raw) == 1 else {})


def _spec_fields(spec: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(spec.model_dump_json())["fields"]
    return found


def _by_meaning(fields: Sequence[dict[str, Any]]) -> dict[tuple[Any, ...], dict[str, Any]]:
    return {(field["source-id"], field["transform"], field["name"]): field for field in fields}


def _sort_parts(raw: Raw) -> dict[str, Any]:
    """New rows are in no order: the columns of the old one may be no more."""
    orders = list(raw.get("sort-orders") or ())
    if not raw.get("default-sort-order-id"):
        return {}
    if all(order["order-id"] != _UNSORTED for order in orders):
        orders.append({"order-id": _UNSORTED, "fields": []})
    return {"sort-orders": orders, "default-sort-order-id": _UNSORTED}
