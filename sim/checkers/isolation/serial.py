"""Brute force: is there a serial order that explains a small history of lists?

Exponential, so for a handful of transactions only; the cycle checker is tested against it.
"""

from collections.abc import Sequence

from sim.checkers.isolation.cycles import Append, Precedes, Txn, all_precede

State = dict[str, tuple[int, ...]]


def find_serial_order(
    history: Sequence[Txn], *, real_time: bool = True, precedes: Precedes = all_precede
) -> list[int] | None:
    """Ids in an order in which every read fits, or None. Unknown transactions may be left out."""
    promised = precedes if real_time else lambda _, __: False
    return _extend([t for t in history if t.outcome != "failed"], {}, [], promised)


def _extend(left: list[Txn], state: State, order: list[int], precedes: Precedes) -> list[int] | None:
    if all(txn.outcome == "unknown" for txn in left):
        return order
    for txn in left:
        if any(_is_before(other, txn, precedes) for other in left if other is not txn):
            continue
        after = _apply(txn, state)
        if after is None:
            continue
        rest = [other for other in left if other is not txn]
        if (found := _extend(rest, after, [*order, txn.id], precedes)) is not None:
            return found
    return None


def _is_before(first: Txn, second: Txn, precedes: Precedes) -> bool:
    return first.outcome == "ok" and first.completed < second.invoked and precedes(first, second)


def _apply(txn: Txn, state: State) -> State | None:
    """The state after the transaction, or None if a read of it does not fit."""
    after = dict(state)
    for step in txn.steps:
        if isinstance(step, Append):
            after[step.key] = (*after.get(step.key, ()), step.value)
        elif after.get(step.key, ()) != step.values:
            return None
    return after
