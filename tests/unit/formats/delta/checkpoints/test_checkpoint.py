"""Checkpoints that we write: their columns, what they keep, and what they leave out."""

import io
import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakevilla.environment import SystemEnvironment
from lakevilla.formats.delta.checkpoints.writer import write_checkpoint
from lakevilla.formats.delta.log.actions import Protocol
from lakevilla.formats.delta.log.listing import list_log
from lakevilla.model import Change
from lakevilla.predicates import ANYTHING, Compare
from lakevilla.store.metered import Meter
from lakevilla.store.open import open_store
from lakevilla.store.port import Store
from tests.support.delta_writer import Writer

GOLDEN = Path(__file__).parents[6] / "shared" / "data" / "golden" / "delta"
DAY_MS = 24 * 3600 * 1000
SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string())])


def rows(*numbers: int, p: str | None = "a") -> pa.Table:
    return pa.table({"id": list(numbers), "p": [p] * len(numbers)}, SCHEMA)


class Calendar(SystemEnvironment):
    """A clock that is set by hand."""

    def __init__(self) -> None:
        super().__init__()
        self.days = 20_000

    def now_ms(self) -> int:
        return self.days * DAY_MS


@pytest.fixture
def store() -> Store:
    return open_store("memory://")


@pytest.fixture
def calendar() -> Calendar:
    return Calendar()


@pytest.fixture
def writer(store: Store, calendar: Calendar) -> Writer:
    return Writer(store, calendar)


def checkpoint(writer: Writer) -> dict[str, list[dict[str, Any]]]:
    """Write one of the newest version; the actions that it holds, by kind."""
    snapshot = writer.latest()
    write_checkpoint(writer.store, writer.environment, snapshot)
    hint = writer.store.get("_delta_log/_last_checkpoint")
    assert hint is not None
    told = json.loads(hint.data)
    name = told.get("v2Checkpoint", {}).get("path", f"{snapshot.version:020}.checkpoint.parquet")
    found = writer.store.get(f"_delta_log/{name}")
    assert found is not None
    table = pq.read_table(io.BytesIO(found.data))
    kinds = {kind: [row for row in table[kind].to_pylist() if row is not None] for kind in table.column_names}
    assert told["version"] == snapshot.version
    assert told["size"] == table.num_rows == sum(map(len, kinds.values()))
    assert (told["sizeInBytes"], told["numOfAddFiles"]) == (len(found.data), len(kinds["add"]))
    return kinds


@pytest.mark.skipif(not GOLDEN.exists(), reason=f"there are no golden tables at {GOLDEN}")
def test_the_columns_are_those_that_spark_writes(writer: Writer) -> None:
    spark = GOLDEN / "delta-rs" / "spark-variant-checkpoint" / "table" / "_delta_log"
    theirs = pq.read_schema(spark / "00000000000000000002.checkpoint.parquet")
    writer.create(SCHEMA, rows=rows(1))
    write_checkpoint(writer.store, writer.environment, writer.latest())
    found = writer.store.get("_delta_log/00000000000000000000.checkpoint.parquet")
    assert found is not None
    ours = pq.read_schema(io.BytesIO(found.data))
    assert set(ours.names) == set(theirs.names)
    # Spark's own extras: what a reader may find, and needs not.
    extras = {"deletionVector.maxRowIndex"}

    def members(data_type: pa.DataType, above: str = "") -> dict[str, str]:
        leaves: dict[str, str] = {}
        for field in data_type:
            path = f"{above}{field.name}"
            nested = pa.types.is_struct(field.type)
            leaves |= members(field.type, f"{path}.") if nested else {path: str(field.type).replace("'", "")}
        return leaves

    for name in theirs.names:
        expected = members(theirs.field(name).type)
        got = members(ours.field(name).type)
        assert {path: kind for path, kind in expected.items() if path not in extras}.items() <= got.items(), (
            name
        )


def test_a_checkpoint_holds_the_live_files_with_their_statistics(writer: Writer) -> None:
    writer.create(SCHEMA, by=["p"], rows=rows(1, 2))
    writer.append(rows(3, p=None))
    kinds = checkpoint(writer)
    assert [(add["partitionValues"], add["dataChange"]) for add in kinds["add"]] == [
        ([("p", "a")], False),
        ([("p", None)], False),
    ]
    assert [json.loads(add["stats"])["minValues"] for add in kinds["add"]] == [{"id": 1}, {"id": 3}]
    assert kinds["protocol"][0]["minWriterVersion"] == 2
    assert kinds["metaData"][0]["partitionColumns"] == ["p"]


def checkpoints(store: Store) -> list[int]:
    return sorted(list_log(store).checkpoints)


