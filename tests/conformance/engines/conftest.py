"""Twin lakes over the Spark session of the other Spark tests, with which these share a process."""

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from tests.conformance.engines.both import Twins


@pytest.fixture(scope="session")
def twins_of(quick: Any, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Twins]:
    """Lakes that are read alone, by the formats of their tables."""
    return cache(lambda formats: Twins(tmp_path_factory.mktemp("twins"), quick, formats))


@pytest.fixture
def twins(request: pytest.FixtureRequest, twins_of: Callable[[str], Twins]) -> Twins:
    """Lakes with tables of the formats that the test asks for."""
    return twins_of(getattr(request, "param", "delta"))
