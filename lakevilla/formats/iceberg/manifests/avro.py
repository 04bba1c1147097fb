"""Manifests and manifest lists: Avro both ways, with the schemas that Iceberg's spec and PyIceberg give.

The Avro itself is fastavro's: it is an order of magnitude faster than PyIceberg's own, and reads doubles as
doubles.
"""

import io
import json
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import fastavro
from fastavro.schema import SchemaParseException, UnknownType
from pyiceberg.manifest import (
    MANIFEST_LIST_FILE_SCHEMAS,
    data_file_with_partition,
    manifest_entry_schema_with_data_file,
)
from pyiceberg.schema import Schema
from pyiceberg.types import IntegerType, ListType, NestedField, StringType, StructType
from pyiceberg.utils.schema_conversion import AvroSchemaConversion

from lakevilla.errors import Corrupt
from lakevilla.formats.iceberg.definition.specs import Spec
from lakevilla.formats.iceberg.manifests.entries import ADDED, DATA, DELETED, EXISTING, Entry
from lakevilla.formats.iceberg.manifests.row_ids import numbered
from lakevilla.formats.iceberg.values import counted

Record = Mapping[str, Any]

_KEPT_SCHEMAS = 256
_REFERENCED = NestedField(143, "referenced_data_file", StringType(), required=False)
_COLUMNS = NestedField(135, "equality_ids", ListType(136, IntegerType(), True), required=False)


_UNREADABLE = (
    ValueError,
    EOFError,
    KeyError,
    TypeError,
    IndexError,
    AttributeError,
    StopIteration,
    OverflowError,
    RecursionError,
    MemoryError,
    AssertionError,
    zlib.error,
    SchemaParseException,
    UnknownType,
)
_SYNC_BYTES = 16
_CALENDAR = re.compile(rb'"logicalType"(?=\s*:\s*"(date|timestamp|local-timestamp))')
_UNKNOWN = b'"logicalName"'


def read_records(data: bytes, name: str) -> list[dict[str, Any]]:
    """The records of an Avro file; `name` is for errors. Days and moments may be counts, see `_as_counts`."""
    try:
        return list(fastavro.reader(io.BytesIO(data)))  # type: ignore[arg-type]
    except _UNREADABLE as error:
        try:
            return list(fastavro.reader(io.BytesIO(_as_counts(data))))  # type: ignore[arg-type]
        except _UNREADABLE:
            raise Corrupt(f"{name} is not a readable Avro file: {error!r}") from error


def _as_counts(data: bytes) -> bytes:
    """The file with days and moments as plain numbers.

    fastavro fails on those that Python's calendar does not have. It goes by annotations in the file's header,
    which ends with the marker that also ends the file: there another word of the same length replaces them.
    """
    header = data.find(data[-_SYNC_BYTES:])
    return _CALENDAR.sub(_UNKNOWN, data[:header]) + data[header:]


def entries_of(records: Iterable[Record], manifest: Record, spec: Spec) -> list[Entry]:
    """The live files of a manifest; `manifest` is its record in the manifest list."""
    try:
        found = [_entry(record, manifest, spec) for record in records if record["status"] != DELETED]
        is_data = (manifest.get("content") or DATA) == DATA
        return numbered(found, manifest.get("first_row_id")) if is_data else found
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        path = manifest.get("manifest_path")
        raise Corrupt(f"the manifest {path} has a malformed entry of a file: {error!r}") from error


def _entry(record: Record, manifest: Record, spec: Spec) -> Entry:
    """What the record leaves out it has from its manifest (inheritance, as Iceberg's spec has it)."""
    file = record["data_file"]
    if not (
        isinstance(file["file_path"], str) and _are_counts(file["record_count"], file["file_size_in_bytes"])
    ):
        raise TypeError(f"{file['file_path']!r} has no path, rows or size")
    inherited = manifest.get("sequence_number") or 0
    sequence, file_sequence = record.get("sequence_number"), record.get("file_sequence_number")
    snapshot_id = record.get("snapshot_id")
    return Entry(
        content=file.get("content") or DATA,
        path=file["file_path"],
        format=file["file_format"].lower(),
        spec_id=spec.id,
        partition=spec.plain(list((file.get("partition") or {}).values())),
        rows=file["record_count"],
        size=file["file_size_in_bytes"],
        sequence=inherited if sequence is None else sequence,
        file_sequence=inherited if file_sequence is None else file_sequence,
        snapshot_id=manifest["added_snapshot_id"] if snapshot_id is None else snapshot_id,
        file=file,
    )


