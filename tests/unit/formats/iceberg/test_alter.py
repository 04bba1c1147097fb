"""Changes to the definition of an Iceberg table: what is published, what is refused."""

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.table.metadata import TableMetadataUtil
from pyiceberg.table.name_mapping import create_mapping_from_schema

from lakevilla.errors import Corrupt, InvalidInput, LakeVillaError, Unsupported
from lakevilla.formats.iceberg.definition.alter import alter
from lakevilla.formats.iceberg.definition.schema import to_arrow
from lakevilla.formats.iceberg.metadata.document import current_schema, schemas
from lakevilla.model import PartitionField
from lakevilla.sql import statements as sql
from tests.unit.formats.iceberg.definitions import altered, columns, create

NAME_MAPPING = "schema.name-mapping.default"
BY_P = [PartitionField("p", ("p",))]


def added(*fields: pa.Field) -> sql.AddColumns:
    return sql.AddColumns(fields)


def test_added_columns_get_new_ids_and_a_new_schema() -> None:
    inner = pa.struct([pa.field("u", pa.int32()), pa.field("v", pa.int32())])
    raw = altered(
        create(), added(pa.field("a", inner), pa.field("b", pa.int32(), metadata={b"comment": b"!"}))
    )
    found = columns(raw)
    assert (found["a"], found["a.u"], found["a.v"], found["b"]) == (9, 10, 11, 12)
    assert (raw["last-column-id"], raw["current-schema-id"]) == (12, 1)
    assert [schema["schema-id"] for schema in raw["schemas"]] == [0, 1]
    assert current_schema(raw).find_field("b").doc == "!"


def test_id_of_a_dropped_column_is_not_used_again() -> None:
    raw = create()
    raw = altered(raw, sql.DropColumns(("s",)))
    assert set(columns(raw)) == {"id", "ts", "p"}
    raw = altered(raw, added(pa.field("s", pa.string())))
    assert columns(raw)["s"] == 9


def test_ids_of_schemas_that_are_gone_are_not_used_again() -> None:
    raw = altered(create() | {"last-column-id": 50}, added(pa.field("a", pa.int64())))
    assert (columns(raw)["a"], raw["last-column-id"]) == (51, 51)


def test_metadata_that_does_not_tell_the_last_id_is_corrupt() -> None:
    raw = create()
    del raw["last-column-id"]
    with pytest.raises(Corrupt):
        alter(raw, added(pa.field("a", pa.int64())))


def test_old_schemas_stay_and_an_equal_one_is_used_again() -> None:
    first = create()
    second = altered(first, sql.RenameColumn("p", "q"))
    third = altered(second, sql.RenameColumn("q", "p"))
    assert third["schemas"] == second["schemas"]
    assert third["schemas"][0] == first["schemas"][0]
    assert [raw["current-schema-id"] for raw in (first, second, third)] == [0, 1, 0]


def test_renamed_column_keeps_its_id() -> None:
    raw = altered(create(partition_by=BY_P), sql.RenameColumn("p", "q"))
    assert columns(raw)["q"] == 4
    assert "p" not in columns(raw)


def test_what_we_do_not_know_of_a_column_survives() -> None:
    raw = create()
    raw["schemas"][0]["fields"][0]["vendor"] = {"mask": True}
    raw["schemas"][0]["vendor"] = 1
    raw = altered(raw, added(pa.field("a", pa.int64())))
    assert raw["schemas"][1]["fields"][0]["vendor"] == {"mask": True}
    assert raw["schemas"][1]["vendor"] == 1


def test_format_1_keeps_its_own_schema_key() -> None:
    raw = altered(create(properties={"format-version": "1"}), added(pa.field("a", pa.int64())))
    assert raw["schema"] == raw["schemas"][1]


def test_first_format_with_one_schema_gets_a_second() -> None:
    raw = create(properties={"format-version": "1"})
    del raw["schemas"], raw["current-schema-id"], raw["schema"]["schema-id"]
    raw = altered(raw, sql.RenameColumn("p", "q"))
    assert (raw["current-schema-id"], sorted(schemas(raw))) == (1, [0, 1])
    assert columns(raw)["q"] == 4


