"""What `make test` leaves to `make test-long`.

A test marked `long` runs in `make test-long` only, and every other test in `make test` only, so that CI runs
each test once. `long` is what repeats a test with other seeds, statements or formats, what keeps a real store
busy for long or starts a Spark of its own, and the proof that the simulator's judges find planted bugs. What
else no other test would show is never `long`.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeVar
from zlib import crc32

import pytest

Name = TypeVar("Name", bound=Hashable)


def in_turn(kinds_of: Mapping[Name, Sequence[str]]) -> list[Any]:
    """Parameters (name, kind) for every pair. Each name keeps one of its kinds, the first one the first, the
    second one the second, and so on in a circle; all other pairs are `long`."""
    return [
        _parameter((name, kind), is_long=at != turn % len(kinds))
        for turn, (name, kinds) in enumerate(kinds_of.items())
        for at, kind in enumerate(kinds)
    ]


def by_name(name: str, kinds: Sequence[str]) -> list[Any]:
    """Parameters for a test of this name on each of these kinds: it keeps one that depends on its name alone,
    so that among many tests each kind stays with some; the others are `long`."""
    kept = crc32(name.encode()) % len(kinds)
    return [_parameter((kind,), is_long=at != kept) for at, kind in enumerate(kinds)]


def one_in(step: int, parameters: Iterable[Any]) -> list[Any]:
    """These parameters, each a tuple or a `pytest.param`: the first one and every `step`-th after it stay,
    the others are `long`."""
    given = [each if hasattr(each, "values") else pytest.param(*each) for each in parameters]
    return [
        each
        if not at % step
        else pytest.param(*each.values, marks=[*each.marks, pytest.mark.long], id=each.id)
        for at, each in enumerate(given)
    ]


def first_of_each(pieces: Iterable[tuple[Any, ...]], count: int = 1) -> list[Any]:
    """These parameters, of which those with equal values but for the last are a series: the first `count` of
    each series stay, the others are `long`."""
    seen: dict[tuple[Any, ...], int] = {}
    found = []
    for piece in pieces:
        seen[piece[:-1]] = seen.get(piece[:-1], 0) + 1
        found.append(_parameter(piece, is_long=seen[piece[:-1]] > count))
    return found


def _parameter(values: tuple[Any, ...], is_long: bool) -> Any:
    marks = [pytest.mark.long] if is_long else []
    return pytest.param(*values, marks=marks, id="-".join(map(str, values)))


def _as_long(parameter: Any) -> Any:
    return pytest.param(*parameter.values, marks=[*parameter.marks, pytest.mark.long], id=parameter.id)
