"""What a change data feed says: the net change of each version, as Delta's protocol wants it."""

import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakevilla as lv

FEED = {"delta.enableChangeDataFeed": "true"}
BEFORE, AFTER = "update_preimage", "update_postimage"
Feed = Counter[tuple[Any, ...]]


@pytest.fixture(params=["files", "vectors"])
def lake(request: pytest.FixtureRequest) -> lv.Lake:
    """A table of two files with the ids 0 to 9."""
    lake = lv.Lake("memory://", engine="local", merge_on_read=request.param == "vectors")
    rows = {"id": list(range(10)), "v": [0] * 10, "p": ["a"] * 5 + ["b"] * 5}
    lake.create("t", pa.table(rows), properties=FEED, partition_by=["p"])
    return lake


def actions(lake: lv.Lake, kind: str, version: int | None = None) -> list[dict[str, Any]]:
    version = lake.history("t")[0].version if version is None else version
    found = lake._store.get(f"t/_delta_log/{version:020}.json")
    assert found is not None
    return [a[kind] for a in map(json.loads, found.data.splitlines()) if kind in a]


def feed(lake: lv.Lake) -> Feed:
    """The newest version's feed by its files: id, v, p and what changed."""
    found: Feed = Counter()
    for action in actions(lake, "cdc"):
        assert action["path"].startswith("_change_data/")
        assert action["dataChange"] is False
        stored = lake._store.get(f"t/{action['path']}")
        assert stored is not None
        assert len(stored.data) == action["size"]
        rows = pq.read_table(io.BytesIO(stored.data))
        assert rows.schema.names == ["id", "v", "_change_type"]
        part = action["partitionValues"]["p"]
        found.update((r["id"], r["v"], part, r["_change_type"]) for r in rows.to_pylist())
    return found


def read(lake: lv.Lake, since: Any = None) -> Feed:
    """What `lake.changes` gives."""
    rows = lake.changes("t", since).toArrow().to_pylist()
    return Counter((r["id"], r["v"], r["p"], r["_change_type"]) for r in rows)


def both(lake: lv.Lake, since: int) -> Feed:
    """The feed of the newest version, which must be what `lake.changes` shows."""
    found = feed(lake)
    assert read(lake, since) == found
    return found


def newest(lake: lv.Lake) -> int:
    return lake.history()[0].seq


def test_update_gives_rows_before_and_after(lake: lv.Lake) -> None:
    since = newest(lake)
    lake.sql("UPDATE t SET v = v + 1 WHERE id = 3")
    assert both(lake, since) == Counter([(3, 0, "a", BEFORE), (3, 1, "a", AFTER)])


def test_update_of_a_point_gives_rows_before_and_after(lake: lv.Lake) -> None:
    since = newest(lake)
    lake.sql("UPDATE t SET v = 7 WHERE id = 3")
    assert both(lake, since) == Counter([(3, 0, "a", BEFORE), (3, 7, "a", AFTER)])


def test_update_of_all_rows_gives_all_rows_before_and_after(lake: lv.Lake) -> None:
    since = newest(lake)
    lake.sql("UPDATE t SET v = id")
    rows = lake.read("t").collect()
    expected = [(r.id, 0, r.p, BEFORE) for r in rows] + [(r.id, r.id, r.p, AFTER) for r in rows]
    assert both(lake, since) == Counter(expected)


def test_update_that_moves_rows_to_another_partition_has_a_file_in_each(lake: lv.Lake) -> None:
    since = newest(lake)
    lake.sql("UPDATE t SET p = 'z', v = 5 WHERE id IN (4, 5)")
    assert both(lake, since) == Counter(
        [(4, 0, "a", BEFORE), (5, 0, "b", BEFORE), (4, 5, "z", AFTER), (5, 5, "z", AFTER)]
    )


def test_delete_gives_the_rows_that_went(lake: lv.Lake) -> None:
    since = newest(lake)
    lake.sql("DELETE FROM t WHERE id IN (1, 2, 3, 8)")
    expected = [(1, 0, "a", "delete"), (2, 0, "a", "delete"), (3, 0, "a", "delete"), (8, 0, "b", "delete")]
    assert both(lake, since) == Counter(expected)


def test_delete_of_a_whole_file_and_of_a_row_gives_all_of_them(lake: lv.Lake) -> None:
    since = newest(lake)
    lake.sql("DELETE FROM t WHERE p = 'a' OR id = 9")
    assert both(lake, since) == Counter([(i, 0, "a" if i < 5 else "b", "delete") for i in (0, 1, 2, 3, 4, 9)])


def test_merge_tells_updates_from_deletes_and_inserts(lake: lv.Lake) -> None:
    since = newest(lake)
    source = pa.table({"id": [3, 7, 100], "v": [9, 9, 9], "p": ["a", "b", "c"]})
    clauses = [("source.id = 3", "delete"), ("true", "update")]
    lake.merge("t", source, ["id"], matched=clauses, not_matched="insert")
    expected = [(3, 0, "a", "delete"), (7, 0, "b", BEFORE), (7, 9, "b", AFTER), (100, 9, "c", "insert")]
    assert both(lake, since) == Counter(expected)


