"""Vacuum: what goes, what stays, and for how long."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

import lakevilla as lv
from lakevilla.markers.records import Marker
from lakevilla.store import keys
from lakevilla.store.open import open_store
from lakevilla.store.port import Store
from lakevilla.store.prefixed import Prefixed
from tests.lake.vacuum.vacuum_lake import abort, data, new_lake, only, open_lake, parquet, uploaded
from tests.support.clocks import DAY_MS, Days, date_files
from tests.support.hooked import Hooked
from tests.support.outsiders import OUTSIDERS, Outsider

pytestmark = pytest.mark.formats("delta", "iceberg")


@pytest.fixture
def clock() -> Days:
    return Days()


@pytest.fixture
def lake(tmp_path: Path, clock: Days) -> lv.Lake:
    return new_lake(tmp_path, clock)


@pytest.fixture
def outside(table_format: str) -> Outsider:
    """A client that knows nothing of us."""
    return OUTSIDERS[table_format]


# What goes.


def test_dry_run_names_the_files_and_deletes_nothing(lake: lv.Lake, clock: Days, tmp_path: Path) -> None:
    lake.update("t", {"v": 2})
    txn = abort(lake)
    clock.pass_days(8)
    before = parquet(tmp_path)
    told = only(lake.vacuum())
    assert (len(data(told)), told.orphans.count, told.foreign.count) == (2, 1, 0)
    assert {Path(key).name for key in data(told)} < before
    assert any(txn in key for key in told.keys)
    assert told.files.bytes == sum((tmp_path / "t" / key).stat().st_size for key in told.keys)
    assert parquet(tmp_path) == before
    assert not list(tmp_path.rglob("probe/*"))


def test_files_go_that_the_log_removed_longer_ago_than_the_retention(
    lake: lv.Lake, clock: Days, tmp_path: Path, outside: Outsider
) -> None:
    lake.update("t", {"v": 2})
    clock.pass_days(6)
    lake.update("t", {"v": 3})
    clock.pass_days(2)
    assert len(data(only(lake.vacuum("t", dry_run=False)))) == 1
    assert len(parquet(tmp_path)) == 2
    assert outside.rows(tmp_path / "t", outside.begin + 2) == [{"id": 1, "v": 2}]
    assert lake.sql(f"SELECT v FROM t VERSION AS OF {outside.begin + 2}").collect() == [(2,)]
    clock.pass_days(6)
    assert len(data(only(lake.vacuum("t", dry_run=False)))) == 1
    assert lake.read("t").collect() == [(1, 3)]
    assert outside.rows(tmp_path / "t") == [{"id": 1, "v": 3}]
    assert [entry.version for entry in lake.history("t")][-4:] == [outside.begin + n for n in (3, 2, 1, 0)]


def test_version_that_was_current_for_long_is_kept_from_when_it_was_replaced(
    lake: lv.Lake, clock: Days, tmp_path: Path, outside: Outsider
) -> None:
    clock.pass_days(100)
    lake.update("t", {"v": 2})
    clock.pass_days(6)
    assert not only(lake.vacuum(dry_run=False)).files.count
    assert outside.rows(tmp_path / "t", outside.begin + 1) == [{"id": 1, "v": 1}]


def test_files_of_an_aborted_transaction_go_after_the_retention(
    lake: lv.Lake, clock: Days, tmp_path: Path
) -> None:
    txn = abort(lake)
    clock.pass_days(6.9)
    assert not lake.vacuum(dry_run=False).files.count
    clock.pass_days(0.2)
    assert only(lake.vacuum(dry_run=False)).orphans.count == 1
    assert not [name for name in parquet(tmp_path) if txn in name]
    assert lake.read("t").count() == 1


def test_second_run_finds_nothing(lake: lv.Lake, clock: Days) -> None:
    lake.update("t", {"v": 2})
    abort(lake)
    clock.pass_days(8)
    assert len(data(only(lake.vacuum(dry_run=False)))) == 2
    again = lake.vacuum(dry_run=False)
    assert (again.files.count, again.transactions) == (0, ())


def test_files_in_folders_of_partitions_are_found_whatever_their_names(
    tmp_path: Path, clock: Days, outside: Outsider
) -> None:
    lake = open_lake(tmp_path, clock)
    lake.create("t", "id BIGINT, _day STRING", partition_by=["_day"])
    lake.append("t", [{"id": 1, "_day": "a b/c%"}, {"id": 2, "_day": "=_.,:"}, {"id": 3, "_day": None}])
    tx = lake.transaction()
    tx.append("t", [{"id": 9, "_day": "_x"}, {"id": 9, "_day": "a b/c%"}])
    uploaded(lake, tx, files=2)
    tx.abort()
    lake.delete("t", where="id = 1")
    clock.pass_days(8)
    told = only(lake.vacuum(dry_run=False))
    assert (len(data(told)), told.orphans.count) == (3, 2)
    assert sorted(row.id for row in lake.read("t").collect()) == [2, 3]
    assert len(outside.rows(tmp_path / "t")) == 2


# How long things stay.


RETENTION = {
    "delta": ("'delta.deletedFileRetentionDuration' = 'interval 30 days'", "'interval 0 hours'"),
    "iceberg": (f"'history.expire.max-snapshot-age-ms' = '{30 * DAY_MS}'", "'0'"),
}


def test_retention_of_the_table_counts_and_one_given_overrides_it(
    lake: lv.Lake, clock: Days, table_format: str
) -> None:
    lake.sql(f"ALTER TABLE t SET TBLPROPERTIES ({RETENTION[table_format][0]})")
    lake.update("t", {"v": 2})
    clock.pass_days(10)
    assert not lake.vacuum().files.count
    assert len(data(only(lake.vacuum(retention_hours=24 * 9)))) == 1
    clock.pass_days(21)
    assert len(data(only(lake.vacuum()))) == 1


def test_nothing_is_deleted_within_a_day(lake: lv.Lake, clock: Days, table_format: str) -> None:
    long, none = RETENTION[table_format]
    lake.sql(f"ALTER TABLE t SET TBLPROPERTIES ({long.partition(' = ')[0]} = {none})")
    lake.update("t", {"v": 2})
    abort(lake)
    clock.pass_days(0.9)
    assert not lake.vacuum(dry_run=False, foreign=True).files.count
    clock.pass_days(0.2)
    assert len(data(only(lake.vacuum(dry_run=False)))) == 2


@pytest.mark.parametrize("hours", [0, 23.9, -1, float("nan"), float("inf"), True, "48"])
def test_retention_below_a_day_or_without_sense_is_refused(lake: lv.Lake, hours: float) -> None:
    with pytest.raises(lv.InvalidInput, match="retention_hours"):
        lake.vacuum(retention_hours=hours)


def test_clock_that_is_ahead_of_the_store_deletes_nothing(clock: Days) -> None:
    lake = lv.Lake("memory://", engine="local", features=lv.R, environment=clock)
    lake.create("t", "id BIGINT")
    lake.append("t", [{"id": 1}])
    lake.sql("UPDATE t SET id = 2")
    clock.pass_days(365)
    assert not lake.vacuum(dry_run=False).files.count


def test_removal_by_a_client_whose_clock_is_behind_counts_from_its_commit(
    lake: lv.Lake, clock: Days, tmp_path: Path, outside: Outsider
) -> None:
    clock.pass_days(30)
    known = set((tmp_path / "t").rglob("*"))
    outside.update(tmp_path / "t", {"v": "7"})
    date_files(tmp_path / "t", known, clock.now_ms())
    clock.pass_days(1.5)
    assert not lake.vacuum(dry_run=False).files.count
    assert len(outside.rows(tmp_path / "t", outside.begin + 1)) == 1


# What others wrote.


def test_uploads_of_other_clients_stay_unless_wished_for(lake: lv.Lake, clock: Days, tmp_path: Path) -> None:
    upload = tmp_path / "t" / "part-00000-0ad1-c000.snappy.parquet"
    upload.write_bytes(b"not committed yet")
    clock.pass_days(6)
    assert not lake.vacuum(dry_run=False, foreign=True).files.count
    clock.pass_days(2)
    told = only(lake.vacuum(dry_run=False))
    assert (told.files.count, told.kept_foreign.count) == (0, 1)
    assert upload.exists()
    assert only(lake.vacuum(dry_run=False, foreign=True)).foreign.count == 1
    assert not upload.exists()
    assert lake.read("t").count() == 1


def test_files_of_other_clients_go_when_the_log_removed_them(
    lake: lv.Lake, clock: Days, tmp_path: Path, outside: Outsider
) -> None:
    outside.append(tmp_path / "t", pa.table({"id": [2], "v": [2]}))
    outside.delete(tmp_path / "t", "id = 2")
    clock.pass_days(8)
    told = only(lake.vacuum(dry_run=False))
    assert (len(data(told)), told.kept_foreign.count) == (1, 0)
    assert lake.read("t").count() == 1


@pytest.mark.formats("delta")
def test_removals_are_known_from_a_checkpoint_when_their_entries_are_gone(
    lake: lv.Lake, clock: Days, tmp_path: Path, outside: Outsider
) -> None:
    outside.append(tmp_path / "t", pa.table({"id": [2], "v": [2]}))
    outside.delete(tmp_path / "t", "id = 2")
    for key in range(3, 11):
        lake.append("t", [{"id": key, "v": 0}])
    log = tmp_path / "t" / "_delta_log"
    assert (log / f"{10:020}.checkpoint.parquet").exists()
    for version in range(10):
        (log / f"{version:020}.json").unlink()
    clock.pass_days(6)
    assert not lake.vacuum(dry_run=False, foreign=True).files.count
    clock.pass_days(2)
    assert only(lake.vacuum(dry_run=False)).expired.count == 1
    assert lake.read("t").count() == 9


@pytest.mark.formats("delta")
def test_table_outside_of_the_lake_is_vacuumed_and_files_outside_of_the_table_are_not(
    lake: lv.Lake, clock: Days, tmp_path: Path, outside: Outsider
) -> None:
    """A shallow clone: its log names files of another table, which it removes."""
    (source_file,) = (tmp_path / "t").glob("*.parquet")
    clone = tmp_path.parent / f"{tmp_path.name}-clone"
    outside.create(clone, pa.table({"id": [5], "v": [5]}))
    absolute = {"path": source_file.as_uri(), "partitionValues": {}, "size": 1, "modificationTime": 1}
    _publish(clone, 1, {"add": {**absolute, "dataChange": True}})
    _publish(clone, 2, {"remove": {"path": source_file.as_uri(), "deletionTimestamp": 1, "dataChange": True}})
    lake.register("clone", clone.as_uri())
    lake.update("clone", {"v": 6})
    clock.pass_days(8)
    told = only(lake.vacuum("clone", dry_run=False, foreign=True))
    assert told.expired.count == 1
    assert source_file.exists()
    assert (lake.read("clone").collect(), lake.read("t").collect()) == ([(5, 6)], [(1, 1)])


def _publish(table: Path, version: int, *actions: dict[str, object]) -> None:
    entry = table / "_delta_log" / f"{version:020}.json"
    entry.write_text("\n".join(json.dumps(action) for action in actions))


def test_hidden_files_and_other_tables_below_stay(lake: lv.Lake, clock: Days, tmp_path: Path) -> None:
    hidden = [tmp_path / "t" / name for name in ("_tmp/x.parquet", ".part.crc", "_change_data/.c.crc")]
    for path in hidden:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"x")
    below = open_lake(tmp_path / "t", clock)
    below.create("sub", "id BIGINT")
    below.append("sub", [{"id": 1}])
    clock.pass_days(8)
    assert not lake.vacuum(dry_run=False, foreign=True).files.count
    assert all(path.exists() for path in hidden)
    assert below.read("sub").count() == 1


REFUSED = {
    "delta": {"protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["rowTracking"]}},
    "iceberg": {"properties": {"write.format.default": "orc"}},
}


def test_table_that_we_may_not_write_is_left_alone_and_named(
    lake: lv.Lake, clock: Days, tmp_path: Path, outside: Outsider, table_format: str
) -> None:
    lake.update("t", {"v": 2})
    lake.create("u", "id BIGINT")
    lake.append("u", [{"id": 1}])
    lake.sql("UPDATE u SET id = 2")
    before = tmp_path / "u" / outside.entry(2)
    kept = json.loads(before.read_text()) if table_format == "iceberg" else {}
    (tmp_path / "u" / outside.entry(3)).write_text(json.dumps({**kept, **REFUSED[table_format]}))
    feature = {"delta": "rowTracking", "iceberg": "write.format.default"}[table_format]
    clock.pass_days(8)
    report = lake.vacuum(dry_run=False)
    assert [table.table for table in report.tables] == ["t"]
    assert feature in report.failed["u"]
    assert "u: skipped" in str(report)
    with pytest.raises(lv.Unsupported, match=feature):
        lake.vacuum("u", dry_run=False)


# Tickets.


def test_tombstones_go_after_a_day_and_the_highest_ticket_stays(
    lake: lv.Lake, clock: Days, tmp_path: Path
) -> None:
    store = Prefixed(open_store(str(tmp_path), environment=clock), "t")
    for ticket in (3, 4, 7):
        store.put(keys.marker(ticket), Marker("x", "x", "p", 0, live=False).encode())
    store.put(keys.marker(5), Marker("y", "y", "p", 0, live=True).encode())
    clock.pass_days(0.9)
    assert only(lake.vacuum(dry_run=False)).tickets == ()
    clock.pass_days(0.2)
    assert only(lake.vacuum()).tickets == (3, 4)
    assert only(lake.vacuum(dry_run=False)).tickets == (3, 4)
    assert [keys.ticket_of(meta.key) for meta in store.list(keys.MARKERS)] == [5, 7]


# Dropped tables.


def test_folder_of_a_dropped_table_goes_when_it_is_wished_for(
    lake: lv.Lake, clock: Days, tmp_path: Path, outside: Outsider
) -> None:
    lake.create("u", "id BIGINT")
    lake.append("u", [{"id": 1}])
    clock.pass_days(8)
    lake.drop("u")
    clock.pass_days(6)
    assert lake.vacuum(dry_run=False).dropped == ()
    (kept,) = lake.vacuum(dry_run=False, dropped=True).dropped
    assert "within the retention" in kept.kept
    clock.pass_days(2)
    (told,) = lake.vacuum(dropped=True).dropped
    assert (told.location, told.kept) == ("u", "")
    assert (tmp_path / "u" / outside.entry(outside.begin)).exists()
    (done,) = lake.vacuum(dry_run=False, dropped=True).dropped
    assert done.files == told.files
    assert not [path for path in (tmp_path / "u").rglob("*") if path.is_file()]
    assert lake.vacuum(dry_run=False, dropped=True).dropped == ()
    assert lake.tables() == ["t"]
    lake.create("u", "id BIGINT")
    assert lake.tables() == ["t", "u"]


def test_dropped_table_is_kept_for_its_own_retention(lake: lv.Lake, clock: Days, table_format: str) -> None:
    lake.create("u", "id BIGINT")
    lake.sql(f"ALTER TABLE u SET TBLPROPERTIES ({RETENTION[table_format][0]})")
    lake.drop("u")
    clock.pass_days(29)
    (kept,) = lake.vacuum(dry_run=False, dropped=True).dropped
    assert "within the retention" in kept.kept
    clock.pass_days(2)
    (gone,) = lake.vacuum(dry_run=False, dropped=True).dropped
    assert gone.kept == ""


# Every store.


def test_vacuum_works_on_every_store(any_store: Store, table_format: str) -> None:
    store = Hooked(any_store)
    lake = lv.Lake("memory://", engine="local", features=lv.R, store=store, lease_seconds=0.2)
    lake.create("t", "id BIGINT, v BIGINT")
    lake.append("t", [{"id": 1, "v": 1}])
    lake.update("t", {"v": 2})
    txn = abort(lake)
    store.put(keys.sublog(txn, txn, 0), b"{}")
    assert not lake.vacuum(dry_run=False).files.count
    store.older_ms = 8 * DAY_MS
    # An Iceberg snapshot is as old as it says itself: that is what other clients go by.
    assert lake.vacuum(dry_run=False).files.count == {"delta": 2, "iceberg": 1}[table_format]
    assert lake.read("t").collect() == [(1, 2)]
    assert not list(any_store.list(keys.TXNS))
    assert not list(any_store.list("_lakevilla/probe/"))
    assert not list(any_store.list(f"t/{keys.MARKERS}"))
