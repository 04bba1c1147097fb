"""Versions by time: in-commit timestamps where the table keeps them, else times of files; and history."""

from typing import Any

import pytest

from lakevilla.errors import InvalidInput
from lakevilla.formats.delta.log.listing import adjusted_times, list_log, newest_at
from lakevilla.store.port import Meta, Store
from tests.unit.formats.delta.raw_log import PROTOCOL, add, memory, metadata, table, write_entry

ICT = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["inCommitTimestamp"]}}


def info(time: int, **more: Any) -> dict[str, Any]:
    return {"commitInfo": {"inCommitTimestamp": time, "timestamp": 5, "operation": "WRITE"} | more}


def versions_at(store: Store, *times: int) -> list[int]:
    return [table(store).at_time(time).version for time in times]


def test_in_commit_timestamps_decide_where_the_table_keeps_them() -> None:
    store = memory()
    enabled = metadata(("id", "long"), **{"delta.enableInCommitTimestamps": "true"})
    write_entry(store, 0, info(1000), ICT, enabled)
    for version in range(1, 6):
        write_entry(store, version, info(1000 + 100 * version), add(f"f{version}"))
    assert versions_at(store, 1000, 1099, 1100, 1450, 1500, 10**15) == [0, 0, 1, 4, 5, 5]
    assert table(store).at_time(1450).timestamp_ms == 1400
    with pytest.raises(InvalidInput):
        table(store).at_time(999)


def test_before_in_commit_timestamps_the_times_of_files_decide() -> None:
    store = memory()
    write_entry(store, 0, PROTOCOL, metadata(("id", "long")))
    write_entry(store, 1, add("a"))
    modified = max(meta.modified_ms for meta in store.list("_delta_log/"))
    since = modified + 100_000
    properties = {
        "delta.enableInCommitTimestamps": "true",
        "delta.inCommitTimestampEnablementVersion": "2",
        "delta.inCommitTimestampEnablementTimestamp": str(since),
    }
    write_entry(store, 2, info(since), ICT, metadata(("id", "long"), **properties))
    write_entry(store, 3, info(since + 10), add("b"))
    assert versions_at(store, modified + 5000, since - 1, since, since + 9, since + 10) == [1, 1, 2, 2, 3]


def test_plain_table_goes_by_the_times_of_its_entries() -> None:
    store = memory()
    write_entry(store, 0, PROTOCOL, metadata(("id", "long")))
    write_entry(store, 1, add("a"))
    times = dict(adjusted_times(list_log(store).commits))
    assert versions_at(store, times[0], times[1], times[1] + 10**9) == [0, 1, 1]
    with pytest.raises(InvalidInput):
        table(store).at_time(times[0] - 1)


def test_times_of_files_that_go_back_are_made_to_grow() -> None:
    modified = [100, 90, 95, 300, 300]
    commits = {version: Meta("", 0, "", time) for version, time in enumerate(modified)}
    times = adjusted_times(commits)
    assert times == [(0, 100), (1, 101), (2, 102), (3, 300), (4, 301)]
    assert [newest_at(times, time) for time in (99, 100, 101, 299, 300, 999)] == [None, 0, 1, 2, 3, 4]


def test_history_tells_the_newest_first_and_survives_strange_commit_infos() -> None:
    store = memory()
    write_entry(store, 0, PROTOCOL, metadata(("id", "long")), {"commitInfo": 5})
    write_entry(
        store, 1, {"commitInfo": {"operation": "MERGE", "operationParameters": {"n": 1}, "timestamp": 77}}
    )
    ours = {"lakevilla": {"txn": "t1"}, "engineInfo": "LakeVilla", "operationMetrics": {"rows": "3"}}
    write_entry(store, 2, info(9, **ours))
    entries = table(store).history()
    assert [entry.version for entry in entries] == [2, 1, 0]
    assert (entries[0].txn, entries[0].engine, entries[0].metrics) == ("t1", "LakeVilla", {"rows": "3"})
    assert (entries[1].operation, entries[1].parameters, entries[1].timestamp_ms) == ("MERGE", {"n": "1"}, 77)
    assert entries[2].operation == ""
    assert [entry.version for entry in table(store).history(1)] == [2]
