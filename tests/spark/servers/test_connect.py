"""Spark Connect: a real server in a process of its own, and statements through a session without a JVM.

The server has keys of its own for the bucket, and an event log, in which ours must not be.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F

import lakevilla as lv
from bench.spark.jars import S3A, JarsMissing, resolve
from bench.stores.seaweed import S3Server
from lakevilla.engines.spark.scan import path_relation
from lakevilla.engines.spark.scan.file_urls import Access
from lakevilla.engines.spark.session.connect import is_connect
from tests.conformance.engines.choice import SEEDS
from tests.conformance.engines.pruning.pruned import CONDITIONS, LAYOUTS, SETTINGS, fill, settings
from tests.conformance.engines.pruning.pruning_checks import true_rows, wrongly_pruned, wrongly_selected
from tests.golden.tables import GOLDEN, needed
from tests.spark.both import Both, content
from tests.spark.files.test_repartition import written
from tests.spark.files.test_tables import VECTORS
from tests.spark.interrupts import SLEEP_SECONDS, interrupted
from tests.spark.servers.processes import free_ports, running, wait_for
from tests.spark.statements.test_changes import CHANGES
from tests.spark.statements.test_mistakes import refuse_unseen_mistakes
from tests.spark.statements.test_names import NAMES, run_every_statement
from tests.spark.statements.test_queries import QUERIES
from tests.spark.statements.test_row_expressions import CHANCES
from tests.support.quick_spark import INTERPRETED, YOUNG_JVM


@dataclass(frozen=True)
class Server:
    """Where the server listens, and where it writes what it does."""

    url: str
    events: Path


@pytest.fixture(scope="module")
def server(s3: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("connect")
    events = folder / "events"
    events.mkdir()
    (port,) = free_ports(1)
    keys = Access(s3.storage_options).hadoop_options()
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": YOUNG_JVM,
        "spark.driver.host": "127.0.0.1",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.enabled": "true",
        "spark.jars": ",".join(map(str, _jars())),
        "spark.master": "local[2]",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        **INTERPRETED,
        **{f"spark.hadoop.{name}": value for name, value in keys.items()},
    }
    listed = folder / "settings"
    listed.write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
    program = "org.apache.spark.sql.connect.service.SparkConnectServer"
    command = ["spark-submit", "--properties-file", str(listed), "--class", program, "spark-internal"]
    with running(command, folder / "log", {"PYSPARK_PYTHON": sys.executable}):
        wait_for(folder / "log", "Spark Connect server started")
        yield Server(f"sc://127.0.0.1:{port}", events)


def _jars() -> list[Path]:
    try:
        return resolve(S3A)
    except JarsMissing:
        return []  # only the test on S3 fails then


@pytest.fixture(scope="module")
def remote(server: Server) -> Iterator[Any]:
    """A session of the server. This process has a classic one too, so it says itself which are meant."""
    from pyspark.sql.connect.session import SparkSession

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
        session = SparkSession.builder.remote(server.url).create()
        assert is_connect(session)
        yield session
        session.stop()


@pytest.fixture(scope="module")
def both(remote: Any, tmp_path_factory: pytest.TempPathFactory) -> Both:
    return Both(tmp_path_factory.mktemp("both"), remote)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("sql", QUERIES[::6])
def test_query_gives_the_same_through_connect(both: Both, sql: str) -> None:
    assert content(both.spark.sql(sql)) == content(both.local.sql(sql))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("sql", [*CHANGES[:10:4], *CHANGES[15:20:2]])
def test_change_does_the_same_through_connect(remote: Any, tmp_path: Path, sql: str) -> None:
    both = Both(tmp_path, remote)
    assert both.spark.sql(sql) == both.local.sql(sql)
    for local, on_spark in both.tables():
        assert on_spark == local


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT nothing FROM accounts",
        "INSERT INTO orders VALUES (3000000000, 1, 'x', 1)",
        "UPDATE orders SET amount = 1 DIV 0",
        "UPDATE orders SET amount = 3000000000 WHERE id = 1",
    ],
)
def test_wrong_statement_is_refused_through_connect_and_leaves_no_trace(both: Both, sql: str) -> None:
    before = both.tables()
    with pytest.raises(lv.InvalidInput):
        both.spark.sql(sql)
    assert both.tables() == before


@pytest.mark.long
def test_condition_by_chance_is_refused_through_connect(remote: Any, tmp_path: Path) -> None:
    """The plan, which knows about functions of the user, is in the server."""
    remote.udf.register("by_chance", F.udf(lambda value: 0.1, "double").asNondeterministic())
    lake = lv.Lake(tmp_path, spark=remote)
    lake.create("t", [{"a": n, "b": n * 10, "c": 0} for n in range(4)])
    lake.create("u", [{"a": 1}, {"a": 100}])
    for text in CHANCES:
        with pytest.raises(lv.InvalidInput):
            lake.sql(text)
    assert [entry.version for entry in lake.history("t")] == [0]
    assert lake.sql("DELETE FROM t WHERE abs(a) IN (SELECT abs(a) FROM u)").deleted == 1


def test_missing_data_file_is_corrupt_through_connect(remote: Any, tmp_path: Path) -> None:
    lake = lv.Lake(tmp_path, spark=remote)
    lake.create("t", [{"id": 1}])
    next(tmp_path.rglob("part-*.parquet")).unlink()
    with pytest.raises(lv.Corrupt, match="cannot be read"):
        lake.sql("UPDATE t SET id = id + 1")
    assert lake.history("t")[0].operation != "UPDATE"


@pytest.mark.long
def test_rows_of_a_bucket_are_brought_together_through_connect(remote: Any, tmp_path: Path) -> None:
    files = written(remote, tmp_path, "id", "bucket[3]")
    assert [file.partition["f"] for file in sorted(files, key=lambda f: f.key)] == [0, 1, 2]


def test_frames_and_braces_travel_through_connect(remote: Any, tmp_path: Path) -> None:
    lake = lv.Lake(tmp_path, spark=remote)
    lake.create("t", "id BIGINT, v STRING, p STRING", partition_by=["p"])
    frame = remote.range(0, 100, 1, 2).selectExpr("id", "'{new}' AS v", "concat('[ü/{', id % 2) AS p")
    assert lake.append("t", frame).inserted == 100
    assert lake.append("t", [{"id": 1000, "v": "a {0} b", "p": "{}"}]).inserted == 1
    rows = [(0, "{m}", "[ü/{0"), (2000, "{m}", "x")]
    source = remote.createDataFrame(rows, "id BIGINT, v STRING, p STRING")
    merged = lake.merge("t", source, "source.id = target.id", matched="update", not_matched="insert")
    assert (merged.updated, merged.inserted) == (1, 1)
    found = lake.sql("SELECT id, p FROM t WHERE v IN ('{m}', 'a {0} b') ORDER BY id").collect()
    assert [tuple(row) for row in found] == [(0, "[ü/{0"), (1000, "{}"), (2000, "x")]
    judge = lv.Lake(tmp_path, engine="local")
    assert content(lake.read("t")) == content(judge.read("t"))


@pytest.mark.long
def test_every_letter_in_a_partition_value_is_found_again_through_connect(
    remote: Any, tmp_path: Path
) -> None:
    lake = lv.Lake(tmp_path, spark=remote)
    codes = [*range(1, 0x180), 0x200B, 0x2028, 0x3000, 0xFEFF, 0xE000, 0xFFFD, 0x1F600, 0xE0001, 0x10FFFF]
    rows = [{"id": code, "p": chr(code) + "z"} for code in codes]
    lake.create("t", "id BIGINT, p STRING", partition_by=["p"])
    lake.append("t", rows)
    assert {row.id: row.p for row in lake.read("t").collect()} == {row["id"]: row["p"] for row in rows}


def test_file_that_comes_back_under_another_path_fails_the_read_through_connect(
    remote: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = lv.Lake(tmp_path, spark=remote)
    lake.create("t", [{"id": 1}])
    monkeypatch.setattr(path_relation, "_as_told", lambda path: path + "?")
    with pytest.raises(lv.Corrupt):
        lake.read("t").collect()
    with pytest.raises(lv.Corrupt):
        lake.sql("UPDATE t SET id = 2")


@pytest.mark.sampled(2)
@pytest.mark.long
@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Tokyo"])
def test_changes_in_a_zone_find_what_select_finds_through_connect(
    remote: Any, tmp_path: Path, zone: str
) -> None:
    lake = lv.Lake(tmp_path, spark=remote)
    lake.create("t", "id INT, ts TIMESTAMP, p TIMESTAMP", partition_by=["p"])
    for hour in range(-12, 13, 6):
        at = datetime(2024, 1, 1, 2, tzinfo=UTC) + timedelta(hours=hour)
        lake.append("t", [{"id": hour, "ts": at, "p": at}])
    with settings(remote, {"spark.sql.session.timeZone": zone}):
        assert [row.id for row in lake.sql("SELECT id FROM t WHERE ts <> p").collect()] == []
        found = lake.sql("SELECT id FROM t WHERE ts >= '2024-01-01 00:00:00'").count()
        assert 0 < found < 5
        with lake.transaction() as tx:
            assert tx.sql("UPDATE t SET id = 0 WHERE p >= '2024-01-01 00:00:00'").updated == found
            assert tx.sql("DELETE FROM t WHERE ts >= '2024-01-01 00:00:00'").deleted == found
            assert tx.sql("DELETE FROM t WHERE NOT (id = 100)").deleted == 5 - found
            tx.abort()


_EVERY = SEEDS in os.environ
_CASES = [(s, la, 1) for s in SETTINGS for la in LAYOUTS]
_SOME = [("New York", "iceberg", 12), ("no ANSI in Tokyo", "delta", 12)]


@pytest.mark.long
@pytest.mark.parametrize(("setting", "layout", "step"), _CASES if _EVERY else _SOME)
def test_files_are_pruned_as_the_session_reads_the_condition_through_connect(
    remote: Any, tmp_path: Path, setting: str, layout: str, step: int
) -> None:
    fill(tmp_path, layout)
    lake = lv.Lake(tmp_path, spark=remote)
    with settings(remote, SETTINGS[setting]):
        true = true_rows(remote, lake, CONDITIONS[::step])
        assert wrongly_pruned(lake, true) == []
        assert wrongly_selected(lake, true) == []


@pytest.mark.long
def test_mistake_is_found_where_no_file_is_read_through_connect(remote: Any, tmp_path: Path) -> None:
    refuse_unseen_mistakes(remote, tmp_path)


@pytest.mark.long
def test_columns_of_any_name_work_through_connect(remote: Any, tmp_path: Path) -> None:
    run_every_statement(remote, tmp_path / "a", NAMES[0], "delta")
    run_every_statement(remote, tmp_path / "b", NAMES[1], "delta")


@needed
def test_deleted_rows_stay_away_through_connect(remote: Any, tmp_path: Path) -> None:
    for root in ("s", "l"):
        shutil.copytree(GOLDEN / VECTORS, tmp_path / root / "t")
    lake, local = lv.Lake(tmp_path / "s", spark=remote), lv.Lake(tmp_path / "l", engine="local")
    assert content(lake.read("t")) == content(local.read("t"))
    text = f"UPDATE t SET `{local.read('t').columns[0]}` = 7"
    assert lake.sql(text) == local.sql(text)
    assert content(lake.read("t")) == content(local.read("t"))


def test_changes_write_deletion_vectors_through_connect(remote: Any, tmp_path: Path) -> None:
    both = Both(tmp_path, remote, merge_on_read=True)
    for sql in (CHANGES[3], CHANGES[8], CHANGES[9], CHANGES[19]):
        assert both.spark.sql(sql) == both.local.sql(sql)
    for local, on_spark in both.tables():
        assert on_spark == local
    metrics = both.judge.history("accounts")[-4].metrics
    assert metrics["numDeletionVectorsAdded"] == "1"


@pytest.mark.usefixtures("interruptible")
def test_interrupt_cancels_the_job_of_the_server(remote: Any, tmp_path: Path) -> None:
    lake = lv.Lake(tmp_path / "lake", spark=remote)
    lake.create("t", "id BIGINT")
    start = time.monotonic()
    with interrupted(remote, tmp_path) as rows:
        lake.append("t", rows)
    assert lake.read("t").count() == 0
    # The server has two cores; both would still sleep.
    assert time.monotonic() - start < SLEEP_SECONDS
    assert lake.history("t")[0].version == 0
    assert not remote.getTags()


PROGRAM = """
import sys
import lakevilla as lv
lake = lv.Lake(sys.argv[1])
lake.create("t", "id BIGINT")
lake.append("t", lake.sql("SELECT id FROM range(10)"))
print(type(lake.read("t")).__module__, lake.read("t").count())
"""


@pytest.mark.long
def test_slow_work_of_the_server_reports_its_tasks(remote: Any, tmp_path: Path) -> None:
    told: list[lv.Progress] = []

    def slowly(batches: Any) -> Any:
        time.sleep(2)
        yield from batches

    lake = lv.Lake(tmp_path, spark=remote, progress=told.append)
    lake.create("t", remote.range(0, 6, 1, 6).mapInArrow(slowly, "id bigint"))
    assert lake.read("t").count() == 6
    mine = [one for one in told if one.what == "INSERT INTO t"]
    assert {one.unit for one in mine} == {"tasks"}
    assert [one.finished for one in mine] == [False] * (len(mine) - 1) + [True]
    assert mine[-1].total is not None
    assert mine[-1].total >= 6
    assert 0 < mine[-1].done <= mine[-1].total


def test_server_that_the_environment_names_is_used(server: Server, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)],
        env={**os.environ, "SPARK_REMOTE": server.url},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.stdout == "pyspark.sql.connect.dataframe 10\n", done.stderr[-3000:]


def test_secrets_of_the_lake_stay_out_of_the_servers_event_log(
    server: Server, remote: Any, s3: S3Server
) -> None:
    url, options = s3.new_url(), s3.storage_options
    lake = lv.Lake(url, spark=remote, storage_options=options)
    lake.create("t", "id BIGINT")
    assert lake.append("t", remote.range(10)).inserted == 10
    assert lake.sql("UPDATE t SET id = 100 WHERE id = 1").updated == 1
    assert lake.sql("SELECT sum(id) AS s FROM t").collect()[0].s == 45 - 1 + 100
    events = "".join(path.read_text() for path in server.events.rglob("events_*"))
    assert url.removeprefix("s3://") in events
    assert options["AWS_SECRET_ACCESS_KEY"] not in events
