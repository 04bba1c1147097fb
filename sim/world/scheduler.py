"""Which thread runs when: threads that pass one baton, simulated time, one seed.

Contract:
- At most one thread runs at any moment: the scheduler's own, or the task that holds the baton. So
  every draw from `random` happens in one order, and equal seeds give equal traces.
- A task gives the baton back only in `wait` and `sleep` (switch points). Time passes only there.
- Events run in the order of their time; ties are broken by the seed.
- A task belongs to a process. A killed process's tasks get `Crashed` at their next switch point and at
  every later one, also in `finally`; it is a BaseException, so `except Exception` does not hold it.
- A frozen process (suspended, paused by its collector) resumes when the freeze ends; time goes on.
- When nothing can run any more although tasks live, or when they run for ever, `Stuck` is raised.
- `close` ends every thread, however the run ended.
"""

import hashlib
import heapq
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random
from types import TracebackType
from typing import Any


class Crashed(BaseException):
    """The process that this code runs in is dead."""


class Stuck(Exception):
    """Tasks live, but none can ever run again; or they run without end."""


@dataclass
class Process:
    """A client's process: what a crash kills and a pause stops."""

    name: str
    dead: bool = False
    frozen_until: float = 0.0
    on_death: Callable[[], None] | None = None


@dataclass(slots=True)
class Ticket:
    """What one blocked task waits for. The first `wake` gives it its value; later ones are ignored."""

    task: "Task"
    value: Any = None
    done: bool = False


@dataclass(eq=False)
class Worker:
    """A thread that runs one task after another; without a task it ends when it gets the baton."""

    task: "Task | None" = None
    baton: threading.Lock = field(default_factory=threading.Lock)
    thread: threading.Thread | None = None


@dataclass(eq=False)
class Task:
    """What one thread of one process does; `worker` runs it, from its first turn on."""

    process: Process
    body: Callable[[], None]
    done: bool = False
    worker: Worker | None = None


def digest(trace: Sequence[tuple[Any, ...]]) -> str:
    """A short name for a trace; equal traces have equal ones."""
    return hashlib.sha256(repr(list(trace)).encode()).hexdigest()


