"""Lazy values: computed once, and no thread waits for another's computation."""

import threading
from dataclasses import dataclass

from lakevilla.formats.lazy import lazy_property


@dataclass(frozen=True)
class Slow:
    started: threading.Event
    go_on: threading.Event

    @lazy_property
    def value(self) -> object:
        """What takes long."""
        self.started.set()
        assert self.go_on.wait(60)
        return object()


def test_value_is_computed_once():
    ready = threading.Event()
    ready.set()
    slow = Slow(threading.Event(), ready)
    assert slow.value is slow.value


def test_slow_value_of_one_instance_does_not_block_another():
    first = Slow(threading.Event(), threading.Event())
    ready = threading.Event()
    ready.set()
    thread = threading.Thread(target=lambda: first.value)
    thread.start()
    assert first.started.wait(60)
    done = threading.Thread(target=lambda: Slow(threading.Event(), ready).value)
    done.start()
    done.join(5)
    assert not done.is_alive()
    first.go_on.set()
    thread.join()
