"""What came out when a script was played."""

from dataclasses import dataclass
from enum import Enum

from tests.hermitage.scripts.notation import Rows


class End(Enum):
    """How a transaction ended."""

    COMMITTED = "committed"
    ABORTED = "aborted, as its script says"
    REFUSED = "refused by the system"
    STUCK = "stuck"


@dataclass(frozen=True)
class Ended:
    """One transaction: its end, what its reads gave in turn, and when it ran.

    Where the system ran it again, the reads are those of the last time. `began` is the start of its first
    step; both times are of one clock.
    """

    end: End
    reads: tuple[Rows, ...]
    began: float
    ended: float
    why: str = ""

    @property
    def committed(self) -> bool:
        return self.end is End.COMMITTED


@dataclass(frozen=True)
class Outcome:
    """All transactions by name, and the rows that are there at the end."""

    transactions: dict[str, Ended]
    final: Rows

    def reads(self, name: str) -> tuple[Rows, ...]:
        """What the reads of a transaction gave; nothing if it did not commit."""
        ended = self.transactions[name]
        return ended.reads if ended.committed else ()

    def values(self, name: str) -> list[int]:
        """Every v that a committed transaction read, in turn."""
        return [v for rows in self.reads(name) for _, v in rows]

    def committed(self, *names: str) -> bool:
        return all(self.transactions[name].committed for name in names)

    def __str__(self) -> str:
        told = [
            f"{name} {ended.end.value}{f' ({ended.why})' if ended.why else ''}, read {list(ended.reads)}"
            for name, ended in self.transactions.items()
        ]
        return "\n".join([*told, f"at the end {list(self.final)}"])
