"""Iceberg tables that ask for merge on read: changes delete rows where they are, by position delete files."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakevilla as lv
from lakevilla.formats.iceberg.manifests.avro import read_records
from lakevilla.predicates import ANYTHING
from lakevilla.store.metered import Meter
from lakevilla.store.open import open_store
from tests.lake.vacuum.vacuum_lake import only, open_lake
from tests.support.clocks import Days
from tests.support.hooked import Hooked
from tests.support.left_open import store_all
from tests.support.outsiders import OUTSIDERS

COUNT = 1000
OPTIONS = {"fsync": "false"}
MODES = {f"write.{verb}.mode": "merge-on-read" for verb in ("update", "delete", "merge")}
THIRDS = "DELETE FROM t WHERE id % 3 = 0"


class Died(BaseException):
    """The client's process ended."""


@pytest.fixture
def lake() -> lv.Lake:
    """A lake in memory with a table of one file, in which row 5 has id 5."""
    lake = lv.Lake("memory://", engine="local", default_format="iceberg", merge_on_read=True)
    rows = {"id": list(range(COUNT)), "v": [0] * COUNT, "name": [f"n{i}" for i in range(COUNT)]}
    lake.create("t", pa.table(rows))
    return lake


def summary(lake: lv.Lake) -> dict[str, str]:
    """What the newest snapshot says of itself."""
    raw = lake._catalog.pin("t", Meter()).snapshot.raw  # type: ignore[attr-defined]
    found: dict[str, str] = raw["snapshots"][-1]["summary"]
    return found


def moved(lake: lv.Lake, name: str = "") -> tuple[int, int, int, int]:
    """Data files and delete files that came, and those that went, with the newest snapshot."""
    told = summary(lake)
    names = ("added-data-files", "added-delete-files", "deleted-data-files", "removed-delete-files")
    added, deletes, gone, replaced = (int(told.get(name, "0")) for name in names)
    return added, deletes, gone, replaced


def deleted(lake: lv.Lake) -> list[int]:
    """How many rows of each live file are deleted, as far as the log tells."""
    files = lake._catalog.pin("t", Meter()).snapshot.files(ANYTHING)
    return sorted(file.deletes.count or -1 for file in files if file.deletes is not None)


def state(lake: Any) -> dict[int, int]:
    rows = [tuple(row) for row in lake.sql("SELECT id, v FROM t").collect()]
    assert len(dict(rows)) == len(rows)
    return dict(rows)


def with_rows(changed: dict[int, int] | None = None, gone: range | tuple[int, ...] = ()) -> dict[int, int]:
    return {i: v for i, v in (dict.fromkeys(range(COUNT), 0) | (changed or {})).items() if i not in gone}


def entries(lake: lv.Lake) -> list[dict[str, Any]]:
    """The live delete files as manifests list them."""
    snapshot: Any = lake._catalog.pin("t", Meter()).snapshot
    found = []
    for manifest in snapshot.manifests:
        if not manifest.is_data:
            data = lake._store.get("t/" + snapshot.places.key_of(manifest.path))
            assert data is not None
            records = read_records(data.data, manifest.path)
            found += [one["data_file"] for one in records if one["status"] != 2]
    return found


# What a statement writes.


def test_update_of_one_row_writes_that_row_and_where_it_was(lake: lv.Lake) -> None:
    assert lake.sql("UPDATE t SET v = 7 WHERE id = 5").updated == 1
    assert moved(lake) == (1, 1, 0, 0)
    told = summary(lake)
    assert (told["operation"], told["added-position-deletes"], told["total-delete-files"]) == (
        "overwrite", "1", "1",
    )  # fmt: skip
    (file,) = entries(lake)
    assert (file["content"], file["record_count"]) == (1, 1)
    (path,) = {pair["value"].decode() for pair in file["lower_bounds"] if pair["key"] == 2147483546}
    assert path == file["referenced_data_file"]
    assert state(lake) == with_rows({5: 7})
    assert lake.sql("SELECT name FROM t WHERE id = 5").collect() == [("n5",)]
    assert lake.history("t")[0].metrics["numDeleteFilesAdded"] == "1"


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        (
            "UPDATE t SET v = id + 1 WHERE id % 100 = 5",
            {i: i + 1 for i in range(5, COUNT, 100)},
        ),
        (
            "MERGE INTO t USING (SELECT id AS k, id + 1 AS w FROM t WHERE id % 100 = 5) AS s ON t.id = s.k "
            "WHEN MATCHED THEN UPDATE SET v = s.w",
            {i: i + 1 for i in range(5, COUNT, 100)},
        ),
        ("DELETE FROM t WHERE id % 100 = 5", None),
    ],
    ids=["update", "merge", "delete"],
)
def test_each_statement_spares_the_file_where_its_own_mode_says_so(
    lake: lv.Lake, text: str, rows: dict[int, int] | None
) -> None:
    lake.sql(text)
    assert moved(lake) == (0 if rows is None else 1, 1, 0, 0)
    assert deleted(lake) == [10]
    assert state(lake) == (with_rows(gone=tuple(range(5, COUNT, 100))) if rows is None else with_rows(rows))
    mode = f"write.{text.split()[0].lower()}.mode"
    lake.sql(f"ALTER TABLE t SET TBLPROPERTIES ('{mode}' = 'copy-on-write')")
    lake.sql(text.replace("= 5", "= 6"))
    # The file is rewritten, and its deletes go with it.
    assert moved(lake)[1:] == (0, 1, 1)
    assert (deleted(lake), entries(lake)) == ([], [])


