"""The scheduler: one baton, simulated time, equal seeds give equal traces, and threads always end."""

import threading

import pytest

from sim.world.scheduler import Crashed, Process, Scheduler, Stuck


def run_three_tasks(seed: int) -> Scheduler:
    with Scheduler(seed) as scheduler:

        def body(name: str) -> None:
            for step in range(5):
                scheduler.note(name, step)
                scheduler.sleep(scheduler.random.random())

        for name in "abc":
            scheduler.spawn(Process(name), lambda name=name: body(name))
        scheduler.run()
    return scheduler


def test_equal_seeds_give_equal_traces():
    assert run_three_tasks(7).trace_hash() == run_three_tasks(7).trace_hash()


def test_different_seeds_give_different_traces():
    assert len({run_three_tasks(seed).trace_hash() for seed in range(10)}) == 10


def test_time_passes_only_while_tasks_sleep():
    with Scheduler(0) as scheduler:
        scheduler.spawn(Process("a"), lambda: scheduler.sleep(3.0))
        scheduler.run()
        assert scheduler.now == 3.0


def test_nobody_can_run_raises_stuck_and_ends_the_threads():
    before = threading.active_count()
    with Scheduler(0) as scheduler:
        scheduler.spawn(Process("a"), lambda: scheduler.wait(scheduler.ticket()))
        with pytest.raises(Stuck, match="blocked: a"):
            scheduler.run()
    assert threading.active_count() == before


def test_endless_tasks_raise_stuck():
    def forever(scheduler: Scheduler) -> None:
        while True:
            scheduler.sleep(1.0)

    with Scheduler(0, event_limit=100) as scheduler:
        scheduler.spawn(Process("a"), lambda: forever(scheduler))
        with pytest.raises(Stuck, match="no end"):
            scheduler.run()


def test_failing_task_raises_its_error_and_ends_the_others():
    before = threading.active_count()

    def fail() -> None:
        raise ValueError("mine")

    with Scheduler(0) as scheduler:
        for _ in range(3):
            scheduler.spawn(Process("b"), lambda: scheduler.sleep(100.0))
        scheduler.spawn(Process("a"), fail)
        with pytest.raises(ValueError, match="mine"):
            scheduler.run()
    assert threading.active_count() == before


def test_killed_process_stays_dead_in_finally():
    seen: list[str] = []
    process = Process("a")
    with Scheduler(0) as scheduler:

        def body() -> None:
            try:
                scheduler.sleep(10.0)
            except Exception:  # noqa: BLE001 - user code that would go on
                seen.append("swallowed")
            finally:
                try:
                    scheduler.sleep(1.0)
                except Crashed:
                    seen.append(f"dead at {scheduler.now}")
                    raise

        scheduler.spawn(process, body)
        scheduler.at(1.0, lambda: scheduler.kill(process))
        scheduler.run()
    assert seen == ["dead at 1.0"]


def test_frozen_process_resumes_after_the_freeze():
    woke: list[float] = []
    process = Process("a")
    with Scheduler(0) as scheduler:

        def body() -> None:
            scheduler.sleep(1.0)
            woke.append(scheduler.now)

        def freeze() -> None:
            process.frozen_until = 50.0

        scheduler.spawn(process, body)
        scheduler.at(0.5, freeze)
        scheduler.run()
    assert woke == [50.0]


def test_lock_held_across_a_switch_point_raises_stuck():
    lock = threading.Lock()
    with Scheduler(0, real_seconds=0.2) as scheduler:

        def body() -> None:
            with lock:
                scheduler.sleep(1.0)

        for _ in range(2):
            scheduler.spawn(Process("a"), body)
        with pytest.raises(Stuck, match="a lock of its own"):
            scheduler.run()
