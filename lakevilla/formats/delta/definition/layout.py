"""What a table's metadata says of its shape: schema, partitioning, where a column's bounds are found.

Computed once for each metadata and protocol, and shared by all snapshots that have them in common. Here is
also where a table that we cannot read is refused.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from lakevilla.errors import Corrupt, Unsupported
from lakevilla.files.column_mapping import physical_name
from lakevilla.formats.delta.definition.features import in_commit_timestamps, mapping_mode, refuse_read
from lakevilla.formats.delta.definition.schema import MappingMode, delta_metadata, to_arrow
from lakevilla.formats.delta.files.bounds import Leaf
from lakevilla.formats.delta.log.actions import Metadata, Protocol
from lakevilla.formats.lazy import lazy_property
from lakevilla.formats.properties import CONSTRAINT
from lakevilla.predicates import Column


@dataclass(frozen=True)
class Layout:
    """The shape of a table under one protocol and one metadata."""

    protocol: Protocol
    metadata: Metadata
    mode: MappingMode
    schema: pa.Schema

    @staticmethod
    def of(protocol: Protocol, metadata: Metadata) -> "Layout":
        """The layout, or Unsupported if we cannot read such a table."""
        refuse_read(protocol, metadata)
        mode = mapping_mode(protocol, metadata)
        return Layout(protocol, metadata, mode, to_arrow(metadata.schema_string, mode))

    @lazy_property
    def partition_fields(self) -> Mapping[str, pa.Field]:
        """The partition columns by logical name, in their order."""
        found = {}
        for name in self.metadata.partition_columns:
            field = next((field for field in self.schema if field.name == name), None) or next(
                (field for field in self.schema if field.name.lower() == name.lower()), None
            )
            if field is None or pa.types.is_nested(field.type):
                raise Corrupt(
                    f"the partition column {name!r} is not a plain column of the schema", column=name
                )
            found[field.name] = field
        return found

    @lazy_property
    def in_commit_timestamps(self) -> bool:
        return in_commit_timestamps(self.protocol, self.metadata)

    @lazy_property
    def checks(self) -> Mapping[str, str]:
        """CHECK constraints by name, and column invariants by column, as Spark SQL."""
        found = {
            key.removeprefix(CONSTRAINT): text
            for key, text in self.metadata.configuration.items()
            if key.startswith(CONSTRAINT)
        }
        for path, field in _fields(list(self.schema), ()):
            text = delta_metadata(field).get("delta.invariants")
            if text is not None:
                found[f"invariant of {'.'.join(path)}"] = _invariant(text)
        return found

    def leaf(self, column: Column) -> Leaf | None:
        """Where statistics of a column are; None if there can be none."""
        fields, path, field = list(self.schema), [], None
        for name in column:
            field = next((field for field in fields if field.name == name), None)
            if field is None:
                return None
            path.append(physical_name(field))
            fields = list(field.type) if pa.types.is_struct(field.type) else []
        if field is None or pa.types.is_struct(field.type) or pa.types.is_null(field.type):
            return None
        notes = delta_metadata(field)
        # Bounds of a collated string follow the collation; those of a double that was a float are off.
        once_float = pa.types.is_float64(field.type) and "delta.typeChanges" in notes
        return Leaf(tuple(path), field.type, ordered="__COLLATIONS" not in notes and not once_float)


def _fields(fields: list[pa.Field], above: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], pa.Field]]:
    for field in fields:
        path = (*above, field.name)
        yield path, field
        if pa.types.is_struct(field.type):
            yield from _fields(list(field.type), path)


def _invariant(text: str) -> str:
    try:
        return str(json.loads(text)["expression"]["expression"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise Unsupported(
            f"unsupported column invariant {text!r}: new rows cannot be checked against it, so the table can "
            "only be read"
        ) from error
