"""Commits on several tables under the simulator: whole, in one order, also past deaths and outsiders."""

import pytest

from sim import planted_tables
from sim.rows import rows_engine
from sim.tables import image, play

SEEDS = 50
PLANTED_SEEDS = 400

# Some bugs take long to find. For these the seeds begin a little before the one that shows it.
BEGIN = {
    "built-on-what-is-not-settled": 50,
    "helper-stops-at-the-first-refusal": 30,
    "unanswered-slot-taken-for-lost": 25,
}


@pytest.mark.parametrize("first", range(0, SEEDS, 25))
def test_commits_on_several_tables_are_whole_and_in_one_order(first: int) -> None:
    violations = {seed: found for seed in range(first, first + 25) if (found := play(seed).violations)}
    assert violations == {}


def test_equal_seeds_give_equal_traces() -> None:
    assert play(7).trace_hash == play(7).trace_hash


@pytest.mark.parametrize("name", sorted(planted_tables.BUGS))
def test_planted_bug_of_several_tables_is_caught(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    image(rows_engine)
    with planted_tables.BUGS[name]():
        for seed in range(BEGIN.get(name, 0), PLANTED_SEEDS):
            violations = play(seed).violations
            if violations:
                break
    assert violations, f"not caught in {PLANTED_SEEDS} seeds"
    with capsys.disabled():
        print(f"\n{name:45} caught after {seed + 1:4} seeds: {violations[0].splitlines()[0][:90]}", end="")
