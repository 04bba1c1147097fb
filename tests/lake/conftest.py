"""What all tests of a lake in this process need on a machine that is slow now and then."""

import pytest

from lakevilla.transaction import turns


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody takes a place in the queue because a test was held up: tests say who waits, and for whom."""
    monkeypatch.setattr(turns, "OPEN_SECONDS", 1e9)
