"""All or nothing: what is there at the end of a transaction's appends."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sim.checkers.history import Operation
from sim.checkers.isolation.cycles import Append
from sim.checkers.tables.torn import Torn


@dataclass
class Standing:
    """Whether a transaction is committed, the appends that stand, and what is wrong about that."""

    committed: bool
    appends: list[Append] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    torn: bool = False


def standing(
    op: Operation,
    appends: Sequence[Append],
    final: Mapping[str, tuple[int, ...]],
    torn: Torn,
) -> Standing:
    """The outcome of a transaction: acknowledged is present, failed is absent, unknown is whole or absent.

    What tore a table stands there and nowhere else: it counts as a transaction of that part alone.
    """
    there = [append for append in appends if append.value in final.get(append.key, ())]
    # A transaction whose appends are all there, on several tables, was not rolled back, even if another
    # client built on it later.
    in_part = len(there) < len(appends) or len(appends) == 1
    if op.outcome == "torn" or (op.outcome == "unknown" and there and in_part):
        parts = torn.parts(op.txn)
        if op.outcome == "torn" or parts or len(there) < len(appends):
            return _torn(op, there, parts)
    violations = []
    if op.outcome == "ok" and len(there) < len(appends):
        violations.append(f"operation {op.number} was acknowledged, and is not whole: {appends}")
    if op.outcome == "failed" and there:
        violations.append(f"operation {op.number} failed ({op.error}), and is there: {there}")
    committed = op.outcome == "ok" or bool(there)
    return Standing(committed, list(appends) if committed else [], violations)


def _torn(op: Operation, there: list[Append], parts: set[str]) -> Standing:
    spread = [append for append in there if append.key.split("/")[0] not in parts]
    left = [append for append in there if append not in spread]
    found = f"operation {op.number} ({op.outcome}) is there by half: {spread}, torn are {sorted(parts)}"
    return Standing(bool(there), left, [found] if spread else [], torn=True)
