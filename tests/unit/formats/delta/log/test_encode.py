"""The bytes of log entries that we write: golden, and read back by our own parser."""

from decimal import Decimal

import pyarrow as pa
import pytest

from lakevilla.errors import InvalidInput
from lakevilla.formats import authorship
from lakevilla.formats.delta.log.actions import Metadata, Protocol
from lakevilla.formats.delta.log.encode import (
    add_action,
    attempt_of,
    commit_info,
    encode_entry,
    metadata_action,
    partition_values,
    protocol_action,
    remove_action,
)
from lakevilla.formats.delta.log.entry import parse_entry
from lakevilla.model import Author, Change, ColumnStatistics, Notice, WrittenFile

AUTHOR = Author("t1", "a1", "p1")

ENTRY = (
    '{"commitInfo":{"inCommitTimestamp":1001,"timestamp":1000,"operation":"WRITE",'
    '"operationParameters":{"mode":"Append"},"readVersion":4,"isolationLevel":"Serializable",'
    '"isBlindAppend":true,"operationMetrics":{"numOutputRows":"2"},"engineInfo":"LakeVilla/9.9","txnId":"t1",'
    '"lakevilla":{"txn":"t1","attempt":"a1","put":"p1","format":1}}}\n'
    '{"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["timestampNtz"],'
    '"writerFeatures":["appendOnly","timestampNtz"]}}\n'
    '{"metaData":{"id":"m1","description":"words","format":{"provider":"parquet","options":{}},'
    '"schemaString":"{}","partitionColumns":["p"],"configuration":{"k":"v"},"createdTime":5}}\n'
    '{"remove":{"path":"old.parquet","deletionTimestamp":1000,"dataChange":true,"extendedFileMetadata":true,'
    '"partitionValues":{"p":null},"size":7,"deletionVector":{"storageType":"u","pathOrInlineDv":"x"}}}\n'
    '{"add":{"path":"p=a%252Fb%20%C3%BC/part-1.parquet","partitionValues":{"p":"a/b ü"},"size":10,'
    '"modificationTime":999,"dataChange":true,"stats":"{\\"numRecords\\":2,\\"minValues\\":{\\"d\\":-0.10},'
    '\\"maxValues\\":{\\"d\\":12345678901234567890.12},\\"nullCount\\":{\\"d\\":0}}"}}\n'
).encode()


def test_an_entry_has_these_very_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authorship, "ENGINE", "LakeVilla/9.9")
    bounds = ColumnStatistics(Decimal("-0.10"), Decimal("12345678901234567890.12"), 0)
    file = WrittenFile("p=a%2Fb ü/part-1.parquet", 10, 2, {"p": "a/b ü"}, {("d",): bounds}, 999)
    old = {
        "path": "old.parquet",
        "partitionValues": {"p": None},
        "size": 7,
        "modificationTime": 1,
        "stats": "{}",
        "dataChange": False,
        "deletionVector": {"storageType": "u", "pathOrInlineDv": "x"},
    }
    change = Change("WRITE", {"mode": "Append"}, added=(file,), metrics={"numOutputRows": 2})
    features = frozenset({"timestampNtz"})
    metadata = Metadata("m1", "{}", ("p",), {"k": "v"}, description="words", created_ms=5)
    entry = encode_entry(
        [
            commit_info(change, AUTHOR, now_ms=1000, read_version=4, in_commit_ms=1001),
            protocol_action(Protocol(3, 7, features, features | {"appendOnly"})),
            metadata_action(metadata),
            remove_action(old, now_ms=1000, data_change=True),
            add_action(file, {"p": pa.field("p", pa.string())}, {("d",): ("d",)}, data_change=True),
        ]
    )
    assert entry == ENTRY


def test_an_entry_is_read_back_as_it_was_written() -> None:
    commit = parse_entry(5, ENTRY)
    assert attempt_of(commit.info) == "a1"
    assert commit.protocol == Protocol(
        3, 7, frozenset({"timestampNtz"}), frozenset({"timestampNtz", "appendOnly"})
    )
    assert commit.metadata == Metadata("m1", "{}", ("p",), {"k": "v"}, description="words", created_ms=5)
    assert commit.adds[0]["partitionValues"] == {"p": "a/b ü"}
    assert commit.removes[0]["path"] == "old.parquet"


def test_a_change_that_read_is_no_blind_append() -> None:
    file = WrittenFile("f", 1, 1, {}, {}, 1)
    blind = Change("WRITE", added=(file,))
    dropping = Change("DROP TABLE", notice=Notice("lake", 7, dropped=True))
    infos = [
        commit_info(c, AUTHOR, now_ms=1, read_version=0, in_commit_ms=None)["commitInfo"]
        for c in (blind, dropping)
    ]
    assert [info["isBlindAppend"] for info in infos] == [True, False]
    notices = [info["lakevilla"].get("notice") for info in infos]
    assert notices == [None, {"lake": "lake", "seq": 7, "dropped": True}]
    assert "inCommitTimestamp" not in infos[0]


@pytest.mark.parametrize(
    "info", [None, {}, {"lakevilla": None}, {"lakevilla": {"attempt": 3}}, {"lakevilla": "a"}]
)
def test_anybody_elses_commit_has_no_attempt(info: dict[str, object] | None) -> None:
    assert attempt_of(info) is None


def test_an_empty_partition_value_is_null_and_refused_where_null_is() -> None:
    assert partition_values({"p": ""}, {"p": pa.field("p", pa.string())}) == {"p": None}
    with pytest.raises(InvalidInput) as caught:
        partition_values({"p": ""}, {"p": pa.field("p", pa.string(), False)})
    assert (caught.value.column, caught.value.rule) == ("p", "NOT NULL")
