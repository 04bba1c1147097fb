"""Twin lakes over the Spark session of the other Spark tests, with which these share a process."""

from typing import Any

import pytest

from tests.conformance.engines.both import Twins


@pytest.fixture(scope="session")
def twins(quick: Any, tmp_path_factory: pytest.TempPathFactory) -> Twins:
    """Lakes that are read alone."""
    return Twins(tmp_path_factory.mktemp("twins"), quick)