def test_checkpoints_are_written_when_they_pay_off(calendar: Calendar) -> None:
    meter = Meter()
    writer = Writer(open_store("memory://", meter=meter), calendar)
    snapshot = writer.create(SCHEMA)
    spent = {}
    for number in range(1, 61):
        published = writer.publish(Change("WRITE", added=writer.write(snapshot, rows(number))), snapshot)
        snapshot, before = published.snapshot, meter.snapshot()
        writer.table.maintain(snapshot)
        spent[number] = {kind: meter.snapshot()[kind] - before[kind] for kind in ("get", "list", "create")}
    listing = list_log(writer.store)
    due = [0, *sorted(listing.checkpoints)]
    assert due[:2] == [0, 10]
    assert 3 <= len(due) <= 5
    for last, then in itertools.pairwise(due[1:]):
        since = [listing.commits[version].size for version in range(last + 1, then + 1)]
        assert sum(since) >= sum(filter(None, listing.checkpoints[last].sizes)) > sum(since[:-10])
    assert {number for number, requests in spent.items() if any(requests.values())} == {*range(10, 61, 10)}
    looks = [requests for number, requests in spent.items() if number % 10 == 0 and number not in due]
    assert looks == [{"get": 1, "list": 1, "create": 0}] * (6 - len(due[1:]))
    assert len(Writer(writer.store).latest().files()) == 60


def test_interval_of_the_table_is_followed_exactly(writer: Writer, store: Store) -> None:
    snapshot = writer.create(SCHEMA, properties={"delta.checkpointInterval": "3"})
    for number in range(1, 10):
        snapshot = writer.append(rows(number), snapshot)
    assert checkpoints(store) == [3, 6, 9]


def test_the_few_actions_lie_in_a_row_group_of_their_own(writer: Writer) -> None:
    writer.create(SCHEMA, rows=rows(1))
    write_checkpoint(writer.store, writer.environment, writer.latest())
    found = writer.store.get("_delta_log/00000000000000000000.checkpoint.parquet")
    assert found is not None
    groups = pq.ParquetFile(io.BytesIO(found.data))
    assert groups.read_row_group(0)["add"].null_count == 2
    assert groups.read_row_group(1)["add"].null_count == 0


def test_statistics_are_kept_as_structs_where_the_table_asks(writer: Writer) -> None:
    schema = pa.schema(
        [
            ("id", pa.int64()),
            ("s", pa.struct([("d", pa.date32())])),
            ("at", pa.timestamp("us", "UTC")),
            ("p", pa.int32()),
        ]
    )
    properties = {"delta.checkpoint.writeStatsAsStruct": "true", "delta.checkpoint.writeStatsAsJson": "false"}
    data = pa.table({"id": [1, None], "s": [{"d": 3}, None], "at": [1_000, 2_001], "p": [7, 7]}, schema)
    writer.create(schema, by=["p"], properties=properties, rows=data)
    (add,) = checkpoint(writer)["add"]
    assert "stats" not in add
    assert add["partitionValues_parsed"] == {"p": 7}
    parsed = add["stats_parsed"]
    assert (parsed["numRecords"], parsed["nullCount"]) == (2, {"id": 1, "s": {"d": 1}, "at": 0})
    assert (parsed["minValues"]["id"], parsed["minValues"]["s"]["d"].isoformat()) == (1, "1970-01-04")
    assert parsed["maxValues"]["at"].isoformat() == "1970-01-01T00:00:00.003000+00:00"
    cold = Writer(writer.store).latest()
    assert len(cold.files(Compare(("id",), "=", 1))) == 1
    assert cold.files(Compare(("id",), "=", 2)) == []


def test_a_v2_checkpoint_says_so_and_is_found_by_the_hint(writer: Writer, store: Store) -> None:
    writer.create(SCHEMA, properties={"delta.checkpointPolicy": "v2"}, rows=rows(1))
    kinds = checkpoint(writer)
    assert kinds["checkpointMetadata"] == [{"version": 0, "tags": None}]
    store.delete("_delta_log/00000000000000000000.json")
    assert writer.rows().equals(rows(1))


def test_a_v2_checkpoint_is_not_written_where_the_protocol_does_not_tell_of_it(writer: Writer) -> None:
    first = writer.table.first(SCHEMA, (), {"delta.checkpointPolicy": "v2"}, None)
    author = writer.author()
    plain = replace(first, protocol=Protocol(1, 2))
    assert writer.table.publish_first(writer.table.encode_first(plain, author), author.attempt)
    assert "checkpointMetadata" not in checkpoint(writer)


def removed_paths(kinds: dict[str, list[dict[str, Any]]]) -> list[str]:
    return sorted(remove["path"] for remove in kinds["remove"])


