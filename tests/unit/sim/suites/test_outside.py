"""The suite `world`: what lies outside of one lake, one hour and one well-behaved set of clients."""

from dataclasses import replace
from functools import partial

import pytest

from sim.outside.play import PARTS, Setting, images, play, play_with_restores
from sim.planted import world as planted_world
from sim.suites.base import Report
from sim.world.formats import FORMATS, PLAIN
from sim.world.row_engine import rows_engine
from tests.support.planted import catch

PLANTED_SEEDS = 20

# The seeds begin a little before the one that shows the bug. Others of `planted_world` are shown where seeds
# are led to the right moment (test_steered.py).
BEGIN = {
    "old-uploads-are-not-looked-for": 36,
    "table-made-anew-is-taken-for-the-old-one": 55,
    "threads-share-a-transaction": 0,
    "restore-leaves-what-came-meanwhile": 0,
    "log-is-cleaned-one-entry-too-far": 0,
    "log-is-cleaned-without-looking-at-tags": 0,
}


KEPT = [
    pytest.param("mixed", 9031, id="recreated-right-before-the-slot"),
    pytest.param("mixed", 50052, id="rolled-back-because-uploads-were-deleted", marks=pytest.mark.long),
    pytest.param("mixed", 50196, id="outcome-of-one-that-was-rolled-back", marks=pytest.mark.long),
    pytest.param("iceberg", 50087, id="all-earlier-metadata-files-cleaned-up", marks=pytest.mark.long),
    pytest.param("iceberg", 50119, id="resumed-after-its-snapshot-expired", marks=pytest.mark.long),
    pytest.param("iceberg", 50040, id="hint-in-a-deleted-folder", marks=pytest.mark.long),
    pytest.param("iceberg", 50164, id="hint-of-a-deleted-table", marks=pytest.mark.long),
    pytest.param("iceberg", 30007, id="made-anew-where-a-dropped-table-was-vacuumed", marks=pytest.mark.long),
    pytest.param("delta", 50004, id="stranger-s-checkpoint-in-a-deleted-folder", marks=pytest.mark.long),
    pytest.param("delta", 100224, id="log-of-a-deleted-folder-cleaned-up", marks=pytest.mark.long),
    pytest.param("delta", 100431, id="late-copy-of-a-commit-that-was-completed", marks=pytest.mark.long),
    pytest.param("delta", 101131, id="torn-table-met-after-a-resume", marks=pytest.mark.long),
    pytest.param("delta", 101813, id="vacuum-suspended-after-it-chose-the-instants", marks=pytest.mark.long),
    pytest.param("delta", 102139, id="vacuum-suspended-after-it-settled-entries", marks=pytest.mark.long),
    pytest.param("delta", 70042, id="table-made-anew-in-a-dropped-folder", marks=pytest.mark.long),
    pytest.param("delta", 50018, id="unanswered-commit-applies-after-vacuum"),
    pytest.param("delta", 50693, id="commit-of-another-lake-answered-after-its-log-was-cleaned"),
    pytest.param("delta", 50747, id="version-without-its-files-rolled-back", marks=pytest.mark.long),
    pytest.param("delta", 50768, id="repeated-publish-took-a-number-that-was-just-cleaned-up"),
    pytest.param("delta", 50671, id="commit-applied-and-cleaned-up-while-its-client-slept"),
    pytest.param(
        "delta", 100525, id="first-copy-cleaned-up-before-the-second-applied", marks=pytest.mark.long
    ),
    pytest.param("delta", 101492, id="late-copy-of-a-helper-over-a-cleaned-log", marks=pytest.mark.long),
    pytest.param("delta", 102523, id="notice-of-a-sleeper-under-a-used-number", marks=pytest.mark.long),
    pytest.param("delta", 50380, id="lake-deleted-before-its-entry-was-settled", marks=pytest.mark.long),
    pytest.param("delta", 30000, id="notice-in-a-deleted-lake-unanswered", marks=pytest.mark.long),
    pytest.param("delta", 30029, id="slept-until-the-table-was-recreated", marks=pytest.mark.long),
    pytest.param("delta", 30030, id="stranger-writes-to-a-dropped-table", marks=pytest.mark.long),
]
"""Seeds that were reported once, and what they are about."""


@pytest.mark.parametrize(("formats", "seed"), KEPT)
def test_seed_that_was_reported_shows_no_violation(formats: str, seed: int) -> None:
    assert play(seed, formats=FORMATS[formats]).violations == []


KEPT_RESTORES = [
    pytest.param("delta", 100344, id="tables-restored-to-equal-rows", marks=pytest.mark.long),
    pytest.param("delta", 100888, id="checkpoint-right-after-its-folder-was-deleted", marks=pytest.mark.long),
    pytest.param("delta", 101299, id="horizon-held-by-a-slot-created-again", marks=pytest.mark.long),
    pytest.param("mixed", 70009, id="unanswered-commit-sent-again-without-its-files", marks=pytest.mark.long),
]


@pytest.mark.parametrize(("formats", "seed"), KEPT_RESTORES)
def test_seed_of_restores_that_was_reported_shows_no_violation(formats: str, seed: int) -> None:
    assert play_with_restores(seed, formats=FORMATS[formats]).violations == []


def test_first_seeds_have_every_part_of_the_world() -> None:
    assert set[str]().union(*(Setting.draw(seed).parts for seed in range(12))) == set(PARTS)


def test_seed_has_sleeps_and_outages_where_its_world_has_them() -> None:
    report = world(3, "", frozenset(("sleeps", "outages")))
    assert any(fault.startswith("asleep") for fault in report.faults)
    assert any(fault.startswith("outage") for fault in report.faults)
    calm = world(3, "", frozenset())
    assert not any(fault.startswith(("asleep", "outage")) for fault in calm.faults)


def test_equal_seeds_give_equal_traces() -> None:
    assert play(7).trace_hash == play(7).trace_hash


@pytest.mark.sampled(3)
@pytest.mark.parametrize("formats", ["delta", "iceberg", "mixed"])
def test_clients_restore_tables_in_the_suite_of_restores(formats: str) -> None:
    restored = 0
    for seed in (3, 5):
        report = play_with_restores(seed, formats=FORMATS[formats])
        assert report.violations == []
        done = [op for op in report.history.operations if op.action == "restore" and op.outcome == "ok"]
        restored += sum(len(op.value) for op in done)
    assert restored


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(BEGIN))
def test_planted_bug_of_the_world_is_caught(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    images(rows_engine, PLAIN)
    focus, parts = planted_world.PARTS[name]
    seeds = range(BEGIN[name], BEGIN[name] + PLANTED_SEEDS)
    catch(planted_world.BUGS[name](), partial(world, focus=focus, parts=parts), seeds, name, capsys)


def world(seed: int, focus: str, parts: frozenset[str]) -> Report:
    return play(seed, setting=replace(Setting.draw(seed), focus=focus, parts=parts, empties=False))
