"""CREATE OR REPLACE TABLE and its kin: the next version of a table has other columns and other rows."""

from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

import lakevilla as lv
from tests.support.iceberg_files import FilesCatalog

pytestmark = pytest.mark.formats("delta", "iceberg")


@pytest.fixture
def lake(tmp_path: Path) -> lv.Lake:
    lake = lv.Lake(tmp_path, engine="local", storage_options={"fsync": "false"})
    lake.sql("CREATE TABLE t (id BIGINT, day DATE, name STRING) PARTITIONED BY (day) COMMENT 'old'")
    lake.sql("INSERT INTO t VALUES (1, DATE'2026-01-01', 'a'), (2, DATE'2026-01-02', 'b')")
    return lake


def rows(lake: Any, name: str = "t") -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in lake.read(name).collect())


def test_replaced_table_has_the_new_definition_and_its_history(lake: lv.Lake) -> None:
    before = lake.history("t")
    lake.sql(
        "CREATE OR REPLACE TABLE t (id STRING NOT NULL, z INT COMMENT 'zz') PARTITIONED BY (z) COMMENT 'new'"
    )
    assert rows(lake) == []
    lake.sql("INSERT INTO t VALUES ('x', 3)")
    assert rows(lake) == [("x", 3)]
    text = lake.sql("SHOW CREATE TABLE t").collect()[0][0]
    assert "id STRING NOT NULL" in text
    assert "z INT COMMENT 'zz'" in text
    assert "PARTITIONED BY (z)" in text
    assert "COMMENT 'new'" in text
    old = lake.read("t", version=before[0].version)
    assert sorted(row[0] for row in old.collect()) == [1, 2]
    assert [entry.operation for entry in lake.history("t")][1] == "CREATE OR REPLACE TABLE"
    assert len(lake.history("t")) == len(before) + 2


def test_replaced_table_may_be_made_of_itself(lake: lv.Lake) -> None:
    lake.sql("CREATE OR REPLACE TABLE t AS SELECT id + 1 AS id, upper(name) AS n FROM t")
    assert rows(lake) == [(2, "A"), (3, "B")]
    assert lake.history("t")[0].operation == "CREATE OR REPLACE TABLE AS SELECT"


def test_table_that_does_not_exist_is_created(lake: lv.Lake) -> None:
    lake.sql("CREATE OR REPLACE TABLE fresh (id INT)")
    lake.create("other", [{"id": 1}], replace=True)
    assert rows(lake, "other") == [(1,)]
    assert lake.tables() == ["fresh", "other", "t"]


def test_python_verbs_replace_too(lake: lv.Lake) -> None:
    lake.create("t", [{"k": 1, "v": "x"}], replace=True)
    assert rows(lake) == [(1, "x")]
    counts = lake.overwrite("t", [{"w": 2.5}], schema="replace")
    assert (counts.inserted, counts.deleted) == (1, 1)
    assert rows(lake) == [(2.5,)]


def test_overwrite_keeps_partitioning_properties_and_comments(lake: lv.Lake) -> None:
    lake.sql("ALTER TABLE t SET TBLPROPERTIES ('team' = 'x')")
    lake.sql("CREATE OR REPLACE TABLE t (id INT COMMENT 'the id', day INT) PARTITIONED BY (day) COMMENT 'c' "
             "TBLPROPERTIES ('team' = 'y')")  # fmt: skip
    lake.overwrite("t", [{"id": 1, "day": 5, "more": "m"}], schema="replace")
    text = lake.sql("SHOW CREATE TABLE t").collect()[0][0]
    for part in ("COMMENT 'the id'", "PARTITIONED BY (day)", "COMMENT 'c'", "'team' = 'y'", "more STRING"):
        assert part in text
    with pytest.raises(lv.InvalidInput, match=r"partitioned by 'day', which the data does not have"):
        lake.overwrite("t", [{"id": 1}], schema="replace")
    with pytest.raises(lv.InvalidInput, match="leave where out"):
        lake.overwrite("t", [{"id": 1}], "id = 1", schema="replace")


def test_transaction_goes_on_with_the_new_columns(lake: lv.Lake) -> None:
    with lake.transaction() as tx:
        tx.sql("INSERT INTO t VALUES (3, DATE'2026-01-01', 'c')")
        tx.sql("CREATE OR REPLACE TABLE t AS SELECT count(*) AS n FROM t")
        tx.sql("INSERT INTO t VALUES (9)")
        tx.sql("UPDATE t SET n = n + 1 WHERE n = 9")
        assert rows(tx) == [(3,), (10,)]
        assert len(rows(lake)) == 2
    assert rows(lake) == [(3,), (10,)]


def test_savepoint_undoes_a_replacement(lake: lv.Lake) -> None:
    with lake.transaction() as tx:
        tx.savepoint("a")
        tx.create("t", [{"k": 1}], replace=True)
        tx.rollback_to("a")
        tx.sql("DELETE FROM t WHERE id = 1")
    assert [row[0] for row in rows(lake)] == [2]


