"""A request of settling that fails for good, whichever it is, stops no other table and no later commit.

Every client computes one outcome, and it is what the tables show. What is said of the lake is true. Once the
fault ends, or an operator gives the table up, everything is settled (see `standing_faults`).
"""

import pytest

from lakevilla.model import Features
from sim.world.formats import FORMATS
from tests.crash.chosen_deaths import ALL
from tests.crash.standing_faults import Case, How, Spot, faults, play, spots

BOTH = Features.R | Features.CT
EVERYTHING = BOTH | Features.I
SAMPLE = 16
"""One in so many faults is tried, each time with another begin; `make soak SUITE=crash` tries all."""
FEW = 3


def _tried(case: Case, begin: int) -> list[tuple[Spot, How]]:
    every = [(spot, how) for spot in spots(case) for how in faults(spot)]
    return every if ALL else every[begin % SAMPLE :: SAMPLE]


def _problems(case: Case, tried: list[tuple[Spot, How]]) -> list[str]:
    found = []
    for number, (spot, how) in enumerate(tried):
        for given_up in (False, True) if ALL else (number % 2 == 1,):
            played = play(case, spot, how, given_up)
            about = f"{spot} is {how}{', given up' if given_up else ''}: {played.answers}"
            found += [f"{about}\n    {problem}" for problem in played.problems]
    return found


@pytest.mark.parametrize(("formats", "helped"), [("delta", True), ("iceberg", False)])
def test_some_requests_of_settling_that_fail_for_good_stop_nothing_else(formats: str, helped: bool) -> None:
    case = Case(FORMATS[formats], helped, refused=not helped)
    tried = _tried(case, begin=4)[:FEW]
    assert len(tried) == FEW
    assert _problems(case, tried) == []


@pytest.mark.long
@pytest.mark.parametrize("features", [BOTH, EVERYTHING], ids=["R,CT", "R,CT,I"])
@pytest.mark.parametrize("refused", [False, True], ids=["published", "rolled-back"])
@pytest.mark.parametrize("helped", [False, True], ids=["owner", "helper"])
@pytest.mark.parametrize("formats", ["delta", "iceberg", "mixed", "cataloged"])
def test_any_request_of_settling_that_fails_for_good_stops_nothing_else(
    formats: str, helped: bool, refused: bool, features: Features
) -> None:
    case = Case(FORMATS[formats], helped, refused, features)
    begin = 4 * helped + 2 * refused + (features == BOTH) + 8 * (formats in ("iceberg", "mixed"))
    assert _problems(case, _tried(case, begin)) == []


@pytest.mark.parametrize("refused", [False, True], ids=["published", "rolled-back"])
def test_settling_that_is_watched_has_requests_of_every_kind_that_changes_something(refused: bool) -> None:
    for helped in (False, True):
        sites = {(spot.site, spot.table) for spot in spots(Case(FORMATS["delta"], helped, refused))}
        written = {("create log entry", "left"), ("create log entry", "right"), ("replace HEAD", "")}
        assert sites >= written
