"""Tables with deletion vectors, column mapping and odd partition values: changed on Spark."""

import shutil
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakevilla as lv
from lakevilla.model import ReadSet
from lakevilla.predicates import Compare
from tests.golden.tables import GOLDEN, needed
from tests.spark.both import content

VECTORS = "delta/delta-kernel-java/basic-dv-no-checkpoint/table"


def twins(tmp_path: Path, spark: Any) -> tuple[lv.Lake, lv.Lake, lv.Lake]:
    """A lake on Spark, the same without it to judge, and an equal one on the local engine."""
    spark_lake, local = tmp_path / "s", tmp_path / "l"
    judge = lv.Lake(spark_lake, engine="local")
    return lv.Lake(spark_lake, spark=spark), judge, lv.Lake(local, engine="local")


@needed
@pytest.mark.parametrize(
    "change", ["UPDATE t SET id = id + 100 WHERE id > 4", "DELETE FROM t WHERE id = 5", "DELETE FROM t"]
)
def test_change_of_a_table_with_deletion_vectors_keeps_deleted_rows_away(
    spark: Any, tmp_path: Path, change: str
) -> None:
    lake, judge, local = twins(tmp_path, spark)
    for root in ("s", "l"):
        shutil.copytree(GOLDEN / VECTORS, tmp_path / root / "t")
    column = judge.read("t").columns[0]
    text = change.replace("id", f"`{column}`")
    assert lake.sql(text) == local.sql(text)
    assert content(judge.read("t")) == content(local.read("t")) == content(lake.read("t"))


@pytest.mark.parametrize("mode", ["name", "id"])
def test_renamed_columns_are_read_and_written_by_their_stored_names(
    spark: Any, tmp_path: Path, mode: str
) -> None:
    lake, judge, _ = twins(tmp_path, spark)
    lake.create(
        "t",
        "a INT, s STRUCT<x: INT, y: STRING>, p STRING",
        partition_by=["p"],
        properties={"delta.columnMapping.mode": mode},
    )
    lake.sql("INSERT INTO t VALUES (1, named_struct('x', 1, 'y', 'one'), 'p'), (2, NULL, NULL)")
    lake.sql("ALTER TABLE t RENAME COLUMN a TO b")
    lake.sql("ALTER TABLE t ADD COLUMN a INT")
    lake.sql("UPDATE t SET a = 10 * b WHERE b = 1")
    assert lake.sql("SELECT b FROM t WHERE a = 10").collect()[0].b == 1
    assert lake.sql("SELECT b FROM t WHERE a IS NULL").collect()[0].b == 2
    assert lake.sql("SELECT s.y FROM t WHERE s.x = 1 AND p = 'p'").collect()[0].y == "one"
    assert content(lake.read("t")) == content(judge.read("t"))


def test_partition_values_of_every_type_come_back(spark: Any, tmp_path: Path) -> None:
    lake, judge, _ = twins(tmp_path, spark)
    rows = pa.table(
        {
            "n": pa.array([1, 2, 3], pa.int32()),
            "s": pa.array(["a b/ä%=:", None, "'\"\\"], pa.string()),
            "d": pa.array([date(2024, 2, 29), None, date(1, 1, 1)], pa.date32()),
            "t": pa.array(
                [datetime(2024, 3, 31, 2, 30, tzinfo=UTC), None, datetime(1900, 1, 1, tzinfo=UTC)],
                pa.timestamp("us", "UTC"),
            ),
            "z": pa.array([datetime(2024, 1, 1, 0, 0, 0, 5), None, datetime(1, 1, 1)], pa.timestamp("us")),
            "m": pa.array([Decimal("1.50"), None, Decimal("-0.01")], pa.decimal128(9, 2)),
            "f": pa.array([float("nan"), None, -0.0], pa.float64()),
            "b": pa.array([True, None, False], pa.bool_()),
            "y": pa.array([b"bytes", None, b"x"], pa.binary()),
        }
    )
    lake.create("t", rows, partition_by=[name for name in rows.schema.names if name != "n"])
    assert content(lake.read("t")) == content(judge.read("t"))
    lake.sql("UPDATE t SET n = n + 1")
    assert content(lake.read("t")) == content(judge.read("t"))
    assert lake.sql("SELECT n FROM t WHERE t = TIMESTAMP'2024-03-31 02:30:00'").collect()[0].n == 2
    assert lake.sql("SELECT n FROM t WHERE d < DATE'2000-01-01' AND NOT b").collect()[0].n == 4


def test_filters_of_a_frame_prune_files_and_are_noted_as_read(spark: Any, tmp_path: Path) -> None:
    lake = lv.Lake(tmp_path, spark=spark)
    lake.create("t", "id BIGINT, v BIGINT")
    for start in (0, 100, 200):
        lake.append("t", spark.range(start, start + 100, 1, 1).selectExpr("id", "id AS v"))
    tx = lake.transaction()
    frame = tx.read("t").where("id = 150")
    assert frame.collect()[0].v == 150
    read: ReadSet = tx._operations.read_of("t")
    assert len(read.files) == 1
    assert any(Compare(("id",), "=", 150) in getattr(p, "parts", (p,)) for p in read.predicates)
    tx.abort()