def test_overwrite_where_gives_what_went_and_what_came(lake: lv.Lake) -> None:
    since = newest(lake)
    lake.overwrite("t", pa.table({"id": [1], "v": [5], "p": ["a"]}), where="id = 1")
    assert both(lake, since) == Counter([(1, 5, "a", "insert"), (1, 0, "a", "delete")])


@pytest.mark.parametrize(
    "sql", ["INSERT INTO t VALUES (20, 1, 'q')", "DELETE FROM t", "UPDATE t SET v = 1 WHERE id = 50"]
)
def test_statement_that_files_alone_explain_has_no_feed(lake: lv.Lake, sql: str) -> None:
    since, before = newest(lake), lake.read("t").count()
    lake.sql(sql)
    assert actions(lake, "cdc") == []
    after = lake.read("t").count()
    kinds = Counter(kind for *_, kind in read(lake, since).elements())
    assert kinds == +Counter({"insert": after - before, "delete": before - after})


def test_merge_that_only_inserts_has_no_feed(lake: lv.Lake) -> None:
    since = newest(lake)
    lake.merge("t", pa.table({"id": [50], "v": [1], "p": ["a"]}), ["id"], not_matched="insert")
    assert actions(lake, "cdc") == []
    assert read(lake, since) == Counter([(50, 1, "a", "insert")])


def test_overwrite_of_all_rows_has_no_feed(lake: lv.Lake) -> None:
    since = newest(lake)
    lake.overwrite("t", pa.table({"id": [0, 77], "v": [0, 1], "p": ["a", "a"]}))
    assert actions(lake, "cdc") == []
    expected = [(i, 0, "a" if i < 5 else "b", "delete") for i in range(1, 10)] + [(77, 1, "a", "insert")]
    assert read(lake, since) == Counter(expected)


# Transactions: a version has one feed, that of all statements together.


def test_row_that_is_updated_twice_gives_one_row_before_and_one_after(lake: lv.Lake) -> None:
    since = newest(lake)
    with lake.transaction() as tx:
        tx.update("t", {"v": 1}, "id = 2")
        tx.sql("UPDATE t SET v = v + 10, p = 'z' WHERE id = 2")
        tx.sql("UPDATE t SET v = v + 100 WHERE id = 2")
    assert both(lake, since) == Counter([(2, 0, "a", BEFORE), (2, 111, "z", AFTER)])


def test_rows_with_equal_new_values_keep_what_each_was(lake: lv.Lake) -> None:
    since = newest(lake)
    with lake.transaction() as tx:
        tx.sql("UPDATE t SET v = id WHERE id IN (1, 2)")
        tx.sql("UPDATE t SET id = 50, v = 50 WHERE id IN (1, 2)")
        tx.sql("DELETE FROM t WHERE id = 50")
    assert both(lake, since) == Counter([(1, 0, "a", "delete"), (2, 0, "a", "delete")])


def test_row_that_came_and_changed_is_inserted_as_it_was_left(lake: lv.Lake) -> None:
    since = newest(lake)
    with lake.transaction() as tx:
        tx.append("t", [{"id": 20, "v": 1, "p": "a"}, {"id": 21, "v": 1, "p": "q"}])
        tx.sql("UPDATE t SET v = v + 1 WHERE id IN (1, 20)")
        tx.sql("DELETE FROM t WHERE id = 21")
    assert both(lake, since) == Counter([(1, 0, "a", BEFORE), (1, 1, "a", AFTER), (20, 2, "a", "insert")])


def test_row_that_changed_and_went_is_deleted_as_it_was(lake: lv.Lake) -> None:
    since = newest(lake)
    with lake.transaction() as tx:
        tx.sql("UPDATE t SET v = v + 1 WHERE id IN (1, 2)")
        tx.sql("DELETE FROM t WHERE id = 1")
    assert both(lake, since) == Counter([(1, 0, "a", "delete"), (2, 0, "a", BEFORE), (2, 1, "a", AFTER)])


def test_row_that_changed_and_changed_back_is_not_in_the_feed(lake: lv.Lake) -> None:
    since = newest(lake)
    with lake.transaction() as tx:
        tx.sql("UPDATE t SET v = 5 WHERE id IN (1, 2)")
        tx.sql("UPDATE t SET v = 0 WHERE id = 1")
    assert both(lake, since) == Counter([(2, 0, "a", BEFORE), (2, 5, "a", AFTER)])


def test_row_that_went_and_came_again_as_it_was_is_not_in_the_feed(lake: lv.Lake) -> None:
    since = newest(lake)
    with lake.transaction() as tx:
        tx.sql("DELETE FROM t WHERE id IN (1, 2)")
        tx.sql("INSERT INTO t VALUES (1, 0, 'a')")
    assert both(lake, since) == Counter([(2, 0, "a", "delete")])


