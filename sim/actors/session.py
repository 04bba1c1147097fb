"""One client at work: runs transactions on its lake and writes down what it was told.

Contract: an error of LakeVilla becomes an outcome by the meaning that `lakevilla.errors` gives it:
`Aborted`, `Unavailable`, `InvalidInput` promise that nothing is visible; `CommitUnknown` promises nothing,
and `Fenced` only that this client did nothing. `Torn` is `torn`, which `checkers.tables.torn` judges. Any
other exception is a finding and passes through; so does the client's own death.
"""

from collections.abc import Callable
from typing import Any

from lakevilla.errors import Aborted, CommitUnknown, Corrupt, Fenced, InvalidInput, Torn, Unavailable
from lakevilla.lake import Lake
from sim.checkers.history import History, Operation, Outcome
from sim.world.client import Client


class Session:
    """A client with its lake and the common history."""

    def __init__(self, client: Client, lake: Lake, history: History) -> None:
        self.client = client
        self.lake = lake
        self.history = history
        self.may_meet_damage = False
        """Whether tables are damaged in this world: then `Corrupt` promises that nothing is visible."""

    @property
    def now(self) -> float:
        return self.client.environment.elapsed()

    def perform(
        self, table: str, action: str, key: Any, value: Any, run: Callable[[Operation], None]
    ) -> Operation:
        """Run one transaction; `run` notes its result or receipt in the operation."""
        op = self.begin(table, action, key, value)
        self.conclude(lambda: run(op), lambda: op)
        return op

    def begin(self, table: str, action: str, key: Any = None, value: Any = None) -> Operation:
        return self.history.begin(self.client.name, table, action, key, value, self.now)

    def conclude(self, run: Callable[[], None], last: Callable[[], Operation]) -> None:
        """Run a transaction and write its outcome down in the last of its attempts."""
        outcome: Outcome = "unknown"
        met: Exception | None = None
        try:
            run()
            outcome = "ok"
        except (CommitUnknown, Fenced) as failure:
            # The client that took a fenced transaction over may have committed it.
            met = failure
        except (Aborted, Unavailable, InvalidInput) as failure:
            outcome, met = "failed", failure
        except Torn as failure:
            outcome, met = "torn", failure
        except Corrupt as failure:
            if not self.may_meet_damage:
                raise
            outcome, met = "failed", failure
        op = last()
        op.failure = "" if met is None else type(met).__name__
        self.end(op, outcome, "" if met is None else f"{op.failure}: {met}")

    def end(self, op: Operation, outcome: Outcome, error: str = "") -> None:
        op.outcome, op.error, op.completed = outcome, error, self.now
