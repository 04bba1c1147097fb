"""New tables and changes to their definition: what is published, what is refused, which protocol it takes."""

import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pytest

from lakevilla.errors import InvalidInput, Unsupported
from lakevilla.formats.delta.definition import alter
from lakevilla.formats.delta.definition.create import create_table
from lakevilla.formats.delta.definition.features import refuse_write
from lakevilla.formats.delta.definition.schema import DELTA
from lakevilla.formats.delta.log.actions import Metadata, Protocol
from lakevilla.model import Change
from lakevilla.sql import statements as sql


@dataclass(frozen=True)
class Table:
    """The definition that a snapshot would have."""

    metadata: Metadata
    protocol: Protocol

    def after(self, change: Change) -> "Table":
        return Table(change.metadata, change.protocol or self.protocol)

    @property
    def columns(self) -> dict[str, dict[str, Any]]:
        return {field["name"]: field for field in json.loads(self.metadata.schema_string)["fields"]}


def ids() -> Callable[[], str]:
    numbers = itertools.count(1)
    return lambda: f"{next(numbers):032x}"


SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), False),
        pa.field(
            "s",
            pa.struct([pa.field("x", pa.int64()), pa.field("y", pa.list_(pa.struct([("z", pa.int64())])))]),
        ),
        pa.field("p", pa.string()),
    ]
)


def create(schema: pa.Schema = SCHEMA, **options: Any) -> Table:
    change = create_table(schema, now_ms=7, new_id=ids(), **options)
    assert change.operation == "CREATE TABLE"
    refuse_write(change.protocol, change.metadata)
    return Table(change.metadata, change.protocol)


def test_a_plain_table_asks_for_the_least_protocol() -> None:
    table = create(
        partition_columns=["p"], properties={"delta.appendOnly": "true", "mine": "x"}, comment="words"
    )
    assert table.protocol == Protocol(1, 2)
    assert table.metadata.partition_columns == ("p",)
    assert table.metadata.configuration == {"delta.appendOnly": "true", "mine": "x"}
    assert table.metadata.description == "words"
    assert table.metadata.created_ms == 7
    assert table.metadata.id == "00000000-0000-0000-0000-000000000001"
    assert [c["nullable"] for c in table.columns.values()] == [False, True, True]


@pytest.mark.parametrize(
    ("schema", "properties", "readers", "writers"),
    [
        (pa.schema([("t", pa.timestamp("us"))]), {}, {"timestampNtz"}, {"timestampNtz"}),
        (SCHEMA, {"delta.columnMapping.mode": "name"}, {"columnMapping"}, {"columnMapping"}),
        (SCHEMA, {"delta.enableDeletionVectors": "true"}, {"deletionVectors"}, {"deletionVectors"}),
        (SCHEMA, {"delta.checkpointPolicy": "v2"}, {"v2Checkpoint"}, {"v2Checkpoint"}),
        (SCHEMA, {"delta.enableInCommitTimestamps": "true"}, None, {"inCommitTimestamp"}),
    ],
)
def test_features_are_listed_only_when_a_table_needs_them(
    schema: pa.Schema, properties: dict[str, str], readers: set[str] | None, writers: set[str]
) -> None:
    protocol = create(schema, properties=properties).protocol
    assert protocol.reader_features == (None if readers is None else frozenset(readers))
    assert protocol.writer_features == frozenset(writers | {"appendOnly", "invariants"})
    assert (protocol.min_reader, protocol.min_writer) == (1 if readers is None else 3, 7)


def test_a_new_table_with_column_mapping_gives_every_field_an_id_and_a_name_of_its_own() -> None:
    table = create(properties={"delta.columnMapping.mode": "name"})
    assert table.metadata.configuration["delta.columnMapping.maxColumnId"] == "6"
    fields = table.columns
    nested = fields["s"]["type"]["fields"]
    deep = nested[1]["type"]["elementType"]["fields"][0]
    numbers = [f["metadata"]["delta.columnMapping.id"] for f in (*fields.values(), *nested, deep)]
    names = [f["metadata"]["delta.columnMapping.physicalName"] for f in (*fields.values(), *nested, deep)]
    assert sorted(numbers) == [1, 2, 3, 4, 5, 6]
    assert len(set(names)) == 6
    assert all(name.startswith("col-") for name in names)


