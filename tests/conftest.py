"""Fixtures for every test: a real S3 server, and one store of each kind."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.seaweed import S3Server, running_server
from lakevilla.store.opening import open_store
from lakevilla.store.port import Store


def pytest_itemcollected(item: pytest.Item) -> None:
    """Tests on S3 run in one worker, so that one server serves them all."""
    parameters = getattr(item, "callspec", None)
    if "s3" in getattr(item, "fixturenames", ()) or (parameters and "s3" in parameters.params.values()):
        item.add_marker(pytest.mark.xdist_group("s3"))


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    """SeaweedFS for the whole session, started when a test first asks for it."""
    with running_server() as server:
        yield server


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
