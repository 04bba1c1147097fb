"""Publishing: what is asked of the store, and what every answer means."""

import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakevilla.environment import SystemEnvironment
from lakevilla.errors import CommitUnknown, InvalidInput, Unavailable, Unsupported
from lakevilla.formats.delta.log.actions import Protocol
from lakevilla.formats.delta.snapshot import DeltaSnapshot
from lakevilla.formats.port import Published, Taken
from lakevilla.model import Author, Change, Notice, PartitionField
from lakevilla.predicates import ANYTHING, Compare, IsNull
from lakevilla.sql import statements as sql
from lakevilla.store.faulty import Fault, Faulty, always, nth
from lakevilla.store.metered import Meter, Metered
from lakevilla.store.open import open_store
from lakevilla.store.port import Ambiguous, Store
from lakevilla.store.retry import Retrying
from tests.support.delta_writer import Writer
from tests.unit.store.clocked import Clocked

SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string())])

GONE = Notice("lake", 3, dropped=True)


def rows(*numbers: int, p: str | None = "a") -> pa.Table:
    return pa.table({"id": list(numbers), "p": [p] * len(numbers)}, SCHEMA)


@pytest.fixture
def store() -> Store:
    return open_store("memory://")


@pytest.fixture
def writer(store: Store) -> Writer:
    return Writer(store)


def entry(store: Store, version: int) -> list[dict[str, Any]]:
    found = store.get(f"_delta_log/{version:020}.json")
    assert found is not None
    return [json.loads(line) for line in found.data.splitlines()]


def test_publishing_takes_one_create_and_nothing_else(store: Store) -> None:
    writer = Writer(store)
    base = writer.create(SCHEMA, rows=rows(1))
    meter = Meter()
    change = Change("WRITE", added=writer.write(base, rows(2)))
    published = Writer(Metered(store, meter)).publish(change, base)
    assert isinstance(published, Published)
    assert (meter.total, meter.snapshot()["create"]) == (1, 1)
    assert writer.rows(published.snapshot).equals(writer.rows())
    assert published.snapshot.version == 1


def test_a_lost_race_is_taken_with_what_the_winner_did(writer: Writer) -> None:
    base = writer.create(SCHEMA, by=["p"], rows=rows(1))
    first = base.files(ANYTHING)[0]
    writer.rewrite(rows(5, 6, p="b"), base=base)
    change = Change("WRITE", added=writer.write(base, rows(2)))
    taken = writer.publish(change, base)
    assert isinstance(taken, Taken)
    assert taken.snapshot.version == 1
    assert sorted(writer.rows(taken.snapshot)["id"].to_pylist()) == [5, 6]
    footprint = taken.footprint
    assert footprint.version == 1
    assert footprint.removed == {first.identity}
    assert footprint.attempt is not None
    assert footprint.summary.startswith("version 1 (UPDATE by LakeVilla/")
    assert (footprint.metadata_changed, footprint.protocol_changed, footprint.dropped) == (
        False,
        False,
        False,
    )
    matches = {
        "hit": Compare(("id",), "=", 5),
        "out of bounds": Compare(("id",), "=", 7),
        "partition": Compare(("p",), "=", "b"),
        "other partition": Compare(("p",), "=", "a"),
        "no nulls": IsNull(("id",)),
        "anything": ANYTHING,
    }
    found = {name for name, predicate in matches.items() if footprint.added.matching(predicate)}
    assert found == {"hit", "partition", "anything"}


def test_after_a_lost_race_the_change_lands_on_the_next_version(writer: Writer) -> None:
    base = writer.create(SCHEMA)
    change = Change("WRITE", added=writer.write(base, rows(2)))
    writer.append(rows(1))
    taken = writer.publish(change, base)
    assert isinstance(taken, Taken)
    assert isinstance(taken.snapshot, DeltaSnapshot)
    assert writer.commit(change, taken.snapshot).version == 2
    assert sorted(writer.rows()["id"].to_pylist()) == [1, 2]


