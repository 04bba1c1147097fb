"""Statements that change rows: equal counts and equal tables on both engines, and equal refusals."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakevilla as lv
from lakevilla.engines.spark.write import writer
from lakevilla.errors import InvalidInput, LakeVillaError
from tests.spark.both import Both, content
from tests.support.extent import in_turn

CHANGES = [
    "INSERT INTO orders VALUES (6, 1, 'new', 1)",
    "INSERT INTO orders (id, account) SELECT CAST(id AS INT), id FROM accounts",
    "INSERT INTO accounts BY NAME SELECT 'zed' AS owner, 42 AS id",
    "UPDATE accounts SET balance = balance + 1 WHERE id = 1",
    "UPDATE accounts SET owner = upper(owner), score = 2",
    "UPDATE orders SET region = 'moved' WHERE region = 'eu'",
    "UPDATE orders SET region = NULL, amount = amount * 2 WHERE amount > 6",
    "UPDATE accounts SET owner = 'x' WHERE id = 12345",
    "UPDATE accounts SET balance = (SELECT max(amount) FROM orders) WHERE id IN (SELECT account FROM orders)",
    "DELETE FROM accounts WHERE id > 2 AND id < 12",
    "DELETE FROM orders WHERE region = 'eu'",
    "DELETE FROM orders WHERE region IS NULL",
    "DELETE FROM accounts WHERE owner IN (SELECT owner FROM accounts WHERE id > 10)",
    "DELETE FROM accounts",
    "INSERT OVERWRITE empty SELECT 1, 'one'",
    "INSERT INTO orders REPLACE WHERE region = 'eu' SELECT 70, 7, 'eu', 7",
    "MERGE INTO accounts t USING (SELECT 1 AS id, 'new' AS owner UNION ALL SELECT 77, 'other') s "
    "ON t.id = s.id WHEN MATCHED THEN UPDATE SET owner = s.owner "
    "WHEN NOT MATCHED THEN INSERT (id, owner) VALUES (s.id, s.owner)",
    "MERGE INTO orders t USING accounts s ON t.account = s.id "
    "WHEN MATCHED AND s.balance IS NULL THEN DELETE WHEN MATCHED AND t.amount > 5 THEN UPDATE SET amount = 0",
    "MERGE INTO orders t USING accounts s ON t.account = s.id WHEN NOT MATCHED BY SOURCE THEN DELETE",
    "MERGE INTO orders t USING (SELECT id, 'r' AS region FROM accounts) s ON t.account = s.id AND t.id < 3 "
    "WHEN MATCHED THEN UPDATE SET region = s.region "
    "WHEN NOT MATCHED AND s.id > 3 THEN INSERT (id, account) VALUES (0, s.id) "
    "WHEN NOT MATCHED BY SOURCE AND t.region = 'eu' THEN UPDATE SET amount = -1",
    "MERGE INTO accounts t USING orders s ON t.id = s.account WHEN MATCHED AND s.amount = 7 THEN "
    "UPDATE SET owner = 'seven'",
    "MERGE INTO empty t USING (SELECT 1 AS id, 'a' AS name) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *",
]


FEW_ROWS = {"by tasks": -1, "here": 10_000}


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("sql", "way"), in_turn({sql: [*FEW_ROWS] for sql in CHANGES}))
def test_change_does_the_same_on_both_engines(
    quick: Any, tmp_path: Path, sql: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "FEW_ROWS", FEW_ROWS[way])
    both = Both(tmp_path, quick)
    assert both.spark.sql(sql) == both.local.sql(sql)
    for local, on_spark in both.tables():
        assert on_spark == local


REFUSED = [
    "INSERT INTO orders VALUES (3000000000, 1, 'x', 1)",
    "INSERT INTO orders VALUES ('text', 1, 'x', 1)",
    "INSERT INTO orders (id, id) VALUES (1, 2)",
    "INSERT INTO orders VALUES (1, 2)",
    "UPDATE orders SET amount = 'many'",
    "UPDATE orders SET amount = 3000000000 WHERE id = 1",
    "UPDATE orders SET nothing = 1",
    "UPDATE orders SET amount = 1 DIV 0",
    "DELETE FROM orders WHERE nothing = 1",
    "UPDATE checked SET n = -1 WHERE n = 1",
    "INSERT INTO checked VALUES (-5, 'x')",
    "INSERT INTO checked VALUES (NULL, 'x')",
    "INSERT INTO checked VALUES (1, NULL)",
    "INSERT INTO orders REPLACE WHERE region = 'eu' SELECT 70, 7, 'us', 7",
    "MERGE INTO accounts t USING orders s ON t.id = s.account WHEN MATCHED THEN UPDATE SET owner = 'twice'",
]


@pytest.fixture(scope="module")
def constrained(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Both:
    both = Both(tmp_path_factory.mktemp("constrained"), spark)
    for lake in (both.local, both.judge):
        lake.sql("CREATE TABLE checked (n INT, name STRING NOT NULL)")
        lake.sql("ALTER TABLE checked ADD CONSTRAINT positive CHECK (n > 0)")
        lake.sql("INSERT INTO checked VALUES (1, 'one')")
    return both


@pytest.mark.parametrize("sql", REFUSED)
def test_wrong_change_is_refused_by_both_and_leaves_no_trace(constrained: Both, sql: str) -> None:
    before = constrained.tables()
    with pytest.raises(InvalidInput):
        constrained.local.sql(sql)
    with pytest.raises(InvalidInput):
        constrained.spark.sql(sql)
    assert constrained.tables() == before


def test_check_constraint_is_named_in_the_refusal(constrained: Both) -> None:
    with pytest.raises(InvalidInput, match=r"CHECK constraint 'positive' \(n > 0\) is violated"):
        constrained.spark.sql("INSERT INTO checked VALUES (0, 'x')")
    with pytest.raises(InvalidInput, match="positive"):
        constrained.spark.append("checked", [{"n": 0, "name": "x"}])


def test_data_of_every_kind_is_appended(spark: Any, tmp_path: Path) -> None:
    lake = lv.Lake(tmp_path, spark=spark)
    lake.create("t", "id BIGINT, name STRING")
    rows = pa.table({"id": [1], "name": ["arrow"]})
    lake.append("t", rows)
    lake.append("t", rows.to_pandas())
    lake.append("t", [{"id": 3}])
    lake.append("t", spark.createDataFrame([(4, "frame")], "ID int, name string"))
    lake.append("t", spark.range(5, 7))
    assert lake.read("t").count() == 6
    assert lake.sql("SELECT sum(id) AS s FROM t").collect()[0].s == 1 + 1 + 3 + 4 + 5 + 6


def test_table_is_made_from_a_frame(spark: Any, tmp_path: Path) -> None:
    lake = lv.Lake(tmp_path, spark=spark)
    lake.create("t", spark.sql("SELECT 1 AS a, timestamp'2024-01-01' AS b, map('k', 1.5) AS c"))
    types, rows = content(lv.Lake(tmp_path, engine="local").read("t"))
    assert types == [("a", "int"), ("b", "timestamp"), ("c", "map<string,decimal(2,1)>")]
    assert len(rows) == 1


def test_frame_as_source_of_a_merge(spark: Any, tmp_path: Path) -> None:
    lake = lv.Lake(tmp_path, spark=spark)
    lake.create("t", [{"id": i, "v": 0} for i in range(5)])
    source = spark.range(3, 8).selectExpr("id", "id * 10 AS v")
    counts = lake.merge("t", source, "target.id = source.id", matched="update", not_matched="insert")
    assert (counts.updated, counts.inserted) == (2, 3)
    assert sorted(tuple(row) for row in lake.read("t").collect())[-2:] == [(6, 60), (7, 70)]


def test_update_leaves_files_without_a_match_alone(spark: Any, tmp_path: Path) -> None:
    lake = lv.Lake(tmp_path, spark=spark)
    lake.create("t", "id INT, v INT")
    for n in range(3):
        lake.append("t", [{"id": i, "v": n} for i in range(n, 30, 3)])
    lake.sql("UPDATE t SET v = v + 1 WHERE id % 30 = 4")
    metrics = lake.history("t")[0].metrics
    assert (metrics["numRemovedFiles"], metrics["numFiles"]) == ("1", "1")
    assert lake.sql("SELECT sum(v) AS s FROM t").collect()[0].s == 10 + 20 + 1


def test_partitioned_write_makes_one_file_for_each_partition(spark: Any, tmp_path: Path) -> None:
    lake = lv.Lake(tmp_path, spark=spark)
    lake.create("t", "id BIGINT, p BIGINT", partition_by=["p"])
    lake.append("t", spark.range(0, 40_000, 1, 8).selectExpr("id", "id % 5 AS p"))
    assert lake.history("t")[0].metrics["numFiles"] == "5"
    assert (
        lake.sql("SELECT p, count(*) AS n FROM t GROUP BY p").toArrow().column("n").to_pylist() == [8000] * 5
    )


def test_names_of_data_files_hold_the_transaction(spark: Any, tmp_path: Path) -> None:
    lake = lv.Lake(tmp_path, spark=spark)
    lake.create("t", "id BIGINT")
    with lake.transaction() as tx:
        tx.append("t", spark.range(10))
    assert all(tx.id in path.name for path in tmp_path.rglob("part-*.parquet"))


def test_memory_is_refused_by_name(spark: Any) -> None:
    lake = lv.Lake("memory://", spark=spark)
    lake.create("t", "id BIGINT")
    with pytest.raises(LakeVillaError, match="engine='local'"):
        lake.append("t", spark.range(3))
