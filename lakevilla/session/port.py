"""What a session needs of a lake: a part of the public class."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from lakevilla.answers import Receipt
from lakevilla.maintenance.optimize.report import OptimizeReport
from lakevilla.maintenance.reports import Explanation, Status, VacuumReport
from lakevilla.model import Features
from lakevilla.transaction.transaction import Transaction
from lakevilla.travel.past import PastLake
from lakevilla.travel.restore import RestoreReport


class SessionLake(Protocol):
    """A lake as a session uses it."""

    def transaction(
        self, features: Features | None = None, *, isolation: str = "serializable", slack: int = 0
    ) -> Transaction: ...

    def run(
        self,
        work: Callable[[Transaction], Any],
        retries: int = 10,
        features: Features | None = None,
        *,
        isolation: str = "serializable",
        slack: int = 0,
    ) -> Receipt: ...

    def at(self, when: Any = None, /, *, seq: int | None = None, tag: str | None = None) -> PastLake: ...

    def history(self, name: Any = None, limit: int | None = None) -> list[Any]: ...

    def restore(
        self,
        *,
        seq: int | None = None,
        tag: str | None = None,
        at: Any = None,
        version: int | None = None,
        tables: Sequence[str] | None = None,
    ) -> RestoreReport: ...

    def optimize(
        self, name: str, where: str | None = None, zorder_by: Sequence[str] = (), *, full: bool = False
    ) -> OptimizeReport: ...

    def status(self) -> Status: ...

    def explain(self, what: str | None = None) -> Explanation: ...

    def tag(self, name: str, at: Any = None) -> int: ...

    def untag(self, name: str) -> None: ...

    def tags(self) -> dict[str, int]: ...

    def vacuum(
        self, name: str | None = None, *, dry_run: bool = True, retention_hours: float | None = None
    ) -> VacuumReport: ...