def test_tombstones_are_kept_until_they_expire(writer: Writer, calendar: Calendar) -> None:
    writer.create(SCHEMA, rows=rows(1))
    first = writer.latest().files(ANYTHING)[0].identity
    writer.rewrite(rows(2))
    second = writer.latest().files(ANYTHING)[0].identity
    assert removed_paths(checkpoint(writer)) == [first]
    calendar.days += 6
    writer.rewrite(rows(3))
    kinds = checkpoint(writer)
    assert removed_paths(kinds) == sorted([first, second])
    assert [add["path"] for add in kinds["add"]] == [
        file.identity for file in writer.latest().files(ANYTHING)
    ]
    calendar.days += 2
    writer.append(rows(4))
    assert removed_paths(checkpoint(writer)) == [second]


def test_the_table_says_how_long_tombstones_live(writer: Writer, calendar: Calendar) -> None:
    writer.create(SCHEMA, properties={"delta.deletedFileRetentionDuration": "interval 1 hour"}, rows=rows(1))
    writer.rewrite(rows(2))
    assert len(checkpoint(writer)["remove"]) == 1
    calendar.days += 1
    writer.append(rows(3))
    assert checkpoint(writer)["remove"] == []


def test_a_checkpoint_that_is_there_is_left_as_it_is(writer: Writer) -> None:
    snapshot = writer.create(SCHEMA, rows=rows(1))
    key = f"_delta_log/{0:020}.checkpoint.parquet"
    writer.store.put(key, b"somebody reads this right now")
    write_checkpoint(writer.store, writer.environment, snapshot)
    found = writer.store.get(key)
    assert found is not None
    assert found.data == b"somebody reads this right now"
    assert writer.store.get("_delta_log/_last_checkpoint") is None


def test_a_file_that_was_added_again_has_no_tombstone(writer: Writer, store: Store) -> None:
    writer.create(SCHEMA, rows=rows(1))
    (add,) = [line for line in lines(store, 0) if "add" in line]
    writer.rewrite(rows(2))
    assert len(checkpoint(writer)["remove"]) == 1
    store.put("_delta_log/00000000000000000002.json", json.dumps(add).encode())
    kinds = checkpoint(writer)
    assert kinds["remove"] == []
    assert len(kinds["add"]) == 2


def test_a_tombstone_keeps_the_deletion_vector_that_names_it(writer: Writer, store: Store) -> None:
    writer.create(SCHEMA, properties={"delta.enableDeletionVectors": "true"}, rows=rows(1))
    (add,) = [line["add"] for line in lines(store, 0) if "add" in line]
    vector = {
        "storageType": "i",
        "pathOrInlineDv": "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L",
        "sizeInBytes": 40,
        "cardinality": 6,
    }
    remove = {"path": add["path"], "deletionTimestamp": writer.environment.now_ms(), "dataChange": True}
    body = [{"remove": remove}, {"add": add | {"deletionVector": vector}}]
    store.put("_delta_log/00000000000000000001.json", "\n".join(map(json.dumps, body)).encode())
    writer.rewrite(rows(2))
    kinds = checkpoint(writer)
    told = {(row["path"], (row["deletionVector"] or {}).get("cardinality")) for row in kinds["remove"]}
    assert told == {(add["path"], None), (add["path"], 6)}
    assert len(kinds["add"]) == 1
    writer.append(rows(3))
    assert len(checkpoint(writer)["remove"]) == 2


def test_transactions_and_domains_of_others_are_carried_on(writer: Writer, store: Store) -> None:
    writer.create(SCHEMA)
    others = [
        {"txn": {"appId": "stream", "version": 7, "lastUpdated": 5}},
        {"domainMetadata": {"domain": "d", "configuration": "{}", "removed": False}},
        {"domainMetadata": {"domain": "gone", "configuration": "{}", "removed": True}},
    ]
    store.put("_delta_log/00000000000000000001.json", "\n".join(map(json.dumps, others)).encode())
    for _ in range(2):
        kinds = checkpoint(writer)
        assert kinds["txn"] == [{"appId": "stream", "version": 7, "lastUpdated": 5}]
        assert kinds["domainMetadata"] == [{"domain": "d", "configuration": "{}", "removed": False}]
        writer.append(rows(1))


def test_a_checkpoint_is_written_even_when_the_hint_is_wrong(writer: Writer, store: Store) -> None:
    writer.create(SCHEMA, rows=rows(1))
    writer.rewrite(rows(2))
    store.put("_delta_log/_last_checkpoint", b'{"version":1,"size":3}')
    writer.append(rows(3))
    assert len(checkpoint(writer)["remove"]) == 1


def lines(store: Store, version: int) -> list[dict[str, Any]]:
    found = store.get(f"_delta_log/{version:020}.json")
    assert found is not None
    return [json.loads(line) for line in found.data.splitlines()]
