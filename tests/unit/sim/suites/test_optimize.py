"""Clients that rewrite files between all others: planted bugs of that are caught."""

import pytest

from sim.planted import optimize as planted_optimize
from sim.suites import optimize
from sim.world.formats import PLAIN
from sim.world.row_engine import rows_engine
from tests.support.planted import catch


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(planted_optimize.BUGS))
def test_planted_bug_of_rewritten_files_is_caught(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    optimize.images(rows_engine, PLAIN)
    catch(planted_optimize.BUGS[name](), optimize.play, range(100), name, capsys)
