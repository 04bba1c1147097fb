"""The background tasks of a lake, and waiting for their end."""

import os
from collections.abc import Callable
from threading import Lock

from lakevilla.environment import Environment

Task = Callable[[], None]


class _State:
    """What the threads of one process share. A child process after a fork neither has nor awaits its
    parent's tasks."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.lock = Lock()
        self.running: dict[object, Task] = {}


class BackgroundTasks:
    """Tasks in the background that a caller may want to see done, such as removing the records of a
    transaction that has ended. Shared by the transactions of a lake."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._current = _State()

    def start(self, task: Task) -> Task:
        """Run the task in the background; the returned function waits for its end."""
        state, sign = self._state(), object()

        def body() -> None:
            try:
                task()
            finally:
                with state.lock:
                    state.running.pop(sign, None)

        with state.lock:
            state.running[sign] = _starting
        wait = self._environment.background(body)
        with state.lock:
            if sign in state.running:
                state.running[sign] = wait
        return wait

    def finish(self) -> None:
        """Wait until nothing runs any more."""
        state = self._state()
        while True:
            with state.lock:
                waits = [wait for wait in state.running.values() if wait is not _starting]
            if not waits:
                return
            waits[0]()

    def _state(self) -> _State:
        if self._current.pid != os.getpid():
            self._current = _State()
        return self._current


def _starting() -> None:
    """Stands for a task that is just being started."""