def test_metadata_and_drops_show_in_the_footprint(writer: Writer) -> None:
    base = writer.create(SCHEMA)
    writer.alter(sql.AddColumns((pa.field("n", pa.timestamp("us")),)))
    taken = writer.publish(Change("WRITE", added=writer.write(base, rows(2))), base)
    assert isinstance(taken, Taken)
    assert (taken.footprint.metadata_changed, taken.footprint.protocol_changed) == (True, True)
    assert isinstance(taken.snapshot, DeltaSnapshot)
    writer.table.publish_notice(1, GONE, "txn", "attempt")
    dropped = writer.publish(Change("WRITE"), taken.snapshot)
    assert isinstance(dropped, Taken)
    assert dropped.footprint.dropped
    assert dropped.snapshot.coordination.notice == GONE


def test_an_entry_that_names_our_attempt_is_ours_whatever_its_bytes(writer: Writer, store: Store) -> None:
    base = writer.create(SCHEMA)
    change = Change("WRITE", added=writer.write(base, rows(1)))
    author = writer.author()
    first = writer.table.publish(base, change, author)
    again = writer.table.publish(base, change, replace(author, put="another"))
    assert isinstance(first, Published)
    assert isinstance(again, Published)
    assert again.snapshot.version == 1
    assert store.get("_delta_log/00000000000000000002.json") is None


@pytest.mark.parametrize("fault", [Fault.LOST, Fault.FAILS, Fault.TWICE])
def test_a_lost_answer_is_found_again_and_written_once(store: Store, fault: Fault) -> None:
    writer = Writer(store)
    base = writer.create(SCHEMA)
    environment = Clocked()
    shaky = Retrying(Faulty(store, nth({1: fault}, "create")), environment)
    change = Change("WRITE", added=writer.write(base, rows(1)))
    assert isinstance(Writer(shaky, environment).publish(change, base), Published)
    assert writer.latest().version == 1
    assert writer.rows().num_rows == 1


class Doubtful:
    """A store whose creates end in doubt: `applied` says whether they happened, `gone` stops reads after."""

    def __init__(self, store: Store, *, applied: bool, gone: bool = False) -> None:
        self._store = store
        self._applied = applied
        self._gone = gone
        self._sent = False

    def create(self, key: str, data: bytes) -> None:
        self._sent = True
        if self._applied:
            self._store.create(key, data)
        raise Ambiguous("no answer")

    def get(self, key: str) -> Any:
        if self._sent and self._gone:
            raise Unavailable("gone")
        return self._store.get(key)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def doubtful(store: Store, **ways: bool) -> Writer:
    return Writer(Doubtful(store, **ways))  # type: ignore[arg-type]


def test_a_doubtful_create_that_applied_is_published(writer: Writer, store: Store) -> None:
    base = writer.create(SCHEMA)
    published = doubtful(store, applied=True).publish(Change("WRITE"), base)
    assert isinstance(published, Published)
    assert published.snapshot.version == 1


@pytest.mark.parametrize(("applied", "gone"), [(False, False), (True, True), (False, True)])
def test_a_doubtful_create_that_cannot_be_seen_is_unknown(
    writer: Writer, store: Store, applied: bool, gone: bool
) -> None:
    base = writer.create(SCHEMA)
    with pytest.raises(CommitUnknown, match=r"transaction t7 .* lake\.outcome"):
        doubtful(store, applied=applied, gone=gone).table.publish(
            base, Change("WRITE"), Author("t7", "a", "p")
        )


def test_a_doubtful_create_that_met_somebody_else_is_taken(writer: Writer, store: Store) -> None:
    base = writer.create(SCHEMA)
    writer.append(rows(1))
    taken = doubtful(store, applied=False).publish(Change("WRITE"), base)
    assert isinstance(taken, Taken)
    assert taken.footprint.version == 1


