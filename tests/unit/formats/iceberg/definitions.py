"""Metadata of Iceberg tables for tests of their definition."""

import itertools
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyiceberg.table.metadata import TableMetadataUtil

from lakevilla.formats.iceberg.definition.alter import alter
from lakevilla.formats.iceberg.definition.create import create_table
from lakevilla.model import PartitionField
from lakevilla.sql.statements import Action

INNER = pa.struct([pa.field("x", pa.int64()), pa.field("y", pa.list_(pa.struct([("z", pa.int64())])))])
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), False, {b"comment": b"the key"}),
        pa.field("s", INNER),
        pa.field("ts", pa.timestamp("us", "UTC")),
        pa.field("p", pa.string()),
    ]
)


def create(
    schema: pa.Schema = SCHEMA, partition_by: Sequence[PartitionField] = (), **options: Any
) -> dict[str, Any]:
    """The metadata of a new table, which PyIceberg accepts."""
    numbers = itertools.count(1)
    change = create_table(
        schema,
        partition_by=partition_by,
        location="file:///lake/t",
        now_ms=7,
        new_id=lambda: f"{next(numbers):032x}",
        **options,
    )
    assert change.operation == "CREATE TABLE"
    raw: dict[str, Any] = change.metadata
    accept(raw)
    return raw


def altered(raw: dict[str, Any], action: Action) -> dict[str, Any]:
    """The metadata after an ALTER TABLE, which PyIceberg accepts; what was there is not changed."""
    before = repr(raw)
    after = {**raw, **alter(raw, action).metadata}
    assert repr(raw) == before
    accept(after)
    return after


def accept(raw: dict[str, Any]) -> None:
    # PyIceberg changes what it is given.
    parsed = TableMetadataUtil.parse_obj({**raw})
    assert parsed.schema().schema_id == raw["current-schema-id"]


def columns(raw: dict[str, Any]) -> dict[str, int]:
    """The ids of the current columns, members of structs and lists too, by their paths."""
    parsed = TableMetadataUtil.parse_obj({**raw}).schema()
    return {parsed.find_column_name(number) or "": number for number in sorted(parsed.field_ids)}
