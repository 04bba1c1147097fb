"""Vacuum and the log of a Delta table: old entries and checkpoints go, and what is needed stays readable."""

from pathlib import Path

import pyarrow as pa
import pytest

import lakevilla as lv
from lakevilla.store.metered import Meter
from tests.lake.vacuum.log_lake import (
    append,
    assert_versions,
    found,
    grow_in_two_days,
    log_of,
    make,
    open_lake,
)
from tests.lake.vacuum.vacuum_lake import only, parquet
from tests.support.clocks import Days
from tests.support.outsiders import DeltaRs


@pytest.fixture
def clock() -> Days:
    return Days()


@pytest.fixture
def lake(tmp_path: Path, clock: Days) -> lv.Lake:
    """A lake with a table of version 0, before its first row."""
    return make(tmp_path, clock)


def test_old_entries_and_checkpoints_go_and_the_versions_of_the_retention_stay(
    lake: lv.Lake, clock: Days, tmp_path: Path
) -> None:
    grow_in_two_days(lake, clock)
    told = only(lake.vacuum(dry_run=False))
    # Version 12 was current three days ago: the checkpoint of version 10 and all since then stay.
    assert found(tmp_path) == (list(range(10, 18)), [10, 15])
    assert told.log.count == 11
    assert len(told.keys) == 11
    assert_versions(tmp_path, clock, range(10, 18))
    with pytest.raises(lv.InvalidInput, match="version 9 is not available; versions 10 to 17 are"):
        lake.sql("SELECT id FROM t VERSION AS OF 9")
    assert [entry.version for entry in lake.history("t")] == list(range(17, 9, -1))
    append(lake, 18)
    assert len(DeltaRs().rows(tmp_path / "t")) == 18
    assert not lake.vacuum(dry_run=False).files.count


def test_nothing_goes_within_the_retention_of_the_table(lake: lv.Lake, clock: Days, tmp_path: Path) -> None:
    append(lake, *range(1, 13))
    clock.pass_days(2.9)
    assert not only(lake.vacuum(dry_run=False, retention_hours=24)).log.count
    assert found(tmp_path) == (list(range(13)), [5, 10])


def test_log_stays_as_long_as_the_removed_files_if_that_is_longer(
    lake: lv.Lake, clock: Days, tmp_path: Path
) -> None:
    append(lake, *range(1, 13))
    clock.pass_days(5)
    assert not only(lake.vacuum(dry_run=False, retention_hours=24 * 6)).log.count
    assert only(lake.vacuum(dry_run=False)).log.count == 11


def test_retention_is_never_less_than_a_day(tmp_path: Path, clock: Days) -> None:
    lake = make(tmp_path, clock, {"delta.logRetentionDuration": "interval 0 days"})
    append(lake, *range(1, 13))
    clock.pass_days(0.9)
    assert not only(lake.vacuum(dry_run=False, retention_hours=24)).log.count
    clock.pass_days(0.2)
    assert only(lake.vacuum(dry_run=False, retention_hours=24)).log.count == 11


def test_default_retention_is_thirty_days(tmp_path: Path, clock: Days) -> None:
    lake = open_lake(tmp_path, clock)
    lake.create("t", "id BIGINT, v BIGINT", properties={"delta.checkpointInterval": "5"})
    append(lake, *range(1, 8))
    clock.pass_days(29.9)
    assert not only(lake.vacuum(dry_run=False)).log.count
    clock.pass_days(0.2)
    assert only(lake.vacuum(dry_run=False)).log.count == 5


def test_dry_run_names_what_would_go_and_deletes_nothing(lake: lv.Lake, clock: Days, tmp_path: Path) -> None:
    append(lake, *range(1, 13))
    clock.pass_days(4)
    before = {path: path.stat().st_size for path in log_of(tmp_path).iterdir()}
    report = lake.vacuum()
    told = only(report)
    assert {path: path.stat().st_size for path in log_of(tmp_path).iterdir()} == before
    doomed = [tmp_path / "t" / key for key in told.keys]
    assert {path.name for path in doomed} == {
        *(f"{version:020}.json" for version in range(10)),
        f"{5:020}.checkpoint.parquet",
    }
    assert told.log.bytes == sum(before[path] for path in doomed)
    assert "old entries and checkpoints of the log: 11 files" in str(report)


