"""Transactions on which several clients worked: one of them committed it, or none.

Each client has an operation of its own, and all of them name the transaction. In the end the lists hold all
of what one of them did; no other client was told that it committed.
"""

from collections.abc import Callable, Mapping, Sequence

from sim.checkers.history import History, Operation
from sim.checkers.isolation.cycles import Append
from sim.checkers.tables.torn import Torn

RELAY = "relay"
"""The action of operations of a transaction that others may have resumed."""

Appends = Callable[[Operation], Sequence[Append]]


def judge_relays(
    history: History, appends_of: Appends, final: Mapping[str, tuple[int, ...]], torn: Torn
) -> tuple[set[int], list[str]]:
    """The operations that do not count, because another client's is the transaction, and what is wrong."""
    groups: dict[object, list[Operation]] = {}
    for op in history.of("lists", RELAY):
        groups.setdefault(op.value, []).append(op)
    left_out, violations = set[int](), list[str]()
    for value, group in groups.items():
        there = {key for key, values in final.items() if value in values}
        told = [op for op in group if op.outcome == "ok" and appends_of(op)]
        if len(told) > 1:
            violations.append(f"operations {[op.number for op in told]} are one transaction, committed twice")
        chosen = (told or _matching(group, appends_of, there) or group)[0]
        did = {append.key for append in appends_of(chosen)}
        if there and there != did and not torn.parts(chosen.txn):
            violations.append(f"operation {chosen.number} did {sorted(did)}, and {sorted(there)} is there")
        left_out |= {op.number for op in group if op is not chosen}
    return left_out, violations


def _matching(group: Sequence[Operation], appends_of: Appends, there: set[str]) -> list[Operation]:
    """Those that may have committed what is there; those that were told that they failed come last."""
    found = [op for op in group if {append.key for append in appends_of(op)} == there]
    return sorted(found, key=lambda op: op.outcome == "failed")
