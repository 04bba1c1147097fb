"""Are batches of pipelines committed exactly once, and were clients told the truth about it? Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sim.checkers.history import History


@dataclass(frozen=True)
class App:
    """A pipeline: the list that it writes in each table, and the values of its batches."""

    name: str
    key: int

    def value(self, batch: int) -> int:
        """What the batch appends."""
        return (self.key + 1) * 1000 + batch


def check_batches(
    history: History,
    final: Mapping[str, tuple[int, ...]],
    apps: Sequence[App],
    count: int,
    tables: Sequence[str],
) -> list[str]:
    """Violations, when every batch was tried until it was acknowledged: `final` are the lists by
    `table/key`."""
    found = []
    for app in apps:
        wanted = tuple(app.value(batch) for batch in range(count))
        for table in tables:
            held = final[f"{table}/{app.key}"]
            if held != wanted:
                found.append(f"{table}/{app.key} holds {held}, and the batches of {app.name} are {wanted}")
        for batch in range(count):
            told = [op for op in history.of("batches") if (op.key, op.value) == (app.name, batch)]
            ended = [op for op in told if op.outcome == "ok"]
            commits = [op for op in ended if op.result is False]
            if len(commits) > 1:
                clients = ", ".join(op.client for op in commits)
                found.append(f"batch {batch} of {app.name} was committed by {clients}")
            if commits and any(op.completed < commits[0].invoked for op in ended if op.result):
                found.append(f"batch {batch} of {app.name} was said to be a replay before it was committed")
    return found
