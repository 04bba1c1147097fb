"""One call of a transaction at a time.

The statements of a transaction build on each other, and their reads are noted in one place. A second thread
that entered while a statement runs would mix the two. A blocking lock would serialize them, and would hang
where a statement waits for rows that another thread produces by a statement of the same transaction. So the
second call is refused, at once and before it has any effect.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock

from lakevilla.errors import InvalidInput


class CallGuard:
    """Refuses a call of a transaction while another one runs."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._running: str | None = None
        self._abort_wanted = False

    @contextmanager
    def running(self, what: str, abort: Callable[[], None]) -> Iterator[None]:
        """Run `what` alone; InvalidInput if something else runs. `abort` is called at the end if
        `abort_after` has asked for it meanwhile."""
        with self._lock:
            if self._running is not None:
                raise _refused(what, self._running)
            self._running = what
        try:
            yield
        finally:
            self._end(abort)

    def abort_after(self, what: str) -> bool:
        """Whether a call of this kind runs; if so the transaction is aborted when that ends."""
        with self._lock:
            found = self._running == what
            self._abort_wanted = self._abort_wanted or found
            return found

    def _end(self, abort: Callable[[], None]) -> None:
        with self._lock:
            if not self._abort_wanted:
                self._running = None
                return
            self._abort_wanted = False
        try:
            abort()
        finally:
            with self._lock:
                self._running = None


def _refused(what: str, running: str) -> InvalidInput:
    return InvalidInput(
        f"cannot run {what} while {running} of the same transaction is running, in another thread or as the "
        "caller: a transaction runs one statement at a time. Wait until it ends, start a transaction for "
        "each thread, or collect the rows before the statement that takes them"
    )
