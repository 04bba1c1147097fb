"""The files of a change data feed and vacuum: a feed lives as long as its version is young."""

from pathlib import Path

import pytest

import lakevilla as lv
from tests.support.clocks import Days

FEED = {"delta.enableChangeDataFeed": "true"}


def files(place: Path) -> list[Path]:
    return [*place.glob("t/_change_data/**/*.parquet")]


@pytest.fixture
def clock() -> Days:
    return Days()


@pytest.fixture
def lake(tmp_path: Path, clock: Days) -> lv.Lake:
    options = {"fsync": "false"}
    lake = lv.Lake(tmp_path, engine="local", environment=clock, storage_options=options, lease_seconds=0.2)
    lake.create("t", "id BIGINT, v BIGINT", properties=FEED)
    lake.append("t", [{"id": i, "v": 0} for i in range(4)])
    return lake


def test_feed_of_a_young_version_stays(lake: lv.Lake, clock: Days, tmp_path: Path) -> None:
    lake.sql("UPDATE t SET v = 1 WHERE id = 1")
    clock.pass_days(2)
    since = lake.history()[0].seq
    lake.sql("UPDATE t SET v = 2 WHERE id = 1")
    lake.vacuum(dry_run=False)
    assert len(files(tmp_path)) == 2
    assert lake.changes("t", since).count() == 2


def test_feed_that_vacuum_deleted_is_an_error_of_ours(lake: lv.Lake, clock: Days, tmp_path: Path) -> None:
    since = lake.tag("start")
    lake.sql("UPDATE t SET v = 1 WHERE id = 1")
    clock.pass_days(8)
    later = lake.sql("UPDATE t SET v = 2 WHERE id = 1") and lake.history()[0].seq
    report = lake.vacuum(dry_run=False)
    assert len(files(tmp_path)) == 1
    assert any(key.startswith("_change_data/") for table in report.tables for key in table.keys)
    with pytest.raises(lv.InvalidInput, match="deleted by vacuum"):
        lake.changes("t", "start")
    assert lake.changes("t", later).count() == 0
    assert lake.changes("t", later - 1).count() == 2
    assert since < later


def test_since_that_has_expired_is_an_error_of_ours(lake: lv.Lake, clock: Days) -> None:
    since = lake.history()[0].seq
    lake.sql("UPDATE t SET v = 1 WHERE id = 1")
    clock.pass_days(40)
    lake.sql("UPDATE t SET v = 2 WHERE id = 1")
    lake.vacuum(dry_run=False)
    with pytest.raises(lv.InvalidInput, match="expired"):
        lake.changes("t", since)
    # Without it, the table begins with the rows of the oldest instant that is kept.
    rows = lake.changes("t").toArrow().to_pylist()
    assert sum(row["_change_type"] == "insert" for row in rows) == 4


def test_feed_of_a_transaction_that_ended_without_a_commit_goes(
    lake: lv.Lake, clock: Days, tmp_path: Path
) -> None:
    tx = lake.transaction()
    tx.sql("UPDATE t SET v = 1 WHERE id = 1")
    tx._workspace.uploads.finish()
    tx.abort()
    lake.close()
    assert len(files(tmp_path)) == 1
    clock.pass_days(8)
    lake.vacuum(dry_run=False)
    assert not files(tmp_path)
    assert lake.read("t").count() == 4
