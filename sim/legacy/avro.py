"""Manifests and manifest lists as the Iceberg spec (format 2) wants them, for clients of our own that know
nothing of LakeVilla: schemas by hand, for tables without partitions.
"""

import io
from collections.abc import Mapping, Sequence
from typing import Any

import fastavro

_SYNC = b"legacy-sync-mark"
"""The same in every file, so that equal runs write equal bytes."""


def _needed(number: int, name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "field-id": number}


def _optional(number: int, name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": ["null", kind], "default": None, "field-id": number}


def _map(number: int, name: str, key: int, kind: str) -> dict[str, Any]:
    """Iceberg's map by column id: an array of pairs."""
    fields = [_needed(key, "key", "int"), _needed(key + 1, "value", kind)]
    pairs = {"type": "record", "name": f"k{key}_v{key + 1}", "fields": fields}
    return _optional(number, name, {"type": "array", "items": pairs, "logicalType": "map"})


_DATA_FILE = {
    "type": "record",
    "name": "r2",
    "fields": [
        _needed(134, "content", "int"),
        _needed(100, "file_path", "string"),
        _needed(101, "file_format", "string"),
        _needed(102, "partition", {"type": "record", "name": "r102", "fields": []}),
        _needed(103, "record_count", "long"),
        _needed(104, "file_size_in_bytes", "long"),
        _map(109, "value_counts", 119, "long"),
        _map(110, "null_value_counts", 121, "long"),
        _map(125, "lower_bounds", 126, "bytes"),
        _map(128, "upper_bounds", 129, "bytes"),
    ],
}
_MANIFEST = fastavro.parse_schema(
    {
        "type": "record",
        "name": "manifest_entry",
        "fields": [
            _needed(0, "status", "int"),
            _optional(1, "snapshot_id", "long"),
            _optional(3, "sequence_number", "long"),
            _optional(4, "file_sequence_number", "long"),
            _needed(2, "data_file", _DATA_FILE),
        ],
    }
)
_LIST = fastavro.parse_schema(
    {
        "type": "record",
        "name": "manifest_file",
        "fields": [
            _needed(500, "manifest_path", "string"),
            _needed(501, "manifest_length", "long"),
            _needed(502, "partition_spec_id", "int"),
            _needed(517, "content", "int"),
            _needed(515, "sequence_number", "long"),
            _needed(516, "min_sequence_number", "long"),
            _needed(503, "added_snapshot_id", "long"),
            *(
                _needed(number, f"{name}_files_count", "int")
                for number, name in enumerate(("added", "existing", "deleted"), 504)
            ),
            *(
                _needed(number, f"{name}_rows_count", "long")
                for number, name in enumerate(("added", "existing", "deleted"), 512)
            ),
        ],
    }
)


def encode_manifest(records: Sequence[Mapping[str, Any]], content: str, schema: str) -> bytes:
    """A manifest of data files, or of `deletes`, in a table with this schema."""
    return _encoded(
        _MANIFEST,
        records,
        {
            "schema": schema,
            "schema-id": "0",
            "partition-spec": "[]",
            "partition-spec-id": "0",
            "format-version": "2",
            "content": content,
        },
    )


def encode_list(records: Sequence[Mapping[str, Any]]) -> bytes:
    """A manifest list."""
    return _encoded(_LIST, records, {"format-version": "2"})


def _encoded(schema: Any, records: Sequence[Mapping[str, Any]], metadata: dict[str, str]) -> bytes:
    sink = io.BytesIO()
    fastavro.writer(sink, schema, records, metadata=metadata, sync_marker=_SYNC)
    return sink.getvalue()
