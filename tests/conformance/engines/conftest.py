"""Twin lakes over the Spark session of the other Spark tests, with which these share a process."""

from pathlib import Path
from typing import Any

import pytest

from tests.conformance.engines.both import Twins
from tests.quick_spark import INTERPRETED

# Small tables: what Spark would shuffle takes longer than the rows do.
_SETTINGS = {
    **INTERPRETED,
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="session")
def quick(spark: Any) -> Any:
    """A session of its own settings in the same Spark."""
    session = spark.newSession()
    for name, value in _SETTINGS.items():
        session.conf.set(name, value)
    return session


@pytest.fixture(scope="session")
def twins(quick: Any, tmp_path_factory: pytest.TempPathFactory) -> Twins:
    """Lakes that are read alone."""
    return Twins(tmp_path_factory.mktemp("twins"), quick)
