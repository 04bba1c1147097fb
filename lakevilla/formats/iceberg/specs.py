"""Partition specs: which values partition a table's files, and of which types they are."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import cached_property
from typing import Any

from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.types import NestedField, StructType, TimestampNanoType, TimestampType, UnknownType

from lakevilla.formats.iceberg.metadata import Raw, schemas, specs
from lakevilla.predicates import Column

_EPOCH = date(1970, 1, 1)


@dataclass(frozen=True, eq=False)
class Spec:
    """One partition spec with the types of its sources. `sources` has None for a column that no schema of the
    table knows any more."""

    id: int
    fields: tuple[PartitionField, ...]
    sources: tuple[NestedField | None, ...]
    names: tuple[Column | None, ...]
    """The sources' paths in the current schema; None for columns that it does not have."""

    @cached_property
    def partition_type(self) -> StructType:
        """The type of partition values. All are optional: a source may have been so when a file came."""
        return StructType(
            *(
                NestedField(field.field_id, field.name, _result_type(field, source), required=False)
                for field, source in zip(self.fields, self.sources, strict=True)
            )
        )

    def identities(self, values: Sequence[Any]) -> dict[str, Any]:
        """Of partition values, those of top-level columns as they are, by the column's name."""
        return {
            name[0]: value
            for field, name, value in zip(self.fields, self.names, values, strict=True)
            if name is not None and len(name) == 1 and str(field.transform) == "identity"
        }

    @cached_property
    def _plain(self) -> tuple[Callable[[Any], Any], ...]:
        return tuple(map(_plain_of, self.fields, self.sources))

    def plain(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """Partition values as `Entry` has them, from those of a manifest: writers annotate the same numbers
        in several ways."""
        return tuple(make(value) for make, value in zip(self._plain, values, strict=True))


def specs_of(raw: Raw, current: Schema) -> dict[int, Spec]:
    """The specs of a table by id."""
    known = [current, *schemas(raw).values()]
    return {number: _spec(spec, current, known) for number, spec in specs(raw).items()}


def _spec(spec: PartitionSpec, current: Schema, known: Sequence[Schema]) -> Spec:
    paths = dict(leaf_paths(current.as_struct()))
    named = {number: path for path, number in paths.items()}
    names = tuple(named.get(field.source_id) for field in spec.fields)
    sources = tuple(_source(field.source_id, known) for field in spec.fields)
    return Spec(spec.spec_id, tuple(spec.fields), sources, names)


def leaf_paths(struct: StructType, above: Column = ()) -> Iterator[tuple[Column, int]]:
    """The paths of all columns that hold single values, structs unfolded, with their ids."""
    for field in struct.fields:
        path = (*above, field.name)
        if isinstance(field.field_type, StructType):
            yield from leaf_paths(field.field_type, path)
        elif field.field_type.is_primitive:
            yield path, field.field_id


def _source(number: int, known: Sequence[Schema]) -> NestedField | None:
    for schema in known:
        if number in schema.field_ids:
            return schema.find_field(number)
    return None


def _result_type(field: PartitionField, source: NestedField | None) -> Any:
    return UnknownType() if source is None else field.transform.result_type(source.field_type)


def _plain_of(field: PartitionField, source: NestedField | None) -> Callable[[Any], Any]:
    transform = str(field.transform)
    if transform not in ("identity", "void") and not transform.startswith("truncate"):
        return _number
    if source is not None and isinstance(source.field_type, TimestampType | TimestampNanoType):
        return _without_zone
    return lambda value: value


def _number(value: Any) -> Any:
    return (value - _EPOCH).days if isinstance(value, date) else value


def _without_zone(value: Any) -> Any:
    return value.replace(tzinfo=None) if isinstance(value, datetime) else value
