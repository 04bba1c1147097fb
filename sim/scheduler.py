"""Who runs when: threads that pass one baton, simulated time, one seed.

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
from collections.abc import Callable
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


@dataclass
class Ticket:
    """What one blocked task waits for. The first `wake` gives it its value; later ones are ignored."""

    task: "Task"
    value: Any = None
    done: bool = False


@dataclass(eq=False)
class Task:
    """One thread of one process."""

    process: Process
    body: Callable[[], None]
    baton: threading.Lock = field(default_factory=threading.Lock)
    done: bool = False
    failure: BaseException | None = None
    thread: threading.Thread | None = None


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
        self._running: Task | None = None
        self._next: Task | None = None
        self._error: BaseException | None = None
        self._count = 0
        self._finished = False
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
        task.baton.acquire()
        task.thread = threading.Thread(target=self._thread, args=(task,), daemon=True)
        self._tasks.append(task)
        ticket = Ticket(task)
        self.at(0.0, lambda: self._start(task, ticket))
        return task

    def run(self) -> None:
        """Until all tasks are done and nothing is on its way. A task's own failure is raised."""
        self._count = 0
        while True:
            self._forget_finished()
            if self._error is not None:
                error, self._error = self._error, None
                raise error
            following = self._advance()
            if following is not None:
                self._hand_over(following)
            elif self._tasks:
                names = sorted({task.process.name for task in self._tasks})
                raise Stuck(f"nobody can run; blocked: {', '.join(names)}")
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
        for task in self._tasks:
            task.process.dead = True
        for task in self._tasks:
            if not self._broken:
                if not task.done:
                    self._start_thread(task)
                    self._hand_over(task)
            elif task.baton.locked():
                task.baton.release()
        for task in self._tasks:
            if task.thread is not None and task.thread.ident is not None:
                task.thread.join(self._real_seconds)
                if task.thread.is_alive():
                    raise Stuck(f"a thread of {task.process.name} does not end")
        self._tasks.clear()
        self._events.clear()

    def note(self, *event: Any) -> None:
        """Add an event to the trace. Values must not depend on memory addresses or hash seeds."""
        self.trace.append((round(self.now, 6), *event))

    def trace_hash(self) -> str:
        """A digest of all that happened; equal seeds give equal digests."""
        return hashlib.sha256(repr(self.trace).encode()).hexdigest()

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

        Whoever waits runs the events until one of them wakes somebody: often itself, and then no thread
        has to change places with another.
        """
        task = ticket.task
        assert task is self._running, "a task waits for its own tickets"
        if not task.process.dead:
            self._running = None
            following = self._advance_for_all()
            if following is not task:
                self._pass(following)
                task.baton.acquire()
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
        (self._baton if following is None else following.baton).release()

    def _start(self, task: Task, ticket: Ticket) -> None:
        if not task.done and task.thread is not None and task.thread.ident is None:
            self._start_thread(task)
            self.wake(ticket)

    def _start_thread(self, task: Task) -> None:
        if task.thread is not None and task.thread.ident is None:
            task.thread.start()

    def _resume(self, task: Task) -> None:
        """Let a killed task find out that it is dead."""
        if not task.done:
            self._start_thread(task)
            self._next = task

    def _hand_over(self, task: Task) -> None:
        """Give the baton to a task; it comes back when a task has ended, or nobody can go on."""
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

    def _thread(self, task: Task) -> None:
        task.baton.acquire()
        try:
            if not task.process.dead:
                task.body()
        except Crashed as crash:
            if not task.process.dead:
                task.failure = crash
        except BaseException as error:  # noqa: BLE001 - it is raised again in the scheduler's thread
            # What code makes of its own death on the way out is no finding.
            task.failure = None if task.process.dead else error
        finally:
            task.done = True
            self._finished = True
            if not self._broken:
                self._pass(None)

    def _forget_finished(self) -> None:
        if not self._finished:
            return
        self._finished = False
        finished = [task for task in self._tasks if task.done]
        self._tasks = [task for task in self._tasks if not task.done]
        for task in finished:
            if task.thread is not None:
                task.thread.join()
        for task in finished:
            if task.failure is not None:
                raise task.failure
