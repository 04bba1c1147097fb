"""How far long work has come, for people who wait and programs that watch.

Work that takes less than a second reports nothing. After that the callback is called a few times a second, by
a thread of its own, and once more at the end of work that was reported.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock, RLock
from typing import Literal

from lakevilla.environment import Environment

Unit = Literal["bytes", "rows", "tasks"]

Measure = Callable[[], tuple[int, int | None]]
"""Gives how much is done and of how much, for work that is counted elsewhere."""

SILENT_SECONDS = 1.0
"""Work that is done within this time is not reported."""
REPORT_SECONDS = 0.2


@dataclass(frozen=True)
class Progress:
    """How far one piece of work has come.

    `what` names it, such as `UPDATE accounts`; `done` of `total` is in `unit`: on the local engine bytes of
    data files that were read, or rows that were written; on Spark tasks of the stages that it has begun,
    which become more. `total` is None if it is not known. `seconds` is the time since its start, and
    `seconds_left` an estimate of the rest; None if there is none. `finished` is True for the last report,
    also if the work failed.
    """

    what: str
    done: int
    total: int | None
    unit: Unit
    seconds: float
    finished: bool = False

    @property
    def fraction(self) -> float | None:
        """How much of the work is done, from 0 to 1."""
        return min(1.0, self.done / self.total) if self.total else None

    @property
    def seconds_left(self) -> float | None:
        """How long the rest takes if it goes on as fast."""
        fraction = self.fraction
        return self.seconds / fraction - self.seconds if fraction else None


class Work:
    """One piece of work. `expect` and `add` may be called from any thread."""

    def __init__(
        self, what: str, unit: Unit, total: int | None, began: float, measure: Measure | None = None
    ) -> None:
        self._what, self._unit, self._began = what, unit, began
        self._done, self._total = 0, total
        self._measure = measure
        self._shown = False
        self._lock = Lock()

    def expect(self, more: int) -> None:
        """There is so much more to do than was known."""
        with self._lock:
            self._total = (self._total or 0) + more

    def add(self, done: int) -> None:
        """So much more is done."""
        with self._lock:
            self._done += done

    def due(self, now: float, finished: bool) -> Progress | None:
        """What to report now; None for short work."""
        with self._lock:
            if not (self._shown if finished else now - self._began >= SILENT_SECONDS):
                return None
            self._shown = True
            if self._measure is not None:
                self._done, self._total = self._measure()
            total = None if self._total is None else max(self._total, self._done)
            return Progress(self._what, self._done, total, self._unit, now - self._began, finished)


class Reporter:
    """Reports the work of one lake to a callback; without one it does nothing.

    One background task reports all work that goes on, so that reports also come while a library computes, and
    short statements start no thread each. It ends when there is no work.
    """

    def __init__(self, callback: Callable[[Progress], None] | None, environment: Environment) -> None:
        self._callback = callback
        self._environment = environment
        # The callback is called with it held, so that no report comes after the last one of a piece of work;
        # reentrant, because a callback may run statements.
        self._lock = RLock()
        self._works: list[Work] = []
        self._ticker = 0
        self._failure: BaseException | None = None

    @property
    def is_on(self) -> bool:
        """Whether there is a callback."""
        return self._callback is not None

    @contextmanager
    def work(
        self, what: str, unit: Unit, total: int | None = None, measure: Measure | None = None
    ) -> Iterator[Work]:
        """Report a piece of work while the block runs; `measure` is asked for each report. An error of the
        callback is raised at its end."""
        work = Work(what, unit, total, self._environment.elapsed(), measure)
        if self._callback is None:
            yield work
            return
        with self._lock:
            self._works.append(work)
            # A fork copies no threads.
            if self._ticker != os.getpid():
                self._ticker = os.getpid()
                self._environment.background(self._tick)
        try:
            yield work
        finally:
            with self._lock:
                self._works.remove(work)
                self._report(work, finished=True)
                failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _tick(self) -> None:
        while True:
            self._environment.sleep(REPORT_SECONDS)
            with self._lock:
                if not self._works:
                    self._ticker = 0
                    return
                for work in list(self._works):
                    self._report(work, finished=False)

    def _report(self, work: Work, finished: bool) -> None:
        progress = work.due(self._environment.elapsed(), finished)
        if progress is None or self._callback is None or self._failure is not None:
            return
        try:
            self._callback(progress)
        except Exception as failure:  # noqa: BLE001 - raised at the end of the work
            self._failure = failure