def test_overwrite_of_some_rows_goes_by_the_mode_of_deletes(lake: lv.Lake) -> None:
    rows = pa.table({"id": [3], "v": [9], "name": ["x"]})
    lake.overwrite("t", rows, where="id < 4 AND v >= 0")
    assert moved(lake) == (1, 1, 0, 0)
    assert state(lake) == with_rows({3: 9}, gone=(0, 1, 2))
    lake.sql("ALTER TABLE t SET TBLPROPERTIES ('write.delete.mode' = 'copy-on-write')")
    lake.overwrite("t", rows, where="id < 4 AND v >= 0")
    assert moved(lake)[1] == 0


def test_next_change_of_a_file_replaces_its_deletes_until_most_rows_are_gone(lake: lv.Lake) -> None:
    lake.sql("UPDATE t SET v = 7 WHERE id = 5")
    lake.sql("DELETE FROM t WHERE id IN (8, 9)")
    assert (moved(lake), deleted(lake)) == ((0, 1, 0, 1), [3])
    assert summary(lake)["operation"] == "delete"
    assert state(lake) == with_rows({5: 7}, gone=(8, 9))
    assert lake.sql("UPDATE t SET v = 1 WHERE id = 8").updated == 0
    lake.sql("DELETE FROM t WHERE id < 600 AND v = 0")
    assert (moved(lake), entries(lake)) == ((1, 0, 1, 1), [])
    assert summary(lake)["total-delete-files"] == "0"
    assert state(lake) == with_rows({5: 7}, gone=tuple(i for i in range(600) if i != 5))


def test_partitions_keep_their_deletes_apart() -> None:
    lake = lv.Lake("memory://", engine="local", default_format="iceberg", merge_on_read=True)
    rows = {"id": list(range(40)), "v": [0] * 40, "p": [None if i < 10 else f"p{i // 10}" for i in range(40)]}
    lake.create("t", pa.table(rows), partition_by=["p", "bucket(2, id)"])
    assert lake.sql("UPDATE t SET v = 1 WHERE id % 10 = 3").updated == 4
    assert lake.sql("UPDATE t SET p = 'p3', v = 2 WHERE p IS NULL AND id = 1").updated == 1
    assert {file["partition"]["p"] for file in entries(lake)} == {None, "p1", "p2", "p3"}
    found = lake.sql("SELECT p, count(*), sum(v) FROM t GROUP BY p").collect()
    assert sorted(map(tuple, found), key=repr) == [("p1", 10, 1), ("p2", 10, 1), ("p3", 11, 3), (None, 9, 1)]


def test_table_of_format_1_has_no_delete_files() -> None:
    lake = lv.Lake("memory://", engine="local", default_format="iceberg", merge_on_read=True)
    lake.create("t", pa.table({"id": list(range(9)), "v": [0] * 9}), properties={"format-version": "1"})
    lake.sql("DELETE FROM t WHERE id = 1")
    assert lake.sql("SELECT count(*) FROM t").collect() == [(8,)]
    assert moved(lake)[:3] == (1, 0, 1)


def test_unknown_mode_is_refused(lake: lv.Lake) -> None:
    with pytest.raises(lv.InvalidInput, match=r"write\.update\.mode"):
        lake.sql("ALTER TABLE t SET TBLPROPERTIES ('write.update.mode' = 'merge-on-write')")


# Transactions.


