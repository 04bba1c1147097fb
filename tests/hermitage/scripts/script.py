"""A script: the steps of some transactions in one order, and all the other orders of the same steps."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from math import factorial, prod

from tests.hermitage.outcome import Outcome
from tests.hermitage.scripts.notation import Operation, Rows, Step, parse_steps

FIRST_ROWS: Rows = ((1, 10), (2, 20))
"""What the tables hold when a script starts."""


@dataclass(frozen=True)
class Script:
    """One test: the steps in Hermitage's order, and the anomaly.

    `seen` recognises the anomaly in an outcome that no serial order explains. It gives the wrong its name;
    what no serial order explains is wrong in any case. `readers_differ` says that across tables a transaction
    which only reads, without I, may see them at different instants.
    """

    name: str
    steps: str
    anomaly: str
    seen: Callable[[Outcome], bool] = field(repr=False)
    readers_differ: bool = False

    @cached_property
    def parsed(self) -> list[Step]:
        return parse_steps(self.steps)

    @cached_property
    def transactions(self) -> dict[str, tuple[Operation, ...]]:
        """The operations of each transaction, without its end."""
        return {
            name: tuple(step.does for step in steps if not isinstance(step.does, str))
            for name, steps in self._by_owner.items()
        }

    @cached_property
    def ends(self) -> dict[str, str]:
        """How each transaction ends: `c` or `a`."""
        return {step.owner: step.does for step in self.parsed if isinstance(step.does, str)}

    @cached_property
    def order(self) -> str:
        """Whose turn it is, step by step, in Hermitage's order: `"121122"`."""
        return "".join(step.owner[1:] for step in self.parsed)

    def orders(self) -> Iterator[str]:
        """Every order of the steps that keeps each transaction's own order."""
        return _interleave({turn: self.order.count(turn) for turn in sorted(set(self.order))})

    def count_orders(self) -> int:
        repeated = prod(factorial(self.order.count(turn)) for turn in set(self.order))
        return factorial(len(self.order)) // repeated

    def in_order(self, order: str) -> str:
        """The steps in this order, in the notation."""
        left = {name: iter(steps) for name, steps in self._by_owner.items()}
        return "; ".join(f"T{turn} {next(left[f'T{turn}']).text}" for turn in order)

    @cached_property
    def _by_owner(self) -> dict[str, list[Step]]:
        names = sorted({step.owner for step in self.parsed})
        return {name: [step for step in self.parsed if step.owner == name] for name in names}


def _interleave(left: dict[str, int]) -> Iterator[str]:
    if not any(left.values()):
        yield ""
    for turn, count in left.items():
        if count:
            for rest in _interleave({**left, turn: count - 1}):
                yield turn + rest
