"""New tables: metadata that Iceberg's other clients accept, and what is refused."""

from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from pyiceberg.table.metadata import TableMetadataUtil, TableMetadataV2

from lakevilla.errors import InvalidInput, Unsupported
from lakevilla.formats.iceberg.definition.schema import to_arrow
from lakevilla.formats.iceberg.metadata.document import current_schema, current_snapshot, default_spec
from lakevilla.model import PartitionField
from tests.unit.formats.iceberg.definitions import INNER, SCHEMA, columns, create


def test_new_table_has_its_columns_and_no_snapshot() -> None:
    raw = create(properties={"a": "b"}, comment="é")
    assert to_arrow(current_schema(raw)).equals(SCHEMA)
    assert current_snapshot(raw) is None
    assert raw["properties"] == {"a": "b", "comment": "é"}
    assert (raw["location"], raw["last-updated-ms"], raw["last-column-id"]) == ("file:///lake/t", 7, 8)
    assert columns(raw) == {
        "id": 1, "s": 2, "ts": 3, "p": 4, "s.x": 5, "s.y": 6, "s.y.element": 7, "s.y.element.z": 8,
    }  # fmt: skip


def test_pyiceberg_reads_a_new_table_as_format_2() -> None:
    parsed = TableMetadataUtil.parse_obj({**create()})
    assert isinstance(parsed, TableMetadataV2)
    assert parsed.current_snapshot() is None
    assert parsed.table_uuid == UUID(int=1)
    assert parsed.spec().is_unpartitioned()
    assert parsed.sort_order().is_unsorted
    assert parsed.schema().find_field("id").doc == "the key"


def test_format_1_has_the_keys_of_its_readers() -> None:
    raw = create(properties={"format-version": "1"}, partition_by=[PartitionField("p", ("p",))])
    assert raw["format-version"] == 1
    assert raw["schema"] == raw["schemas"][0]
    assert raw["partition-spec"] == raw["partition-specs"][0]["fields"]
    assert "last-sequence-number" not in raw
    assert raw["properties"] == {}


@pytest.mark.parametrize(
    ("source", "transform", "number"),
    [
        (("p",), "identity", 4),
        (("p",), "truncate[4]", 4),
        (("ts",), "hour", 3),
        (("s", "x"), "bucket[16]", 5),
        (("id",), "void", 1),
    ],
)
def test_partition_field_refers_to_its_column(source: tuple[str, ...], transform: str, number: int) -> None:
    name = "p" if transform == "identity" else "part"
    raw = create(partition_by=[PartitionField(name, source, transform)])
    assert raw["partition-specs"] == [
        {
            "spec-id": 0,
            "fields": [{"source-id": number, "field-id": 1000, "transform": transform, "name": name}],
        }
    ]
    assert raw["last-partition-id"] == 1000
    assert str(default_spec(raw).fields[0].transform) == transform


@pytest.mark.parametrize(
    "fields",
    [
        [PartitionField("q", ("q",))],
        [PartitionField("s", ("s",))],
        [PartitionField("part", ("s", "y"))],
        [PartitionField("part", ("s", "y", "element"))],
        [PartitionField("part", ("p", "q"))],
        [PartitionField("part", ())],
        [PartitionField("part", ("p",), "day")],
        [PartitionField("part", ("p",), "bucket")],
        [PartitionField("part", ("p",), "bucket[0]")],
        [PartitionField("part", ("p",), "nonsense")],
        [PartitionField("", ("p",), "bucket[2]")],
        [PartitionField("ID", ("p",), "bucket[2]")],
        [PartitionField("p", ("p",), "bucket[2]")],
        [PartitionField("p", ("id",))],
        [PartitionField("p", ("p",)), PartitionField("other", ("p",))],
        [PartitionField("part", ("p",), "bucket[2]"), PartitionField("PART", ("id",), "bucket[2]")],
        [PartitionField("d", ("ts",), "day"), PartitionField("h", ("ts",), "hour")],
    ],
)
def test_partitioning_that_iceberg_cannot_have_is_refused(fields: list[PartitionField]) -> None:
    with pytest.raises(InvalidInput):
        create(partition_by=fields)


def test_one_column_may_be_partitioned_by_in_two_ways() -> None:
    fields = [PartitionField("p", ("p",)), PartitionField("part", ("p",), "bucket[2]")]
    assert create(partition_by=fields)["last-partition-id"] == 1001


@pytest.mark.parametrize(
    ("properties", "error"),
    [
        ({"format-version": "4"}, Unsupported),
        ({"format-version": "two"}, InvalidInput),
        ({"delta.constraints.c": "id > 0"}, InvalidInput),
        ({"delta.appendOnly": "true"}, InvalidInput),
        ({"uuid": "x"}, InvalidInput),
        ({"lakevilla.commit": "{}"}, InvalidInput),
        ({"lakevilla.markers": "up"}, InvalidInput),
        ({"lakevilla.markers": "log", "lakevilla.exclusive": "true"}, Unsupported),
        ({"write.metadata.path": "s3://b/m"}, InvalidInput),
        ({"write.metadata.compression-codec": "gzip"}, InvalidInput),
        ({"write.metadata.delete-after-commit.enabled": "true"}, Unsupported),
        ({"schema.name-mapping.default": "{"}, InvalidInput),
    ],
)
def test_property_that_cannot_be_kept_is_refused(properties: dict[str, str], error: Any) -> None:
    with pytest.raises(error):
        create(properties=properties)


def test_refused_constraint_says_what_to_do() -> None:
    with pytest.raises(InvalidInput, match=r"'c'.*CHECK constraints.*Delta"):
        create(properties={"delta.constraints.c": "id > 0"})


@pytest.mark.parametrize(
    "schema",
    [
        pa.schema([]),
        pa.schema([pa.field("a", pa.int64()), pa.field("A", pa.int64())]),
        pa.schema([pa.field("", pa.int64())]),
        pa.schema([pa.field("a", pa.null())]),
        pa.schema([pa.field("a", pa.struct([]))]),
        pa.schema([pa.field("a", pa.duration("us"))]),
        pa.schema([pa.field("s", INNER), pa.field("s.x", pa.int64())]),
    ],
)
def test_columns_that_iceberg_cannot_have_are_refused(schema: pa.Schema) -> None:
    with pytest.raises(InvalidInput):
        create(schema)
