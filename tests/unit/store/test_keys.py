"""Keys: what is built is parsed back, and what is no key of ours is left alone."""

import pytest

from lakevilla.store import keys
from lakevilla.store.keys import Checkpoint, Commit, Compacted

UUID = "3a0d65cd-4056-49b8-937b-95f9e3ee90e5"


def test_lake_keys_match_the_protocol() -> None:
    assert keys.HEAD == "_lakevilla/global/HEAD.json"
    assert keys.slot(42) == "_lakevilla/global/log/00000000000000000042.json"
    assert keys.transaction("ab12", "lease.json") == "_lakevilla/txns/ab12/lease.json"
    assert keys.marker(7) == "_lakevilla/markers/00000000000000000007.json"
    assert keys.OWNER == "_lakevilla/owner.json"


def test_lake_keys_parse_back() -> None:
    assert keys.parse_slot(keys.slot(42)) == 42
    assert keys.parse_marker(keys.marker(7)) == 7
    assert keys.parse_transaction(keys.transaction("ab12", "sublog/1.json")) == ("ab12", "sublog/1.json")
    assert keys.parse_slot(keys.marker(7)) is None
    assert keys.parse_slot("_lakevilla/global/log/42.json") is None
    assert keys.parse_marker(keys.HEAD) is None
    assert keys.parse_transaction("_lakevilla/txns/ab12") is None


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (keys.commit(3), Commit(3)),
        (keys.compacted(4, 9), Compacted(4, 9)),
        (keys.checkpoint(10), Checkpoint(10)),
        (keys.checkpoint_part(10, 2, 3), Checkpoint(10, part=2, parts=3)),
        (keys.checkpoint_v2(10, UUID), Checkpoint(10, uuid=UUID)),
        (keys.checkpoint_v2(10, UUID, "json"), Checkpoint(10, uuid=UUID, kind="json")),
    ],
)
def test_delta_keys_parse_back(key: str, expected: object) -> None:
    assert keys.parse_delta_file(key) == expected


@pytest.mark.parametrize(
    "key",
    [
        keys.LAST_CHECKPOINT,
        keys.sidecar("a.parquet"),
        "_delta_log/1.json",
        "_delta_log/00000000000000000001.crc",
        "_delta_log/00000000000000000001.json.tmp",
        "_delta_log/_staged_commits/00000000000000000001.json",
        "_delta_log/00000000000000000001.checkpoint.json",
        "_delta_log/.00000000000000000001.json",
        "x/_delta_log/00000000000000000001.json",
        "_delta_log/٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠١.json",
    ],
)
def test_other_names_in_the_log_are_no_log_files(key: str) -> None:
    assert keys.parse_delta_file(key) is None


def test_every_file_of_a_version_sorts_after_its_start() -> None:
    start = keys.delta_log_from(10)
    assert start < keys.commit(10)
    assert start < keys.checkpoint(10)
    assert start < keys.compacted(10, 12)
    assert start > keys.checkpoint_part(9, 1, 2)
    assert start > keys.commit(9)


@pytest.mark.parametrize("number", [-1, 2**63])
def test_number_that_no_version_can_have_is_refused(number: int) -> None:
    with pytest.raises(ValueError, match="not a version"):
        keys.commit(number)