def test_table_that_keeps_its_log_keeps_it(tmp_path: Path, clock: Days) -> None:
    lake = make(tmp_path, clock, {"delta.enableExpiredLogCleanup": "false"})
    append(lake, *range(1, 13))
    clock.pass_days(400)
    assert not only(lake.vacuum(dry_run=False)).log.count
    assert found(tmp_path) == (list(range(13)), [5, 10])


def test_log_without_a_checkpoint_stays(tmp_path: Path, clock: Days) -> None:
    lake = make(tmp_path, clock, {"delta.checkpointInterval": "100"})
    append(lake, *range(1, 13))
    clock.pass_days(400)
    assert not only(lake.vacuum(dry_run=False)).log.count
    assert_versions(tmp_path, clock, range(13))


def test_files_that_the_log_removed_go_before_their_entries(
    lake: lv.Lake, clock: Days, tmp_path: Path
) -> None:
    DeltaRs().append(tmp_path / "t", pa.table({"id": [1], "v": [0]}))
    DeltaRs().delete(tmp_path / "t", "id = 1")
    append(lake, *range(3, 13))
    clock.pass_days(8)
    told = only(lake.vacuum(dry_run=False))
    assert (told.expired.count, told.kept_foreign.count) == (1, 0)
    assert told.log.count == 11
    assert len(parquet(tmp_path)) == 10


def test_tag_keeps_the_log_from_its_version_on(lake: lv.Lake, clock: Days, tmp_path: Path) -> None:
    append(lake, *range(1, 8))
    lake.tag("before")
    append(lake, *range(8, 18))
    clock.pass_days(40)
    assert only(lake.vacuum(dry_run=False)).log.count == 5
    assert found(tmp_path)[0] == list(range(5, 18))
    past = open_lake(tmp_path, clock).at(tag="before")
    assert past.read("t").count() == 7
    lake.untag("before")
    clock.pass_days(40)
    assert only(lake.vacuum(dry_run=False)).log.count == 12
    assert_versions(tmp_path, clock, range(15, 18))


def test_log_of_a_table_that_the_global_log_does_not_follow_goes_too(tmp_path: Path, clock: Days) -> None:
    """The instant that HEAD has would keep it for ever."""
    make(tmp_path, clock)
    lake = open_lake(tmp_path, clock, features=lv.R)
    append(lake, *range(1, 13))
    clock.pass_days(8)
    assert not only(lake.vacuum(dry_run=False)).log.count
    assert lake.at(seq=1).read("t").count() == 0
    append(lake, *range(13, 18))
    clock.pass_days(8)
    assert only(lake.vacuum(dry_run=False)).log.count == 11
    assert_versions(tmp_path, clock, range(10, 18))


def test_instants_that_vacuum_keeps_stay_readable(tmp_path: Path, clock: Days) -> None:
    """Their retention is longer than that of the table's log."""
    lake = make(tmp_path, clock)
    seqs = {}
    for number in range(1, 18):
        append(lake, number)
        seqs[number] = lake.history(limit=1)[0].seq
        clock.pass_days(0.5)
    report = lake.vacuum(dry_run=False, retention_hours=24 * 5)
    assert only(report).log.count > 0
    kept = [number for number, seq in seqs.items() if seq >= report.horizon]
    fresh = open_lake(tmp_path, clock)
    assert [fresh.at(seq=seqs[number]).read("t").count() for number in kept] == kept
    assert len(kept) > 8


def test_needed_version_that_another_client_cleaned_away_keeps_what_is_left(
    lake: lv.Lake, clock: Days, tmp_path: Path
) -> None:
    """Later instants may name any version since, and only the oldest one is asked for."""
    grow_in_two_days(lake, clock)
    for version in range(5):
        (log_of(tmp_path) / f"{version:020}.json").unlink()
    pinned = lake._catalog.pin("t", Meter())
    table, newest, now = pinned.table, pinned.snapshot, clock.now_ms()
    assert len(table.expired_log(newest, now, 0, {6, 17})) == 0
    assert len(table.expired_log(newest, now, 0, {12, 17})[0]) == 6
    assert len(table.expired_log(newest, now, 0, {2, 17})) == 0
