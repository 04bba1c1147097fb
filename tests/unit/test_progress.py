"""Reports of long work: when they come, what they say, and that short work is silent."""

import os

import pytest

from lakevilla.environment import SystemEnvironment
from lakevilla.progress import Progress, Reporter


class Hours(SystemEnvironment):
    """A clock that jumps; each sleep of the reporter ends at once and looks at it."""

    def __init__(self) -> None:
        super().__init__()
        self.hours = 0.0
        self.ticks = 0

    def elapsed(self) -> float:
        return self.hours * 3600


def _tick(reporter: Reporter) -> None:
    for work in reporter._works:
        reporter._report(work, finished=False)


def test_short_work_reports_nothing() -> None:
    told: list[Progress] = []
    environment = Hours()
    reporter = Reporter(told.append, environment)
    with reporter.work("x", "rows", 2) as work:
        work.add(1)
        environment.hours = 0.9 / 3600
        _tick(reporter)
        work.add(1)
    assert told == []


def test_long_work_reports_what_is_done_and_the_time_left() -> None:
    told: list[Progress] = []
    environment = Hours()
    reporter = Reporter(told.append, environment)
    with reporter.work("reading t", "bytes", 0) as work:
        work.expect(300)
        work.expect(100)
        work.add(100)
        environment.hours = 1
        _tick(reporter)
    first, last = told
    assert first == Progress("reading t", 100, 400, "bytes", 3600.0)
    assert first.fraction == 0.25
    assert first.seconds_left == 3 * 3600
    assert last.finished
    assert not reporter._works


def test_work_of_unknown_length_has_no_time_left() -> None:
    progress = Progress("INSERT INTO t", 5, None, "rows", 2.0)
    assert progress.fraction is None
    assert progress.seconds_left is None
    assert Progress("x", 0, 10, "rows", 2.0).seconds_left is None


def test_error_of_the_callback_ends_the_work() -> None:
    def fail(progress: Progress) -> None:
        raise ValueError("no terminal")

    environment = Hours()
    reporter = Reporter(fail, environment)
    with pytest.raises(ValueError, match="no terminal"), reporter.work("x", "rows"):
        environment.hours = 1
        _tick(reporter)
    with reporter.work("x", "rows"):
        pass


def test_many_short_works_start_one_thread() -> None:
    started = []

    class Counting(Hours):
        def background(self, task):  # type: ignore[no-untyped-def]
            started.append(os.getpid())
            return lambda: None

    reporter = Reporter(lambda _: None, Counting())
    for _ in range(100):
        with reporter.work("x", "rows"):
            pass
    assert len(started) == 1


def test_reporter_without_callback_starts_nothing() -> None:
    class Strict(Hours):
        def background(self, task):  # type: ignore[no-untyped-def]
            raise AssertionError

    with Reporter(None, Strict()).work("x", "rows") as work:
        work.add(1)
