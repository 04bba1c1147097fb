"""Required values inside of columns: their absence is an error with the path; a NULL around them is none."""

from pathlib import Path

import pyarrow as pa
import pytest

import lakevilla as lv

STRUCT = pa.struct([pa.field("b", pa.string())])
KINDS = {
    "a STRUCT<b: STRING NOT NULL>": ("named_struct('b', {})", "a.b"),
    "a STRUCT<s: STRUCT<b: STRING NOT NULL>>": ("named_struct('s', named_struct('b', {}))", "a.s.b"),
    "a ARRAY<STRUCT<b: STRING NOT NULL>>": ("array(named_struct('b', {}))", "a.element.b"),
    "a MAP<STRING, STRUCT<b: STRING NOT NULL>>": ("map('k', named_struct('b', {}))", "a.value.b"),
}
STATEMENTS = [
    "INSERT INTO t VALUES (2, {})",
    "UPDATE t SET a = {}",
    "UPDATE t SET a = if(id = 1, {}, a)",
    "MERGE INTO t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET a = {}",
    "MERGE INTO t USING (SELECT 7 AS id) s ON t.id = s.id WHEN NOT MATCHED "
    "THEN INSERT (id, a) VALUES (7, {})",
]


@pytest.mark.parametrize("column", KINDS, ids=list(KINDS))
def test_missing_value_inside_is_refused_with_its_path(tmp_path: Path, column: str) -> None:
    value, path = KINDS[column]
    lake = lv.Lake(tmp_path, engine="local")
    lake.create("t", f"id INT, {column}")
    good, missing = value.format("'x'"), value.format("CAST(NULL AS STRING)")
    lake.sql(f"INSERT INTO t VALUES (1, {good})")
    for text in STATEMENTS:
        with pytest.raises(lv.InvalidInput, match="NOT NULL") as error:
            lake.sql(text.format(missing))
        assert error.value.column == path
    assert lake.history("t")[0].version == 1


@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
def test_data_without_a_required_value_is_refused_with_its_path(tmp_path: Path, table_format: str) -> None:
    lake = lv.Lake(tmp_path, engine="local")
    lake.create("t", "id INT, a STRUCT<b: STRING NOT NULL>", format=table_format)
    rows = pa.table({"id": pa.array([2], pa.int32()), "a": pa.array([{"b": None}], STRUCT)})
    version = lake.history("t")[0].version
    for data in (
        rows,
        rows.to_pylist(),
        lake.sql("SELECT 2 AS id, named_struct('b', CAST(NULL AS STRING)) AS a"),
    ):
        with pytest.raises(lv.InvalidInput, match="NOT NULL") as error:
            lake.append("t", data)
        assert error.value.column == "a.b"
    assert lake.history("t")[0].version == version


def test_null_around_a_required_value_is_written_and_read(tmp_path: Path) -> None:
    lake = lv.Lake(tmp_path, engine="local")
    lake.create("t", "id INT, a STRUCT<b: STRING NOT NULL>")
    rows = [{"id": 1, "a": None}, {"id": 2, "a": {"b": "x"}}]
    lake.append("t", rows)
    lake.append("t", pa.Table.from_pylist(rows, pa.schema([("id", pa.int32()), ("a", STRUCT)])))
    lake.sql("INSERT INTO t VALUES (3, NULL)")
    lake.sql("INSERT INTO t SELECT id + 10, a FROM t")
    lake.sql("UPDATE t SET a = NULL WHERE id > 11")
    lake.sql("CREATE TABLE c AS SELECT * FROM t")
    none = [(1, None), (1, None), (3, None), (11, None), (11, None), (12, None), (12, None), (13, None)]
    expected = [*none, (2, "x"), (2, "x")]
    for answer in (lake.read("t"), lake.sql("SELECT * FROM t"), lake.read("c")):
        found = [(row["id"], row["a"] and row["a"]["b"]) for row in answer.toArrow().to_pylist()]
        assert sorted(found, key=repr) == sorted(expected, key=repr)
    assert lake.sql("SELECT a FROM t WHERE id = 1").toArrow().column("a").to_pylist() == [None, None]
    assert lake.sql("SELECT a FROM t WHERE id = 99").toArrow().num_rows == 0
