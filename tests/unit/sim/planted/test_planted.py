"""Known bugs, planted one by one: the simulation must find each, and says how many seeds that took."""

from functools import partial

import pytest

from sim.planted import cataloged as planted_cataloged
from sim.planted import commits as planted
from sim.planted import deletes as planted_deletes
from sim.planted import feeds as planted_feeds
from sim.planted import iceberg as planted_iceberg
from sim.planted import recovery as planted_recovery
from sim.planted import vectors as planted_vectors
from sim.planted.commits import Plant
from sim.run import WORLDS
from sim.suites import base as suite
from sim.suites import tables
from sim.suites.base import Report
from sim.world.formats import FORMATS, PLAIN, Formats
from sim.world.lakes import first_image
from sim.world.row_engine import rows_engine
from tests.support.planted import catch

SEEDS = 400

# These take long to find: the seeds begin a little before the one that shows it.
BEGIN = {
    "conflict-check-forgets-dropped-tables": 100,
    "decided-entry-said-to-be-undecided": 45,
    "footprint-ignores-new-delete-files": 36,
    "hint-taken-for-the-newest-version": 20,
    "look-at-counts-is-not-noted": 16,
    "new-deletes-forget-the-old-ones": 20,
    "redo-forgets-what-it-changed-itself": 50,
    "table-begins-with-0-where-others-begin-with-1": 25,
    "published-later-is-not-recognised": 33,
    "unanswered-commit-looked-for-in-one-version": 508,
}

QUICK = {"new-vector-forgets-the-old-one"}
"""The first seed shows it."""

# Bugs of Iceberg's room that single statements do not show, or seldom.
OTHER_SUITES = {
    "commit-sent-again-past-itself": "tables",
    "copied-property-is-taken-for-a-commit": "recovery",
    "published-later-is-not-recognised": "tables",
    "attempt-recognised-in-a-copied-property": "recovery",
    "footprint-ignores-new-delete-files": "recovery",
    "manifests-of-all-attempts-have-one-name": "tables",
    "table-begins-with-0-where-others-begin-with-1": "tables",
}


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(planted.BUGS))
def test_planted_bug_is_caught(name: str, capsys: pytest.CaptureFixture[str]):
    plant_and_play(planted.BUGS[name], name, "base", capsys)


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(planted_recovery.BUGS))
def test_planted_bug_of_recovery_is_caught(name: str, capsys: pytest.CaptureFixture[str]):
    plant_and_play(planted_recovery.BUGS[name], name, "recovery", capsys)


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(planted_iceberg.BUGS))
def test_planted_bug_of_iceberg_is_caught(name: str, capsys: pytest.CaptureFixture[str]):
    chosen = OTHER_SUITES.get(name, "base")
    plant_and_play(planted_iceberg.BUGS[name], name, chosen, capsys, FORMATS["iceberg"])


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(planted_cataloged.BUGS))
def test_planted_bug_of_catalogs_is_caught(name: str, capsys: pytest.CaptureFixture[str]):
    chosen = OTHER_SUITES.get(name, "base")
    plant_and_play(planted_cataloged.BUGS[name], name, chosen, capsys, FORMATS["cataloged"])


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[] if n in QUICK else pytest.mark.long) for n in sorted(planted_vectors.BUGS)],
)
def test_planted_bug_of_vectors_is_caught(name: str, capsys: pytest.CaptureFixture[str]):
    chosen = planted_vectors.SUITES.get(name, "base")
    plant_and_play(planted_vectors.BUGS[name], name, chosen, capsys, FORMATS["vectors"])


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(planted_feeds.BUGS))
def test_planted_bug_of_feeds_is_caught(name: str, capsys: pytest.CaptureFixture[str]):
    chosen = planted_feeds.SUITES.get(name, "base")
    plant_and_play(planted_feeds.BUGS[name], name, chosen, capsys, FORMATS["feeds"])


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[] if n in QUICK else pytest.mark.long) for n in sorted(planted_deletes.BUGS)],
)
def test_planted_bug_of_delete_files_is_caught(name: str, capsys: pytest.CaptureFixture[str]):
    chosen = planted_deletes.SUITES.get(name, "base")
    plant_and_play(planted_deletes.BUGS[name], name, chosen, capsys, FORMATS["deletes"])


def plant_and_play(
    bug: Plant, name: str, chosen: str, capsys: pytest.CaptureFixture[str], formats: Formats = PLAIN
) -> None:
    first_image(rows_engine, formats)
    tables.image(rows_engine, formats)
    begin = BEGIN.get(name, 0)
    catch(bug(), partial(play, chosen=chosen, formats=formats), range(begin, begin + SEEDS), name, capsys)


def play(seed: int, chosen: str, formats: Formats) -> Report:
    if chosen in WORLDS:
        return WORLDS[chosen][1](seed, formats=formats)
    return suite.play(seed, chosen, formats=formats)
