"""What clients did and were told: the material of every checker."""

from dataclasses import dataclass, field
from typing import Any, Literal

Outcome = Literal["ok", "failed", "unknown", "torn"]


@dataclass(slots=True)
class Step:
    """One statement of a transaction: a change as `effects` knows it, or what a client was shown.

    A `read` gave the rows in `value`, a `count` their number; `key` is the column and the value that they
    were asked for, None for all rows; one that was `asked` has not shown anything yet, and `refused` only
    told that the statement is wrong. `undone_at` is the number of steps that had been taken when this one
    was rolled back, None if it was not; `statement` how many statements had finished with it.
    """

    action: str
    key: Any
    value: Any
    undone_at: int | None = None
    statement: int = 0

    @property
    def shows(self) -> bool:
        return self.action in ("read", "count", "asked", "refused")


@dataclass(slots=True)
class Operation:
    """One attempt of one client's transaction.

    `failed` promises that nothing of it is visible, ever; `unknown` allows all or nothing, and is the
    outcome of everything that a crash cut off; `torn` was told that a table is torn (see `torn`). `version`
    is the table version that the receipt told. A transaction of several statements has the action `steps`,
    and its steps. One that was resumed begins with the steps of the dead client, which began it at `begun`.
    `failure` is the name of the type of the error that ended it; `error` is its text, to be printed.
    `named` is the transaction and the version that the error named; `answer` what `lake.outcome` said then.
    """

    number: int
    client: str
    table: str
    action: str
    key: Any
    value: Any
    invoked: float
    completed: float = float("inf")
    outcome: Outcome = "unknown"
    result: Any = None
    version: int | None = None
    txn: str | None = None
    error: str = ""
    failure: str = ""
    named: tuple[str, int | None] = ("", None)
    answer: str = ""
    steps: list[Step] = field(default_factory=list)
    begun: float | None = None

    @property
    def doubted(self) -> bool:
        """Whether its client got the answer that the outcome is unknown, and that it has to look at the
        data."""
        return self.failure in ("CommitUnknown", "Fenced")

    @property
    def looks_from(self) -> float:
        """When what the client was shown began to be true."""
        return self.invoked if self.begun is None else self.begun

    def changes(self, at: int | None = None) -> list[Step]:
        """The changes in effect when so many steps had been taken, or at the end."""
        taken = self.steps if at is None else self.steps[:at]
        return [
            step
            for step in taken
            if not step.shows and (step.undone_at is None or (at is not None and step.undone_at > at))
        ]


@dataclass
class History:
    """All operations of a run, in the order in which they began."""

    operations: list[Operation] = field(default_factory=list)

    def begin(self, client: str, table: str, action: str, key: Any, value: Any, now: float) -> Operation:
        operation = Operation(len(self.operations), client, table, action, key, value, now)
        self.operations.append(operation)
        return operation

    def of(self, table: str, *actions: str) -> list[Operation]:
        return [op for op in self.operations if op.table == table and (not actions or op.action in actions)]
