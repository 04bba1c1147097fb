"""Fixtures for every test: a real S3 server, one store of each kind, and Spark."""

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest

from bench.spark.jars import EVERY, JarsMissing
from bench.stores.seaweed import S3Server, running_server
from lakevilla.store.open import open_store
from lakevilla.store.port import Store
from tests.support.extent import is_left_to_long, is_of_another_part
from tests.support.quick_spark import FEW_ROWS, INTERPRETED, YOUNG_JVM

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Other tests take the cores now and then: an example that took long says nothing.
hypothesis.settings.register_profile("patient", deadline=None)
hypothesis.settings.load_profile("patient")

_QUICK = {"spark.driver.extraJavaOptions": YOUNG_JVM, "spark.log.level": "OFF"}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--part", help="play a part of the tests alone, such as 0/4, 1/4, 2/4 or 3/4")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests of other parts."""
    part = config.getoption("--part")
    if part:
        items[:] = [item for item in items if not is_of_another_part(item, part)]


def pytest_itemcollected(item: pytest.Item) -> None:
    """Give each test to the worker that has what it needs, see `_group`; leave a part of those that are
    sampled to `make test-long`."""
    if is_left_to_long(item):
        item.add_marker(pytest.mark.long)
    group = None if item.get_closest_marker("xdist_group") else _group(item)
    if group is not None:
        item.add_marker(pytest.mark.xdist_group(group))


def _group(item: pytest.Item) -> str | None:
    """Tests on Spark run in one worker, so that one JVM serves them all; so do tests on S3, and those that
    start another Spark, because cores are few. Others run anywhere."""
    fixtures = getattr(item, "fixturenames", ())
    parameters = getattr(item, "callspec", None)
    if "spark" in fixtures:
        return "spark"
    if item.nodeid.startswith("tests/spark/"):
        return "other-spark"
    on_s3 = "s3" in fixtures or (parameters and "s3" in parameters.params.values())
    return "s3" if on_s3 else None


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Ctrl-C interrupts this process, and those that the test starts: a shell lets what it starts in the
    background ignore SIGINT, and children inherit that. PySpark's own handler, which cancels all jobs, is
    replaced too, as Jupyter does: what we started we end ourselves."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    """SeaweedFS for the whole session, started when a test first asks for it."""
    with running_server() as server:
        yield server


@pytest.fixture(scope="session")
def spark() -> "Iterator[SparkSession]":
    """A plain Spark session for all tests; where jars cannot be had, only tests that need them fail."""
    from bench.spark import sessions

    try:
        session = sessions.start(_QUICK, EVERY)
    except JarsMissing:
        session = sessions.start(_QUICK, ())
    yield session
    session.stop()


@pytest.fixture(scope="session")
def quick(spark: "SparkSession") -> "SparkSession":
    """A session in the same JVM for tables of a few rows."""
    session = spark.newSession()
    for name, value in FEW_ROWS.items():
        session.conf.set(name, value)
    return session


@pytest.fixture(scope="session")
def spark_delta(spark: "SparkSession") -> "SparkSession":
    """Spark + Delta, unmodified, in its own session of the same JVM."""
    from bench.spark import sessions

    return sessions.with_delta(spark, INTERPRETED)


@pytest.fixture(scope="session")
def spark_iceberg(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> "SparkSession":
    """Spark + Iceberg, unmodified, with a Hadoop catalog that asks for the newest version each time."""
    from bench.spark import sessions

    fresh = {"spark.sql.catalog.iceberg.cache-enabled": "false"}
    warehouse = str(tmp_path_factory.mktemp("warehouse"))
    return sessions.with_iceberg(spark, warehouse, {**INTERPRETED, **fresh})


@pytest.fixture(params=["memory", "directory", "s3"])
def any_place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, dict[str, str]]:
    """URL and storage options of an empty place in each kind of store."""
    if request.param == "memory":
        return "memory://", {}
    if request.param == "directory":
        return str(tmp_path / "store"), {}
    server: S3Server = request.getfixturevalue("s3")
    return server.new_url(), server.storage_options


@pytest.fixture
def any_store(any_place: tuple[str, dict[str, str]]) -> Store:
    """An empty store of each kind, as a lake opens it."""
    return open_store(*any_place)
