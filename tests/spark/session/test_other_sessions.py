"""DataFrames of other sessions of the same JVM, and what the user's own session can read by name."""

from pathlib import Path
from typing import Any

import pytest

import lakevilla as lv
from lakevilla.transaction.lifecycle import start
from tests.support.left_open import store_all


@pytest.fixture
def lake(quick: Any, tmp_path: Path) -> lv.Lake:
    lake = lv.Lake(tmp_path / "lake", spark=quick)
    lake.create("t", "id BIGINT, v BIGINT")
    lake.append("t", [{"id": 1, "v": 10}])
    return lake


@pytest.fixture
def view(quick: Any) -> Any:
    """A temporary view of the lake's session."""
    quick.createDataFrame([(2, 20), (3, 30)], "id BIGINT, v BIGINT").createOrReplaceTempView("fresh")
    yield "fresh"
    quick.catalog.dropTempView("fresh")


def rows(lake: lv.Lake | lv.Transaction, table: str = "t") -> list[tuple[int, int]]:
    return sorted((row.id, row.v) for row in lake.read(table).collect())


def test_frame_of_another_session_is_appended_merged_and_overwrites(lake: lv.Lake, quick: Any) -> None:
    other = quick.newSession()
    other.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    other.createDataFrame([(2, 20)], "id BIGINT, v BIGINT").createOrReplaceTempView("theirs")
    lake.append("t", other.sql("SELECT * FROM theirs"))
    changed = other.createDataFrame([(2, 21), (3, 30)], "id BIGINT, v BIGINT")
    lake.merge("t", changed, on="target.id = source.id", matched="update", not_matched="insert")
    assert rows(lake) == [(1, 10), (2, 21), (3, 30)]
    lake.sql("DELETE FROM t WHERE id IN (SELECT id FROM df)", views={"df": other.sql("SELECT * FROM theirs")})
    assert rows(lake) == [(1, 10), (3, 30)]
    lake.overwrite("t", other.range(1).selectExpr("id", "id AS v"))
    assert rows(lake) == [(0, 0)]
    lake.create("made", other.sql("SELECT * FROM theirs"))
    assert rows(lake, "made") == [(2, 20)]


def test_batches_of_a_stream_are_written_where_they_arrive(lake: lv.Lake, quick: Any, tmp_path: Path) -> None:
    quick.range(10).selectExpr("id + 10 AS id", "id AS v").coalesce(1).write.parquet(str(tmp_path / "in"))
    stream = quick.readStream.schema("id BIGINT, v BIGINT").parquet(str(tmp_path / "in"))

    def write(batch: Any, number: int) -> None:
        lake.run(lambda tx: tx.append("t", batch), once=("stream", number))

    options = {"checkpointLocation": str(tmp_path / "checkpoint")}
    stream.writeStream.foreachBatch(write).options(**options).trigger(
        availableNow=True
    ).start().awaitTermination()
    assert len(rows(lake)) == 11


def test_view_of_the_session_is_read_beside_tables(lake: lv.Lake, view: str) -> None:
    joined = lake.sql(f"SELECT count(*) AS n FROM t CROSS JOIN {view} AS f WHERE f.v > 10").collect()
    assert [row.n for row in joined] == [2]
    lake.sql(f"INSERT INTO t SELECT * FROM {view} WHERE id = 2")
    lake.sql(f"UPDATE t SET v = v + 1 WHERE id IN (SELECT id FROM {view})")
    lake.sql(f"MERGE INTO t USING {view} AS s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *")
    assert rows(lake) == [(1, 10), (2, 21), (3, 30)]


def test_table_of_the_lake_comes_before_a_view_of_its_name(lake: lv.Lake, quick: Any) -> None:
    quick.range(5).createOrReplaceTempView("t")
    try:
        assert lake.sql("SELECT count(*) AS n FROM t").collect()[0].n == 1
        assert lv.Lake(lake.url, spark=quick).sql("SELECT count(*) AS n FROM t").collect()[0].n == 1
    finally:
        quick.catalog.dropTempView("t")


def test_global_view_and_one_with_a_name_that_no_table_has_are_read(lake: lv.Lake, quick: Any) -> None:
    quick.range(5).createOrReplaceGlobalTempView("five")
    quick.range(4).createOrReplaceTempView("_four")
    try:
        text = "SELECT (SELECT count(*) FROM global_temp.five) + (SELECT count(*) FROM _four) AS n"
        assert lake.sql(text).collect()[0].n == 9
    finally:
        quick.catalog.dropGlobalTempView("five")
        quick.catalog.dropTempView("_four")


@pytest.mark.parametrize("features", [lv.R, lv.R | lv.CT | lv.I])
def test_files_are_read_in_place(lake: lv.Lake, quick: Any, tmp_path: Path, features: lv.Features) -> None:
    folder = tmp_path / "more files"
    quick.range(3).selectExpr("id + 5 AS id", "id AS v").write.parquet(str(folder))
    with lake.transaction(features) as tx:
        tx.sql(f"INSERT INTO t SELECT id, v FROM parquet.`{folder}` WHERE id > 5")
        assert len(rows(tx)) == 3
    assert len(rows(lake)) == 3


def test_name_that_nobody_knows_is_refused_as_before(lake: lv.Lake) -> None:
    with pytest.raises(lv.InvalidInput, match="nothing_here"):
        lake.sql("SELECT * FROM nothing_here")


def test_statement_over_a_view_is_not_redone_by_another_client(
    lake: lv.Lake, quick: Any, view: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(start, "STORED_AFTER_SECONDS", 0.0)
    old = lake.transaction()
    old.sql(f"UPDATE t SET v = v + (SELECT max(v) FROM {view}) WHERE id = 1")
    old.sql("UPDATE t SET v = v + 1 WHERE id = 1")
    store_all(lake, old)
    lv.Lake(lake.url, spark=quick).sql("UPDATE t SET v = v + 5")
    with pytest.raises(lv.Conflict, match="its client alone"):
        lv.Lake(lake.url, spark=quick).resume(old.id).commit()


def test_frame_of_another_spark_is_refused(lake: lv.Lake) -> None:
    class Session:
        """A client of a Spark Connect server."""

        session_id = "1"

    Frame = type("DataFrame", (), {"__module__": "pyspark.sql.connect.dataframe", "sparkSession": Session()})
    with pytest.raises(lv.InvalidInput, match="another Spark"):
        lake.append("t", Frame())
