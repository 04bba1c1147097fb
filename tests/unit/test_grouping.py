"""Tests that share a server or a JVM run in one worker. Versions of pytest and pytest-xdist that do not fit
together forget that without a word: then every worker starts its own, and the tests take twice as long."""

import pytest


@pytest.mark.xdist_group("one-worker")
def test_group_of_a_test_reaches_the_scheduler(request: pytest.FixtureRequest) -> None:
    grouped = bool(request.config.getoption("loadgroup", default=False))
    assert request.node.nodeid.endswith("@one-worker") == grouped
