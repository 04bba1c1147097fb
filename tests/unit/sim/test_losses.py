"""Tables that are lost for good in the middle of commits: seeds are clean, and planted bugs are caught."""

import pytest

from sim.planted import losses as planted_losses
from sim.suites import losses
from sim.world.formats import FORMATS
from sim.world.row_engine import rows_engine
from tests.support.planted import catch

SEEDS = {"delta": range(30), "iceberg": range(6), "mixed": range(6)}


@pytest.mark.parametrize("formats", SEEDS)
def test_first_seeds_with_lost_tables_show_no_violation(formats):
    for seed in SEEDS[formats]:
        report = losses.play(seed, formats=FORMATS[formats])
        assert report.violations == [], f"python -m sim.run --suite losses --format {formats} --seed {seed}"


def test_equal_seeds_give_equal_traces():
    assert losses.play(3).trace_hash == losses.play(3).trace_hash


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(planted_losses.BUGS))
def test_planted_bug_of_lost_tables_is_caught(name, capsys):
    losses.images(rows_engine, FORMATS["delta"])
    catch(planted_losses.BUGS[name](), losses.play, range(40), name, capsys)
