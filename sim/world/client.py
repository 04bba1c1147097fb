"""A client's view of the simulated world, and the world itself: scheduler, bucket, plan, clients.

Contract: `SimEnvironment` implements `lakevilla.environment.Environment`. Wall clocks differ between
clients; elapsed time is the simulated time. Ids and randomness come from the seed. `fan_out` runs the
tasks as threads of the same process that interleave with everybody else's, or one after the other in
a seeded order.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from random import Random
from typing import TypeVar, cast
from unittest.mock import patch

from sim.world.bucket import EPOCH_MS, Bucket
from sim.world.faults import Denial, Plan
from sim.world.formats import DELETES, PLAIN, Formats
from sim.world.row_engine import may_hold_row
from sim.world.scheduler import Process, Scheduler, Ticket
from sim.world.store import SimStore

T = TypeVar("T")

_IS_KEPT = "sim.world.row_engine.is_worth_keeping"
_INLINE = "lakevilla.formats.delta.files.deletion_vectors.INLINE_BYTES"
_MAY_HOLD = "lakevilla.settle.row_test.may_hold"
_VECTOR_OF_ONE_ROW = 34
"""Data files are small here: so that some of their vectors lie in files, only the smallest are in the log."""


class SimEnvironment:
    """Clock, randomness, ids and fan-out of one simulated client."""

    def __init__(self, scheduler: Scheduler, process: Process, *, skew_ms: int, seed: int) -> None:
        self._scheduler = scheduler
        self._process = process
        self._skew_ms = skew_ms
        self._random = Random(seed)
        self._ids = 0

    def now_ms(self) -> int:
        return EPOCH_MS + self._skew_ms + round(self._scheduler.now * 1000)

    def elapsed(self) -> float:
        return self._scheduler.now

    def sleep(self, seconds: float) -> None:
        self._scheduler.sleep(seconds)

    def random(self) -> float:
        return self._random.random()

    def new_id(self) -> str:
        # A counter below the milliseconds keeps ids of one client in order even where the clock stands.
        self._ids += 1
        return f"{self.now_ms():012x}{self._ids:04x}{self._random.getrandbits(64):016x}"

    def fan_out(self, tasks: Sequence[Callable[[], T]]) -> list[T]:
        if len(tasks) <= 1:
            return [task() for task in tasks]
        outcomes: list[tuple[bool, T | Exception] | None] = [None] * len(tasks)

        def run(index: int) -> None:
            try:
                outcomes[index] = (True, tasks[index]())
            except Exception as error:  # noqa: BLE001 - raised again below, in the tasks' order
                outcomes[index] = (False, error)

        if self._random.random() < 0.5:
            for index in self._random.sample(range(len(tasks)), len(tasks)):
                run(index)
        else:
            self._interleave(len(tasks), run)
        return _results(outcomes)

    def background(self, task: Callable[[], None]) -> Callable[[], None]:
        failure: Exception | None = None
        done = False
        waiting: list[Ticket] = []

        def body() -> None:
            nonlocal failure, done
            try:
                task()
            except Exception as error:  # noqa: BLE001 - raised in the thread that waits for the task
                failure = error
            done = True
            for ticket in waiting:
                self._scheduler.at(0.0, partial(self._scheduler.wake, ticket))

        def join() -> None:
            if not done:
                waiting.append(self._scheduler.ticket())
                self._scheduler.wait(waiting[-1])
            if failure is not None:
                raise failure

        self._scheduler.spawn(self._process, body)
        return join

    def _interleave(self, count: int, run: Callable[[int], None]) -> None:
        joined = self._scheduler.ticket()
        left = count

        def body(index: int) -> None:
            nonlocal left
            run(index)
            left -= 1
            if left == 0:
                self._scheduler.at(0.0, lambda: self._scheduler.wake(joined))

        for index in range(count):
            self._scheduler.spawn(self._process, partial(body, index))
        self._scheduler.wait(joined)


def _results(outcomes: Sequence["tuple[bool, T | Exception] | None"]) -> list[T]:
    results: list[T] = []
    for outcome in outcomes:
        assert outcome is not None, "every task runs to its end"
        if not outcome[0]:
            raise cast(Exception, outcome[1])
        results.append(cast(T, outcome[1]))
    return results


class Client:
    """One simulated client: a process with its environment and its handle on the store. `formats` are those
    that tables have in its world."""

    def __init__(
        self, name: str, process: Process, environment: SimEnvironment, store: SimStore, formats: Formats
    ) -> None:
        self.name = name
        self.process = process
        self.environment = environment
        self.store = store
        self.formats = formats


class World:
    """Everything of one seed. Use it as a context manager: leaving it ends every thread."""

    def __init__(
        self,
        seed: int,
        plan: Callable[[Random], Plan],
        *,
        content_etags: bool = False,
        page: int = 1000,
        event_limit: int = 200_000,
        formats: Formats = PLAIN,
    ) -> None:
        self.scheduler = Scheduler(seed, event_limit=event_limit)
        self.random = self.scheduler.random
        self.bucket = Bucket(content_etags=content_etags)
        self.plan = plan(self.random)
        self.formats = formats
        self._page = page
        self._denials: list[Denial] = []
        self._held = ExitStack()

    def __enter__(self) -> "World":
        self._held.enter_context(patch(_MAY_HOLD, may_hold_row))
        if self.formats.merge_on_read:
            self._held.enter_context(patch(_INLINE, _VECTOR_OF_ONE_ROW))
        if self.formats.name == DELETES:
            # Most files of two or three rows would be rewritten. So they stay, also without any row left.
            self._held.enter_context(patch(_IS_KEPT, lambda *_: True))
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()
        self.scheduler.close()

    def client(self, name: str) -> Client:
        """A new client with a clock of its own, off by up to a minute."""
        process = Process(name)
        skew_ms = self.random.randint(-60_000, 60_000)
        environment = SimEnvironment(
            self.scheduler, process, skew_ms=skew_ms, seed=self.random.getrandbits(64)
        )
        store = SimStore(self.scheduler, self.bucket, self.plan, process, page=self._page)
        store.denials = self._denials
        return Client(name, process, environment, store, self.formats)

    def deny(self, denial: Denial) -> None:
        """From now on the store denies these requests, to all clients."""
        self._denials.append(denial)

    def allow(self) -> None:
        """From now on no request is denied any more."""
        self._denials.clear()

    def start(self, client: Client, body: Callable[[], None]) -> None:
        self.scheduler.spawn(client.process, body)

    def run(self) -> None:
        """Until every client is done and everything that is on its way has arrived."""
        self.scheduler.run()
