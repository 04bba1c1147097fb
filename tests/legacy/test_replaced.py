"""Tables that were replaced, in the hands of Spark + Delta and Spark + Iceberg: read and changed again."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import lakevilla as lv
from tests.legacy.clients import spark_delta as with_delta
from tests.legacy.clients import spark_iceberg as with_iceberg
from tests.legacy.clients.iceberg_readers import by_duckdb, by_pyiceberg
from tests.legacy.clients.spark_delta import ours


@pytest.fixture
def delta(spark_delta: SparkSession, tmp_path: Path) -> Iterator[with_delta.Spark]:
    yield with_delta.Spark(spark_delta, str(tmp_path / "lake"))
    spark_delta.catalog.clearCache()


@pytest.fixture
def iceberg(spark_iceberg: SparkSession, tmp_path: Path) -> with_iceberg.Spark:
    return with_iceberg.Spark(spark_iceberg, tmp_path.name)


def _open(root: str, table_format: str) -> lv.Lake:
    lake = lv.Lake(root, engine="local", default_format=table_format, storage_options={"fsync": "false"})
    lake.sql("CREATE TABLE t (id BIGINT, day DATE, v STRING) PARTITIONED BY (day)")
    lake.sql("INSERT INTO t VALUES (1, DATE'2026-01-01', 'a'), (2, DATE'2026-01-02', 'b')")
    lake.sql("CREATE OR REPLACE TABLE t PARTITIONED BY (k) AS SELECT v, CAST(id AS STRING) AS k, id FROM t")
    return lake


def test_replaced_delta_table_is_changed_by_spark_and_by_us(delta: with_delta.Spark) -> None:
    lake = _open(delta.root, "delta")
    assert delta.rows("t") == ours(lake, "t")
    assert delta.rows("t", version=1) == ours(lake, "t", version=1)
    delta.sql("UPDATE {} SET v = 'spark' WHERE k = '1'", "t")
    lake.sql("INSERT INTO t VALUES ('c', '3', 3)")
    assert delta.rows("t") == ours(lake, "t")
    frame = delta.session.createDataFrame([(7, "x")], "n INT, w STRING")
    frame.write.format("delta").mode("overwrite").option("overwriteSchema", "true").partitionBy("w").save(
        delta.path("t")
    )
    lake.sql("INSERT INTO t VALUES (8, 'y')")
    assert delta.rows("t") == ours(lake, "t") == [{"n": 7, "w": "x"}, {"n": 8, "w": "y"}]


def test_replaced_iceberg_table_is_changed_by_spark_and_by_us(iceberg: with_iceberg.Spark) -> None:
    lake = _open(iceberg.root, "iceberg")
    assert iceberg.rows("t") == ours(lake, "t")
    url = f"{lake.url}/t"
    assert by_pyiceberg(url) == by_duckdb(url) == ours(lake, "t")
    iceberg.sql("UPDATE {} SET v = 'spark' WHERE k = '1'", "t")
    lake.sql("INSERT INTO t VALUES ('c', '3', 3)")
    assert iceberg.rows("t") == ours(lake, "t")
    lake.create("t", "id BIGINT, v STRING", replace=True)
    lake.sql("INSERT INTO t VALUES (9, 'z')")
    assert iceberg.rows("t") == ours(lake, "t") == [{"id": 9, "v": "z"}]
