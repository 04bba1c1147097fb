"""Markers in the log: filled once, by their owner, if no client can have built on the empty entry."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from lakevilla.errors import CommitUnknown, Unavailable
from lakevilla.formats.delta.log.paths import LOG, checkpoint_key
from lakevilla.formats.port import Displaced, Published
from lakevilla.predicates import ANYTHING
from lakevilla.store.faulty import Fault, Plan, always, nth
from lakevilla.store.metered import KINDS, Meter, Metered
from tests.unit.formats.marked import Log, record

OUTSIDE = {
    "delta": b'{"commitInfo":{"operation":"WRITE"}}\n',
    "iceberg": b'{"format-version":2,"location":"memory://"}',
}
"""What makes a version of somebody who knows no markers."""


@pytest.fixture(params=["delta", "iceberg"])
def log(request: pytest.FixtureRequest) -> Log:
    return Log(request.param)


REQUESTS = {
    "delta": {"list": 1, "replace": 1},
    # A manifest and the list of manifests; one look above that misses.
    "iceberg": {"put": 2, "get": 1, "replace": 1},
}


def test_marker_is_an_empty_commit_and_becomes_the_change_by_a_look_and_a_replace(log: Log) -> None:
    assert b'"marker":true' in log.found().data.replace(b'\\"', b'"')
    assert log.entries.decode(log.ours, log.found().data) == record()
    assert (log.latest().version, log.ids()) == (log.base.version, [1])
    log.base.files(ANYTHING)
    meter = Meter()
    filled = log.fill(Metered(log.store, meter))
    assert isinstance(filled, Published)
    sent = {kind: count for kind, count in meter.snapshot().items() if kind in KINDS and count}
    assert sent == REQUESTS[log.format]
    assert (filled.snapshot.version, log.latest().version, log.ids()) == (log.ours, log.ours, [1, 2])


def test_warm_snapshot_stays_before_the_marker_and_goes_on_when_it_is_filled(log: Log) -> None:
    log.mark(1, "theirs")
    warm = log.table.latest(log.base)
    assert warm is not None
    assert (warm.version, log.table.since(log.base)) == (log.base.version, [])
    log.fill()
    assert [taken.snapshot.version for taken in log.table.since(log.base)] == [log.ours]
    log.rewrite(record("theirs", live=False), 1)
    taken = log.table.since(log.base)[-1]
    assert (taken.footprint.version, taken.footprint.txn, taken.footprint.attempt) == (
        log.ours + 1,
        None,
        None,
    )
    assert not taken.footprint.metadata_changed
    assert (taken.snapshot.version, log.ids(taken.snapshot)) == (log.ours + 1, [1, 2])


@pytest.mark.parametrize("fault", [Fault.LOST, Fault.FAILS, Fault.TWICE])
def test_lost_answer_is_found_again(log: Log, fault: Fault) -> None:
    assert isinstance(log.fill(log.shaky(nth({1: fault}, "replace"))), Published)
    assert log.ids() == [1, 2]


def test_answer_that_stays_lost_is_read_back(log: Log) -> None:
    assert isinstance(log.fill(log.shaky(always(Fault.LOST, "replace"))), Published)
    assert log.ids() == [1, 2]


def test_marker_that_is_still_there_after_no_answer_leaves_the_outcome_open(log: Log) -> None:
    with pytest.raises(CommitUnknown):
        log.fill(log.shaky(always(Fault.FAILS, "replace")))
    assert log.ids() == [1]


def test_outcome_is_open_if_the_entry_cannot_be_read_either(log: Log) -> None:
    replaced: list[str] = []

    def plan(kind: str, key: str, _number: int) -> Fault | BaseException | None:
        if kind == "replace":
            replaced.append(key)
            return Fault.LOST
        return Fault.FAILS if kind == "get" and replaced else None

    with pytest.raises(CommitUnknown):
        log.fill(log.shaky(plan))


def test_store_that_refuses_the_replace_has_decided_nothing(log: Log) -> None:
    with pytest.raises(Unavailable):
        log.fill(log.shaky(always(Unavailable("no"), "replace")))
    assert log.ids() == [1]


@pytest.mark.parametrize("plan", [nth({}), nth({1: Fault.FAILS}, "replace"), always(Fault.FAILS, "replace")])
@pytest.mark.parametrize(
    "marker",
    [record(live=False, put="m2"), record(put="m2"), {**record(live=False, put="m2"), "attempt": "a1"}],
    ids=["freed", "taken over", "freed, and names our attempt"],
)
def test_marker_that_is_not_ours_any_more_is_not_filled(log: Log, marker: dict[str, Any], plan: Plan) -> None:
    log.rewrite(marker)
    before = log.found()
    assert isinstance(log.fill(log.shaky(plan)), Displaced)
    assert log.found() == before


def test_markers_above_are_no_reason_not_to_fill(log: Log) -> None:
    log.mark(1, "theirs")
    log.mark(2, "gone")
    log.rewrite(record("gone", live=False), 2)
    assert isinstance(log.fill(), Published)


@pytest.mark.parametrize(
    ("table_format", "key"),
    [
        ("delta", lambda log: log.key(1)),
        ("delta", lambda log: log.key(2)),
        ("delta", lambda _: checkpoint_key(1)),
        ("delta", lambda _: checkpoint_key(7)),
        ("delta", lambda _: f"{LOG}{1:020d}.{2:020d}.compacted.json"),
        ("iceberg", lambda log: log.key(1)),
        ("iceberg", lambda log: log.key(2)),
    ],
)
def test_marker_on_which_somebody_may_have_built_is_not_filled(
    table_format: str, key: Callable[[Log], str]
) -> None:
    log = Log(table_format)
    if key(log) == log.key(2):
        log.mark(1, "theirs")
    log.store.put(key(log), OUTSIDE[table_format])
    before = log.found()
    answer = log.fill()
    assert isinstance(answer, Displaced)
    assert "our marker" in answer.reason
    assert log.found() == before


def test_checkpoint_below_the_marker_is_no_reason_not_to_fill() -> None:
    log = Log("delta")
    log.store.put(checkpoint_key(0), b"whatever")
    assert isinstance(log.fill(), Published)


def test_file_of_a_marker_that_is_filled_after_the_log_was_read_is_not_vacuumed(log: Log) -> None:
    log.mark(1, "theirs")
    references = log.table.references(log.latest(), 0)
    keys = pa.array([file.key for file in log.change.added], pa.string())
    assert references.needed(keys).to_pylist() == [False]
    log.fill()
    assert references.named_since(keys).to_pylist() == [True]
