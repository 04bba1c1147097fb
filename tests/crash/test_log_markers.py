"""A client of a table with markers in its log dies at each of its requests, in each way."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from unittest.mock import patch

import pytest
from deltalake import DeltaTable

from lakevilla.store.port import Replaced
from lakevilla.store.retry import Retrying
from sim.actors import one_table
from sim.actors.journal import Journal, give_up, run_again, transact
from sim.actors.session import Session
from sim.checkers.history import History
from sim.checkers.tables.delta import live_files
from sim.checkers.tables.iceberg import log_key, place_of
from sim.checkers.tables.log_markers import hidden_commits, pending_markers, without_markers
from sim.checkers.tables.logs import read_log, table_roots
from sim.suites.crash import Matrix, Outcome, Point, Scenario
from sim.suites.log_markers import image_in_log, judge_in_log
from sim.world.bucket import Bucket, Write
from sim.world.formats import FORMATS
from sim.world.row_engine import rows_engine
from tests.crash.chosen_deaths import ALL, chosen
from tests.crash.other_readers import by_pyiceberg
from tests.crash.recovery_acts import (
    aborted,
    forgotten,
    long_statements,
    one_statement,
    other_statement,
    recover,
    rewound,
    several_statements,
    transacting,
    two_forgotten,
)
from tests.support.extent import in_turn

LATER = ("observer", "last")


def append_row(journal: Journal) -> None:
    rows = [{"op": journal.fresh(), "part": 1}]
    journal.change("append", None, rows, lambda tx: tx.append("blind", rows))


def append(session: Session) -> None:
    transact(session, "blind", append_row)


def appends(session: Session) -> None:
    for _ in range(8):
        append(session)


def freed_above(session: Session) -> None:
    """A marker above this one is freed before this one is filled."""

    def work(journal: Journal) -> None:
        one_statement(journal)
        give_up(session, "lists", other_statement)

    transact(session, "lists", work)


def look(session: Session) -> None:
    """A client that comes later: it reads every table and changes some."""
    for table in one_table.SCHEMAS:
        one_table.audit_table(session, table)
    append(session)
    run_again(session, "lists", several_statements)
    transact(session, "lists", long_statements)


SCENARIOS = [
    Scenario("one-statement", transacting(one_statement)),
    Scenario("several-statements", transacting(several_statements)),
    Scenario("long-statements", transacting(long_statements)),
    Scenario("blind-append", append),
    Scenario("checkpoint-due", append, prepare=appends),
    Scenario("abort", aborted),
    Scenario("freed-above", freed_above),
    Scenario("forgotten", forgotten),
    Scenario("rebased", transacting(one_statement), rival=transacting(other_statement)),
    Scenario("redone", transacting(one_statement), rival=transacting(one_statement)),
    Scenario("run-again", rewound, rival=transacting(one_statement)),
    Scenario("take-over-of-two-stale-markers", transacting(one_statement), prepare=two_forgotten),
    Scenario("recover", recover, prepare=two_forgotten),
]


class LogMatrix(Matrix):
    """All points of one scenario, on tables whose markers lie in the log."""

    def _first_image(self) -> Bucket:
        return image_in_log(rows_engine, self._formats)

    def _judge(self, bucket: Bucket, history: History) -> list[str]:
        return judge_in_log(bucket, history)


def problems_of(point: Point, outcome: Outcome) -> list[str]:
    stuck = [op for op in outcome.history.operations if op.client in LATER and op.outcome != "ok"]
    pending = pending_markers(outcome.bucket.writes)
    return [
        *(f"{point} {point.key}: {violation}" for violation in outcome.violations),
        *(f"{point} {point.key}: {op.client} cannot {op.action}: {op.error}" for op in stuck),
        *(f"{point} {point.key}: a marker of {place} is pending for ever" for place in pending),
        *(f"{point} {point.key}: {place} is hidden" for place in hidden_commits(outcome.bucket.writes)),
    ]


OF_WHOLE_STATES = ("freed-above", "redone", "take-over-of-two-stale-markers", "recover")
"""Which of them show what is another matter where each version is the whole state of the table."""


def _applies(scenario: Scenario, formats: str) -> bool:
    if scenario.name == "checkpoint-due":
        return formats == "delta"
    if formats == "delta":
        return ALL or scenario.name != "freed-above"
    return ALL or scenario.name in OF_WHOLE_STATES


EVERYTHING = in_turn(
    {
        scenario: [formats for formats in ("delta", "iceberg") if _applies(scenario, formats)]
        for scenario in SCENARIOS
    }
)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("scenario", "formats"), EVERYTHING)
def test_death_at_any_request_leaves_all_or_nothing_and_frees_the_queue(scenario: Scenario, formats: str):
    matrix = LogMatrix(scenario, look, FORMATS[formats])
    points = chosen(matrix.points(), sample=True)
    assert points
    assert [p for point in points for p in problems_of(point, matrix.die_at(point))] == []


def test_matrix_dies_at_every_kind_of_write_of_a_marker():
    seen = {
        (point.kind, "_delta_log" in point.key)
        for scenario in SCENARIOS
        for point in LogMatrix(scenario, look).points()
    }
    assert {("create", True), ("replace", True), ("list", True), ("get", True)} <= seen


def prefixes_of(writes: Sequence[Write]) -> list[set[str]]:
    """The files that each prefix of the commits on `lists` has, by their names."""
    kept, _ = without_markers(writes)
    commits = read_log({w.key: w.data for w in kept if w.data is not None}, "lists").commits
    return [_names(live_files(commits[: number + 1])) for number in range(len(commits))]


def _names(paths: Iterable[str]) -> set[str]:
    return {path.rpartition("/")[2] for path in paths}


def late_writes(formats: str) -> Sequence[Write]:
    """Two that take turns on `lists`, of whom one dies, and those who look then: the second of them after the
    request that came late."""
    scenario = Scenario("redone", transacting(several_statements), rival=transacting(several_statements))
    matrix = LogMatrix(scenario, look, FORMATS[formats])
    return matrix.die_at(next(p for p in matrix.points() if p.mode == "late")).bucket.writes


def test_deltalake_opens_what_is_there_after_any_prefix_of_the_writes(tmp_path: Path):
    """Cold at every step: each version that it sees is a prefix of the commits."""
    writes = late_writes("delta")
    prefixes = prefixes_of(writes)
    objects: dict[str, bytes] = {}
    folder, checked = tmp_path / "lake", 0
    for write in writes:
        if write.data is None:
            continue
        objects[write.key] = write.data
        (folder / write.key).parent.mkdir(parents=True, exist_ok=True)
        (folder / write.key).write_bytes(write.data)
        if write.key.startswith("lists/_delta_log/") and "lists" in table_roots(objects):
            files = _names(DeltaTable(folder / "lists").file_uris())
            assert files in prefixes, f"{files} is not a prefix of the commits"
            checked += 1
    assert checked > 10
    assert any(write.data and b'"marker":true' in write.data for write in writes)


def test_pyiceberg_opens_what_is_there_after_any_prefix_of_the_writes():
    """By the greatest number and by the hint: each state that it sees is a prefix of the commits."""
    writes = late_writes("iceberg")
    prefixes, objects = prefixes_of(writes), dict[str, bytes]()
    tops, hints = list[int](), list[int]()
    for write in writes:
        if write.data is None:
            continue
        objects[write.key] = write.data
        numbers = [at.version for at in map(place_of, objects) if at is not None and at.root == "lists"]
        if write.key == log_key("lists", max(numbers, default=0)):
            tops.append(prefixes.index(by_pyiceberg(objects, "lists", max(numbers), rows=False).names))
        elif write.key == "lists/metadata/version-hint.text":
            hints.append(prefixes.index(by_pyiceberg(objects, "lists", int(write.data), rows=False).names))
    assert len(tops) > 10
    assert tops[-1] == hints[-1] == len(prefixes) - 1
    assert hints == sorted(hints)
    assert any(write.data and b'\\"marker\\":true' in write.data for write in writes)


def test_matrix_finds_a_marker_that_is_filled_whatever_became_of_it():
    """Planted: the commit is put over the marker, without a look at whether it is still ours."""

    def put_over(self: Retrying, key: str, data: bytes, etag: str) -> Replaced:
        self.put(key, data)
        found = self.get(key)
        assert found is not None
        return Replaced(found.etag)

    with patch.object(Retrying, "replace", put_over):
        matrix = LogMatrix(Scenario("late", transacting(one_statement)), look)
        late = [p for p in matrix.points() if (p.kind, p.mode) == ("put", "late") and "_delta_log" in p.key]
        assert late
        assert all(problems_of(point, matrix.die_at(point)) for point in late)
