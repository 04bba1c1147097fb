"""Play a script on a system: one thread per transaction, steps in the order that is asked for.

A step that does not end soon may be waiting for another transaction (in the queue of a table, say). Then
the others go on, and its transaction's later steps follow as soon as it can go on itself. A system that
runs a transaction again gets its steps again; those that had their turn wait for none.
"""

import threading
import time
from collections.abc import Callable, Iterable
from typing import Protocol

from tests.hermitage.outcome import End, Ended, Outcome
from tests.hermitage.scripts.notation import ABORT, Operation, Read, Rows
from tests.hermitage.scripts.script import Script

PATIENCE_SECONDS = 0.5
"""So long may a step take before others go on."""

STUCK_SECONDS = 240.0
"""A transaction that has not ended after this time never will. On a busy machine a cold Spark takes a minute
to start."""

Execute = Callable[[Operation], Rows | None]
"""Runs one operation in a transaction; a read gives rows."""

Program = Callable[[Execute], None]
"""What a transaction does, for a system that brings the transaction. It may be called again."""


class TakenBack(Exception):
    """The script aborts the transaction here. It passes through the system, which has to abort it."""


class Place(Protocol):
    """Tables of one system that hold the first rows."""

    @property
    def refusals(self) -> tuple[type[BaseException], ...]:
        """What the system raises when it refuses a transaction, of which then nothing may remain."""
        ...

    def run(self, program: Program) -> None:
        """Run the program as a transaction and commit it, each time as another client."""
        ...

    def rows(self) -> Rows:
        """All rows, as somebody sees them who comes afterwards."""
        ...


def play(place: Place, script: Script, order: str, patience_seconds: float = PATIENCE_SECONDS) -> Outcome:
    """The outcome of the script's steps in this order. Raises what a system must never raise."""
    actors = {name: _Actor(operations, script.ends[name]) for name, operations in script.transactions.items()}
    threads = [threading.Thread(target=actor.act, args=(place,), daemon=True) for actor in actors.values()]
    for thread in threads:
        thread.start()
    for turn in order:
        actors[f"T{turn}"].take_a_turn(patience_seconds)
    _join(threads)
    for actor in actors.values():
        if actor.failure is not None:
            raise actor.failure
    return Outcome({name: actor.ended() for name, actor in actors.items()}, place.rows())


def _join(threads: Iterable[threading.Thread]) -> None:
    end = time.monotonic() + STUCK_SECONDS
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))


class _Actor:
    """One transaction: it does a step when it has been given that turn."""

    def __init__(self, operations: tuple[Operation, ...], end: str) -> None:
        self.failure: BaseException | None = None
        self._operations, self._last = operations, end
        self._queues = [threading.Event() for _ in (*operations, end)]
        self._done = [threading.Event() for _ in self._queues]
        self._given = 0
        self._reads: list[Rows] = []
        self._end, self._why = End.STUCK, ""
        self._began = self._ended = float("inf")

    def take_a_turn(self, patience_seconds: float) -> None:
        """Let it do the next step, and wait until it is done or patience ends."""
        place, self._given = self._given, self._given + 1
        self._queues[place].set()
        self._done[place].wait(patience_seconds)

    def act(self, place: Place) -> None:
        self._queues[0].wait()
        self._began = time.monotonic()
        try:
            place.run(self._program)
            self._end = End.COMMITTED
        except TakenBack:
            self._end = End.ABORTED
        except place.refusals as refusal:
            self._end, self._why = End.REFUSED, str(refusal)
        except BaseException as failure:  # noqa: BLE001 - raised by `play`, in the caller's thread
            self.failure = failure
        finally:
            self._ended = time.monotonic()
            for done in self._done:
                done.set()

    def ended(self) -> Ended:
        return Ended(self._end, tuple(self._reads), self._began, self._ended, self._why)

    def _program(self, execute: Execute) -> None:
        self._reads = []
        for operation, turn, done in zip(self._operations, self._queues, self._done, strict=False):
            turn.wait()
            rows = execute(operation)
            if isinstance(operation, Read):
                assert rows is not None, "a read gives rows"
                self._reads.append(rows)
            done.set()
        self._queues[-1].wait()
        if self._last == ABORT:
            raise TakenBack
