"""A change that is not published: what the table would be with it, and its form in a transaction's record.

The record holds files as entries of manifests, with all that a snapshot needs of them: the client that
publishes it later, on whichever version, needs nothing else.
"""

from collections.abc import Mapping
from typing import Any

from lakevilla.errors import Corrupt
from lakevilla.formats.iceberg.manifests.entries import Entry
from lakevilla.formats.iceberg.metadata.document import Raw
from lakevilla.formats.iceberg.metadata.summaries import newest_batch
from lakevilla.formats.iceberg.snapshot import IcebergSnapshot
from lakevilla.formats.iceberg.written import (
    decode_added,
    decode_masked,
    encode_added,
    encode_masked,
    entry_of,
    removed_entry,
)
from lakevilla.model import Change, DataFile, ReadSet, WrittenFile
from lakevilla.predicates import ANYTHING

_FORMAT = "iceberg"

_GROWING = (
    "format-version",
    "last-sequence-number",
    "next-row-id",
    "schemas",
    "last-column-id",
    "partition-specs",
    "last-partition-id",
    "sort-orders",
)
"""Parts of the metadata that only grow: an id is never used twice, and no version of the format given up."""


def preview(base: IcebergSnapshot, change: Change) -> IcebergSnapshot:
    """The table as it would be after the change."""
    raw = _with(base.raw, change)
    layout = base.layout_of(raw)
    added = [entry_of(file, layout, raw) for file in change.added]
    return base.overlaid(raw, added, (file.identity for file in change.removed))


def entries_of(after: IcebergSnapshot, change: Change) -> list[Entry]:
    """The files that a change adds; `after` is its preview."""
    return [entry_of(file, after.layout, after.raw) for file in change.added]


def inverse(base: IcebergSnapshot, change: Change) -> Change:
    """The change that undoes this one, which was published on `base`.

    Schemas and specs that it added stay, unused: manifests refer to them. Rows that came after the table was
    replaced do not fit its old columns: they prevent the inverse.
    """
    after = preview(base, change)
    back = {key: base.raw[key] for key in change.metadata or () if key in base.raw and key not in _GROWING}
    return Change(
        operation="ROLLBACK",
        parameters={"of": change.operation},
        added=tuple(_written(removed_entry(file), file.key) for file in change.removed),
        removed=tuple(after.unpublished(entry) for entry in entries_of(after, change)),
        metadata=back if change.metadata is not None else None,
        read=ReadSet((ANYTHING,)) if change.replaces else ReadSet(),
        inverse=True,
        once=None if change.once is None else newest_batch(base.raw, change.once.app),
    )


def encode_change(base: IcebergSnapshot, change: Change) -> dict[str, Any]:
    """A change as a JSON object."""
    raw = _with(base.raw, change)
    layout = base.layout_of(raw)
    gone = {file.key for file in change.removed}
    record: dict[str, Any] = {
        "format": _FORMAT,
        "operation": change.operation,
        "parameters": dict(change.parameters),
        "metrics": dict(change.metrics),
        "added": [
            encode_added(file.key, entry_of(file, layout, raw), stays=file.key in gone)
            for file in change.added
        ],
        "removed": [
            {"key": file.key, "identity": file.identity, **encode_masked(removed_entry(file))}
            for file in change.removed
        ],
    }
    if change.replaces:
        record["replaces"] = True
    return record if change.metadata is None else {**record, "metadata": dict(change.metadata)}


def decode_change(record: Mapping[str, Any]) -> Change:
    """The change of such an object."""
    try:
        return Change(
            operation=str(record["operation"]),
            parameters={str(name): str(value) for name, value in record["parameters"].items()},
            metrics={str(name): int(value) for name, value in record["metrics"].items()},
            added=tuple(_written(decode_added(file), str(file["key"])) for file in record["added"]),
            removed=tuple(
                _live(decode_masked(file), str(file["key"]), str(file["identity"]))
                for file in record["removed"]
            ),
            metadata=dict(record["metadata"]) if "metadata" in record else None,
            replaces=bool(record.get("replaces")),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise Corrupt(f"the record of a change is malformed: {error!r}") from error


def _with(raw: Raw, change: Change) -> Raw:
    """The metadata with what the change gives it, but without what only a publisher can write."""
    return raw if change.metadata is None else {**raw, **change.metadata}


def _written(entry: Entry, key: str) -> WrittenFile:
    return WrittenFile(key, entry.size, entry.rows, {}, {}, 0, entry=entry)


def _live(entry: Entry, key: str, identity: str) -> DataFile:
    return DataFile(key, identity, entry.size, entry.rows, {}, entry=entry, format=entry.format)
