"""A client dies at each of its requests, in each way; others must find all of its work or nothing."""

from pathlib import Path

import pytest

from lakevilla.engines.local.engine import LocalEngine
from sim.crash import Matrix, Scenario
from sim.faults import REQUESTS
from sim.formats import FORMATS
from sim.planted import BUGS
from sim.sites import site
from sim.suite import SUITES, play
from tests.crash.choosing import chosen
from tests.crash.opening import check_tables
from tests.crash.scenarios import SCENARIOS, look

# Only Delta has checkpoints; in a mixed world each table that dies is of one format or the other.
EVERYTHING = [
    pytest.param(scenario, formats, id=f"{scenario}-{formats}")
    for formats in ("delta", "iceberg")
    for scenario in SCENARIOS
    if formats == "delta" or "checkpoint" not in scenario.name
]


@pytest.mark.parametrize(("scenario", "formats"), EVERYTHING)
def test_death_at_any_request_leaves_all_or_nothing(scenario: Scenario, formats: str):
    matrix = Matrix(scenario, look, FORMATS[formats])
    problems = []
    points = chosen(matrix.points(), formats)
    assert points
    for point in points:
        outcome = matrix.die_at(point)
        stuck = [op for op in outcome.history.operations if op.client in LATER and op.outcome != "ok"]
        problems += [f"{point} {point.key}: {violation}" for violation in outcome.violations]
        problems += [f"{point} {point.key}: {op.client} cannot {op.action}: {op.error}" for op in stuck]
    assert problems == []


@pytest.mark.parametrize(("formats", "seeds"), [("delta", 30), ("iceberg", 10)])
def test_every_request_has_a_crash_point(formats: str, seeds: int):
    """A request of the port, or one that the simulation sees (what is asked of which kind of object), without
    a crash point would be a commit path that nobody tried."""
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
    assert seen - {site(point.kind, point.key) for point in points} == set()


def test_death_is_tried_at_every_write_of_an_iceberg_commit():
    (update,) = (scenario for scenario in SCENARIOS if scenario.name == "update")
    points = chosen(Matrix(update, look, FORMATS["iceberg"]).points(), "iceberg")
    tried = {site(point.kind, point.key) for point in points}
    assert {"put data", "put manifest", "put manifest list", "create metadata", "put hint"} <= tried


LATER = ("observer", "last")


@pytest.mark.parametrize(("scenario", "formats"), EVERYTHING)
def test_other_readers_open_every_table_that_a_death_left(scenario: Scenario, formats: str, tmp_path: Path):
    """A sample of the points: another project's reader finds the same version and the same files."""
    matrix = Matrix(scenario, look, FORMATS[formats])
    points = list(matrix.points())
    deaths = 4 if formats == "delta" else 2
    for number, point in enumerate(points[:: max(1, len(points) // deaths)]):
        objects = matrix.die_at(point).bucket.contents()
        check_tables(objects, tmp_path / str(number), scenario.engine is LocalEngine)


@pytest.mark.parametrize(
    ("bug", "name"),
    [
        ("head-moves-before-the-table-is-there", "create"),
        ("create-that-overwrites", "update-rebased"),
        ("conflict-check-forgets-added-files", "insert-in-conflict"),
        ("conflict-check-forgets-removed-files", "delete-in-conflict"),
    ],
)
def test_matrix_finds_a_planted_bug(bug: str, name: str):
    scenario = next(scenario for scenario in SCENARIOS if scenario.name == name)
    matrix = Matrix(scenario, look)
    with BUGS[bug]():
        assert any(matrix.die_at(point).violations for point in matrix.points())
