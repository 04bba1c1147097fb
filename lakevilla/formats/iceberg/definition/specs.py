"""Partition specs: which values partition a table's files, and of which types they are."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.types import (
    DateType,
    NestedField,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzType,
    UnknownType,
    UUIDType,
)
from pyiceberg.utils.schema_conversion import AvroSchemaConversion

from lakevilla.formats.iceberg.manifests.metrics import leaves
from lakevilla.formats.iceberg.metadata.document import Raw, schemas, specs
from lakevilla.formats.lazy import lazy_property
from lakevilla.predicates import Column

_EPOCH = date(1970, 1, 1)
_START = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, eq=False)
class Spec:
    """One partition spec with the types of its sources. `sources` has None for a column that no schema of the
    table knows any more."""

    id: int
    fields: tuple[PartitionField, ...]
    sources: tuple[NestedField | None, ...]
    names: tuple[Column | None, ...]
    """The sources' paths in the current schema; None for columns that it does not have."""

    @lazy_property
    def partition_type(self) -> StructType:
        """The type of partition values. All are optional: a source may have been so when a file came."""
        return StructType(
            *(
                NestedField(field.field_id, field.name, _result_type(field, source), required=False)
                for field, source in zip(self.fields, self.sources, strict=True)
            )
        )

    @lazy_property
    def avro_names(self) -> tuple[str, ...]:
        """The names of the partition fields as Avro allows them."""
        avro: Any = AvroSchemaConversion().iceberg_to_avro(Schema(*self.partition_type.fields), "r102")
        return tuple(field["name"] for field in avro["fields"])

    @lazy_property
    def identity_columns(self) -> Mapping[str, int]:
        """The top-level columns that partition by their own values, with their positions here."""
        fields = enumerate(zip(self.fields, self.names, strict=True))
        return {
            name[0]: position
            for position, (field, name) in fields
            if name is not None and len(name) == 1 and str(field.transform) == "identity"
        }

    def identities(self, values: Sequence[Any]) -> dict[str, Any]:
        """Of partition values, those of top-level columns as they are, by the column's name."""
        return {name: values[position] for name, position in self.identity_columns.items()}

    @lazy_property
    def _plain(self) -> tuple[Callable[[Any], Any], ...]:
        return tuple(map(_plain_of, self.fields, self.sources))

    def plain(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """Partition values as `Entry` has them, from those of a manifest: writers annotate the same numbers
        in several ways."""
        return tuple(make(value) for make, value in zip(self._plain, values, strict=True))

    def plain_at(self, position: int, value: Any) -> Any:
        """The same for one of them."""
        return self._plain[position](value)


def specs_of(raw: Raw, current: Schema) -> dict[int, Spec]:
    """The specs of a table by id."""
    known = [current, *schemas(raw).values()]
    named = {field.field_id: path for path, field in leaves(current).items()}
    return {number: _spec(spec, named, known) for number, spec in specs(raw).items()}


def _spec(spec: PartitionSpec, named: Mapping[int, Column], known: Sequence[Schema]) -> Spec:
    names = tuple(named.get(field.source_id) for field in spec.fields)
    sources = tuple(_source(field.source_id, known) for field in spec.fields)
    return Spec(spec.spec_id, tuple(spec.fields), sources, names)


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
    match None if source is None else source.field_type:
        case TimestampType():
            return lambda value: _without_zone(_moment(value))
        case TimestampNanoType():
            return _without_zone
        case TimestamptzType():
            return _moment
        case DateType():
            return _day
        case UUIDType():
            return lambda value: UUID(bytes=value) if isinstance(value, bytes) else value
    return lambda value: value


def _day(value: Any) -> Any:
    """The day of a count; one that Python's calendar does not have stays a count."""
    try:
        return _EPOCH + timedelta(days=value) if isinstance(value, int) else value
    except OverflowError:
        return value


def _moment(value: Any) -> Any:
    try:
        return _START + timedelta(microseconds=value) if isinstance(value, int) else value
    except OverflowError:
        return value


def _number(value: Any) -> Any:
    return (value - _EPOCH).days if isinstance(value, date) else value


def _without_zone(value: Any) -> Any:
    return value.replace(tzinfo=None) if isinstance(value, datetime) else value