def test_a_store_that_refuses_decides_nothing(writer: Writer, store: Store) -> None:
    base = writer.create(SCHEMA)
    refusing = Writer(Faulty(store, always(Unavailable("no"), "create")))
    with pytest.raises(Unavailable):
        refusing.publish(Change("WRITE"), base)
    assert writer.latest().version == 0


def test_an_append_only_table_refuses_removals_before_anything_is_written(
    writer: Writer, store: Store
) -> None:
    base = writer.create(SCHEMA, properties={"delta.appendOnly": "true"}, rows=rows(1))
    removal = Change("DELETE", removed=tuple(base.files(ANYTHING)))
    with pytest.raises(InvalidInput, match="DELETE would remove rows, but the table is append-only"):
        writer.publish(removal, base)
    assert writer.latest().version == 0
    compaction = replace(removal, operation="OPTIMIZE", added=writer.write(base, rows(1)))
    writer.commit(compaction, base)
    assert [action["remove"]["dataChange"] for action in entry(store, 1) if "remove" in action] == [False]


def test_a_table_that_asks_for_more_than_we_do_is_refused_before_anything_is_written(
    writer: Writer, store: Store
) -> None:
    base = writer.create(SCHEMA)
    features = frozenset({"rowTracking", "domainMetadata"})
    writer.commit(Change("UPGRADE PROTOCOL", protocol=Protocol(1, 7, None, features)), base)
    with pytest.raises(Unsupported, match="rowTracking"):
        writer.append(rows(1))
    assert store.get("_delta_log/00000000000000000002.json") is None


class Stopped(SystemEnvironment):
    """A clock that stands still, or is set by hand."""

    def __init__(self, time: int) -> None:
        super().__init__()
        self.time = time

    def now_ms(self) -> int:
        return self.time


def test_in_commit_timestamps_grow_even_when_the_clock_goes_back(store: Store) -> None:
    clock = Stopped(5000)
    writer = Writer(store, clock)
    writer.create(SCHEMA, properties={"delta.enableInCommitTimestamps": "true"})
    clock.time = 1000
    writer.append(rows(1))
    clock.time = 9000
    writer.append(rows(2))
    infos = [entry(store, version)[0]["commitInfo"] for version in range(3)]
    assert [info["inCommitTimestamp"] for info in infos] == [5000, 5001, 9000]
    assert [info["timestamp"] for info in infos] == [5000, 1000, 9000]
    assert all(next(iter(info)) == "inCommitTimestamp" for info in infos)


def test_in_commit_timestamps_turned_on_later_remember_since_when(store: Store) -> None:
    clock = Stopped(5000)
    writer = Writer(store, clock)
    base = writer.create(SCHEMA)
    change = writer.table.alter(base, sql.SetProperties({"delta.enableInCommitTimestamps": "true"}))
    writer.append(rows(1))
    taken = writer.publish(change, base)
    assert isinstance(taken, Taken)
    assert isinstance(taken.snapshot, DeltaSnapshot)
    after = writer.commit(change, taken.snapshot)
    assert after.properties["delta.inCommitTimestampEnablementVersion"] == "2"
    assert after.properties["delta.inCommitTimestampEnablementTimestamp"] == str(after.timestamp_ms) == "5001"
    writer.append(rows(2))
    assert entry(store, 3)[0]["commitInfo"]["inCommitTimestamp"] == 5002
    assert writer.latest().properties["delta.inCommitTimestampEnablementVersion"] == "2"


