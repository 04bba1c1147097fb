"""A standalone cluster: master, worker and executors in processes of their own, on a directory.

Executors know nothing but what a job brings: neither the driver's classes nor its lake nor the package. Their
Python is an environment without it, and docs/cluster.md says how it gets there. The driver is a process of
its own too, because a process has one JVM.
"""

import contextlib
import json
import os
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import lakevilla as lv
from tests.spark.servers.processes import free_ports, running, wait_for
from tests.support.quick_spark import YOUNG_JVM

MEMORY = "1g"
PACKAGE = Path(lv.__file__).parent
LIBRARY = Path(pa.__file__).parents[1]
LIBRARIES = ("numpy", "numpy.libs", "pyarrow", "obstore", "sqlglot")
"""What tasks import, and the libraries that these come with."""

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


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `pip install --target packages lakevilla` gives, as a zip, from this environment."""
    archive = tmp_path_factory.mktemp("packages") / "packages.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_STORED) as target:
        for name in LIBRARIES:
            _add(target, LIBRARY / name, name)
        _add(target, PACKAGE, "lakevilla")
    return archive


@pytest.fixture(scope="module")
def package_alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel under the name of a zip: the package has no compiled code."""
    archive = tmp_path_factory.mktemp("package") / "lakevilla.zip"
    with zipfile.ZipFile(archive, "w") as target:
        _add(target, PACKAGE, "lakevilla")
    return archive


def _add(target: zipfile.ZipFile, folder: Path, name: str) -> None:
    for path in folder.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts and "tests" not in path.parts:
            target.write(path, Path(name) / path.relative_to(folder))


def bare_python(folder: Path, installed: tuple[str, ...] = ()) -> Path:
    """The Python of an environment that has nothing but these libraries."""
    venv.create(folder, symlinks=True)
    (found,) = folder.glob("lib/python*/site-packages")
    for name in installed:
        (found / name).symlink_to(LIBRARY / name)
    return folder / "bin" / "python"


def run_program(
    master: str, root: Path, python: Path, more: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    """The driver, with workers of this Python."""
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": YOUNG_JVM,
        "spark.executor.extraJavaOptions": YOUNG_JVM,
        "spark.executor.memory": "512m",
        "spark.log.level": "ERROR",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        **more,
    }
    options = " ".join(f"--conf '{name}={value}'" for name, value in settings.items())
    variables = {**os.environ, "PYSPARK_PYTHON": str(python)}
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, master, str(root)],
        env={**variables, "PYSPARK_SUBMIT_ARGS": f"{options} pyspark-shell"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.long
@pytest.mark.parametrize("way", ["archive", "zip"])
def test_statements_run_on_executors_whose_python_has_no_lakevilla(
    master: str, packages: Path, package_alone: Path, tmp_path: Path, way: str
) -> None:
    if way == "archive":
        python = bare_python(tmp_path / "bare")
        brought = {"spark.archives": f"{packages}#packages", "spark.executorEnv.PYTHONPATH": "packages"}
    else:
        python = bare_python(tmp_path / "bare", LIBRARIES)
        brought = {"spark.submit.pyFiles": str(package_alone)}
    done = run_program(master, tmp_path / "lake", python, brought)
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


@pytest.mark.long
def test_executors_without_the_package_are_named_in_the_error(master: str, tmp_path: Path) -> None:
    done = run_program(master, tmp_path / "lake", bare_python(tmp_path / "bare"), {})
    last = done.stderr.splitlines()[-1]
    assert (done.returncode, last.partition(":")[0]) == (1, "lakevilla.errors.InvalidInput"), last
    assert "pyarrow is not installed in the Python of Spark's executors" in last
    # The statements before were small enough for the driver; this one changed nothing.
    assert lv.Lake(tmp_path / "lake", engine="local").read("t").count() == 1000 - 167
