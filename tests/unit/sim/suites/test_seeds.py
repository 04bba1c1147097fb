"""A short form of `make soak`: the first seeds of each suite, on tables of each kind, show no violation."""

from functools import partial

import pytest

from lakevilla.engines.local.engine import LocalEngine
from sim.run import WORLDS
from sim.suites import base
from sim.world.formats import FORMATS
from tests.support.extent import first_seeds

SEEDS = {
    ("base", "delta"): (8, 160),
    ("base", "vectors"): (2, 30),
    ("base", "feeds"): (1, 20),
    ("base", "iceberg"): (2, 30),
    ("base", "deletes"): (1, 30),
    ("base", "mixed"): (2, 30),
    ("base", "cataloged"): (1, 8),
    ("recovery", "delta"): (4, 24),
    ("recovery", "vectors"): (1, 6),
    ("recovery", "feeds"): (1, 6),
    ("recovery", "iceberg"): (1, 6),
    ("recovery", "deletes"): (1, 6),
    ("recovery", "mixed"): (1, 6),
    ("recovery", "cataloged"): (1, 3),
    ("tables", "delta"): (3, 16),
    ("tables", "vectors"): (1, 6),
    ("tables", "feeds"): (0, 6),
    ("tables", "iceberg"): (1, 6),
    ("tables", "deletes"): (0, 6),
    ("tables", "mixed"): (1, 6),
    ("tables", "cataloged"): (1, 3),
    ("isolation", "delta"): (3, 16),
    ("isolation", "vectors"): (1, 6),
    ("isolation", "feeds"): (1, 8),
    ("isolation", "iceberg"): (1, 6),
    ("isolation", "deletes"): (0, 6),
    ("isolation", "mixed"): (1, 6),
    ("isolation", "cataloged"): (1, 3),
    ("optimize", "delta"): (1, 12),
    ("optimize", "vectors"): (1, 6),
    ("optimize", "iceberg"): (0, 6),
    ("optimize", "deletes"): (0, 4),
    ("optimize", "mixed"): (0, 4),
    ("optimize", "cataloged"): (0, 3),
    ("losses", "delta"): (5, 30),
    ("losses", "vectors"): (1, 6),
    ("losses", "iceberg"): (1, 6),
    ("losses", "deletes"): (0, 6),
    ("losses", "mixed"): (1, 6),
    ("batches", "delta"): (3, 10),
    ("batches", "vectors"): (0, 3),
    ("batches", "iceberg"): (1, 3),
    ("batches", "deletes"): (0, 3),
    ("batches", "mixed"): (1, 3),
    ("world", "delta"): (3, 12),
    ("world", "vectors"): (1, 4),
    ("world", "feeds"): (0, 4),
    ("world", "iceberg"): (1, 4),
    ("world", "deletes"): (0, 4),
    ("world", "mixed"): (1, 4),
}
"""Of each suite and kind of tables: how many seeds `make test` plays, and how many `make test-long` has."""

ON_THE_LOCAL_ENGINE = {
    (suite, formats): (1, count)
    for suite in ("base", "recovery", "isolation")
    for formats, count in (("delta", 4), ("vectors", 2), ("deletes", 2), ("mixed", 2))
}


def play_of(suite: str):
    """What plays a seed of this suite."""
    return WORLDS[suite][1] if suite in WORLDS else partial(base.play, suite=suite)


@pytest.mark.parametrize(("suite", "formats", "seed"), first_seeds(SEEDS))
def test_seed_shows_no_violation(suite: str, formats: str, seed: int) -> None:
    report = play_of(suite)(seed, formats=FORMATS[formats])
    again = f"python -m sim.run --suite {suite} --format {formats} --seed {seed} --trace"
    assert report.violations == [], f"replay with: {again}"


@pytest.mark.parametrize(("suite", "formats", "seed"), first_seeds(ON_THE_LOCAL_ENGINE))
def test_seed_on_the_local_engine_shows_no_violation(suite: str, formats: str, seed: int) -> None:
    report = play_of(suite)(seed, engine=LocalEngine, formats=FORMATS[formats])
    again = f"python -m sim.run --suite {suite} --engine local --format {formats} --seed {seed} --trace"
    assert report.violations == [], f"replay with: {again}"


@pytest.mark.parametrize(("suite", "seed"), [(suite, 1000) for suite in ("base", "recovery", "isolation")])
def test_seed_has_enough_clients_transactions_and_faults(suite: str, seed: int) -> None:
    for each in range(seed, seed + 3):
        report = play_of(suite)(each)
        assert report.clients >= 4
        assert report.transactions >= 20
        assert report.faults.total() >= 3
