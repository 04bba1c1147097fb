"""A standalone cluster: master, worker and executors in processes of their own, on a directory.

Executors know nothing but what a job brings: neither the driver's classes nor its lake. The driver is a
process of its own too, because a process has one JVM.
"""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import lakevilla as lv
from tests.spark.servers.processes import free_ports, running, wait_for
from tests.support.quick_spark import YOUNG_JVM

MEMORY = "1g"

PROGRAM = """
import json, sys
import lakevilla as lv
from pyspark.sql import SparkSession

master, root = sys.argv[1:]
spark = SparkSession.builder.master(master).appName("cluster").getOrCreate()
lake = lv.Lake(root, spark=spark)
lake.create("t", "id BIGINT, v DOUBLE, p STRING", partition_by=["p"])
lake.append("t", spark.range(0, 1000, 1, 4).selectExpr("id", "id / 2 AS v", "concat('p ', id % 3) AS p"))
updated = lake.sql("UPDATE t SET v = -1 WHERE id < 10").updated
deleted = lake.delete("t", "p = 'p 2' AND id >= 500").deleted
source = spark.createDataFrame([(1, 7.0, "p 1"), (5000, 8.0, "p 2")], "id BIGINT, v DOUBLE, p STRING")
merged = lake.merge("t", source, "source.id = target.id", matched="update", not_matched="insert")
rows = lake.read("t").groupBy("p").count().orderBy("p").collect()
executors = spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1
print(json.dumps([updated, deleted, merged.updated, merged.inserted, [list(r) for r in rows], executors]))
"""


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("cluster")
    port, *screens = free_ports(3)
    url = f"spark://127.0.0.1:{port}"
    at = ["--host", "127.0.0.1", "--webui-port"]
    with contextlib.ExitStack() as stack:
        stack.enter_context(node(folder, "master.Master", *at, str(screens[0]), "--port", str(port)))
        worker = [
            *at,
            str(screens[1]),
            "--cores",
            "2",
            "--memory",
            MEMORY,
            "--work-dir",
            str(folder / "work"),
            url,
        ]
        stack.enter_context(node(folder, "worker.Worker", *worker))
        wait_for(folder / "worker.Worker.log", "Successfully registered with master")
        yield url


def node(folder: Path, name: str, *options: str) -> contextlib.AbstractContextManager[None]:
    """A process of the cluster."""
    command = ["spark-class", f"org.apache.spark.deploy.{name}", *options]
    variables = {"SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": YOUNG_JVM}
    return running(command, folder / f"{name}.log", variables)


@pytest.mark.long
def test_statements_run_on_executors_of_a_standalone_cluster(master: str, tmp_path: Path) -> None:
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": YOUNG_JVM,
        "spark.executor.extraJavaOptions": YOUNG_JVM,
        "spark.executor.memory": "512m",
        "spark.log.level": "ERROR",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
    }
    options = " ".join(f"--conf '{name}={value}'" for name, value in settings.items())
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, master, str(tmp_path / "lake")],
        env={**os.environ, "PYSPARK_SUBMIT_ARGS": f"{options} pyspark-shell"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    updated, deleted, changed, inserted, groups, executors = json.loads(done.stdout.splitlines()[-1])
    assert (updated, deleted, changed, inserted, executors) == (10, 167, 1, 1, 1)
    assert groups == [["p 0", 334], ["p 1", 333], ["p 2", 333 - 167 + 1]]
    rows = {
        row["id"]: row["v"]
        for row in lv.Lake(tmp_path / "lake", engine="local").read("t").toArrow().to_pylist()
    }
    assert (rows[0], rows[1], rows[20], rows[5000]) == (-1.0, 7.0, 10.0, 8.0)
    assert len(rows) == 1000 - 167 + 1
