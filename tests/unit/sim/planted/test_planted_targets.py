"""Every planted bug replaces something that exists: a renamed target would plant nothing."""

import pytest

from sim.planted import tables as planted_tables
from sim.run import BUGS

PLANTS = {**BUGS, **planted_tables.NARROW}


@pytest.mark.parametrize("name", sorted(PLANTS))
def test_planted_bug_finds_all_of_its_targets(name: str) -> None:
    with PLANTS[name]():
        pass
