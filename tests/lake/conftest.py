"""What all tests of a lake in this process need: patience, and a format for its tables.

Tests marked `formats("delta", "iceberg")` run once with each of these formats, with all but one of them in
`make test-long`; those without run on Delta.
With `mixed` every other table is an Iceberg table; with `vectors` they are Delta tables whose changes write
deletion vectors, with `deletes` Iceberg tables whose changes write delete files.

Tests on a warehouse run once with each kind of catalog, with all but one of them in `make test-long`. Those
that parametrize `house` themselves are about what the kinds do differently.
"""

from itertools import cycle

import pytest

import lakevilla as lv
from lakevilla.formats import identity
from lakevilla.tables.catalog import Catalog
from lakevilla.transaction.commit import writer_queues
from tests.support.extent import by_name
from tests.support.outsiders import OUTSIDERS
from tests.support.warehouses import KINDS


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    marker = metafunc.definition.get_closest_marker("formats")
    if marker is not None:
        name = metafunc.definition.originalname
        metafunc.parametrize("table_format", by_name(name, marker.args), indirect=True)
    chosen = any("house" in mark.args[0] for mark in metafunc.definition.iter_markers("parametrize"))
    if "house" in metafunc.fixturenames and not chosen:
        metafunc.parametrize("house", by_name(metafunc.definition.originalname, KINDS), indirect=True)


@pytest.fixture(autouse=True)
def table_format(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The format of all tables that the test makes without naming one."""
    name: str = getattr(request, "param", "delta")
    if name == "mixed":
        formats = cycle(["delta", "iceberg"])
        turns_taken = property(lambda _: next(formats), lambda _, __: None)
        monkeypatch.setattr(Catalog, "default_format", turns_taken, raising=False)
    elif name in ("vectors", "deletes"):
        monkeypatch.setitem(lv.Lake.__init__.__kwdefaults__, "merge_on_read", True)
        if name == "deletes":
            monkeypatch.setitem(lv.Lake.__init__.__kwdefaults__, "default_format", "iceberg")
    else:
        monkeypatch.setitem(lv.Lake.__init__.__kwdefaults__, "default_format", name)
    return name


@pytest.fixture
def begin(table_format: str) -> int:
    """The number of the first version of a table that the test makes."""
    return OUTSIDERS[table_format].begin


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a slow machine no transaction takes a ticket only because a test was held up: the tests decide which
    transaction waits for which."""
    monkeypatch.setattr(writer_queues, "OPEN_SECONDS", 1e9)
    # Nor does a client look again at the version that it knows because of the time that passed.
    monkeypatch.setattr(identity, "TRUST_SECONDS", 1e9)
    monkeypatch.setattr(identity, "TRUST_DIRECTORY_SECONDS", 1e9)