def test_statements_of_one_transaction_leave_one_delete_file_for_each_file(lake: lv.Lake) -> None:
    with lake.transaction() as tx:
        tx.append("t", pa.table({"id": [COUNT + i for i in range(9)], "v": [0] * 9, "name": ["a"] * 9}))
        tx.sql("UPDATE t SET v = 1 WHERE id IN (1, 1000)")
        # Reads the delete files, which may still be on their way.
        assert tx.sql("SELECT id FROM t WHERE v = 1 ORDER BY id").collect() == [(1,), (COUNT,)]
        tx.sql("DELETE FROM t WHERE id IN (2, 1001)")
        tx.savepoint("s")
        tx.sql("DELETE FROM t WHERE id % 2 = 0")
        tx.rollback_to("s")
        tx.sql("UPDATE t SET v = v + 1 WHERE id IN (1, 3)")
    # The row that was updated twice is in a file of two rows, which was rewritten.
    assert sorted(file["record_count"] for file in entries(lake)) == [1, 2, 3]
    appended = dict.fromkeys(range(COUNT, COUNT + 9), 0)
    expected = with_rows({**appended, 1: 2, 3: 1, COUNT: 1}, gone=(2, COUNT + 1))
    assert state(lake) == expected
    assert state(lv.Lake("memory://", engine="local", store=lake._store)) == expected


def test_change_of_a_file_that_another_commit_changed_is_redone(lake: lv.Lake) -> None:
    with lake.transaction() as tx:
        tx.sql("UPDATE t SET v = v + 1 WHERE id <= 5")
        lake.sql("UPDATE t SET v = 10 WHERE id = 5")
    assert tx.receipt is not None
    assert tx.receipt.redone == 1
    assert state(lake) == with_rows({**dict.fromkeys(range(5), 1), 5: 11})


def test_rows_come_back_with_earlier_versions_and_restores(lake: lv.Lake) -> None:
    lake.tag("start")
    lake.sql(THIRDS)
    lake.tag("thirds")
    for i in range(1, 8, 3):
        lake.sql(f"DELETE FROM t WHERE id = {i}")
    lake.sql("UPDATE t SET v = 1 WHERE id = 2")
    thirds = with_rows(gone=tuple(range(0, COUNT, 3)))
    fresh = lv.Lake("memory://", engine="local", store=lake._store)
    assert state(fresh) == {i: v for i, v in thirds.items() if i not in (1, 4, 7)} | {2: 1}
    assert state(fresh.at(tag="thirds")) == thirds
    fresh.restore(tag="thirds")
    assert (state(fresh), deleted(fresh)) == (thirds, [334])
    assert state(lv.Lake("memory://", engine="local", store=lake._store)) == thirds
    fresh.sql("DELETE FROM t WHERE id = 2")
    fresh.restore(tag="start")
    assert (state(fresh), entries(fresh)) == (with_rows(), [])
    assert summary(fresh)["total-delete-files"] == "0"


def test_small_manifests_of_deletes_are_gathered(lake: lv.Lake) -> None:
    lake.sql("ALTER TABLE t SET TBLPROPERTIES ('commit.manifest.min-count-to-merge' = '3')")
    for number in range(1, 5):
        first = number * COUNT
        ids = list(range(first, first + 9))
        lake.append("t", pa.table({"id": ids, "v": [0] * 9, "name": ["a"] * 9}))
        lake.sql(f"DELETE FROM t WHERE id = {first}")
    snapshot: Any = lake._catalog.pin("t", Meter()).snapshot
    assert len([m for m in snapshot.manifests if not m.is_data]) <= 3
    assert len(entries(lake)) == 4
    fresh = lv.Lake("memory://", engine="local", store=lake._store)
    assert fresh.sql("SELECT count(*) FROM t").collect() == [(COUNT + 4 * 8,)]


# Files of deletes, as long as a version or a transaction needs them.


def files(root: Path) -> list[Path]:
    return sorted(root.rglob("*-deletes.parquet"))


@pytest.fixture
def clock() -> Days:
    return Days()


@pytest.fixture
def stored(tmp_path: Path, clock: Days) -> lv.Lake:
    lake = open_lake(tmp_path, clock)
    rows = pa.table({"id": list(range(COUNT)), "v": [0] * COUNT})
    lake.create("t", rows, format="iceberg", properties=MODES)
    return lake


def test_vacuum_deletes_replaced_delete_files_and_what_ended_transactions_left(
    stored: lv.Lake, clock: Days, tmp_path: Path
) -> None:
    tx = stored.transaction()
    tx.sql("DELETE FROM t WHERE id = 1")
    tx._workspace.uploads.finish()
    tx.abort()
    stored.sql(THIRDS)
    stored.sql("DELETE FROM t WHERE id % 12 = 1")
    assert len(files(tmp_path)) == 3
    clock.pass_days(8)
    # Expires snapshots first; what they named goes when that is old enough too.
    stored.vacuum(dry_run=False)
    clock.pass_days(8)
    told = only(stored.vacuum(dry_run=False))
    assert told.foreign.count == 0
    assert len(files(tmp_path)) == 1
    assert state(open_lake(tmp_path, clock)) == with_rows(
        gone=tuple(i for i in range(COUNT) if i % 3 == 0 or i % 12 == 1)
    )


