"""PARTITIONED BY with columns and transforms, in CREATE TABLE and as text."""

import pyarrow as pa
import pytest

import lakevilla as lv
from lakevilla.errors import InvalidInput, LakeVillaError, Unsupported
from lakevilla.model import PartitionField
from lakevilla.sql.parser import parse
from lakevilla.sql.statements import CreateTable
from lakevilla.transaction.statements.inputs import partition_fields

SCHEMA = pa.schema([("id", pa.int64()), ("ts", pa.timestamp("us")), ("days(ts)", pa.string())])

FIELDS = [
    ("region", PartitionField("region", ("region",))),
    ("`a b`", PartitionField("a b", ("a b",))),
    ("s.x", PartitionField("s.x", ("s", "x"))),
    ("identity(region)", PartitionField("region", ("region",))),
    ("year(ts)", PartitionField("ts_year", ("ts",), "year")),
    ("years(ts)", PartitionField("ts_year", ("ts",), "year")),
    ("months(ts)", PartitionField("ts_month", ("ts",), "month")),
    ("month(s.ts)", PartitionField("s.ts_month", ("s", "ts"), "month")),
    ("DAYS(ts)", PartitionField("ts_day", ("ts",), "day")),
    ("date(ts)", PartitionField("ts_day", ("ts",), "day")),
    ("hours(`t s`)", PartitionField("t s_hour", ("t s",), "hour")),
    ("date_hour(ts)", PartitionField("ts_hour", ("ts",), "hour")),
    ("bucket(16, id)", PartitionField("id_bucket", ("id",), "bucket[16]")),
    ("bucket(id, 16)", PartitionField("id_bucket", ("id",), "bucket[16]")),
    ("bucket(4, s.x)", PartitionField("s.x_bucket", ("s", "x"), "bucket[4]")),
    ("truncate(4, name)", PartitionField("name_trunc", ("name",), "truncate[4]")),
    ("truncate(name, 4)", PartitionField("name_trunc", ("name",), "truncate[4]")),
]


@pytest.mark.parametrize(("text", "field"), FIELDS)
def test_partition_field_is_read_in_a_statement_and_as_text(text: str, field: PartitionField) -> None:
    statement = parse(f"CREATE TABLE t (id INT) USING iceberg PARTITIONED BY (first, {text})")
    assert isinstance(statement, CreateTable)
    assert statement.partitioned_by == (PartitionField("first", ("first",)), field)
    assert partition_fields([text], SCHEMA) == [field]


WRONG: list[tuple[str, type[LakeVillaError], str]] = [
    ("zorder(id)", Unsupported, "takes columns, years.*found ZORDER"),
    ("void(id)", Unsupported, "takes columns"),
    ("days(id, ts)", Unsupported, "takes columns"),
    ("days(id + 1)", Unsupported, "takes columns"),
    ("bucket(0, id)", InvalidInput, "bucket takes a number above 0 and a column"),
    ("bucket(1.5, id)", InvalidInput, "bucket takes a number"),
    ("bucket('4', name)", InvalidInput, "bucket takes a number"),
    ("bucket(4, id, name)", InvalidInput, "bucket takes a number"),
    ("bucket(4, id + 1)", Unsupported, "takes columns"),
    ("truncate(-1, id)", InvalidInput, "truncate takes a number"),
    ("truncate(id)", InvalidInput, "truncate takes a number"),
]


@pytest.mark.parametrize(("text", "error", "words"), WRONG)
def test_wrong_partition_field_is_refused(text: str, error: type[LakeVillaError], words: str) -> None:
    with pytest.raises(error, match=words):
        parse(f"CREATE TABLE t (id INT) USING iceberg PARTITIONED BY ({text})")
    with pytest.raises(error, match=words):
        partition_fields([text], SCHEMA)


def test_name_of_a_column_is_that_column_whatever_it_looks_like() -> None:
    assert partition_fields(["days(ts)", "hours(ts)"], SCHEMA) == [
        PartitionField("days(ts)", ("days(ts)",)),
        PartitionField("ts_hour", ("ts",), "hour"),
    ]


def test_text_in_place_of_a_list_of_columns_is_refused() -> None:
    with pytest.raises(InvalidInput, match="partition_by must be a list"):
        partition_fields("id", SCHEMA)


def test_delta_table_by_a_transform_is_refused_before_anything_is_written() -> None:
    lake = lv.Lake("memory://", engine="local")
    with pytest.raises(InvalidInput, match="cannot be partitioned by day of 'ts'"):
        lake.sql("CREATE TABLE t (id BIGINT, ts TIMESTAMP) USING delta PARTITIONED BY (days(ts))")
    with pytest.raises(InvalidInput, match="only by columns"):
        lake.create("t", [{"id": 1, "s": {"x": 2}}], partition_by=["s.x"])
    assert lake.tables() == []
