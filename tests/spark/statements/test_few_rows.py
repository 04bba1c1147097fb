"""Few rows are brought to the driver and written there: which they are, and what comes of it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import lakevilla as lv
from lakevilla.engines.spark.write.writer import FEW_ROWS, rows_in, rows_of
from lakevilla.model import DataFile

STATEMENTS = [
    "INSERT INTO t VALUES (7, 'new')",
    "INSERT INTO t SELECT id + 10, owner FROM t ORDER BY id LIMIT 2",
    "UPDATE t SET owner = 'x' WHERE id = 1",
    "DELETE FROM t WHERE id = 2",
    "MERGE INTO t USING (SELECT 1L AS id, 'm' AS owner UNION ALL SELECT 9L, 'n') s ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET owner = s.owner WHEN NOT MATCHED THEN INSERT *",
]


@pytest.fixture
def lake(spark: Any, tmp_path: Path) -> lv.Lake:
    lake = lv.Lake(tmp_path, spark=spark)
    lake.create("t", "id BIGINT, owner STRING")
    lake.append("t", [{"id": i, "owner": f"owner {i}"} for i in range(3)])
    return lake


@pytest.fixture
def small_results(spark: Any) -> Iterator[None]:
    """A session that may bring no more than 100 kB to its driver."""
    settings = spark.sparkContext._jsc.sc().conf()
    settings.set("spark.driver.maxResultSize", "100k")
    yield
    settings.remove("spark.driver.maxResultSize")


@pytest.mark.parametrize("sql", STATEMENTS)
def test_few_rows_need_no_python_worker(lake: lv.Lake, sql: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyspark.sql.classic.dataframe.DataFrame.mapInArrow", None)
    lake.sql(sql)


def test_rows_of_values_need_no_job(spark: Any, lake: lv.Lake) -> None:
    tracker = spark.sparkContext.statusTracker()
    before = set(tracker.getJobIdsForGroup(None))
    lake.sql("INSERT INTO t VALUES (7, 'new'), (8, NULL)")
    assert set(tracker.getJobIdsForGroup(None)) == before


def test_few_rows_that_are_too_large_for_the_driver_are_written_by_tasks(
    lake: lv.Lake, small_results: None
) -> None:
    lake.sql("UPDATE t SET owner = repeat('a', 200000)")
    assert lake.sql("SELECT sum(length(owner)) AS n FROM t").collect()[0].n == 600_000


def test_bound_of_rows_is_known_without_a_job_or_not_given(spark: Any) -> None:
    assert rows_in(spark.sql("VALUES (1), (2)")) == 2
    assert rows_in(spark.range(10**9).limit(5)) == 5
    assert rows_in(spark.sql("SELECT explode(array(1, 2))")) is None


def test_files_without_counts_or_with_many_bytes_have_no_bound() -> None:
    def file(rows: int | None, size: int = 10) -> DataFile:
        return DataFile("key", "key", size, rows, {})

    assert rows_of([file(2), file(3)]) == 5
    assert rows_of([file(2), file(None)]) is None
    assert rows_of([file(2), file(3, size=1 << 30)]) is None


def test_many_rows_are_written_by_tasks(spark: Any, lake: lv.Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyspark.sql.classic.dataframe.DataFrame.mapInArrow", None)
    with pytest.raises(TypeError):
        lake.append("t", spark.range(FEW_ROWS + 1).selectExpr("id", "'x' AS owner"))
