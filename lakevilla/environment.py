"""Clock, randomness, ids and fan-out: all that the core may know of the world, apart from the store.

The core takes an `Environment` and nothing else, so that the same code runs in production and under
the simulator, where one seed decides everything. `time`, `random`, `uuid` and threads are banned
elsewhere in the package by a test; this module is the exception that the test names.
"""

import os
import random
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from queue import Empty, SimpleQueue
from typing import Protocol, TypeVar

T = TypeVar("T")

_WORKER = "lakevilla-worker"
_IDLE_SECONDS = 10.0
JUMP_SECONDS = 900.0
"""A wall clock that comes ahead of the machine's uptime by so much at once was set after a pause."""


class Environment(Protocol):
    """What the core asks of the world."""

    def now_ms(self) -> int:
        """The wall clock in milliseconds since 1970, for people and records; no decision compares it."""
        ...

    def elapsed(self) -> float:
        """Seconds on a clock that never goes back and also counts while the machine is suspended, or paused
        by its host as soon as its wall clock is set right."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait. Under the simulator this is a switch point."""
        ...

    def random(self) -> float:
        """A number in [0, 1)."""
        ...

    def new_id(self) -> str:
        """A unique id of 32 lower-case hexadecimal digits; later ids of one client sort later."""
        ...

    def fan_out(self, tasks: Sequence[Callable[[], T]]) -> list[T]:
        """Run all tasks, in parallel where that helps, and return their results in the tasks' order.

        Every task runs to its end even if another fails; then the first failure, in the tasks'
        order, is raised.
        """
        ...

    def background(self, task: Callable[[], None]) -> Callable[[], None]:
        """Run the task in the background. The returned function waits for its end and raises what it
        raised; a caller that never calls it never learns of a failure.
        """
        ...


class _Uptime:
    """The uptime of the machine, with the time for which its host had paused it.

    No clock of a virtual machine counts such a pause, but its wall clock is set afterwards. So a wall clock
    that jumps ahead counts. If it was set for another reason, premises and leases look older than they are,
    which costs a look or a redo; a wall clock that is set back counts nothing.
    """

    def __init__(self) -> None:
        # One value that is replaced as a whole: threads that meet a jump together count it once, and a fork
        # copies no lock that another thread holds.
        self._last = (0.0, *self._clocks())

    def read(self) -> float:
        paused, up_before, wall_before = self._last
        up, wall = self._clocks()
        jump = (wall - wall_before) - (up - up_before)
        if jump > JUMP_SECONDS:
            paused += jump
        self._last = (paused, up, wall)
        return up + paused

    @staticmethod
    def _clocks() -> tuple[float, float]:
        # CLOCK_BOOTTIME counts suspend; platforms without it have a monotonic clock that does.
        clock = getattr(time, "CLOCK_BOOTTIME", None)
        return (time.clock_gettime(clock) if clock is not None else time.monotonic()), time.time()


_uptime = _Uptime()


class SystemEnvironment:
    """The real world: the machine's clocks, the operating system's randomness, a pool of threads."""

    def __init__(self, threads: int = 32) -> None:
        self._threads = threads
        self._pool: ThreadPoolExecutor | None = None
        self._daemons = _Daemons()
        self._pid = os.getpid()
        self._random = random.SystemRandom()

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def elapsed(self) -> float:
        return _uptime.read()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def random(self) -> float:
        return self._random.random()

    def new_id(self) -> str:
        """48 bits of milliseconds, then 80 random bits (the layout of UUID version 7, unmarked)."""
        return f"{self.now_ms() & 0xFFFFFFFFFFFF:012x}{uuid.uuid4().hex[:20]}"

    def fan_out(self, tasks: Sequence[Callable[[], T]]) -> list[T]:
        if len(tasks) <= 1:
            return [task() for task in tasks]
        # A task of the pool that fans out runs its tasks itself: if all workers waited for workers,
        # no worker would be left to work.
        if threading.current_thread().name.startswith(_WORKER):
            futures = [_run(task) for task in tasks]
        else:
            futures = [self._workers().submit(task) for task in tasks]
        outcomes = [(future.exception(), future) for future in futures]
        for failure, _ in outcomes:
            if failure is not None:
                raise failure
        return [future.result() for _, future in outcomes]

    def background(self, task: Callable[[], None]) -> Callable[[], None]:
        future: Future[None] = Future()

        def body() -> None:
            try:
                task()
            except BaseException as failure:  # noqa: BLE001 - raised to the caller that waits for the task
                future.set_exception(failure)
            else:
                future.set_result(None)

        if self._daemons.pid != os.getpid():
            self._daemons = _Daemons()
        self._daemons.run(body)
        return future.result

    def _workers(self) -> ThreadPoolExecutor:
        # Threads do not survive a fork: a child makes a pool of its own.
        if self._pool is None or self._pid != os.getpid():
            self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix=_WORKER)
            self._pid = os.getpid()
        return self._pool


def hears_interrupts() -> bool:
    """Whether Ctrl-C is raised in this thread: Python raises it in the main one alone."""
    return threading.current_thread() is threading.main_thread()


class _Daemons:
    """Threads for background tasks, as many at once as there are tasks.

    Daemons, so that a forgotten transaction does not keep a finished program from ending. One that is done
    waits some seconds for another task: to start a thread takes longer than many a statement.
    """

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._lock = threading.Lock()
        self._tasks: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._idle = 0
        """How many threads wait and have no task promised."""

    def run(self, task: Callable[[], None]) -> None:
        """Run a task that does not raise."""
        with self._lock:
            waiting = self._idle > 0
            self._idle -= waiting
        if waiting:
            self._tasks.put(task)
        else:
            threading.Thread(
                target=self._work, args=(task,), name="lakevilla-background", daemon=True
            ).start()

    def _work(self, task: Callable[[], None] | None) -> None:
        while task is not None:
            task()
            # What it holds, such as rows, must not wait with this thread.
            task = None
            with self._lock:
                self._idle += 1
            task = self._next()

    def _next(self) -> Callable[[], None] | None:
        try:
            return self._tasks.get(timeout=_IDLE_SECONDS)
        except Empty:
            with self._lock:
                if self._idle > 0:
                    self._idle -= 1
                    return None
            # One was promised at the last moment.
            return self._tasks.get()


def _run(task: Callable[[], T]) -> "Future[T]":
    future: Future[T] = Future()
    try:
        future.set_result(task())
    except BaseException as failure:  # noqa: BLE001 - raised by fan_out, as a worker's would be
        future.set_exception(failure)
    return future
