"""What a table's metadata says of its shape: schema, partitioning, where a column's bounds are found.

Computed once and shared by all versions that have it in common. Here is also where a table that we cannot
read is refused.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
from pyiceberg.schema import Schema
from pyiceberg.types import NestedField

from lakevilla.files.column_mapping import REUSED_NAMES
from lakevilla.formats.iceberg.definition.name_mapping import NAME_MAPPING, name_mapping
from lakevilla.formats.iceberg.definition.schema import to_arrow
from lakevilla.formats.iceberg.definition.specs import Spec, specs_of
from lakevilla.formats.iceberg.manifests.metrics import leaves
from lakevilla.formats.iceberg.metadata.document import Raw, current_schema, default_spec, properties, schemas
from lakevilla.formats.lazy import lazy_property
from lakevilla.model import PartitionField, Partitioning
from lakevilla.predicates import Column

_SHAPE = (
    "format-version",
    "schema",
    "schemas",
    "current-schema-id",
    "partition-spec",
    "partition-specs",
    "default-spec-id",
)


@dataclass(frozen=True, eq=False)
class Layout:
    """The shape of a table under one schema and its partition specs."""

    model: Schema
    schema: pa.Schema
    specs: Mapping[int, Spec]
    default: Spec
    raw: Raw = field(repr=False)

    @staticmethod
    def of(raw: Raw) -> "Layout":
        """The layout, or Unsupported if we cannot read such a table."""
        model = current_schema(raw)
        specs = specs_of(raw, model)
        schema = to_arrow(model, name_mapping(properties(raw)))
        if _reuses_names(model, schemas(raw).values()):
            schema = schema.with_metadata({**schema.metadata, REUSED_NAMES: b""})
        return Layout(model, schema, specs, specs[default_spec(raw).spec_id], raw)

    @lazy_property
    def history(self) -> tuple[pa.Schema, ...]:
        """All schemas that the table had, the current one first: files may have columns that were dropped."""
        others = sorted(schemas(self.raw).items(), reverse=True)
        names = name_mapping(properties(self.raw))
        return (self.schema, *(to_arrow(model, names) for _, model in others if model != self.model))

    @lazy_property
    def partition_columns(self) -> tuple[str, ...]:
        """The columns that every spec partitions by their own values: files need not hold them."""
        found = [spec.identity_columns for spec in self.specs.values()]
        return tuple(name for name in found[0] if all(name in other for other in found)) if found else ()

    @lazy_property
    def partitioning(self) -> Partitioning:
        """How new files are divided."""
        fields = zip(self.default.fields, self.default.names, strict=True)
        return Partitioning(
            tuple(PartitionField(f.name, name, str(f.transform)) for f, name in fields if name is not None),
            stored=True,
        )

    @lazy_property
    def leaves(self) -> Mapping[Column, NestedField]:
        """The columns that have statistics, by their path."""
        return leaves(self.model)


def _reuses_names(model: Schema, others: Iterable[Schema]) -> bool:
    """Whether a column has a name that another of the columns had in an earlier schema."""
    now = {number: model.find_column_name(number) for number in model.field_ids}
    taken = {name: number for number, name in now.items()}
    before = ((number, other.find_column_name(number)) for other in others for number in other.field_ids)
    return any(number in now and taken.get(name, number) != number for number, name in before)


def same_shape(one: Raw, other: Raw) -> bool:
    """Whether two versions of a table have one layout."""
    names = properties(one).get(NAME_MAPPING) == properties(other).get(NAME_MAPPING)
    return names and all(one.get(key) == other.get(key) for key in _SHAPE)
