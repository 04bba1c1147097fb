"""Markers in the log: filled once, by their owner, if nobody can have built on the empty entry."""

import json
from typing import Any

import pyarrow as pa
import pytest

from lakevilla.errors import CommitUnknown, Unavailable
from lakevilla.formats.delta.paths import LOG, checkpoint_key, entry_key
from lakevilla.formats.delta.snapshot import DeltaSnapshot
from lakevilla.formats.port import Displaced, Published
from lakevilla.model import Author, Change
from lakevilla.store.faulty import Fault, Faulty, Plan, always, nth
from lakevilla.store.metered import Meter, Metered
from lakevilla.store.opening import open_store
from lakevilla.store.port import Created, Replaced, Store
from lakevilla.store.retrying import Retrying
from tests.delta_writer import Writer
from tests.unit.store.clocked import Clocked

SCHEMA = pa.schema([("id", pa.int64())])
OURS = Author("ours", "a1", "p1")


def record(txn: str = "ours", live: bool = True, put: str = "m1") -> dict[str, Any]:
    return {"txn": txn, "attempt": txn, "put": put, "claimed_ms": 5, "live": live, "precedes": []}


class Log:
    """A table with one row, and a marker of ours as its version 1."""

    def __init__(self) -> None:
        self.store = open_store("memory://")
        self.writer = Writer(self.store)
        self.base = self.writer.create(SCHEMA, rows=pa.table({"id": [1]}))
        self.change = Change("WRITE", added=self.writer.write(self.base, pa.table({"id": [2]})))
        self.entries = self.writer.table.marker_entries()
        self.etag = self.mark(1)

    def mark(self, version: int, txn: str = "ours") -> str:
        answer = self.store.create(entry_key(version), self.entries.encode(version, record(txn)))
        assert isinstance(answer, Created)
        return answer.etag

    def rewrite(self, version: int, marker: dict[str, Any]) -> None:
        found = self.store.get(entry_key(version))
        assert found is not None
        answer = self.store.replace(entry_key(version), self.entries.encode(version, marker), found.etag)
        assert isinstance(answer, Replaced)

    def fill(self, store: Store | None = None) -> Published | Displaced:
        writer = self.writer if store is None else Writer(store, Clocked())
        return writer.table.fill(self.base, self.change, OURS, self.etag)

    def shaky(self, plan: Plan) -> Store:
        return Retrying(Faulty(self.store, plan), Clocked())

    def ids(self) -> list[int]:
        return sorted(self.writer.rows()["id"].to_pylist())


@pytest.fixture
def log() -> Log:
    return Log()


def test_marker_is_an_empty_commit_and_becomes_the_change_by_a_list_and_a_replace(log: Log) -> None:
    found = log.store.get(entry_key(1))
    assert found is not None
    (action,) = (json.loads(line) for line in found.data.splitlines())
    assert action["commitInfo"]["lakevilla"]["marker"] is True
    assert log.entries.decode(1, found.data) == record()
    assert (log.writer.latest().version, log.ids()) == (0, [1])
    meter = Meter()
    filled = log.fill(Metered(log.store, meter))
    assert isinstance(filled, Published)
    assert (meter.total, meter.snapshot()["list"], meter.snapshot()["replace"]) == (2, 1, 1)
    assert (filled.snapshot.version, log.writer.latest().version, log.ids()) == (1, 1, [1, 2])


def test_warm_snapshot_stays_before_the_marker_and_goes_on_when_it_is_filled(log: Log) -> None:
    log.mark(2, "theirs")
    warm = log.writer.table.latest(log.base)
    assert warm is not None
    assert (warm.version, log.writer.table.since(log.base)) == (0, [])
    log.fill()
    assert [taken.snapshot.version for taken in log.writer.table.since(log.base)] == [1]
    log.rewrite(2, record("theirs", live=False))
    taken = log.writer.table.since(log.base)[-1]
    assert (taken.footprint.version, taken.footprint.txn, taken.footprint.attempt) == (2, None, None)


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
    def plan(kind: str, _key: str, _number: int) -> Fault | BaseException | None:
        return {"replace": Fault.LOST, "get": Fault.FAILS}.get(kind)

    with pytest.raises(CommitUnknown):
        log.fill(log.shaky(plan))


def test_store_that_refuses_the_replace_has_decided_nothing(log: Log) -> None:
    with pytest.raises(Unavailable):
        log.fill(log.shaky(always(Unavailable("no"), "replace")))
    assert log.ids() == [1]


@pytest.mark.parametrize("plan", [nth({}), nth({1: Fault.FAILS}, "replace"), always(Fault.FAILS, "replace")])
@pytest.mark.parametrize(
    "marker", [record(live=False, put="m2"), record(put="m2")], ids=["freed", "taken over"]
)
def test_marker_that_is_not_ours_any_more_is_not_filled(log: Log, marker: dict[str, Any], plan: Plan) -> None:
    log.rewrite(1, marker)
    before = log.store.get(entry_key(1))
    assert isinstance(log.fill(log.shaky(plan)), Displaced)
    assert log.store.get(entry_key(1)) == before


def test_markers_above_are_no_reason_not_to_fill(log: Log) -> None:
    log.mark(2, "theirs")
    log.mark(3, "gone")
    log.rewrite(3, record("gone", live=False))
    assert isinstance(log.fill(), Published)


@pytest.mark.parametrize(
    "key",
    [
        entry_key(2),
        entry_key(3),
        checkpoint_key(1),
        checkpoint_key(7),
        f"{LOG}{1:020d}.{2:020d}.compacted.json",
    ],
)
def test_marker_on_which_somebody_may_have_built_is_not_filled(log: Log, key: str) -> None:
    if key == entry_key(3):
        log.mark(2, "theirs")
    log.store.put(key, b'{"commitInfo":{"operation":"WRITE"}}\n')
    before = log.store.get(entry_key(1))
    answer = log.fill()
    assert isinstance(answer, Displaced)
    assert "our marker" in answer.reason
    assert log.store.get(entry_key(1)) == before


def test_checkpoint_below_the_marker_is_no_reason_not_to_fill(log: Log) -> None:
    log.store.put(checkpoint_key(0), b"whatever")
    assert isinstance(log.fill(), Published)


def test_file_of_a_marker_that_is_filled_after_the_log_was_read_is_not_vacuumed(log: Log) -> None:
    log.mark(2, "theirs")
    newest = log.writer.latest()
    assert isinstance(newest, DeltaSnapshot)
    references = log.writer.table.references(newest, 0)
    keys = pa.array([file.key for file in log.change.added], pa.string())
    assert references.needed(keys).to_pylist() == [False]
    log.fill()
    assert references.named_since(keys).to_pylist() == [True]
