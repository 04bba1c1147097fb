"""Tests on a warehouse run once with each kind of catalog, with all but one of them in `make test-long`.

Those that parametrize `house` themselves are about what the kinds do differently.
"""

import pytest

from tests.support.extent import by_name
from tests.support.warehouses import KINDS


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    chosen = any("house" in mark.args[0] for mark in metafunc.definition.iter_markers("parametrize"))
    if "house" in metafunc.fixturenames and not chosen:
        metafunc.parametrize("house", by_name(metafunc.definition.originalname, KINDS), indirect=True)
