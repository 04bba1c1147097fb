"""What `make test` leaves to `make test-long`.

A test marked `long` runs in `make test-long` only, and every other test in `make test` only, so that
none runs twice. `long` is what repeats a test with other seeds, statements or formats, what keeps a store
busy for long or starts a Spark of its own, and the proof that the simulator's judges find planted bugs. What
else no other test would show is never `long`.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, TypeVar
from zlib import crc32

import pytest

Name = TypeVar("Name", bound=Hashable)
_CASE = type(pytest.param())


def is_left_to_long(item: pytest.Item) -> bool:
    """Whether this is one of the cases that `@pytest.mark.sampled(step)` leaves out of `make test`.

    Of a test with one `parametrize` every `step`-th case stays. Of one with several, the cases whose places
    add up to a multiple of `step`, so that each value stays in some case.
    """
    mark, case = item.get_closest_marker("sampled"), getattr(item, "callspec", None)
    if mark is None or case is None:
        return False
    (step,) = mark.args
    return sum(_place(each, case.params) for each in item.iter_markers("parametrize")) % step != 0


def is_of_another_part(item: pytest.Item, part: str) -> bool:
    """Whether this test is not of the part that is asked for: `1/4` is the second of four parts.

    It depends on the name of the test alone, so that each part has some tests of each file.
    """
    number, count = map(int, part.split("/"))
    return crc32(item.nodeid.split("@")[0].encode()) % count != number


def _place(parametrize: pytest.Mark, params: Mapping[str, object]) -> int:
    """The place of these values among those of a `parametrize`. If it has none, because the golden tables are
    not on this machine, its one case stays, and pytest skips it."""
    names, cases = parametrize.args
    names = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    given = [
        case.values if isinstance(case, _CASE) else case if len(names) > 1 else (case,) for case in cases
    ]
    return [*map(tuple, given)].index(tuple(params[name] for name in names)) if given else 0


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


def first_seeds(counts: Mapping[tuple[str, ...], tuple[int, int]]) -> list[Any]:
    """Parameters for the seeds of each series, which `counts` gives by its values: from how many on they are
    `long`, and how many there are."""
    return [
        _parameter((*series, seed), is_long=seed >= short)
        for series, (short, count) in counts.items()
        for seed in range(count)
    ]


def _parameter(values: tuple[Any, ...], is_long: bool) -> Any:
    marks = [pytest.mark.long] if is_long else []
    return pytest.param(*values, marks=marks, id="-".join(map(str, values)))
