"""A client dies at each of its requests, in each way; others must find all of its work or nothing."""

from pathlib import Path

import pytest

from lakevilla.engines.local.engine import LocalEngine
from sim.planted.cataloged import BUGS as CATALOGED_BUGS
from sim.planted.commits import BUGS
from sim.planted.iceberg import BUGS as ICEBERG_BUGS
from sim.suites.base import SUITES, play
from sim.suites.crash import Matrix, Point, Scenario
from sim.world.faults import REQUESTS
from sim.world.formats import CATALOGED, DELETES, FEEDS, FORMATS, VECTORS
from sim.world.sites import site
from tests.crash.chosen_deaths import chosen
from tests.crash.deaths import Left, problems_of_deaths
from tests.crash.scenarios import SCENARIOS, look
from tests.support.extent import in_turn

LATER = ("observer", "last")

LAKE_WIDE = ("create", "drop", "rename", "register", "list-tables", "recover")
"""The scenarios that have to do with more than one table."""


COMMITS = ("update", "insert-from-query", "update-rebased", "insert-in-conflict")
"""Commits on one table, and on one that another catalog keeps, with rivals and without."""

CHANGES = (
    *("update", "update-rebased", "update-in-conflict"),
    *("delete", "overwrite", "update-on-the-local-engine", "optimize"),
)
"""Changes of rows, which write deletion vectors or delete files where the table asks for that."""


def _applies(scenario: Scenario, formats: str) -> bool:
    """Only Delta has checkpoints. A scenario with one table has one format, in a mixed world too; the tables
    of catalogs differ in how they commit."""
    if formats == CATALOGED:
        return scenario.name in COMMITS
    if formats in (VECTORS, FEEDS, DELETES):
        return scenario.name in CHANGES
    if "checkpoint" in scenario.name:
        return formats == "delta"
    return formats != "mixed" or scenario.name in LAKE_WIDE


EVERYTHING = in_turn(
    {scenario: [formats for formats in FORMATS if _applies(scenario, formats)] for scenario in SCENARIOS}
)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("scenario", "formats"), EVERYTHING)
def test_death_at_any_request_leaves_all_or_nothing_and_tables_that_others_open(
    scenario: Scenario, formats: str, tmp_path: Path
):
    matrix = Matrix(scenario, look, FORMATS[formats])

    def die_at(point: Point) -> Left:
        outcome = matrix.die_at(point)
        stuck = [op for op in outcome.history.operations if op.client in LATER and op.outcome != "ok"]
        failed = [f"{op.client} cannot {op.action}: {op.error}" for op in stuck]
        return Left(outcome.bucket, outcome.violations + failed)

    # The other engine writes no Parquet.
    rows = scenario.engine is LocalEngine
    assert problems_of_deaths(matrix.points(), die_at, tmp_path, sample=formats != "delta", rows=rows) == []


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("formats", "seeds"), [("delta", 10), ("iceberg", 2)])
def test_every_request_has_a_crash_point(formats: str, seeds: int):
    """A request of the port, or one that the simulation sees (what is asked of which kind of object), without
    a crash point would be a commit path that was never tried."""
    kinds = FORMATS[formats]
    points = [point for scenario in SCENARIOS for point in Matrix(scenario, look, kinds).points()]
    if formats == "delta":
        assert {point.kind for point in points} == set(REQUESTS)
    seen = {
        site(event[4], event[5])
        for suite in SUITES
        for seed in range(seeds)
        for event in play(seed, suite, formats=kinds).trace
        if event[3] == "send" and not event[1].startswith("legacy")
    }
    assert seen - {site(point.kind, point.key) for point in points} <= HELPERS


HELPERS = {"head slot", "head manifest", "head manifest list"}
"""What only a client asks that completes an entry of another, or whose publish was answered late, and never
writes: no scenario here has one, the observers of tests/crash/test_many_tables.py are such clients."""


def test_death_is_tried_at_every_write_of_an_iceberg_commit():
    (update,) = (scenario for scenario in SCENARIOS if scenario.name == "update")
    points = chosen(Matrix(update, look, FORMATS["iceberg"]).points(), sample=True)
    tried = {site(point.kind, point.key) for point in points}
    assert {"put data", "put manifest", "put manifest list", "create metadata", "put hint"} <= tried


FOUND = [
    ("head-moves-before-the-table-is-there", "create"),
    ("create-that-overwrites", "update-rebased"),
    ("conflict-check-forgets-added-files", "insert-in-conflict"),
]


@pytest.mark.parametrize(
    ("bug", "name", "formats"),
    [
        *((bug, name, formats) for bug, name in FOUND for formats in ("delta", "iceberg")),
        ("conflict-check-forgets-removed-files", "delete-in-conflict", "delta"),
        ("removed-file-that-is-in-no-manifest-is-ignored", "delete-in-conflict", "iceberg"),
        ("snapshot-log-is-begun-anew", "update", "iceberg"),
        ("newest-metadata-file-is-taken-for-current", "insert-from-query", CATALOGED),
    ],
)
def test_matrix_finds_a_planted_bug(bug: str, name: str, formats: str):
    scenario = next(scenario for scenario in SCENARIOS if scenario.name == name)
    matrix = Matrix(scenario, look, FORMATS[formats])
    with (BUGS | ICEBERG_BUGS | CATALOGED_BUGS)[bug]():
        assert any(matrix.die_at(point).violations for point in chosen(matrix.points(), formats != "delta"))
