"""One client at work: runs transactions on its lake and writes down what it was told.

Contract: an error of LakeVilla becomes an outcome by the meaning that `lakevilla.errors` gives it:
`Aborted`, `Unavailable`, `InvalidInput` promise that nothing is visible; `CommitUnknown` promises nothing.
Any other exception is a finding and passes through; so does the client's own death.
"""

from collections.abc import Callable
from typing import Any

from lakevilla.errors import Aborted, CommitUnknown, InvalidInput, Unavailable
from lakevilla.lake import Lake
from sim.checkers.history import History, Operation
from sim.world import Client


class Session:
    """A client with its lake and the common history."""

    def __init__(self, client: Client, lake: Lake, history: History) -> None:
        self.client = client
        self.lake = lake
        self.history = history

    @property
    def now(self) -> float:
        return self.client.environment.elapsed()

    def perform(
        self, table: str, action: str, key: Any, value: Any, run: Callable[[Operation], None]
    ) -> Operation:
        """Run one transaction; `run` notes its result or receipt in the operation."""
        op = self.history.begin(self.client.name, table, action, key, value, self.now)
        try:
            run(op)
            op.outcome = "ok"
        except CommitUnknown as error:
            op.error = str(error)
        except (Aborted, Unavailable, InvalidInput) as error:
            op.outcome, op.error = "failed", f"{type(error).__name__}: {error}"
        op.completed = self.now
        return op
