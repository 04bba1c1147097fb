"""Files of a change as entries of manifests, and their form in a transaction's record."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lakevilla.encoding import decode_value, encode_value
from lakevilla.errors import Corrupt
from lakevilla.formats.iceberg.definition.layout import Layout
from lakevilla.formats.iceberg.manifests.entries import DATA, Entry
from lakevilla.formats.iceberg.manifests.metrics import metrics
from lakevilla.formats.iceberg.metadata.document import Raw, properties
from lakevilla.formats.iceberg.metadata.paths import recorded_path
from lakevilla.model import DataFile, WrittenFile

_BLOCK_BYTES = 64 * 1024 * 1024
"""Format 1 wants a number here that no reader uses."""

_TOLD = ("content", "file_path", "file_format", "record_count", "file_size_in_bytes", "partition")
_MAPS = (
    "column_sizes",
    "value_counts",
    "null_value_counts",
    "nan_value_counts",
    "lower_bounds",
    "upper_bounds",
)

NEW = -1
"""The sequence number of a file that is not published: it gets that of the snapshot which publishes it."""


def entry_of(file: WrittenFile, layout: Layout, raw: Raw) -> Entry:
    """The entry of a new file, or of one that comes back, in a table with this metadata."""
    if isinstance(file.entry, Entry):
        return file.entry
    found = metrics(file.statistics, file.rows, layout.leaves, properties(raw))
    record = {
        "content": DATA,
        "file_path": recorded_path(raw["location"], file.key),
        "file_format": "PARQUET",
        "record_count": file.rows,
        "file_size_in_bytes": file.size,
        "block_size_in_bytes": _BLOCK_BYTES,
        "value_counts": _pairs(found.values),
        "null_value_counts": _pairs(found.nulls),
        "lower_bounds": _pairs(found.lower),
        "upper_bounds": _pairs(found.upper),
    }
    partition = tuple(file.partition.get(field.name) for field in layout.default.fields)
    return _entry(record, layout.default.id, partition, NEW, NEW, 0)


def removed_entry(file: DataFile) -> Entry:
    """The entry of a file that a change removes."""
    if not isinstance(file.entry, Entry):
        raise TypeError(f"{file!r} is not a file of an Iceberg table")
    return file.entry


def encode_entry(entry: Entry) -> dict[str, Any]:
    """An entry as a JSON object, with all that a snapshot needs to take the file in."""
    kept = {name: value for name, value in entry.file.items() if name not in _TOLD and value is not None}
    return {
        "path": entry.path,
        "format": entry.format,
        "spec": entry.spec_id,
        "partition": encode_value(entry.partition),
        "rows": entry.rows,
        "size": entry.size,
        "numbers": [entry.sequence, entry.file_sequence, entry.snapshot_id],
        "maps": {name: _encoded_map(kept.pop(name)) for name in _MAPS if name in kept},
        "rest": {name: encode_value(value) for name, value in kept.items()},
    }


def decode_entry(record: Mapping[str, Any]) -> Entry:
    """The entry of such an object; Corrupt if it is malformed."""
    try:
        sequence, file_sequence, snapshot_id = map(int, record["numbers"])
        file = {
            "content": DATA,
            "file_path": str(record["path"]),
            "file_format": str(record["format"]).upper(),
            "record_count": int(record["rows"]),
            "file_size_in_bytes": int(record["size"]),
            **{name: _decoded_map(pairs) for name, pairs in record["maps"].items()},
            **{name: decode_value(value) for name, value in record["rest"].items()},
        }
        partition = tuple(decode_value(record["partition"]))
        return _entry(file, int(record["spec"]), partition, sequence, file_sequence, snapshot_id)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise Corrupt(f"the record of a file is malformed: {error!r}") from error


def _entry(
    file: Mapping[str, Any],
    spec_id: int,
    partition: tuple[Any, ...],
    sequence: int,
    file_sequence: int,
    snapshot_id: int,
) -> Entry:
    return Entry(
        content=DATA,
        path=file["file_path"],
        format=file["file_format"].lower(),
        spec_id=spec_id,
        partition=partition,
        rows=file["record_count"],
        size=file["file_size_in_bytes"],
        sequence=sequence,
        file_sequence=file_sequence,
        snapshot_id=snapshot_id,
        file=file,
    )


def _pairs(values: Mapping[int, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": value} for key, value in values.items()]


def _encoded_map(pairs: Iterable[Mapping[str, Any]]) -> list[list[Any]]:
    return [[pair["key"], encode_value(pair["value"])] for pair in pairs]


def _decoded_map(pairs: Iterable[Sequence[Any]]) -> list[dict[str, Any]]:
    return [{"key": int(key), "value": decode_value(value)} for key, value in pairs]
