"""A client dies at each of its requests, in each way; others must find all of its work or nothing."""

from pathlib import Path

import pytest
from deltalake import DeltaTable

from lakevilla.engines.local.engine import LocalEngine
from sim.checkers.commits import rows_of
from sim.checkers.effects import bag
from sim.checkers.logs import read_log, table_roots
from sim.crash import Matrix, Scenario
from sim.faults import REQUESTS
from sim.planted import BUGS
from sim.sites import site
from sim.suite import SUITES, play
from tests.crash.scenarios import SCENARIOS, look


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_death_at_any_request_leaves_all_or_nothing(scenario: Scenario):
    matrix = Matrix(scenario, look)
    problems = []
    points = list(matrix.points())
    assert points
    for point in points:
        outcome = matrix.die_at(point)
        stuck = [op for op in outcome.history.operations if op.client in LATER and op.outcome != "ok"]
        problems += [f"{point} {point.key}: {violation}" for violation in outcome.violations]
        problems += [f"{point} {point.key}: {op.client} cannot {op.action}: {op.error}" for op in stuck]
    assert problems == []


def test_every_request_has_a_crash_point():
    """A request of the port, or one that the simulation sees (what is asked of which kind of object), without
    a crash point would be a commit path that nobody tried."""
    points = [point for scenario in SCENARIOS for point in Matrix(scenario, look).points()]
    assert {point.kind for point in points} == set(REQUESTS)
    seen = {
        site(event[4], event[5])
        for suite in SUITES
        for seed in range(30)
        for event in play(seed, suite).trace
        if event[3] == "send" and not event[1].startswith("legacy")
    }
    assert seen - {site(point.kind, point.key) for point in points} == set()


LATER = ("observer", "last")


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_deltalake_opens_every_table_that_a_death_left(scenario: Scenario, tmp_path: Path):
    """A sample of the points: another project's reader finds the same version and the same files."""
    matrix = Matrix(scenario, look)
    points = list(matrix.points())
    for number, point in enumerate(points[:: max(1, len(points) // 4)]):
        objects = matrix.die_at(point).bucket.contents()
        folder = tmp_path / str(number)
        for key, data in objects.items():
            (folder / key).parent.mkdir(parents=True, exist_ok=True)
            (folder / key).write_bytes(data)
        for root in table_roots(objects):
            log = read_log(objects, root)
            table = DeltaTable(folder / root)
            assert table.version() == log.commits[-1].version
            names = {uri.rpartition("/")[2] for uri in table.file_uris()}
            assert names == {file.key.rpartition("/")[2] for file in log.live.values()}
            if scenario.engine is LocalEngine:
                rows = table.to_pyarrow_table().to_pylist()
                assert bag(rows) == bag([row for file in log.live.values() for row in rows_of(file, objects)])


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