@pytest.mark.parametrize("features", [lv.R | lv.CT | lv.I, lv.CT, lv.R, lv.Features.NONE])
def test_replacement_conflicts_with_every_change_that_came_first(
    lake: lv.Lake, features: lv.Features
) -> None:
    """With R the statement runs again on what is there then; without R it is a Conflict."""
    tx = lake.transaction(features)
    tx.sql("CREATE OR REPLACE TABLE t AS SELECT count(*) AS n FROM t")
    lake.sql(
        "INSERT INTO t VALUES (3, DATE'2026-01-01', 'c')",
    )
    if features & lv.R:
        tx.commit()
        assert rows(lake) == [(3,)]
    else:
        with pytest.raises(lv.Aborted):
            tx.commit()
        assert len(rows(lake)) == 3


@pytest.mark.parametrize("features", [lv.R | lv.CT | lv.I, lv.CT, lv.R, lv.Features.NONE])
def test_change_that_comes_after_a_replacement_conflicts(lake: lv.Lake, features: lv.Features) -> None:
    tx = lake.transaction(features)
    tx.sql("UPDATE t SET name = 'x' WHERE id = 1")
    lake.create("t", [{"k": 1}], replace=True)
    with pytest.raises(lv.Aborted):
        tx.commit()
    assert rows(lake) == [(1,)]


def test_replaced_table_can_be_restored(lake: lv.Lake) -> None:
    lake.tag("old")
    old = rows(lake)
    lake.sql("CREATE OR REPLACE TABLE t (day STRING, q INT) PARTITIONED BY (q)")
    lake.sql("INSERT INTO t VALUES ('x', 1)")
    lake.restore(tag="old")
    assert rows(lake) == old
    lake.sql("INSERT INTO t VALUES (5, DATE'2026-01-05', 'e')")
    assert len(rows(lake)) == 3
    assert rows(lake.at(tag="old")) == old


def test_other_clients_read_a_replaced_table(lake: lv.Lake, tmp_path: Path, table_format: str) -> None:
    lake.sql("CREATE OR REPLACE TABLE t (name STRING, n INT) PARTITIONED BY (n)")
    lake.sql("INSERT INTO t VALUES ('x', 1), ('y', 2)")
    if table_format == "delta":
        found = DeltaTable(tmp_path / "t")
        assert sorted(found.to_pyarrow_table().to_pylist(), key=str) == [
            {"name": "x", "n": 1},
            {"name": "y", "n": 2},
        ]
        assert DeltaTable(tmp_path / "t", version=1).to_pyarrow_table().num_rows == 2
    else:
        found = FilesCatalog().load_table(f"{lake.url}/t")
        assert sorted(row["name"] for row in found.scan().to_arrow().to_pylist()) == ["x", "y"]
        assert found.spec().fields[0].name == "n"


def test_format_and_location_stay(lake: lv.Lake, table_format: str) -> None:
    other = "iceberg" if table_format == "delta" else "delta"
    with pytest.raises(lv.Unsupported, match="its log goes on"):
        lake.sql(f"CREATE OR REPLACE TABLE t (id INT) USING {other}")
    with pytest.raises(lv.InvalidInput, match="at another location"):
        lake.create("t", "id INT", location="memory://elsewhere", replace=True)
    with pytest.raises(lv.InvalidInput, match="takes no IF NOT EXISTS"):
        lake.sql("CREATE OR REPLACE TABLE IF NOT EXISTS t (id INT)")


def test_append_only_table_is_not_replaced(lake: lv.Lake, table_format: str) -> None:
    if table_format == "delta":
        lake.sql("ALTER TABLE t SET TBLPROPERTIES ('delta.appendOnly' = 'true')")
        with pytest.raises(lv.InvalidInput, match="append-only"):
            lake.create("t", [{"k": 1}], replace=True)
    assert len(rows(lake)) == 2


def test_column_mapping_goes_on_with_new_ids(lake: lv.Lake, table_format: str) -> None:
    if table_format == "iceberg":
        lake.sql("CREATE OR REPLACE TABLE t (id INT, name STRING, extra INT)")
        raw = FilesCatalog().load_table(f"{lake.url}/t").schema()
        ids = {field.name: field.field_id for field in raw.fields}
        # A simple column of the same type keeps its id; others get one that none ever had.
        assert (ids["name"], ids["id"] > 3, ids["extra"] > 3) == (3, True, True)
        return
    lake.sql("ALTER TABLE t SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    lake.create("t", [{"k": 1}], replace=True)
    lake.sql("ALTER TABLE t RENAME COLUMN k TO kk")
    assert rows(lake) == [(1,)]
    properties = dict(tuple(row) for row in lake.sql("SHOW TBLPROPERTIES t").collect())
    assert properties["delta.columnMapping.mode"] == "name"
    assert int(properties["delta.columnMapping.maxColumnId"]) > 3