@pytest.mark.parametrize(
    "action",
    [
        added(pa.field("ID", pa.int64())),
        added(pa.field("a", pa.int64(), False)),
        added(pa.field("a", pa.int64()), pa.field("A", pa.int64())),
        added(pa.field("a", pa.duration("us"))),
        added(pa.field("s.x", pa.int64())),
        added(pa.field("Ts_Day", pa.int64())),
        sql.RenameColumn("id", "TS"),
        sql.RenameColumn("id", ""),
        sql.RenameColumn("id", "ts_day"),
        sql.RenameColumn("id", "s.x"),
        sql.RenameColumn("nothing", "a"),
        sql.DropColumns(("nothing",)),
        sql.DropColumns(("ts",)),
        sql.DropColumns(("s",)),
        sql.DropColumns(("id",)),
        sql.DropColumns(("p",)),
        sql.AddConstraint("c", "id > 0"),
        sql.DropConstraint("c"),
        sql.RenameTable("u"),
    ],
)
def test_change_that_would_break_the_table_is_refused(action: sql.Action) -> None:
    day, members = PartitionField("ts_day", ("ts",), "day"), PartitionField("part", ("s", "x"), "bucket[2]")
    raw = create(partition_by=[day, members])
    raw["schemas"][0]["identifier-field-ids"] = [1]
    raw["sort-orders"].append({"order-id": 1, "fields": [{"source-id": 4, "transform": "identity"}]})
    raw["default-sort-order-id"] = 1
    with pytest.raises(InvalidInput):
        alter(raw, action)


def test_column_of_an_old_spec_cannot_be_dropped() -> None:
    raw = create(partition_by=BY_P)
    raw["partition-specs"].append({"spec-id": 1, "fields": []})
    raw["default-spec-id"] = 1
    with pytest.raises(InvalidInput, match="partitioned"):
        alter(raw, sql.DropColumns(("p",)))


def test_column_that_partitions_nothing_any_more_can_be_dropped() -> None:
    raw = create(partition_by=[PartitionField("part", ("p",), "void")])
    assert "p" not in columns(altered(raw, sql.DropColumns(("p",))))


@pytest.mark.parametrize(("name", "number"), [("id", 1), ("s", 3)])
def test_column_that_identifies_rows_cannot_be_dropped(name: str, number: int) -> None:
    struct = pa.struct([pa.field("x", pa.int64(), False)])
    raw = create(pa.schema([pa.field("id", pa.int64(), False), pa.field("s", struct, False)]))
    raw["schemas"][0]["identifier-field-ids"] = [number]
    with pytest.raises(InvalidInput, match="identifier columns"):
        alter(raw, sql.DropColumns((name,)))


def test_last_column_cannot_be_dropped() -> None:
    with pytest.raises(InvalidInput, match="no column left"):
        alter(create(), sql.DropColumns(("id", "s", "ts", "p")))


def test_missing_columns_and_constraints_are_skipped_if_asked() -> None:
    raw = create()
    assert altered(raw, sql.DropColumns(("nothing",), if_exists=True)) == raw
    assert altered(raw, sql.DropConstraint("c", if_exists=True)) == raw


def with_mapping() -> dict[str, Any]:
    mapping = create_mapping_from_schema(current_schema(create())).model_dump_json()
    return create(properties={NAME_MAPPING: mapping})


def names(raw: dict[str, Any]) -> dict[int, list[str]]:
    return {field["field-id"]: field["names"] for field in json.loads(raw["properties"][NAME_MAPPING])}


def test_name_mapping_learns_new_names() -> None:
    raw = altered(with_mapping(), sql.RenameColumn("p", "q"))
    assert names(raw) == {1: ["id"], 2: ["s"], 3: ["ts"], 4: ["p", "q"]}
    raw = altered(raw, added(pa.field("p", pa.struct([("z", pa.int64())]))))
    assert names(raw)[4] == ["q"]
    assert names(raw)[9] == ["p"]
    last = json.loads(raw["properties"][NAME_MAPPING])[-1]
    assert last["fields"] == [{"field-id": 10, "names": ["z"]}]


