"""Iceberg schemas and Arrow schemas: ids, names, defaults and comments are kept."""

import datetime
import json
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.schema import Schema, assign_fresh_schema_ids
from pyiceberg.table.name_mapping import create_mapping_from_schema
from pyiceberg.types import (
    DecimalType,
    FixedType,
    GeographyType,
    GeometryType,
    IcebergType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    UnknownType,
)

from lakevilla.errors import Corrupt, InvalidInput, Unsupported
from lakevilla.files.column_mapping import by_id, default_of, field_id, mapped_names
from lakevilla.formats.iceberg.definition.name_mapping import name_mapping
from lakevilla.formats.iceberg.definition.schema import from_arrow, to_arrow

PRIMITIVES = [
    "boolean", "int", "long", "float", "double", "date", "time", "timestamp", "timestamptz", "string",
    "binary", "uuid", "decimal(10, 2)", "decimal(38, 38)", "fixed[5]",
]  # fmt: skip
NAMES = st.text(min_size=1, max_size=5)


def fields(types: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    field = st.builds(
        lambda name, kind, required, doc: NestedField(0, name, kind, required=required, doc=doc),
        NAMES, types, st.booleans(), st.none() | st.text(max_size=3),
    )  # fmt: skip
    members = st.lists(field, min_size=1, max_size=3, unique_by=lambda one: one.name)
    return members.map(lambda found: StructType(*found))


def nested(types: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    lists = st.builds(lambda kind, required: ListType(0, kind, required), types, st.booleans())
    maps = st.builds(lambda k, v, required: MapType(0, k, 0, v, required), types, types, st.booleans())
    return lists | maps | fields(types)


KINDS = st.recursive(
    st.sampled_from(PRIMITIVES).map(lambda name: IcebergType.model_validate(name)), nested, max_leaves=6
)
SCHEMAS = fields(KINDS).map(lambda struct: assign_fresh_schema_ids(Schema(*struct.fields)))


@given(SCHEMAS)
def test_any_schema_survives_the_round_trip(schema: Schema) -> None:
    assert from_arrow(to_arrow(schema)) == schema


@given(SCHEMAS)
def test_arrow_schema_is_the_one_of_pyiceberg(schema: Schema) -> None:
    theirs = schema_to_pyarrow(schema, include_field_ids=True)
    assert_alike(pa.struct(list(to_arrow(schema))), pa.struct(list(theirs)))


def assert_alike(ours: Any, theirs: Any) -> None:
    """Equal but for the widths of offsets."""
    if theirs.num_fields == 0:
        plain = {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}
        assert ours == plain.get(theirs, theirs)
    for position in range(theirs.num_fields):
        one, other = ours.field(position), theirs.field(position)
        assert (one.name, one.nullable, field_id(one)) == (other.name, other.nullable, field_id(other))
        assert_alike(one.type, other.type)


def test_ids_go_level_by_level_from_the_first_one() -> None:
    inner = pa.struct([pa.field("c", pa.list_(pa.int64())), pa.field("d", pa.int64())])
    schema = from_arrow(pa.schema([pa.field("a", inner), pa.field("b", pa.int64())]), first_id=7)
    assert str(schema.as_struct()) == (
        "struct<7: a: optional struct<9: c: optional list<long>, 10: d: optional long>, 8: b: optional long>"
    )
    assert schema.find_field("a.c.element").field_id == 11


@pytest.mark.parametrize(
    ("arrow", "kind"),
    [
        (pa.int16(), "int"),
        (pa.uint32(), "long"),
        (pa.uint64(), "decimal(20, 0)"),
        (pa.timestamp("ns"), "timestamp"),
        (pa.timestamp("s", "Europe/Berlin"), "timestamptz"),
        (pa.time32("ms"), "time"),
        (pa.dictionary(pa.int8(), pa.large_string()), "string"),
        (pa.date64(), "date"),
        (pa.list_(pa.float32(), 3), "list<float>"),
    ],
)
def test_type_that_iceberg_lacks_becomes_the_next_wider_one(arrow: pa.DataType, kind: str) -> None:
    assert str(from_arrow(pa.schema([pa.field("a", arrow)])).fields[0].field_type) == kind


@pytest.mark.parametrize("arrow", [pa.null(), pa.duration("s"), pa.decimal256(50, 2), pa.decimal128(5, -1)])
def test_type_that_iceberg_cannot_hold_is_refused(arrow: pa.DataType) -> None:
    with pytest.raises(InvalidInput) as caught:
        from_arrow(pa.schema([pa.field("a", arrow)]))
    assert caught.value.column == "a"


@pytest.mark.parametrize("kind", [GeometryType(), GeographyType()])
def test_type_that_we_cannot_read_is_unsupported(kind: IcebergType) -> None:
    with pytest.raises(Unsupported) as caught:
        to_arrow(Schema(NestedField(1, "a", ListType(2, kind, False))))
    assert caught.value.column == "a.element"


def test_unknown_column_is_nullable() -> None:
    assert to_arrow(Schema(NestedField(1, "a", UnknownType(), required=True))).field("a").nullable


def test_data_files_are_matched_by_id() -> None:
    assert by_id(to_arrow(Schema(NestedField(1, "a", LongType()))))


def test_columns_with_one_path_are_refused() -> None:
    struct = pa.struct([pa.field("b", pa.int64())])
    with pytest.raises(InvalidInput, match=r"a\.b"):
        from_arrow(pa.schema([pa.field("a", struct), pa.field("a.b", pa.int64())]))


def test_name_mapping_names_columns_at_any_depth() -> None:
    struct = StructType(NestedField(3, "c", LongType()), NestedField(4, "d", LongType()))
    schema = Schema(NestedField(1, "a", LongType()), NestedField(2, "b", struct))
    text = json.dumps(
        [
            {"field-id": 2, "names": ["b", "old"], "fields": [{"field-id": 3, "names": ["x"]}]},
            {"names": ["nobody"]},
        ]
    )
    found = to_arrow(schema, name_mapping({"schema.name-mapping.default": text}))
    assert [mapped_names(field) for field in found] == [[], ["b", "old"]]
    assert [mapped_names(field) for field in found.field("b").type] == [["x"], []]


def test_mapping_made_from_a_schema_names_every_field() -> None:
    lists = ListType(3, StructType(NestedField(4, "d", LongType())), False)
    schema = Schema(NestedField(1, "a", LongType()), NestedField(2, "b", lists))
    element = to_arrow(schema, create_mapping_from_schema(schema)).field("b").type.value_field
    assert mapped_names(element) == ["element"]
    assert mapped_names(element.type.field("d")) == ["d"]


@pytest.mark.parametrize("text", ["", "{}", '[{"field-id":"x"}]'])
def test_unreadable_name_mapping_is_corrupt(text: str) -> None:
    with pytest.raises(Corrupt, match="name-mapping"):
        name_mapping({"schema.name-mapping.default": text})


def test_table_without_name_mapping_has_none() -> None:
    assert name_mapping({}) is None


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("boolean", False, False),
        ("int", 7, 7),
        ("float", 1, 1.0),
        ("decimal(9, 2)", "12.50", Decimal("12.50")),
        ("date", "2024-02-29", datetime.date(2024, 2, 29)),
        ("time", "01:02:03.000004", datetime.time(1, 2, 3, 4)),
        ("timestamp", "1969-01-01T00:00:00.000001", datetime.datetime(1969, 1, 1, 0, 0, 0, 1)),
        (
            "timestamptz",
            "2024-01-15T10:30:45.123456+00:00",
            datetime.datetime(2024, 1, 15, 10, 30, 45, 123456, datetime.UTC),
        ),
        ("string", "", ""),
        ("uuid", "f79c3e09-677c-4bbd-a479-3f349cb785e7", UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")),
        ("fixed[2]", "01ff", b"\x01\xff"),
        ("binary", "00", b"\x00"),
    ],
)
def test_default_of_a_column_is_kept(kind: str, text: Any, value: Any) -> None:
    given = {"id": 1, "name": "a", "required": False, "type": kind, "initial-default": text}
    field = to_arrow(Schema.model_validate({"type": "struct", "fields": [given]})).field("a")
    assert default_of(field).as_py() == value


def test_default_that_is_not_of_the_type_is_corrupt() -> None:
    with pytest.raises(Corrupt) as caught:
        to_arrow(Schema(NestedField(1, "a", LongType(), initial_default="x")))
    assert caught.value.column == "a"


def test_types_with_parameters_keep_them() -> None:
    schema = Schema(NestedField(1, "a", DecimalType(9, 3)), NestedField(2, "b", FixedType(7)))
    assert to_arrow(schema).types == [pa.decimal128(9, 3), pa.binary(7)]


def test_comment_is_kept() -> None:
    schema = to_arrow(Schema(NestedField(1, "a", StringType(), doc="é")))
    assert schema.field("a").metadata[b"comment"].decode() == "é"
