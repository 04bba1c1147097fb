"""Iceberg's format 3: every row has an id, deleted rows are deletion vectors, and tables can be upgraded."""

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakevilla as lv
from lakevilla.predicates import ANYTHING
from lakevilla.store.metered import Meter
from tests.lake.data.test_delete_files import deleted, moved, state, summary
from tests.support.warehouses import warehouse

COUNT = 1000
V3 = {"format-version": "3"}


def make(merge_on_read: bool, **properties: str) -> lv.Lake:
    """A lake in memory with a table of one file, in which row 5 has id 5."""
    lake = lv.Lake("memory://", engine="local", default_format="iceberg", merge_on_read=merge_on_read)
    rows = pa.table({"id": list(range(COUNT)), "v": [0] * COUNT})
    lake.create("t", rows, properties={**V3, **{n.replace("_", "-"): v for n, v in properties.items()}})
    return lake


def snapshot_of(lake: lv.Lake) -> Any:
    return lake._catalog.pin("t", Meter()).snapshot


def row_ids(lake: lv.Lake) -> list[tuple[int, int]]:
    """The first row id of each live file and how many rows it has: as this client knows it, and as one that
    reads everything anew. No two files share an id, and the next one is above all."""
    fresh = lv.Lake("memory://", engine="local", store=lake._store)
    found = [
        sorted((file.entry.file["first_row_id"], file.rows) for file in snapshot_of(one).files(ANYTHING))
        for one in (lake, fresh)
    ]
    assert found[0] == found[1]
    raw = snapshot_of(lake).raw
    ends = [*(first for first, _ in found[0][1:]), raw["next-row-id"]]
    assert all(first + rows <= end for (first, rows), end in zip(found[0], ends, strict=True))
    numbered = [one for one in raw["snapshots"] if "first-row-id" in one]
    for before, after in pairwise(numbered):
        assert after["first-row-id"] == before["first-row-id"] + before["added-rows"]
    return found[0]


def test_new_rows_get_the_next_ids_and_files_that_stay_keep_theirs() -> None:
    lake = make(merge_on_read=False)
    assert row_ids(lake) == [(0, COUNT)]
    lake.append("t", pa.table({"id": [COUNT, COUNT + 1], "v": [0, 0]}))
    assert row_ids(lake) == [(0, COUNT), (COUNT, 2)]
    # The manifest that loses the file is written again, and the other one stays.
    lake.sql(f"DELETE FROM t WHERE id = {COUNT}")
    found = row_ids(lake)
    assert (found[0], found[1][1]) == ((0, COUNT), 1)
    assert found[1][0] >= COUNT + 2
    lake.sql("INSERT INTO t VALUES (-1, 0)")
    lake.sql("UPDATE t SET v = 1 WHERE id = -1")
    assert row_ids(lake)[:2] == found
    assert state(lake) == {**dict.fromkeys(range(COUNT), 0), COUNT + 1: 0, -1: 1}


def test_gathered_manifests_and_files_that_come_back_keep_their_ids() -> None:
    lake = make(merge_on_read=True)
    lake.sql("ALTER TABLE t SET TBLPROPERTIES ('commit.manifest.min-count-to-merge' = '3')")
    for number in range(1, 6):
        ids = list(range(number * COUNT, number * COUNT + 4))
        lake.append("t", pa.table({"id": ids, "v": [0] * 4}))
    before = row_ids(lake)
    assert [rows for _, rows in before] == [COUNT, 4, 4, 4, 4, 4]
    lake.tag("before")
    lake.sql("DELETE FROM t WHERE id >= 2000 OR id = 7")
    assert len(row_ids(lake)) == 2
    lake.restore(tag="before")
    assert row_ids(lake) == before
    assert len(state(lake)) == COUNT + 20


def test_deleted_rows_are_vectors_in_one_file_of_each_statement() -> None:
    lake = make(merge_on_read=True)
    lake.append("t", pa.table({"id": list(range(COUNT, 2 * COUNT)), "v": [0] * COUNT}))
    lake.sql("UPDATE t SET v = 1 WHERE id IN (5, 6, 1005)")
    assert moved(lake) == (1, 2, 0, 0)
    told = summary(lake)
    assert (told["added-dvs"], told["added-position-deletes"]) == ("2", "3")
    assert "added-position-delete-files" not in told
    (key,) = [meta.key for meta in lake._store.list("t/data/") if meta.key.endswith(".puffin")]
    found = lake._store.get(key)
    assert found is not None
    assert (found.data[:4], found.data[-4:]) == (b"PFA1", b"PFA1")
    assert deleted(lake) == [1, 2]
    lake.sql("DELETE FROM t WHERE id = 7")
    assert (moved(lake), deleted(lake)) == ((0, 1, 0, 1), [1, 3])
    # The rows that stay keep their ids.
    assert row_ids(lake)[:2] == [(0, COUNT), (COUNT, COUNT)]
    assert len(state(lake)) == 2 * COUNT - 1
    fresh = lv.Lake("memory://", engine="local", store=lake._store)
    assert state(fresh) == state(lake)
    assert fresh.sql("DELETE FROM t WHERE v = 0 AND id < 900").deleted == 897
    assert summary(fresh)["total-delete-files"] == "1"


