"""Change data feeds between clients: others read the feed that we write, and we read theirs."""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

import lakevilla as lv
from tests.legacy.clients.spark_delta import Spark

FEED = {"delta.enableChangeDataFeed": "true"}
Change = tuple[Any, ...]
COLUMNS = ("_commit_version", "_change_type", "id", "v", "p")


def lake_with(place: Path, vectors: bool = False, **properties: str) -> lv.Lake:
    """A table of two partitions that was changed in every way."""
    options = {"fsync": "false"}
    lake = lv.Lake(place / "lake", engine="local", merge_on_read=vectors, storage_options=options)
    rows = {"id": list(range(20)), "v": [0] * 20, "p": ["a"] * 10 + ["b"] * 10}
    lake.create("t", pa.table(rows), partition_by=["p"], properties={**FEED, **properties})
    lake.sql("UPDATE t SET v = v + 1 WHERE id IN (3, 12)")
    lake.sql("UPDATE t SET p = 'c d/e', v = 2 WHERE id IN (4, 13)")
    lake.sql("DELETE FROM t WHERE id IN (1, 2, 14)")
    source = pa.table({"id": [3, 15, 50], "v": [9, 9, 9], "p": ["a", "b", "x"]})
    lake.merge(
        "t", source, ["id"], matched=[("source.id = 3", "delete"), ("true", "update")], not_matched="insert"
    )
    lake.overwrite("t", pa.table({"id": [5], "v": [55], "p": ["a"]}), where="id = 5")
    with lake.transaction() as tx:
        tx.sql("UPDATE t SET v = 100 WHERE id IN (6, 7)")
        tx.sql("UPDATE t SET v = v + 1, p = 'y' WHERE id = 6")
        tx.sql("INSERT INTO t VALUES (60, 1, 'a'), (61, 1, 'a')")
        tx.sql("DELETE FROM t WHERE id IN (7, 61)")
    lake.sql("INSERT INTO t VALUES (70, 0, NULL)")
    lake.sql("DELETE FROM t WHERE p = 'b'")
    lake.restore(version=lake.history("t")[2].version, tables=["t"])
    return lake


def by_us(lake: lv.Lake) -> Counter[Change]:
    return net(lake.changes("t").toArrow().to_pylist())


def net(rows: Iterable[dict[str, Any]]) -> Counter[Change]:
    """The changes, without rows that one version deletes and inserts unchanged: other readers show all rows
    of files that were removed and added as a whole."""
    found = Counter(tuple(row[name] for name in COLUMNS) for row in rows)
    for version, kind, *rest in list(found):
        one, other = (version, "delete", *rest), (version, "insert", *rest)
        if kind == "delete":
            both = min(found[one], found[other])
            found[one] -= both
            found[other] -= both
    return +found


@pytest.fixture
def delta(spark_delta: SparkSession, tmp_path: Path) -> Iterator[Spark]:
    yield Spark(spark_delta, str(tmp_path / "lake"))
    spark_delta.catalog.clearCache()


def by_spark(delta: Spark, since: int = 0) -> Counter[Change]:
    reader = delta.session.read.format("delta").option("readChangeFeed", "true")
    frame = reader.option("startingVersion", since).load(delta.path("t"))
    return net(frame.select(*COLUMNS).toArrow().to_pylist())


def test_feed_that_we_write_is_read_by_deltalake(tmp_path: Path) -> None:
    lake = lake_with(tmp_path)
    table = DeltaTable(str(tmp_path / "lake" / "t"))
    rows = pa.table(table.load_cdf(starting_version=0)).to_pylist()
    assert net(rows) == by_us(lake)


@pytest.mark.parametrize("kind", ["files", "vectors", "names"])
def test_feed_that_we_write_is_read_by_spark(delta: Spark, tmp_path: Path, kind: str) -> None:
    mapping = {"delta.columnMapping.mode": "name"} if kind == "names" else {}
    lake = lake_with(tmp_path, kind == "vectors", **mapping)
    found = by_us(lake)
    assert by_spark(delta) == found
    assert {change[1] for change in found} == {"insert", "delete", "update_preimage", "update_postimage"}


@pytest.mark.parametrize("vectors", [pytest.param(False, marks=pytest.mark.long), True])
def test_feed_that_spark_writes_is_read_by_us(delta: Spark, tmp_path: Path, vectors: bool) -> None:
    lake = lake_with(tmp_path, vectors)
    since, before = lake.history()[0].seq, lake.history("t")[0].version
    delta.sql("UPDATE {} SET v = v + 1000 WHERE id < 8", "t")
    delta.sql("DELETE FROM {} WHERE id = 9", "t")
    merge = (
        "MERGE INTO {} t USING (SELECT 10L AS id UNION ALL SELECT 80L) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET p = 'moved' "
        "WHEN NOT MATCHED THEN INSERT (id, v, p) VALUES (s.id, 1, 'a')"
    )
    delta.sql(merge, "t")
    delta.sql("DELETE FROM {} WHERE p = 'moved'", "t")
    delta.sql("INSERT INTO {} VALUES (90, 1, 'a')", "t")
    delta.sql("OPTIMIZE {}", "t")
    assert lake.changes("t", since).count() == 0, "no instant has adopted them"
    lake.sync()
    rows = lake.changes("t", since).toArrow().to_pylist()
    assert net(rows) == by_spark(delta, before + 1)
    # They are part of the instant that adopted them.
    assert {row["_commit_seq"] for row in rows} == {since + 1}
    assert {row["_transaction"] for row in rows} == {None}
    lake.sql("UPDATE t SET v = 0 WHERE id = 90")
    assert by_spark(delta) == by_us(lake)
