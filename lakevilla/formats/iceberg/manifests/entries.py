"""One file of an Iceberg table as a manifest has it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

DATA, POSITION_DELETES, EQUALITY_DELETES = 0, 1, 2
"""What a file holds."""

DELETES = 1
"""What a manifest holds that is not one of data files."""

PUFFIN = "puffin"
"""The format of files that hold deletion vectors."""

ADDED, EXISTING, DELETED = 1, 0, 2
"""What a manifest says of a file."""


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """A live file. `partition` has one value per field of the spec, as the spec's transforms give them:
    Python values for identity and truncate, integers for the others. `sequence` is the data sequence number
    by which deletes apply. `file` is the rest of the record, by the names of Iceberg's spec (lower_bounds,
    referenced_data_file, ...), with maps as lists of `{"key": ..., "value": ...}`.

    `masks` are the deletes that concern this data file alone, where a change takes it away or brings it.
    Manifests keep them apart from it.
    """

    content: int
    path: str
    format: str
    spec_id: int
    partition: tuple[Any, ...]
    rows: int
    size: int
    sequence: int
    file_sequence: int
    snapshot_id: int
    file: Mapping[str, Any]
    masks: "tuple[Mask, ...]" = ()

    @property
    def name(self) -> tuple[str, int | None]:
        """What tells it from other live files: several vectors may share a path."""
        return self.path, self.file.get("content_offset")

    def of_column(self, name: str, number: int) -> Any:
        """What a map of the record says of the column of this id; None where it says nothing."""
        return next((pair["value"] for pair in self.file.get(name) or () if pair["key"] == number), None)

    def with_numbers(self, sequence: int, file_sequence: int, snapshot_id: int) -> "Entry":
        """The same file as part of a snapshot."""
        return replace(self, sequence=sequence, file_sequence=file_sequence, snapshot_id=snapshot_id)


@dataclass(frozen=True, slots=True, eq=False)
class Mask:
    """Position deletes or a deletion vector for one data file. `key` is relative to the table's root, or a
    URL."""

    key: str
    entry: Entry
