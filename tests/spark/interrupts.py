"""Ctrl-C in the middle of a job that would take long."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

SLEEP_SECONDS = 300
_START_SECONDS = 60


@contextmanager
def interrupted(session: Any, folder: Path) -> Iterator[Any]:
    """Rows that two tasks take long to make; work with them, which Ctrl-C must end when a task has begun."""
    with interrupting(folder) as sleep, pytest.raises(KeyboardInterrupt):
        yield session.range(0, 4, 1, 2).mapInArrow(sleep, "id bigint")


@contextmanager
def interrupting(folder: Path) -> Iterator[Any]:
    """A function for `mapInArrow` that takes long; Ctrl-C comes when a task has begun it."""
    begun = folder / "begun"

    def sleep(batches: Any) -> Any:
        begun.touch()
        for batch in batches:
            time.sleep(SLEEP_SECONDS)
            yield batch

    def interrupt() -> None:
        end = time.monotonic() + _START_SECONDS
        while not begun.exists() and time.monotonic() < end:
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    other = Thread(target=interrupt)
    other.start()
    yield sleep
    other.join()
    assert begun.exists(), "no task began"
