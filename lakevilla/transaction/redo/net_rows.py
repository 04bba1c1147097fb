"""The rows that several statements changed, as what they changed together. Pure.

Each statement gives pairs of rows: as a row was, and as it is afterwards; one of the two is missing where a
row came or went. A row that a statement found as an earlier one had left it continues that one's pair. Rows
are known by their values: of equal rows, any may be the one that is meant.
"""

from collections import defaultdict
from collections.abc import Sequence

Pair = tuple[int | None, int | None]
"""A row before and after, each by the number of the group of rows that are equal to it."""


def net_pairs(statements: Sequence[Sequence[Pair]]) -> list[Pair]:
    """What the statements did together, in this order."""
    net: list[list[int | None]] = []
    current: dict[int, list[int]] = defaultdict(list)
    touched: set[int] = set()
    for statement in statements:
        fresh: list[int] = []
        for before, after in statement:
            known = current[before] if before is not None else []
            if known:
                place = known.pop()
                net[place][1] = after
                touched.add(place)
            else:
                place = len(net)
                net.append([before, after])
            fresh.append(place)
        # Only now: a row that a statement has changed is not changed by it once more.
        for place in fresh:
            left = net[place][1]
            if left is not None:
                current[left].append(place)
    pairs = [(one, other) for place, (one, other) in enumerate(net) if one != other or place not in touched]
    return _without_returns([pair for pair in pairs if pair != (None, None)])


def _without_returns(pairs: Sequence[Pair]) -> list[Pair]:
    """Without rows that went, and came again as they were."""
    came: dict[int, int] = defaultdict(int)
    for before, after in pairs:
        if before is None and after is not None:
            came[after] += 1
    back: dict[int, int] = defaultdict(int)
    found: list[Pair] = []
    for before, after in pairs:
        if after is None and before is not None and came[before]:
            came[before] -= 1
            back[before] += 1
        else:
            found.append((before, after))
    left: list[Pair] = []
    for before, after in found:
        if before is None and after is not None and back[after]:
            back[after] -= 1
        else:
            left.append((before, after))
    return left