def test_what_another_table_said_of_a_column_is_not_taken_over_except_its_comment() -> None:
    said = {DELTA: b'{"comment":"c","delta.columnMapping.id":9,"CURRENT_DEFAULT":"1"}'}
    table = create(pa.schema([pa.field("a", pa.int64(), metadata=said)]))
    assert table.columns["a"]["metadata"] == {"comment": "c"}


@pytest.mark.parametrize(
    ("schema", "options", "words"),
    [
        (pa.schema([("a", pa.int64()), ("A", pa.int64())]), {}, "duplicate column 'A'"),
        (pa.schema([("s", pa.struct([("a", pa.int64()), ("A", pa.int64())]))]), {}, "duplicate column 's.A'"),
        (pa.schema([("", pa.int64())]), {}, "empty name"),
        (pa.schema([]), {}, "at least one column"),
        (pa.schema([("a", pa.null())]), {}, "has no type"),
        (pa.schema([("a", pa.struct([]))]), {}, "without fields"),
        (pa.schema([("a", pa.uint64())]), {}, "Delta tables do not support"),
        (pa.schema([("a", pa.time64("us"))]), {}, "Delta tables do not support"),
        (SCHEMA, {"partition_columns": ["q"]}, "unknown partition column 'q'"),
        (SCHEMA, {"partition_columns": ["s"]}, "is not simple"),
        (SCHEMA, {"partition_columns": ["p", "p"]}, "duplicate partition column"),
        (pa.schema([("a", pa.int64())]), {"partition_columns": ["a"]}, "not all columns"),
        (SCHEMA, {"properties": {"delta.appendonly": "true"}}, "unknown property"),
        (SCHEMA, {"properties": {"delta.appendOnly": "yes"}}, "invalid value 'yes'"),
        (SCHEMA, {"properties": {"delta.checkpointInterval": "0"}}, "invalid value '0'"),
        (SCHEMA, {"properties": {"delta.checkpointInterval": "x"}}, "invalid value 'x'"),
        (SCHEMA, {"properties": {"delta.logRetentionDuration": "soon"}}, "not an interval"),
        (SCHEMA, {"properties": {"delta.columnMapping.maxColumnId": "3"}}, "unknown property"),
    ],
)
def test_what_delta_cannot_hold_is_refused(schema: pa.Schema, options: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        create(schema, **options)


def test_a_property_that_we_do_not_implement_is_unsupported() -> None:
    with pytest.raises(Unsupported, match="enableRowTracking"):
        create(properties={"delta.enableRowTracking": "true"})
    create(properties={"delta.enableRowTracking": "false"})


def test_an_added_column_comes_last_and_leaves_the_rest_alone() -> None:
    table = create()
    change = alter.add_columns(table, [pa.field("n", pa.float64())], ids())
    after = table.after(change)
    assert list(after.columns) == ["id", "s", "p", "n"]
    assert change.protocol is None
    assert not change.blind
    assert json.loads(change.parameters["columns"])[0]["column"]["type"] == "double"


def test_an_added_timestamp_without_zone_upgrades_the_protocol() -> None:
    change = alter.add_columns(create(), [pa.field("n", pa.timestamp("us"))], ids())
    assert change.protocol == Protocol(
        3, 7, frozenset({"timestampNtz"}), frozenset({"timestampNtz", "appendOnly", "invariants"})
    )


def test_an_added_column_continues_the_ids_of_column_mapping() -> None:
    table = create(properties={"delta.columnMapping.mode": "name"})
    after = table.after(alter.add_columns(table, [pa.field("n", pa.struct([("m", pa.int64())]))], ids()))
    assert after.columns["n"]["metadata"]["delta.columnMapping.id"] == 7
    assert after.columns["n"]["type"]["fields"][0]["metadata"]["delta.columnMapping.id"] == 8
    assert after.metadata.configuration["delta.columnMapping.maxColumnId"] == "8"


def test_ids_of_dropped_columns_are_not_used_again() -> None:
    table = create(properties={"delta.columnMapping.mode": "name"})
    table = table.after(alter.add_columns(table, [pa.field("n", pa.int64())], ids()))
    table = table.after(alter.drop_columns(table, ["n"]))
    table = table.after(alter.add_columns(table, [pa.field("n", pa.int64())], ids()))
    assert table.columns["n"]["metadata"]["delta.columnMapping.id"] == 8


@pytest.mark.parametrize(
    "field", [pa.field("n", pa.int64(), False), pa.field("ID", pa.int64()), pa.field("n", pa.null())]
)
def test_a_column_that_cannot_be_added_is_refused(field: pa.Field) -> None:
    with pytest.raises(InvalidInput):
        alter.add_columns(create(), [field], ids())


def test_a_renamed_column_keeps_its_id_and_physical_name() -> None:
    table = create(properties={"delta.columnMapping.mode": "name"})
    after = table.after(alter.rename_column(table, "id", "Id"))
    assert list(after.columns) == ["Id", "s", "p"]
    assert after.columns["Id"]["metadata"] == table.columns["id"]["metadata"]


def test_a_dropped_column_is_gone() -> None:
    table = create(properties={"delta.columnMapping.mode": "name"})
    assert list(table.after(alter.drop_columns(table, ["s"])).columns) == ["id", "p"]


def test_without_column_mapping_rename_and_drop_tell_how_to_get_it() -> None:
    for change in (
        lambda: alter.rename_column(create(), "id", "x"),
        lambda: alter.drop_columns(create(), ["id"]),
    ):
        with pytest.raises(InvalidInput, match=r"SET TBLPROPERTIES \('delta.columnMapping.mode' = 'name'\)"):
            change()


def test_columns_in_use_are_neither_renamed_nor_dropped() -> None:
    table = create(partition_columns=["p"], properties={"delta.columnMapping.mode": "name"})
    table = table.after(alter.add_constraint(table, "Positive", "`ID` > 0 AND s.x > 1"))
    for column, words in (
        ("p", "partition column"),
        ("id", "constraint 'positive'"),
        ("s", "constraint 'positive'"),
    ):
        with pytest.raises(InvalidInput, match=words):
            alter.drop_columns(table, [column])
        with pytest.raises(InvalidInput, match=words):
            alter.rename_column(table, column, "x")
    named = replace(
        table,
        metadata=replace(
            table.metadata,
            configuration={"delta.columnMapping.mode": "name", "delta.dataSkippingStatsColumns": "id"},
        ),
    )
    with pytest.raises(InvalidInput, match="dataSkippingStatsColumns"):
        alter.drop_columns(named, ["id"])


def test_the_last_stored_column_cannot_be_dropped() -> None:
    schema = pa.schema([("a", pa.int64()), ("p", pa.int64())])
    table = create(schema, partition_columns=["p"], properties={"delta.columnMapping.mode": "name"})
    with pytest.raises(InvalidInput, match="no column left"):
        alter.drop_columns(table, ["a"])


def test_rename_refuses_missing_and_taken_names() -> None:
    table = create(properties={"delta.columnMapping.mode": "name"})
    with pytest.raises(InvalidInput) as caught:
        alter.rename_column(table, "q", "x")
    assert caught.value.column == "q"
    with pytest.raises(InvalidInput, match="taken"):
        alter.rename_column(table, "id", "P")


def test_column_mapping_turned_on_later_keeps_the_names_that_files_have() -> None:
    table = create()
    after = table.after(alter.set_properties(table, {"delta.columnMapping.mode": "name"}))
    assert after.columns["id"]["metadata"] == {
        "delta.columnMapping.id": 1,
        "delta.columnMapping.physicalName": "id",
    }
    assert after.protocol.reader_features == frozenset({"columnMapping"})
    assert after.metadata.configuration["delta.columnMapping.maxColumnId"] == "6"
    assert list(after.after(alter.rename_column(after, "id", "key")).columns) == ["key", "s", "p"]


@pytest.mark.parametrize(("before", "after"), [("name", "none"), ("name", "id"), ("id", "name")])
def test_column_mapping_cannot_be_changed_once_it_is_on(before: str, after: str) -> None:
    table = create(properties={"delta.columnMapping.mode": before})
    with pytest.raises(InvalidInput, match="cannot be changed"):
        alter.set_properties(table, {"delta.columnMapping.mode": after})


def test_properties_are_set_and_unset() -> None:
    table = create(properties={"a": "1", "b": "2"})
    table = table.after(alter.set_properties(table, {"a": "3", "delta.checkpointInterval": "5"}))
    table = table.after(alter.unset_properties(table, ["b"]))
    assert table.metadata.configuration == {"a": "3", "delta.checkpointInterval": "5"}
    with pytest.raises(InvalidInput, match="IF EXISTS"):
        alter.unset_properties(table, ["b"])
    assert alter.unset_properties(table, ["b"], if_exists=True).metadata == table.metadata


def test_constraints_come_with_a_new_table_or_by_their_own_statement() -> None:
    table = create(properties={"delta.constraints.c": "id > 0"})
    assert table.protocol == Protocol(1, 3)
    with pytest.raises(InvalidInput, match="ADD CONSTRAINT"):
        alter.set_properties(table, {"delta.constraints.d": "id > 1"})


def test_properties_that_files_depend_on_cannot_be_unset() -> None:
    table = create(properties={"delta.columnMapping.mode": "name"})
    with pytest.raises(InvalidInput, match="depend on it"):
        alter.unset_properties(table, ["delta.columnMapping.mode"])
    table = table.after(alter.add_constraint(table, "c", "id > 0"))
    with pytest.raises(InvalidInput, match="DROP CONSTRAINT"):
        alter.unset_properties(table, ["delta.constraints.c"])


def test_a_constraint_needs_writer_version_three_and_goes_by_its_name_in_lower_case() -> None:
    table = create()
    change = alter.add_constraint(table, "Big", "id > 10")
    assert change.protocol == Protocol(1, 3)
    table = table.after(change)
    assert table.metadata.configuration == {"delta.constraints.big": "id > 10"}
    with pytest.raises(InvalidInput, match="already"):
        alter.add_constraint(table, "BIG", "id > 11")
    table = table.after(alter.drop_constraint(table, "bIG"))
    assert table.metadata.configuration == {}
    with pytest.raises(InvalidInput, match="unknown constraint"):
        alter.drop_constraint(table, "big")
    assert alter.drop_constraint(table, "big", if_exists=True).metadata == table.metadata


def test_every_action_of_alter_table_has_its_change() -> None:
    table = create(properties={"delta.columnMapping.mode": "name"})
    actions = [
        sql.AddColumns((pa.field("m", pa.int64()), pa.field("n", pa.int64()))),
        sql.RenameColumn("m", "k"),
        sql.DropColumns(("k", "gone"), if_exists=True),
        sql.SetProperties({"a": "1"}),
        sql.UnsetProperties(("a",)),
        sql.AddConstraint("c", "id > 0"),
        sql.DropConstraint("c"),
    ]
    operations = []
    for action in actions:
        change = alter.alter(table, action, ids())
        operations.append(change.operation)
        table = table.after(change)
    assert operations == [
        "ADD COLUMNS",
        "RENAME COLUMN",
        "DROP COLUMNS",
        "SET TBLPROPERTIES",
        "UNSET TBLPROPERTIES",
        "ADD CONSTRAINT",
        "DROP CONSTRAINT",
    ]
    assert list(table.columns) == ["id", "s", "p", "n"]
    assert set(table.metadata.configuration) == {
        "delta.columnMapping.mode",
        "delta.columnMapping.maxColumnId",
    }
    with pytest.raises(InvalidInput, match="the lake keeps the names"):
        alter.alter(table, sql.RenameTable("x"), ids())
