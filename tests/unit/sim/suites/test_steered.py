"""The suite `steered`: a client sleeps at a chosen request of its commit, and others know when."""

from functools import partial

import pytest

from sim.outside.play import images
from sim.outside.steered import SCENARIOS, play
from sim.planted import world as planted_world
from sim.world.formats import FORMATS, PLAIN
from sim.world.row_engine import rows_engine
from tests.support.planted import catch

SEEDS = {"delta": range(3), "iceberg": range(3, 4), "mixed": range(4, 5)}
PLANTED_SEEDS = 20

BUGS = {
    "lease-of-vacuum-is-not-looked-at": "alone",
    "log-is-not-asked-what-came-since-the-slot": "late",
    "slot-that-was-cleaned-away-is-decided-again": "slot",
    "stale-client-goes-on-settling": "settle",
    "version-of-an-open-entry-is-built-on": "half",
}
"""Bugs of `planted_world`, and the scenario that shows them."""


@pytest.mark.sampled(3)
@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("formats", SEEDS)
def test_first_seeds_show_no_violation(formats: str, scenario: str) -> None:
    for seed in SEEDS[formats]:
        assert play(seed, formats=FORMATS[formats], scenario=scenario).violations == [], f"{scenario} {seed}"


@pytest.mark.parametrize("scenario", [name for name, each in SCENARIOS.items() if not each.dies])
def test_client_falls_asleep_and_knows_in_the_end_what_became_of_its_commit(scenario: str) -> None:
    report = play(0, scenario=scenario)
    assert report.faults["asleep, steered"] == 1
    asleep = [op for op in report.history.operations if op.client == "c0"]
    assert [op.outcome in ("ok", "failed") for op in asleep] == [True]


def test_client_that_dies_falls_asleep_at_the_first_slot_that_it_creates() -> None:
    """Else its entry is decided in time, and the logs are cleaned up before others settle it."""
    for seed in (51008, 51028, 51039):
        report = play(seed, scenario="late")
        assert report.faults["asleep, steered"] == 1, seed
        assert report.violations == [], seed


def test_equal_seeds_give_equal_traces() -> None:
    assert play(7).trace_hash == play(7).trace_hash


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(BUGS))
def test_planted_bug_is_caught_where_seeds_are_led(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    images(rows_engine, PLAIN)
    steered = partial(play, scenario=BUGS[name])
    catch(planted_world.BUGS[name](), steered, range(PLANTED_SEEDS), name, capsys)