def test_version_zero_is_created_once_and_known_by_its_attempt(writer: Writer, store: Store) -> None:
    first = writer.table.first(SCHEMA, [PartitionField("p", ("p",))], {}, "words")
    data = writer.table.encode_first(first, Author("t", "a", "p"))
    assert data == writer.table.encode_first(first, Author("t", "a", "p"))
    assert writer.table.publish_first(data, "a")
    assert writer.table.publish_first(writer.table.encode_first(first, Author("t", "a", "q")), "a")
    assert not writer.table.publish_first(writer.table.encode_first(first, Author("u", "b", "r")), "b")
    found = store.get("_delta_log/00000000000000000000.json")
    assert found is not None
    assert found.data == data
    definition = writer.table.describe(first)
    assert (definition.schema, definition.partition_columns) == (SCHEMA, ("p",))


def test_a_table_is_ended_once_at_the_first_free_version(writer: Writer, store: Store) -> None:
    writer.create(SCHEMA)
    writer.append(rows(1))
    made = writer.table.publish_notice(0, GONE, "t", "a")
    assert made is not None
    assert made[0] == 2
    assert writer.table.publish_notice(0, GONE, "t", "a") is None
    assert writer.latest().version == 2
    assert writer.latest().coordination.notice == GONE
    assert [list(action) for action in entry(store, 2)] == [["commitInfo"]]


def test_notice_whose_answer_was_lost_is_known_to_be_ours(writer: Writer, store: Store) -> None:
    """Its client has to confirm it, as any version that it created."""
    writer.create(SCHEMA)
    made = Writer(Doubtful(store, applied=True)).table.publish_notice(0, GONE, "t", "a")  # type: ignore[arg-type]
    assert made is not None
    assert made[0] == 1


def test_a_table_is_ended_past_a_rival_that_came_in_between(writer: Writer, store: Store) -> None:
    base = writer.create(SCHEMA)

    class Overtaken(Doubtful):
        def create(self, key: str, data: bytes) -> Any:
            if not self._sent:
                self._sent = True
                writer.append(rows(1), base)
            return self._store.create(key, data)

    Writer(Overtaken(store, applied=True)).table.publish_notice(0, GONE, "t", "a")  # type: ignore[arg-type]
    assert writer.latest().version == 2
    assert writer.latest().coordination.notice == GONE


def test_the_end_of_a_table_with_in_commit_timestamps_has_one(store: Store) -> None:
    clock = Stopped(5000)
    writer = Writer(store, clock)
    writer.create(SCHEMA, properties={"delta.enableInCommitTimestamps": "true"})
    writer.table.publish_notice(0, GONE, "t", "a")
    assert entry(store, 1)[0]["commitInfo"]["inCommitTimestamp"] == 5001


def test_checkpoints_follow_the_tables_interval(tmp_path: Path) -> None:
    writer = Writer(open_store(str(tmp_path), {"fsync": "false"}))
    writer.create(SCHEMA, properties={"delta.checkpointInterval": "3"})
    for number in range(7):
        writer.append(rows(number))
    found = sorted(path.name[:20] for path in tmp_path.glob("_delta_log/*.checkpoint.parquet"))
    assert found == [f"{3:020}", f"{6:020}"]
    assert sorted(writer.rows()["id"].to_pylist()) == list(range(7))


def test_a_checkpoint_that_fails_is_logged_and_the_commit_stands(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    Writer(store).create(SCHEMA, properties={"delta.checkpointInterval": "1"})
    broken = Writer(
        Faulty(store, lambda kind, key, _: Unavailable("full") if kind == "put" and "_log" in key else None)
    )
    with caplog.at_level(logging.WARNING, "lakevilla.delta"):
        assert broken.append(rows(1)).version == 1
    assert "has no checkpoint" in caplog.text
    assert Writer(store).rows().num_rows == 1


def test_a_foreign_commit_without_words_has_a_summary_too(writer: Writer, store: Store) -> None:
    base = writer.create(SCHEMA)
    store.put("_delta_log/00000000000000000001.json", b'{"txn":{"appId":"x","version":1}}\n')
    taken = writer.publish(Change("WRITE"), base)
    assert isinstance(taken, Taken)
    assert taken.footprint.summary == "version 1 (a commit)"
    assert taken.footprint.attempt is None