def test_rows_deleted_all_and_inserted_anew_are_told_apart(lake: lv.Lake) -> None:
    since = newest(lake)
    with lake.transaction() as tx:
        tx.sql("UPDATE t SET v = 1 WHERE id = 1")
        tx.sql("DELETE FROM t")
        tx.sql("INSERT INTO t VALUES (1, 0, 'a'), (2, 3, 'a')")
    # The row with id 1 is as it was.
    gone = [(i, 0, "a" if i < 5 else "b", "delete") for i in range(10) if i != 1]
    assert both(lake, since) == Counter([*gone, (2, 3, "a", "insert")])


def test_statement_rolled_back_to_a_savepoint_is_not_in_the_feed(lake: lv.Lake) -> None:
    since = newest(lake)
    with lake.transaction() as tx:
        tx.sql("UPDATE t SET v = 1 WHERE id = 1")
        tx.savepoint("s")
        tx.sql("UPDATE t SET v = 2 WHERE id IN (1, 2)")
        tx.rollback_to("s")
        tx.sql("UPDATE t SET v = 3 WHERE id = 3")
    rows = [(1, 0, "a", BEFORE), (1, 1, "a", AFTER), (3, 0, "a", BEFORE), (3, 3, "a", AFTER)]
    assert both(lake, since) == Counter(rows)


def test_statement_that_is_redone_gives_the_feed_of_what_it_did_in_the_end(lake: lv.Lake) -> None:
    with lake.transaction() as tx:
        tx.sql("UPDATE t SET v = v + 10 WHERE id = 1")
        tx.sql("UPDATE t SET v = v + 100 WHERE id = 1")
        lake.sql("UPDATE t SET v = v + 1 WHERE id = 1")
        since = newest(lake)
    assert tx.receipt is not None
    assert tx.receipt.redone > 0
    assert both(lake, since) == Counter([(1, 1, "a", BEFORE), (1, 111, "a", AFTER)])


def test_transaction_that_is_rebased_keeps_its_feed(lake: lv.Lake) -> None:
    with lake.transaction() as tx:
        tx.sql("UPDATE t SET v = v + 10 WHERE id = 1")
        tx.sql("UPDATE t SET v = v + 100 WHERE id = 1")
        lake.sql("INSERT INTO t VALUES (30, 0, 'y')")
        since = newest(lake)
    assert both(lake, since) == Counter([(1, 0, "a", BEFORE), (1, 110, "a", AFTER)])


def test_new_table_with_changed_rows_has_no_feed(lake: lv.Lake) -> None:
    with lake.transaction() as tx:
        tx.create("u", pa.table({"id": [1, 2]}), properties=FEED)
        tx.sql("UPDATE u SET id = 5 WHERE id = 1")
    rows = lake.changes("u").toArrow().to_pylist()
    assert sorted((row["id"], row["_change_type"]) for row in rows) == [(2, "insert"), (5, "insert")]


# Definitions.


def test_feed_is_turned_on_with_its_feature(tmp_path: Path) -> None:
    lake = lv.Lake(tmp_path, engine="local")
    lake.create("t", "id BIGINT")
    lake.sql("ALTER TABLE t SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')")
    (protocol,) = actions(lake, "protocol", 1)
    assert "changeDataFeed" in protocol["writerFeatures"]


@pytest.mark.parametrize("name", ["_change_type", "_commit_version", "_COMMIT_TIMESTAMP"])
def test_column_of_the_feed_cannot_be_in_a_table_with_a_feed(name: str) -> None:
    lake = lv.Lake("memory://", engine="local")
    with pytest.raises(lv.InvalidInput, match=name):
        lake.create("t", f"id BIGINT, `{name}` STRING", properties=FEED)
    lake.create("t", f"id BIGINT, `{name}` STRING")
    with pytest.raises(lv.InvalidInput, match=name):
        lake.sql("ALTER TABLE t SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')")
    lake.create("u", "id BIGINT", properties=FEED)
    with pytest.raises(lv.InvalidInput, match=name):
        lake.add_column("u", name, "STRING")


@pytest.mark.parametrize("mode", ["name", "id"])
def test_feed_of_a_table_with_column_mapping_has_physical_names(mode: str) -> None:
    lake = lv.Lake("memory://", engine="local")
    lake.create(
        "t", pa.table({"id": [1, 2], "v": [0, 0]}), properties={**FEED, "delta.columnMapping.mode": mode}
    )
    lake.sql("ALTER TABLE t RENAME COLUMN v TO w")
    since = newest(lake)
    lake.sql("UPDATE t SET w = 5 WHERE id = 1")
    (action,) = actions(lake, "cdc")
    stored = lake._store.get(f"t/{action['path']}")
    assert stored is not None
    names = pq.read_table(io.BytesIO(stored.data)).schema.names
    assert names[-1] == "_change_type"
    assert not {"id", "w"} & set(names)
    rows = lake.changes("t", since).toArrow().to_pylist()
    assert [(r["id"], r["w"], r["_change_type"]) for r in rows] == [(1, 0, BEFORE), (1, 5, AFTER)]
