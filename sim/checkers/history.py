"""What clients did and were told: the material of every checker."""

from dataclasses import dataclass, field
from typing import Any, Literal

Outcome = Literal["ok", "failed", "unknown"]


@dataclass(slots=True)
class Operation:
    """One transaction of one client.

    `failed` promises that nothing of it is visible, ever; `unknown` allows all or nothing, and is the
    outcome of everything that a crash cut off. `version` is the table version that the receipt told.
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