def test_name_mapping_of_a_dropped_column_does_no_harm() -> None:
    raw = altered(with_mapping(), sql.DropColumns(("p",)))
    raw = altered(raw, added(pa.field("p", pa.int64())))
    assert names(raw) == {1: ["id"], 2: ["s"], 3: ["ts"], 9: ["p"]}


def test_name_mapping_cannot_be_unset() -> None:
    with pytest.raises(InvalidInput, match="without column ids"):
        alter(with_mapping(), sql.UnsetProperties((NAME_MAPPING,)))


def test_properties_are_set_and_unset() -> None:
    raw = altered(create(properties={"a": "1", "b": "2"}), sql.SetProperties({"b": "3", "c": "4"}))
    assert raw["properties"] == {"a": "1", "b": "3", "c": "4"}
    raw = altered(raw, sql.UnsetProperties(("a", "d"), if_exists=True))
    assert raw["properties"] == {"b": "3", "c": "4"}
    with pytest.raises(InvalidInput, match="IF EXISTS"):
        alter(raw, sql.UnsetProperties(("a",)))


def test_who_committed_last_is_not_copied() -> None:
    raw = create()
    raw["properties"] = {"lakevilla.commit": "{}", "a": "1"}
    for action in (sql.SetProperties({"b": "2"}), sql.RenameColumn("p", "q")):
        assert "lakevilla.commit" not in alter(raw, action).metadata["properties"]


@pytest.mark.parametrize(
    ("before", "wanted", "error"),
    [
        ({}, {"format-version": "1"}, InvalidInput),
        ({}, {"format-version": "4"}, Unsupported),
        ({}, {"format-version": "two"}, Unsupported),
        ({}, {"delta.appendOnly": "true"}, InvalidInput),
        ({}, {"lakevilla.commit": "{}"}, InvalidInput),
        ({}, {"current-schema": "{}"}, InvalidInput),
        ({}, {"lakevilla.markers": "up"}, InvalidInput),
        ({"lakevilla.markers": "log"}, {"lakevilla.markers": "side"}, InvalidInput),
        ({"lakevilla.markers": "log"}, {"lakevilla.exclusive": "true"}, Unsupported),
        ({}, {"lakevilla.exclusive": "yes"}, InvalidInput),
        ({}, {"write.metadata.delete-after-commit.enabled": "true"}, Unsupported),
        ({}, {"write.metadata.compression-codec": "gzip"}, InvalidInput),
    ],
)
def test_property_that_the_table_cannot_have_is_refused(
    before: dict[str, str], wanted: dict[str, str], error: Any
) -> None:
    with pytest.raises(error):
        alter(create(properties=before), sql.SetProperties(wanted))


def test_format_version_that_the_table_has_is_no_change() -> None:
    raw = create()
    assert altered(raw, sql.SetProperties({"format-version": "2"})) == raw


NAMES = st.sampled_from(["id", "s", "ts", "p", "q", "r"])
ACTIONS = st.one_of(
    st.builds(lambda name: added(pa.field(name, pa.list_(pa.int64()))), NAMES),
    st.builds(sql.RenameColumn, NAMES, NAMES),
    st.builds(lambda name: sql.DropColumns((name,)), NAMES),
)


@given(st.lists(ACTIONS, max_size=8))
def test_an_id_never_means_two_columns(actions: list[sql.Action]) -> None:
    raw = with_mapping()
    kinds: dict[int, str] = {}
    for action in actions:
        try:
            raw = altered(raw, action)
        except LakeVillaError:
            continue
        schema = to_arrow(current_schema(raw))
        for field in current_schema(raw).fields:
            assert kinds.setdefault(field.field_id, str(field.field_type)) == str(field.field_type)
        assert len(schema) == len(set(schema.names))
        spelt = [name for field in json.loads(raw["properties"][NAME_MAPPING]) for name in field["names"]]
        assert len(spelt) == len(set(spelt))
        assert TableMetadataUtil.parse_obj({**raw}).last_column_id == raw["last-column-id"]
