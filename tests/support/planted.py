"""The one loop that shows a planted bug caught (`sim.planted.commits` and its neighbours)."""

from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from sim.suites.base import Report


def catch(
    bug: AbstractContextManager[None],
    play: Callable[[int], Report],
    seeds: range,
    name: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Plant the bug, and play these seeds until one shows a violation; fails if none does.

    Images of the store that `play` starts from are made before: the probe of a new lake would refuse some
    bugs.
    """
    with bug:
        found = next(((seed, told) for seed in seeds if (told := play(seed).violations)), None)
    assert found is not None, f"not caught in {len(seeds)} seeds"
    seed, violations = found
    assert "TypeError" not in violations[0], f"not the bug was caught, but a misfit: {violations[0]}"
    with capsys.disabled():
        print(f"\n{name:45} caught after {seed + 1:4} seeds: {violations[0].splitlines()[0][:90]}", end="")