def _are_counts(*values: Any) -> bool:
    return all(isinstance(value, int) and value >= 0 for value in values)


def encode_manifest(
    format_version: int, spec: Spec, schema: Schema, records: Sequence[Record], content: int = DATA
) -> bytes:
    """The bytes of a manifest of data files, or of delete files; `records` come from `record_of`."""
    metadata = {
        "schema": schema.model_dump_json(),
        "schema-id": str(schema.schema_id),
        "partition-spec": json.dumps([json.loads(field.model_dump_json()) for field in spec.fields]),
        "partition-spec-id": str(spec.id),
        "format-version": str(format_version),
        "content": "data" if content == DATA else "deletes",
    }
    return _encoded(_manifest_schema(format_version, spec.partition_type), records, metadata)


def encode_manifest_list(format_version: int, records: Sequence[Record], snapshot: Record) -> bytes:
    """The bytes of a manifest list of this snapshot."""
    parent = snapshot.get("parent-snapshot-id")
    metadata = {
        "snapshot-id": str(snapshot["snapshot-id"]),
        "parent-snapshot-id": "null" if parent is None else str(parent),
        "sequence-number": str(snapshot.get("sequence-number", 0)),
        "format-version": str(format_version),
    }
    return _encoded(_list_schema(format_version), records, metadata)


def record_of(entry: Entry, status: int, snapshot_id: int, spec: Spec) -> dict[str, Any]:
    """The record of a file in a manifest of this snapshot.

    A file that is new inherits its numbers; one that comes back has the data sequence number that it had, so
    that the same deletes apply.
    """
    return {
        "status": status,
        "snapshot_id": entry.snapshot_id if status == EXISTING else snapshot_id,
        "sequence_number": entry.sequence if entry.sequence >= 0 else None,
        "file_sequence_number": None if status == ADDED else entry.file_sequence,
        "data_file": {**entry.file, "partition": _partition_record(entry.partition, spec)},
    }


def _partition_record(values: Sequence[Any], spec: Spec) -> dict[str, Any]:
    # As counts: fastavro would take a time without a zone for our own zone's.
    return dict(zip(spec.avro_names, map(counted, values), strict=True))


def _encoded(schema: Any, records: Sequence[Record], metadata: Mapping[str, str]) -> bytes:
    sink = io.BytesIO()
    fastavro.writer(sink, schema, records, codec="deflate", metadata=dict(metadata))
    return sink.getvalue()


_SCHEMAS: dict[tuple[int, str], Any] = {}


def _manifest_schema(format_version: int, partition: StructType) -> Any:
    """Making a schema takes longer than writing a manifest of one file, so it is done once."""
    key = format_version, partition.model_dump_json()
    found = _SCHEMAS.get(key)
    if found is None:
        given = data_file_with_partition(partition, format_version)  # type: ignore[arg-type]
        file = given if format_version == 1 else _with_deletes(given)
        whole = manifest_entry_schema_with_data_file(format_version, file)  # type: ignore[arg-type]
        if len(_SCHEMAS) >= _KEPT_SCHEMAS:
            _SCHEMAS.clear()
        avro = AvroSchemaConversion().iceberg_to_avro(whole, schema_name="manifest_entry")
        found = _SCHEMAS[key] = fastavro.parse_schema(avro)
    return found


def _with_deletes(file: StructType) -> StructType:
    """The record of a file as Iceberg's spec has it for delete files, from the one that PyIceberg has: there
    the columns of equality deletes are of another type, and position deletes in format 2 name no data
    file."""
    fields = {field.field_id: field for field in file.fields}
    return StructType(
        *({_REFERENCED.field_id: _REFERENCED} | fields | {_COLUMNS.field_id: _COLUMNS}).values()
    )


@cache
def _list_schema(format_version: int) -> Any:
    schema = MANIFEST_LIST_FILE_SCHEMAS[format_version]
    avro = AvroSchemaConversion().iceberg_to_avro(schema, schema_name="manifest_file")
    return fastavro.parse_schema(avro)
