"""Known bugs, planted one by one: the simulation must find each, and says how many seeds that took."""

import pytest

from sim import planted, planted_recovery
from sim.lakes import first_image
from sim.planted import Plant
from sim.rows import rows_engine
from sim.suite import play

SEEDS = 400

# This one takes long to find: the seeds begin a little before the one that shows it.
BEGIN = {"redo-forgets-what-it-changed-itself": 50}


@pytest.mark.parametrize("name", sorted(planted.BUGS))
def test_planted_bug_is_caught(name: str, capsys: pytest.CaptureFixture[str]):
    catch(planted.BUGS[name], name, "base", capsys)


@pytest.mark.parametrize("name", sorted(planted_recovery.BUGS))
def test_planted_bug_of_recovery_is_caught(name: str, capsys: pytest.CaptureFixture[str]):
    catch(planted_recovery.BUGS[name], name, "recovery", capsys)


def catch(plant: Plant, name: str, suite: str, capsys: pytest.CaptureFixture[str]) -> None:
    # The lake is made before the bug is planted: the probe of a new lake would refuse some of them.
    first_image(rows_engine)
    with plant():
        for seed in range(BEGIN.get(name, 0), SEEDS):
            violations = play(seed, suite).violations
            if violations:
                break
    assert violations, f"not caught in {SEEDS} seeds"
    with capsys.disabled():
        print(f"\n{name:45} caught after {seed + 1:4} seeds: {violations[0].splitlines()[0][:90]}", end="")
