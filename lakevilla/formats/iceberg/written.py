"""Files of a change as entries of manifests, and their form in a transaction's record."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lakevilla.encoding import decode_value, encode_value
from lakevilla.errors import Corrupt
from lakevilla.formats.iceberg.definition.layout import Layout
from lakevilla.formats.iceberg.manifests.entries import DATA, Entry, Mask
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
    return entry_from(record, layout.default.id, partition)


def keys_of(file: WrittenFile) -> list[str]:
    """The keys of all files that a file of a change needs: its own, and those of the deletes that concern it
    alone."""
    masks = file.entry.masks if isinstance(file.entry, Entry) else ()
    return [file.key, *(mask.key for mask in masks)]


def removed_entry(file: DataFile) -> Entry:
    """The entry of a file that a change removes."""
    if not isinstance(file.entry, Entry):
        raise TypeError(f"{file!r} is not a file of an Iceberg table")
    return file.entry


def encode_added(key: str, entry: Entry, *, stays: bool) -> dict[str, Any]:
    """A file that a change brings. `stays` says that the change takes it away too, with other deletes.

    Clients that know of no deletes in changes must not take such a file for one without: they find none of
    the members of an entry."""
    if not (stays or entry.masks):
        return {"key": key, **_encode_entry(entry)}
    return {"key": key, "masked": encode_masked(entry)}


def decode_added(record: Mapping[str, Any]) -> Entry:
    """The entry of such an object; Corrupt if it is malformed."""
    return decode_masked(record.get("masked", record))


def encode_masked(entry: Entry) -> dict[str, Any]:
    """An entry with the deletes that concern it alone."""
    masks = [{"key": mask.key, **_encode_entry(mask.entry)} for mask in entry.masks]
    return {**_encode_entry(entry), **({"masks": masks} if masks else {})}


def decode_masked(record: Mapping[str, Any]) -> Entry:
    """The entry of such an object; Corrupt if it is malformed."""
    masks = tuple(Mask(str(mask["key"]), _decode_entry(mask)) for mask in record.get("masks", ()))
    return replace(_decode_entry(record), masks=masks)


def _encode_entry(entry: Entry) -> dict[str, Any]:
    """An entry as a JSON object, with all that a snapshot needs to take the file in."""
    kept = {name: value for name, value in entry.file.items() if name not in _TOLD and value is not None}
    return {
        "path": entry.path,
        "format": entry.format,
        **({} if entry.content == DATA else {"content": entry.content}),
        "spec": entry.spec_id,
        "partition": encode_value(entry.partition),
        "rows": entry.rows,
        "size": entry.size,
        "numbers": [entry.sequence, entry.file_sequence, entry.snapshot_id],
        "maps": {name: _encoded_map(kept.pop(name)) for name in _MAPS if name in kept},
        "rest": {name: encode_value(value) for name, value in kept.items()},
    }


def _decode_entry(record: Mapping[str, Any]) -> Entry:
    try:
        sequence, file_sequence, snapshot_id = map(int, record["numbers"])
        file = {
            "content": int(record.get("content", DATA)),
            "file_path": str(record["path"]),
            "file_format": str(record["format"]).upper(),
            "record_count": int(record["rows"]),
            "file_size_in_bytes": int(record["size"]),
            **{name: _decoded_map(pairs) for name, pairs in record["maps"].items()},
            **{name: decode_value(value) for name, value in record["rest"].items()},
        }
        partition = tuple(decode_value(record["partition"]))
        return entry_from(file, int(record["spec"]), partition, sequence, file_sequence, snapshot_id)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise Corrupt(f"the record of a file is malformed: {error!r}") from error


def entry_from(
    file: Mapping[str, Any],
    spec_id: int,
    partition: tuple[Any, ...],
    sequence: int = NEW,
    file_sequence: int = NEW,
    snapshot_id: int = 0,
) -> Entry:
    """The entry of a file, by default of a new one, from its record by the names of Iceberg's spec."""
    return Entry(
        content=file["content"],
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
