"""Rows of a query on Spark while they are fetched: Ctrl-C ends them, and progress is reported."""

import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

import lakevilla as lv
from lakevilla import progress
from lakevilla.cli.exits import INTERRUPTED
from lakevilla.cli.main import main
from tests.spark.interrupts import SLEEP_SECONDS, interrupting


@pytest.fixture
def handled(spark: Any) -> Iterator[None]:
    """PySpark's handler of Ctrl-C, which asks the JVM to cancel all jobs."""

    def handler(number: int, frame: object) -> NoReturn:
        spark.sparkContext.cancelAllJobs()
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("handled")
@pytest.mark.parametrize("action", ["collect", "toArrow"])
def test_interrupt_ends_the_jobs_of_a_query_and_leaves_the_session_in_order(
    spark: Any, tmp_path: Path, action: str
) -> None:
    lake = lv.Lake(tmp_path / "lake", spark=spark)
    lake.create("t", [{"id": 1}, {"id": 2}])
    start = time.monotonic()
    frame: Any = lake.read("t")
    with interrupting(tmp_path) as sleep, pytest.raises(KeyboardInterrupt):
        getattr(frame.mapInArrow(sleep, "id bigint"), action)()
    assert time.monotonic() - start < SLEEP_SECONDS
    assert [lake.sql("SELECT count(*) FROM t").first()[0], spark.range(3).count()] == [2, 3]
    assert list(spark.sparkContext.statusTracker().getActiveJobsIds()) == []


@pytest.mark.usefixtures("handled")
def test_interrupted_query_of_the_command_ends_with_its_own_code(
    spark: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with interrupting(tmp_path) as sleep:
        spark.range(2).mapInArrow(sleep, "id bigint").createOrReplaceTempView("slow")
        code = main(["sql", str(tmp_path / "lake"), "SELECT * FROM slow", "--engine=spark"])
    spark.catalog.dropTempView("slow")
    assert code == INTERRUPTED
    told = capfd.readouterr().err
    assert "interrupted" in told
    assert "Py4J" not in told
    assert "Traceback" not in told


def test_slow_work_reports_its_tasks_and_an_end(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "SILENT_SECONDS", 0.02)
    monkeypatch.setattr(progress, "REPORT_SECONDS", 0.02)
    told: list[lv.Progress] = []

    def slowly(batches: Any) -> Any:
        time.sleep(0.1)
        yield from batches

    lake = lv.Lake(tmp_path, spark=spark, progress=told.append)
    rows = spark.range(0, 4, 1, 4).mapInArrow(slowly, "id bigint")
    lake.create("t", rows)
    lake.sql("SELECT * FROM rows", views={"rows": rows}).collect()
    lake.sql("UPDATE t SET id = id + (SELECT max(id) FROM rows)", views={"rows": rows})
    for what in ("INSERT INTO t", "reading rows", "UPDATE t"):
        mine = [one for one in told if one.what == what]
        assert {one.unit for one in mine} == {"tasks"}, told
        assert [one.finished for one in mine] == [False] * (len(mine) - 1) + [True]
        assert [one.done for one in mine] == sorted(one.done for one in mine)
        assert mine[-1].done == mine[-1].total
        assert mine[-1].done >= 4
        assert mine[0].done < mine[-1].done
