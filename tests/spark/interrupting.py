"""Ctrl-C in the middle of a job that would take long."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer
from typing import Any

import pytest

SLEEP_SECONDS = 60
_AFTER_SECONDS = 3


def slow_rows(session: Any) -> Any:
    """Rows that two tasks take a minute to make."""

    def sleep(batches: Any) -> Any:
        for batch in batches:
            time.sleep(SLEEP_SECONDS)
            yield batch

    return session.range(0, 4, 1, 2).mapInArrow(sleep, "id bigint")


@contextmanager
def interrupted() -> Iterator[None]:
    """Work that Ctrl-C must end, and not by itself."""
    timer = Timer(_AFTER_SECONDS, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            yield
    finally:
        timer.cancel()
