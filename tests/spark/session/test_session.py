"""The session: its settings stay the user's, and Ctrl-C stops jobs."""

import time
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread
from typing import Any

import pyarrow as pa
import pytest

import lakevilla as lv
from tests.spark.interrupts import SLEEP_SECONDS, interrupted


def test_session_of_the_user_keeps_its_settings(spark: Any, tmp_path: Path) -> None:
    lv.Lake(tmp_path / "first", spark=spark).create("t", spark.range(1))
    before = settings(spark)
    lake = lv.Lake(tmp_path, spark=spark, storage_options={"AWS_SECRET_ACCESS_KEY": "hidden-secret"})
    lake.create("t", spark.range(10))
    lake.sql("UPDATE t SET id = id + 1")
    lake.read("t").collect()
    after = settings(spark)
    assert {name: value for name, value in after.items() if before.get(name) != value} == {}
    assert "hidden-secret" not in str(after)


def test_session_of_the_user_is_found_from_another_thread(spark: Any, tmp_path: Path) -> None:
    lv.Lake(tmp_path / "first", spark=spark).create("t", spark.range(1))
    before = settings(spark)
    found: list[Any] = []

    def work() -> None:
        lake = lv.Lake(tmp_path / "second", engine="spark")
        lake.create("t", [{"id": 1}])
        found.append(lake.read("t").sparkSession)

    other = Thread(target=work)
    other.start()
    other.join()
    assert found[0].sparkContext is spark.sparkContext
    assert settings(spark) == before


def settings(spark: Any) -> dict[str, str]:
    """What the session and its context are set to."""
    found = dict(spark.sparkContext.getConf().getAll())
    return found | {f"session {row.key}": row.value for row in spark.sql("SET").collect()}


@pytest.mark.usefixtures("interruptible")
def test_interrupt_cancels_the_job_and_leaves_the_table_as_it_was(spark: Any, tmp_path: Path) -> None:
    lake = lv.Lake(tmp_path / "lake", spark=spark)
    lake.create("t", "id BIGINT")
    start = time.monotonic()
    with interrupted(spark, tmp_path) as rows:
        lake.append("t", rows)
    assert lake.read("t").count() == 0
    # Spark has two cores; both would still sleep.
    assert time.monotonic() - start < SLEEP_SECONDS
    assert lake.history("t")[0].version == 0
    assert not spark.getTags()


def test_time_zone_of_the_session_moves_no_instant(spark: Any, tmp_path: Path) -> None:
    elsewhere = spark.newSession()
    elsewhere.conf.set("spark.sql.session.timeZone", "America/New_York")
    lake, judge = lv.Lake(tmp_path, spark=elsewhere), lv.Lake(tmp_path, engine="local")
    moments = [datetime(2024, 11, 3, 5, 30, tzinfo=UTC), datetime(2024, 11, 3, 6, 30, tzinfo=UTC)]
    plain = [moment.replace(tzinfo=None) for moment in moments]
    rows = pa.table(
        {
            "id": [1, 2],
            "at": pa.array(moments, pa.timestamp("us", "UTC")),
            "local": pa.array(plain, pa.timestamp("us")),
            "p": pa.array(moments, pa.timestamp("us", "UTC")),
        }
    )
    lake.create("t", rows, partition_by=["p"])
    lake.sql("ALTER TABLE t ADD CONSTRAINT known CHECK (at > TIMESTAMP'2000-01-01 00:00:00Z')")
    lake.append("t", rows)
    lake.sql("UPDATE t SET id = id + 10")
    assert judge.read("t").toArrow().sort_by("id").column("at").to_pylist() == sorted(moments * 2)
    assert judge.read("t").toArrow().sort_by("id").column("p").to_pylist() == sorted(moments * 2)
    assert judge.read("t").toArrow().sort_by("id").column("local").to_pylist() == sorted(plain * 2)
    assert lake.read("t").where("at = TIMESTAMP'2024-11-03 06:30:00Z' AND p = at").count() == 2


def test_missing_data_file_is_corrupt_and_a_failing_expression_invalid(spark: Any, tmp_path: Path) -> None:
    lake = lv.Lake(tmp_path, spark=spark)
    lake.create("t", [{"id": 1}, {"id": 2}])
    with pytest.raises(lv.InvalidInput, match="zero"):
        lake.sql("UPDATE t SET id = 1 DIV (id - id)")
    next(tmp_path.rglob("part-*.parquet")).unlink()
    with pytest.raises(lv.Corrupt):
        lake.sql("UPDATE t SET id = id + 1")