def test_open_transaction_keeps_its_delete_files_and_is_resumed(
    stored: lv.Lake, clock: Days, tmp_path: Path
) -> None:
    stored.sql("DELETE FROM t WHERE id = 1")
    lake = open_lake(tmp_path, clock)
    tx = lake.transaction(lv.R)
    tx.sql(THIRDS)
    tx.sql("UPDATE t SET v = 1 WHERE id = 5")
    store_all(lake, tx)
    with open_lake(tmp_path, clock).resume(tx.id) as resumed:
        assert len(state(resumed)) == COUNT - 334 - 1
        resumed.sql("DELETE FROM t WHERE id = 2")
    assert len(state(stored)) == COUNT - 334 - 2
    tx = lake.transaction(lv.R)
    tx.sql("DELETE FROM t WHERE id = 4")
    tx.sql("DELETE FROM t WHERE id = 7")
    store_all(lake, tx)
    newest = max(files(tmp_path), key=lambda path: path.stat().st_mtime_ns)
    newest.unlink()
    with pytest.raises(lv.Conflict, match="cleaned up"):
        open_lake(tmp_path, clock).resume(tx.id)


def test_commit_that_was_rolled_back_leaves_the_deletes_of_before(tmp_path: Path) -> None:
    store = Hooked(open_store(str(tmp_path), OPTIONS))
    lake = lv.Lake(tmp_path, engine="local", store=store, lease_seconds=0.3)
    rows = pa.table({"id": list(range(COUNT)), "v": [0] * COUNT})
    lake.create("t", rows, format="iceberg", properties=MODES)
    lake.create("b", pa.table({"id": [1]}), format="delta")
    lake.sql(THIRDS)

    def die(kind: str, key: str) -> None:
        if kind == "create" and key.startswith("b/_delta_log/"):
            raise Died

    tx = lake.transaction(lv.CT)
    tx.sql("DELETE FROM t WHERE id % 12 = 1")
    tx.sql("UPDATE b SET id = id + 1")
    store.hook = die
    with pytest.raises(Died):
        tx.commit()
    # A change that is in the way of the other half.
    OUTSIDERS["delta"].update(tmp_path / "b", {"id": "100"})
    fresh = lv.Lake(tmp_path, engine="local", storage_options=OPTIONS, lease_seconds=0.3)
    fresh.recover()
    assert [entry.operation for entry in fresh.history("t")[:3]] == ["ROLLBACK", "DELETE", "DELETE"]
    assert deleted(fresh) == [334]
    left = with_rows(gone=tuple(range(0, COUNT, 3)))
    assert state(fresh) == left
    assert sorted(row["id"] for row in OUTSIDERS["deletes"].rows(tmp_path / "t")) == sorted(left)
    # What comes next builds on that.
    fresh.sql("DELETE FROM t WHERE id = 1")
    assert deleted(fresh) == [335]


def test_record_of_a_file_that_stays_is_none_that_older_clients_take(lake: lv.Lake) -> None:
    with lake.transaction() as tx:
        tx.sql("DELETE FROM t WHERE id = 1")
        tx._workspace.uploads.finish()
        (operation,) = tx._operations
        pinned, change = operation.pending.pinned, operation.pending.change
        record = pinned.table.encode_change(pinned.snapshot, change)
        again = pinned.table.decode_change(json.loads(json.dumps(record)))
        tx.abort()
    (file,) = record["added"]
    assert set(file) == {"key", "masked"}
    (before,), (after,) = change.added, again.added
    assert after.entry.masks[0].key == before.entry.masks[0].key
    assert after.entry.masks[0].entry.file == before.entry.masks[0].entry.file
    preview = pinned.table.preview(pinned.snapshot, again)
    (seen,) = preview.files(ANYTHING)
    assert seen.identity == pinned.table.preview(pinned.snapshot, change).files(ANYTHING)[0].identity
    assert seen.deletes.rows().to_pylist() == [1]


def test_only_files_whose_deletes_changed_count_as_changed(lake: lv.Lake) -> None:
    for number in (1, 2):
        ids = list(range(number * COUNT, number * COUNT + 9))
        lake.append("t", pa.table({"id": ids, "v": [0] * 9, "name": ["a"] * 9}))
    lake.sql("DELETE FROM t WHERE id IN (1, 1001)")
    pinned = lake._catalog.pin("t", Meter())
    before: Any = pinned.snapshot
    mine = {file.identity for file in before.files(ANYTHING) if file.rows == COUNT}
    assert len(mine) == 1
    lake.sql("DELETE FROM t WHERE id = 2")
    (taken,) = pinned.table.since(before)
    assert taken.footprint.removed == mine
    added = taken.footprint.added.matching(ANYTHING)
    assert added == [f.identity for f in taken.snapshot.files(ANYTHING) if f.rows == COUNT]
    assert [identity.partition("#")[0] for identity in added] == [one.partition("#")[0] for one in mine]
