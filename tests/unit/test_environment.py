"""The real environment: clocks, ids, and fan-out that keeps order and loses no failure."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import pytest

from lakevilla import environment as module
from lakevilla.environment import SystemEnvironment


def _wait_until(true: Callable[[], bool]) -> None:
    """What a thread does after its answer is done soon, at an unknown time."""
    end = time.monotonic() + 60
    while not true():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_ids_are_unique_and_later_ones_sort_later() -> None:
    environment = SystemEnvironment()
    first = environment.new_id()
    time.sleep(0.003)
    second = environment.new_id()
    assert first < second
    many = {environment.new_id() for _ in range(5000)}
    assert len(many) == 5000
    assert all(len(one) == 32 and int(one, 16) >= 0 and one == one.lower() for one in many)


def test_clocks_go_forward_by_what_was_slept() -> None:
    environment = SystemEnvironment()
    before, wall = environment.elapsed(), environment.now_ms()
    environment.sleep(0.02)
    assert 0.02 <= environment.elapsed() - before < 5
    assert abs(environment.now_ms() - time.time() * 1000) < 1000
    assert environment.now_ms() > wall


def test_random_is_in_range_and_varies() -> None:
    numbers = [SystemEnvironment().random() for _ in range(100)]
    assert all(0 <= number < 1 for number in numbers)
    assert len(set(numbers)) > 90


def test_fan_out_runs_in_parallel_and_keeps_the_order() -> None:
    environment, together = SystemEnvironment(threads=8), threading.Barrier(8)

    def task(number: int) -> int:
        together.wait(60)
        return number

    assert environment.fan_out([lambda n=n: task(n) for n in range(8)]) == list(range(8))
    assert environment.fan_out([]) == []


def test_fan_out_ends_every_task_and_raises_the_first_failure_in_order() -> None:
    ended = []

    def task(number: int) -> int:
        time.sleep(0.01 * (5 - number))
        ended.append(number)
        if number in (1, 3):
            raise ValueError(f"task {number}")
        return number

    with pytest.raises(ValueError, match="task 1"):
        SystemEnvironment(threads=5).fan_out([lambda n=n: task(n) for n in range(5)])
    assert sorted(ended) == [0, 1, 2, 3, 4]


def test_fan_out_works_in_a_forked_child() -> None:
    environment = SystemEnvironment()
    tasks = [lambda n=n: n for n in range(4)]
    environment.fan_out(tasks)
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        os._exit(0 if environment.fan_out(tasks) == [0, 1, 2, 3] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_fan_out_within_fan_out_does_not_wait_for_itself() -> None:
    environment = SystemEnvironment(threads=2)

    def nested() -> list[int]:
        return environment.fan_out([lambda: 1, lambda: 2, lambda: 3])

    assert environment.fan_out([nested] * 5) == [[1, 2, 3]] * 5


def test_background_tasks_run_side_by_side_and_their_failures_are_raised_to_who_waits() -> None:
    environment, together = SystemEnvironment(), threading.Barrier(40)

    def task(number: int) -> None:
        together.wait(60)
        if number == 7:
            raise ValueError("task 7")

    joins = [environment.background(lambda n=n: task(n)) for n in range(40)]
    with pytest.raises(ValueError, match="task 7"):
        joins[7]()
    for number, join in enumerate(joins):
        if number != 7:
            join()


def test_background_task_after_another_takes_its_thread() -> None:
    environment, threads = SystemEnvironment(), list[int]()

    def note() -> None:
        threads.append(threading.get_ident())

    for _ in range(5):
        environment.background(note)()
        _wait_until(lambda: environment._daemons._idle == 1)
    assert len(set(threads)) == 1


def test_background_threads_that_nobody_needs_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_IDLE_SECONDS", 0.02)
    environment, done = SystemEnvironment(), list[int]()
    before = threading.active_count()
    for number in range(60):
        # Some come just when an idle thread gives up: none may be lost.
        environment.background(lambda n=number: done.append(n))()
        time.sleep(0.0005 * (number % 50))
    assert sorted(done) == list(range(60))
    _wait_until(lambda: threading.active_count() <= before)


def test_background_works_in_a_forked_child() -> None:
    environment = SystemEnvironment()
    environment.background(lambda: None)()
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        done: list[int] = []
        environment.background(lambda: done.append(1))()
        os._exit(0 if done == [1] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_program_ends_while_a_background_task_hangs() -> None:
    program = (
        "import time; from lakevilla.environment import SystemEnvironment; "
        "SystemEnvironment().background(lambda: time.sleep(60))"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=50)


@pytest.mark.parametrize(
    ("up", "wall", "counted"),
    [
        (1.0, 864_000.0, 864_000.0),
        (864_000.0, 864_000.0, 864_000.0),
        (60.0, 61.0, 60.0),
        (60.0, -3600.0, 60.0),
    ],
    ids=["paused by its host", "suspended", "clocks that drift", "wall clock set back"],
)
def test_elapsed_counts_the_time_for_which_the_machine_was_paused(
    monkeypatch: pytest.MonkeyPatch, up: float, wall: float, counted: float
) -> None:
    now = [100.0, 1_000_000.0]
    monkeypatch.setattr(module._Uptime, "_clocks", staticmethod(lambda: tuple(now)))
    clock = module._Uptime()
    before = clock.read()
    now[0] += up
    now[1] += wall
    assert clock.read() - before == counted
    now[0] += 5
    now[1] += 5
    assert clock.read() - before == counted + 5