class Scheduler:
    """Runs tasks one at a time in simulated seconds. Use it as a context manager."""

    def __init__(self, seed: int, *, event_limit: int = 200_000, real_seconds: float = 60.0) -> None:
        self.random = Random(seed)
        self.now = 0.0
        self.trace: list[tuple[Any, ...]] = []
        self._events: list[tuple[float, float, int, Callable[[], None]]] = []
        self._sequence = 0
        self._event_limit = event_limit
        self._real_seconds = real_seconds
        self._tasks: list[Task] = []
        self._workers: list[Worker] = []
        self._idle: list[Worker] = []
        self._running: Task | None = None
        self._next: Task | None = None
        self._error: BaseException | None = None
        self._count = 0
        self._closing = False
        self._broken = False
        self._baton = threading.Lock()
        self._baton.acquire()

    def __enter__(self) -> "Scheduler":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()

    # What tests and the world use.

    def at(self, delay: float, action: Callable[[], None]) -> None:
        """Run the action after `delay` simulated seconds, in the scheduler's thread."""
        self._sequence += 1
        heapq.heappush(self._events, (self.now + delay, self.random.random(), self._sequence, action))

    def spawn(self, process: Process, body: Callable[[], None]) -> Task:
        """A new task, which starts at once by the simulated clock."""
        task = Task(process, body)
        self._tasks.append(task)
        ticket = Ticket(task)
        self.at(0.0, lambda: self._start(task, ticket))
        return task

    def run(self) -> None:
        """Until all tasks are done and nothing is on its way. A task's own failure is raised."""
        self._count = 0
        while True:
            if self._error is not None:
                error, self._error = self._error, None
                raise error
            following = self._advance()
            if following is not None:
                self._hand_over(following)
            elif self._tasks:
                names = sorted({task.process.name for task in self._tasks})
                raise Stuck(f"no task can run; blocked: {', '.join(names)}")
            else:
                return

    def kill(self, process: Process) -> None:
        """The process is dead from now on; its tasks unwind at once."""
        if process.dead:
            return
        process.dead = True
        process.frozen_until = 0.0
        if process.on_death is not None:
            process.on_death()
        for task in list(self._tasks):
            if task.process is process and task is not self._running:
                self.at(0.0, partial(self._resume, task))

    def close(self) -> None:
        """End every thread: kill what lives and let it unwind."""
        self._closing = True
        for task in self._tasks:
            task.process.dead = True
        while self._tasks and not self._broken:
            task = self._tasks[-1]
            if task.worker is None:
                self._forget(task)
            else:
                self._hand_over(task)
        for worker in self._workers:
            if worker.baton.locked():
                worker.baton.release()
        for worker in self._workers:
            assert worker.thread is not None, "a worker has a thread from its begin on"
            worker.thread.join(self._real_seconds)
            if worker.thread.is_alive():
                name = worker.task.process.name if worker.task else "nobody"
                raise Stuck(f"a thread of {name} does not end")
        self._workers.clear()
        self._tasks.clear()
        self._events.clear()

    def note(self, *event: Any) -> None:
        """Add an event to the trace. Values must not depend on memory addresses or hash seeds."""
        self.trace.append((round(self.now, 6), *event))

    def trace_hash(self) -> str:
        """A digest of all that happened; equal seeds give equal digests."""
        return digest(self.trace)

    # What tasks use.

    def ticket(self) -> Ticket:
        """Something to wait for, for the running task."""
        self.stop_if_dead()
        assert self._running is not None, "only tasks wait"
        return Ticket(self._running)

    def wake(self, ticket: Ticket, value: Any = None) -> None:
        """Give the ticket its value and the baton to its task. Call it from an event, never from a task."""
        if ticket.done or ticket.task.done:
            return
        delay = ticket.task.process.frozen_until - self.now
        if delay > 0:
            self.at(delay, lambda: self.wake(ticket, value))
            return
        ticket.value = value
        ticket.done = True
        self._next = ticket.task

    def wait(self, ticket: Ticket) -> Any:
        """Give the baton back until the ticket is woken.

        A waiting thread runs the events until one of them wakes a thread: often this one, and then no switch
        between threads is needed.
        """
        task = ticket.task
        assert task is self._running, "a task waits for its own tickets"
        if not task.process.dead:
            self._running = None
            following = self._advance_for_all()
            if following is not task:
                assert task.worker is not None, "a task that waits has begun"
                self._pass(following)
                task.worker.baton.acquire()
            else:
                self._running = task
        if task.process.dead:
            raise Crashed(task.process.name)
        return ticket.value

    def sleep(self, seconds: float) -> None:
        """Let simulated time pass."""
        ticket = self.ticket()
        self.at(max(seconds, 0.0), lambda: self.wake(ticket))
        self.wait(ticket)

    def stop_if_dead(self) -> None:
        """Raise Crashed if the running task's process was killed."""
        if self._running is not None and self._running.process.dead:
            raise Crashed(self._running.process.name)

    # How the baton goes round.

    def _advance(self) -> Task | None:
        """Run events until one of them wakes a task, which is to have the baton; None if none is left."""
        while self._events:
            self._count += 1
            if self._count > self._event_limit:
                raise Stuck(f"no end after {self._event_limit} events, at {self.now:.1f} simulated seconds")
            time, _, _, action = heapq.heappop(self._events)
            self.now = max(self.now, time)
            action()
            if self._next is not None:
                following, self._next = self._next, None
                return following
        return None

    def _advance_for_all(self) -> Task | None:
        """The same in a task's thread: what goes wrong is raised in the scheduler's own."""
        try:
            return self._advance()
        except BaseException as error:  # noqa: BLE001 - raised again by `run`
            self._error = error
            return None

    def _pass(self, following: Task | None) -> None:
        """Give the baton to a task, or to the scheduler's own thread."""
        self._running = following
        if following is None:
            self._baton.release()
            return
        if following.worker is None:
            following.worker = self._idle.pop() if self._idle else self._new_worker()
            following.worker.task = following
        following.worker.baton.release()

    def _new_worker(self) -> Worker:
        worker = Worker()
        worker.baton.acquire()
        worker.thread = threading.Thread(target=self._work, args=(worker,), daemon=True)
        self._workers.append(worker)
        worker.thread.start()
        return worker

    def _start(self, task: Task, ticket: Ticket) -> None:
        if not task.done and task.worker is None:
            self.wake(ticket)

    def _resume(self, task: Task) -> None:
        """Let a killed task find out that it is dead."""
        if not task.done:
            self._next = task

    def _hand_over(self, task: Task) -> None:
        """Give the baton to a task; it comes back when a task has ended, or when no task can run."""
        self._pass(task)
        seen = -1
        while not self._baton.acquire(timeout=self._real_seconds):
            if seen == self._count:
                # From here on more than one thread may run: all that is left is to end them.
                self._broken = True
                name = self._running.process.name if self._running else task.process.name
                raise Stuck(f"{name} holds the baton and does not come back: a lock of its own?")
            seen = self._count
        self._running = None

    def _work(self, worker: Worker) -> None:
        """A worker's thread: after a task the events, and what they wake next, if it has not begun yet."""
        worker.baton.acquire()
        while (task := worker.task) is not None:
            self._run(task)
            if self._broken:
                return
            worker.task = None
            following = None if self._error or self._closing else self._advance_for_all()
            if following is not None and following.worker is None:
                self._running, following.worker, worker.task = following, worker, following
                continue
            self._idle.append(worker)
            self._pass(following)
            worker.baton.acquire()

    def _run(self, task: Task) -> None:
        try:
            if not task.process.dead:
                task.body()
        except BaseException as error:  # noqa: BLE001 - it is raised again in the scheduler's thread
            # What code raises after its own death does not count as a finding.
            if not task.process.dead:
                self._error = error
        finally:
            self._forget(task)

    def _forget(self, task: Task) -> None:
        task.done = True
        self._tasks.remove(task)
