"""Change data feeds of tables that Spark changes: the same rows as the local engine gives."""

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakevilla as lv
from lakevilla.engines.spark.write import writer
from tests.spark.statements.test_changes import FEW_ROWS
from tests.support.extent import in_turn

FEED = {"delta.enableChangeDataFeed": "true"}
OPTIONS = {"fsync": "false"}
CHANGES = [
    "UPDATE t SET v = v + 1 WHERE id IN (3, 12)",
    "UPDATE t SET v = 5, p = 'z' WHERE id < 4",
    "UPDATE t SET v = id",
    "UPDATE t SET v = 1 WHERE id IN (SELECT id FROM s)",
    "DELETE FROM t WHERE id IN (1, 2, 3, 12)",
    "DELETE FROM t WHERE p = 'a' OR id = 12",
    "DELETE FROM t",
    "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED AND s.id = 3 THEN DELETE "
    "WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *",
    "MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *",
    "MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = 9",
    "INSERT INTO t REPLACE WHERE id = 3 SELECT 3 AS id, 7L AS v, 'q' AS p, TIMESTAMP'2026-01-01' AS at",
]


def filled(place: Path, vectors: bool) -> lv.Lake:
    lake = lv.Lake(place, engine="local", merge_on_read=vectors, storage_options=OPTIONS)
    at = pa.array([0] * 20, pa.timestamp("us", "UTC"))
    rows = {"id": list(range(20)), "v": [0] * 20, "p": ["a"] * 5 + ["b"] * 15, "at": at}
    lake.create("t", pa.table(rows), properties=FEED, partition_by=["p"])
    lake.create("s", pa.table({"id": [3, 12, 50], "v": [9, 9, 9], "p": ["a", "b", "c"], "at": at[:3]}))
    return lake


def changes(lake: lv.Lake, since: int) -> Counter[tuple[Any, ...]]:
    table = lake.changes("t", since)
    rows = (table if isinstance(table, pa.Table) else table.toArrow()).to_pylist()
    return Counter((r["id"], r["v"], r["p"], r["at"], r["_change_type"]) for r in rows)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("vectors", [False, True], ids=["files", "vectors"])
@pytest.mark.parametrize(("sql", "way"), in_turn({sql: [*FEW_ROWS] for sql in CHANGES}))
def test_change_gives_the_same_feed_on_both_engines(
    quick: Any, tmp_path: Path, sql: str, way: str, vectors: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "FEW_ROWS", FEW_ROWS[way])
    local = filled(tmp_path / "local", vectors)
    since = filled(tmp_path / "spark", vectors).history()[0].seq
    spark = lv.Lake(tmp_path / "spark", spark=quick, storage_options=OPTIONS)
    for lake in (local, spark):
        lake.sql(sql)
    judge = lv.Lake(tmp_path / "spark", engine="local", storage_options=OPTIONS)
    assert changes(judge, since) == changes(local, since)
    assert changes(spark, since) == changes(local, since)


def test_statements_of_a_transaction_give_one_feed(quick: Any, tmp_path: Path) -> None:
    since = filled(tmp_path, True).history()[0].seq
    lake = lv.Lake(tmp_path, spark=quick, storage_options=OPTIONS)
    with lake.transaction() as tx:
        tx.sql("UPDATE t SET v = v + 1, p = 'z' WHERE id IN (1, 2)")
        tx.sql("UPDATE t SET v = v + 10 WHERE id IN (1, 3)")
        tx.sql("DELETE FROM t WHERE id = 2")
        tx.sql("INSERT INTO t SELECT 30 AS id, 0L AS v, 'q' AS p, at FROM s WHERE id = 3")
        tx.sql("UPDATE t SET v = 4 WHERE id = 30")
    found = {(i, v, p, kind) for i, v, p, _, kind in changes(lake, since)}
    assert found == {
        (1, 0, "a", "update_preimage"),
        (1, 11, "z", "update_postimage"),
        (2, 0, "a", "delete"),
        (3, 0, "a", "update_preimage"),
        (3, 10, "a", "update_postimage"),
        (30, 4, "q", "insert"),
    }