def test_transaction_on_vectors_is_rolled_back_to_savepoints_and_redone() -> None:
    lake = make(merge_on_read=True)
    with lake.transaction() as tx:
        tx.sql("UPDATE t SET v = v + 1 WHERE id <= 5")
        tx.savepoint("s")
        tx.sql("DELETE FROM t WHERE id % 2 = 0")
        tx.rollback_to("s")
        tx.sql("DELETE FROM t WHERE id = 9")
        lake.sql("UPDATE t SET v = 10 WHERE id = 5")
    assert tx.receipt is not None
    assert tx.receipt.redone == 2
    left = {i: 0 for i in range(COUNT) if i != 9}
    assert state(lake) == {**left, **dict.fromkeys(range(5), 1), 5: 11}
    row_ids(lake)


@pytest.mark.parametrize(("old", "new"), [("1", "2"), ("1", "3"), ("2", "3")])
def test_table_is_upgraded_and_its_rows_get_ids(old: str, new: str) -> None:
    lake = make(merge_on_read=True, format_version=old)
    lake.append("t", pa.table({"id": [COUNT, COUNT + 1, COUNT + 2], "v": [0] * 3}))
    lake.sql("DELETE FROM t WHERE id = 3")
    early = deleted(lake)
    assert early == ([] if old == "1" else [1])
    lake.tag("early")
    lake.sql(f"ALTER TABLE t SET TBLPROPERTIES ('format-version' = '{new}')")
    assert snapshot_of(lake).raw["format-version"] == int(new)
    assert state(lake) == state(lv.Lake("memory://", engine="local", store=lake._store))
    # Position deletes of before the upgrade become part of the vector.
    lake.sql("DELETE FROM t WHERE id = 4")
    assert deleted(lake) == [1 + len(early)]
    assert state(lake) == {i: 0 for i in range(COUNT + 3) if i not in (3, 4)}
    if new == "3":
        told = summary(lake)
        assert (told["added-dvs"], told["total-delete-files"]) == ("1", "1")
        assert [rows for _, rows in row_ids(lake)] in ([COUNT, 3], [3, COUNT], [3, COUNT - 1], [COUNT - 1, 3])
        lake.sql("UPDATE t SET v = 1 WHERE id = 1001")
        row_ids(lake)
    if early and new == "3":
        with pytest.raises(lv.Unsupported, match="format 3"):
            lake.restore(tag="early")
    with pytest.raises(lv.InvalidInput, match="newer"):
        lake.sql("ALTER TABLE t SET TBLPROPERTIES ('format-version' = '1')")
    with pytest.raises(lv.Unsupported, match="available: '2', '3'"):
        lake.sql("ALTER TABLE t SET TBLPROPERTIES ('format-version' = '4')")


def test_upgrade_conflicts_with_a_change_that_does_not_know_it() -> None:
    lake = make(merge_on_read=True, format_version="2")
    with lake.transaction() as tx:
        tx.sql("DELETE FROM t WHERE id = 3")
        lake.sql("ALTER TABLE t SET TBLPROPERTIES ('format-version' = '3')")
    assert tx.receipt is not None
    assert tx.receipt.redone == 1
    assert summary(lake)["added-dvs"] == "1"
    assert row_ids(lake) == [(0, COUNT)]


def test_column_with_a_default_for_new_rows_is_refused_before_anything_is_written() -> None:
    lake = make(merge_on_read=False)
    snapshot = snapshot_of(lake)
    (schema,) = snapshot.raw["schemas"]
    fields = [
        {**field, **({"write-default": 7} if field["name"] == "v" else {})} for field in schema["fields"]
    ]
    raw = {**snapshot.raw, "schemas": [{**schema, "fields": fields}]}
    data = json.dumps(raw).encode()
    lake._store.put(f"t/metadata/v{snapshot.version + 1}.metadata.json", data)
    assert lake.read("t").count() == COUNT
    before = len(list(lake._store.list("t/")))
    with pytest.raises(lv.Unsupported, match=r"'v' has a default"):
        lake.sql("INSERT INTO t (id) VALUES (1)")
    assert len(list(lake._store.list("t/"))) == before


def test_table_of_format_3_in_a_catalog_is_read_only_and_one_of_format_2_has_deletes(tmp_path: Path) -> None:
    modes = {f"write.{verb}.mode": "merge-on-read" for verb in ("update", "delete", "merge")}
    with warehouse("sql", tmp_path, "orders") as stock, stock.lake() as lake:
        lake.register("orders", catalog="prod", table="sales.orders")
        lake.sql(f"ALTER TABLE orders SET TBLPROPERTIES {tuple_of(modes)}")
        with pytest.raises(lv.Unsupported, match="does not upgrade tables in catalogs"):
            lake.sql("ALTER TABLE orders SET TBLPROPERTIES ('format-version' = '3')")
        lake.sql("UPDATE orders SET v = 7 WHERE id = 2")
        assert stock.rows() == {1: 10, 2: 7, 3: 30}
        snapshot = lake._catalog.pin("orders", Meter()).snapshot
        assert snapshot.has_deletes
        newer = {**snapshot.raw, "format-version": 3, "next-row-id": 0}
        with pytest.raises(lv.Unsupported, match="format 3 and in a catalog"):
            replace(snapshot, at=replace(snapshot.at, raw=newer)).refuse_writes()


def tuple_of(properties: dict[str, str]) -> str:
    return "(" + ", ".join(f"'{name}' = '{value}'" for name, value in properties.items()) + ")"
