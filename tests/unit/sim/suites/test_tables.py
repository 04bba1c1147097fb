"""Commits on several tables under the simulator: whole, in one order, also past deaths and outsiders."""

import pytest

from sim.planted import tables as planted_tables
from sim.suites.tables import image, play
from sim.world.formats import FORMATS
from sim.world.row_engine import rows_engine
from tests.support.planted import catch

PLANTED_SEEDS = 400

# Some bugs take long to find. For these the seeds begin a little before the one that shows it.
BEGIN = {
    "built-on-what-is-not-settled": 110,
    "helper-stops-at-the-first-refusal": 14,
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("formats", ["mixed", "delta", "cataloged"])
def test_equal_seeds_give_equal_traces(formats: str) -> None:
    assert len({play(7, formats=FORMATS[formats]).trace_hash for _ in range(2)}) == 1


@pytest.mark.long
def test_seed_with_deletes_that_do_not_name_their_files_shows_no_violation() -> None:
    """A stranger's delete file, which may concern all files, is in the way of an inverse commit."""
    assert play(50125, formats=FORMATS["iceberg"]).violations == []


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(planted_tables.BUGS))
def test_planted_bug_of_several_tables_is_caught(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    image(rows_engine)
    catch(planted_tables.BUGS[name](), play, range(BEGIN.get(name, 0), PLANTED_SEEDS), name, capsys)
