"""The session: its settings stay the user's, Ctrl-C stops jobs, and a missing Java is explained."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from threading import Timer
from typing import Any

import pytest

import lakevilla as lv


def test_session_of_the_user_keeps_its_settings(spark: Any, tmp_path: Path) -> None:
    before = settings(spark)
    lake = lv.Lake(tmp_path, spark=spark, storage_options={"AWS_SECRET_ACCESS_KEY": "hidden-secret"})
    lake.create("t", spark.range(10))
    lake.sql("UPDATE t SET id = id + 1")
    lake.read("t").collect()
    assert settings(spark) == before
    assert "hidden-secret" not in str(settings(spark))


def settings(spark: Any) -> list[dict[str, str]]:
    """What the session and its context are set to."""
    context = spark.sparkContext
    return [dict(context.getConf().getAll()), {row.key: row.value for row in spark.sql("SET").collect()}]


def test_interrupt_cancels_the_job_and_leaves_the_table_as_it_was(spark: Any, tmp_path: Path) -> None:
    lake = lv.Lake(tmp_path, spark=spark)
    lake.create("t", "id BIGINT")
    slow = spark.range(0, 4, 1, 2).mapInArrow(_sleep, "id bigint")
    Timer(3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        lake.append("t", slow)
    assert lake.read("t").count() == 0
    assert lake.history("t")[0].version == 0
    assert not spark.getTags()


def _sleep(batches: Any) -> Any:
    import time

    for batch in batches:
        time.sleep(60)
        yield batch


PROGRAM = """
import lakevilla as lv, sys
lake = lv.Lake(sys.argv[1], engine="spark")
lake.create("t", "id BIGINT")
try:
    lake.read("t")
except lv.InvalidInput as error:
    print(error)
"""


def test_machine_without_java_is_told_what_to_install(tmp_path: Path) -> None:
    surroundings = {**os.environ, "PATH": str(tmp_path), "JAVA_HOME": str(tmp_path / "nowhere")}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "lake")],
        env=surroundings,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "Spark needs Java 17 or 21" in done.stdout, done.stderr
    assert "engine='local'" in done.stdout
