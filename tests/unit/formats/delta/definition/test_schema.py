"""Delta schemas and Arrow schemas: nothing is lost on the way there and back."""

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakevilla.errors import Corrupt, InvalidInput, Unsupported
from lakevilla.files.column_mapping import by_id, field_id, physical_name
from lakevilla.formats.delta.definition.schema import to_arrow, to_delta

PRIMITIVES = [
    "string", "long", "integer", "short", "byte", "float", "double", "boolean", "binary", "date", "timestamp",
    "timestamp_ntz", "decimal(10,2)", "decimal(38,38)",
]  # fmt: skip
NAMES = st.text(min_size=1, max_size=5)
NOTES = st.dictionaries(st.text(max_size=5), st.integers() | st.text() | st.lists(st.booleans()), max_size=2)


def fields(types: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    field = st.fixed_dictionaries(
        {"name": NAMES, "type": types, "nullable": st.booleans(), "metadata": NOTES}
    )
    rows = st.lists(field, max_size=3, unique_by=lambda body: body["name"])
    return rows.map(lambda body: {"type": "struct", "fields": body})


def nested(types: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    array = st.fixed_dictionaries(
        {"type": st.just("array"), "elementType": types, "containsNull": st.booleans()}
    )
    pairs = st.fixed_dictionaries(
        {"type": st.just("map"), "keyType": types, "valueType": types, "valueContainsNull": st.booleans()}
    )
    return array | pairs | fields(types)


@given(fields(st.recursive(st.sampled_from(PRIMITIVES), nested, max_leaves=6)))
def test_any_schema_survives_the_round_trip(schema: dict[str, Any]) -> None:
    assert json.loads(to_delta(to_arrow(json.dumps(schema)))) == schema


def test_void_column_is_nullable() -> None:
    schema = to_arrow('{"fields":[{"name":"a","type":"void","nullable":false,"metadata":{}}]}')
    assert schema == pa.schema([pa.field("a", pa.null())])
    assert json.loads(to_delta(schema))["fields"][0]["type"] == "void"


def mapped(name: str, physical: str, number: int, kind: Any = "long") -> dict[str, Any]:
    notes = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": physical, "comment": "é"}
    return {"name": name, "type": kind, "nullable": True, "metadata": notes}


@pytest.mark.parametrize("mode", ["name", "id"])
def test_column_mapping_annotates_fields_at_any_depth(mode: Any) -> None:
    inner = {"type": "struct", "fields": [mapped("b", "col-2", 2)]}
    kind = {"type": "array", "elementType": inner, "containsNull": True}
    text = json.dumps({"type": "struct", "fields": [mapped("a", "col-1", 1, kind)]})
    schema = to_arrow(text, mode)
    outer, below = schema.field("a"), schema.field("a").type.value_type.field("b")
    assert [(physical_name(f), field_id(f)) for f in (outer, below)] == [("col-1", 1), ("col-2", 2)]
    assert by_id(schema) is (mode == "id")
    assert json.loads(to_delta(schema)) == json.loads(text)


def test_mapped_column_without_physical_name_is_corrupt() -> None:
    text = '{"type":"struct","fields":[{"name":"a","type":"long","nullable":true,"metadata":{}}]}'
    assert physical_name(to_arrow(text).field("a")) == "a"
    with pytest.raises(Corrupt):
        to_arrow(text, "name")


@pytest.mark.parametrize("kind", ["variant", "interval day to second", "geometry(4326)", {"type": "udt"}])
def test_type_that_we_cannot_read_is_unsupported(kind: Any) -> None:
    field = {"name": "a", "type": kind, "nullable": True, "metadata": {}}
    with pytest.raises(Unsupported) as caught:
        to_arrow(json.dumps({"type": "struct", "fields": [field]}))
    assert caught.value.column == "a"


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"fields":[{"name":"a"}]}', '{"fields":[{"type":"long"}]}']
)
def test_malformed_schema_is_corrupt(text: str) -> None:
    with pytest.raises(Corrupt):
        to_arrow(text)


@pytest.mark.parametrize("kind", [pa.uint64(), pa.time64("us"), pa.duration("s"), pa.decimal256(50, 2)])
def test_type_that_delta_does_not_have_is_invalid(kind: pa.DataType) -> None:
    with pytest.raises(InvalidInput) as caught:
        to_delta(pa.schema([pa.field("c", kind)]))
    assert caught.value.column == "c"
