"""Tables that are lost for good in the middle of commits: planted bugs are caught."""

import pytest

from sim.planted import losses as planted_losses
from sim.suites import losses
from sim.world.formats import FORMATS
from sim.world.row_engine import rows_engine
from tests.support.planted import catch


def test_equal_seeds_give_equal_traces():
    assert losses.play(3).trace_hash == losses.play(3).trace_hash


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(planted_losses.BUGS))
def test_planted_bug_of_lost_tables_is_caught(name, capsys):
    losses.images(rows_engine, FORMATS["delta"])
    catch(planted_losses.BUGS[name](), losses.play, range(40), name, capsys)
