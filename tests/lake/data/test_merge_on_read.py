"""Tables with deletion vectors: changes delete rows where they are and write only new ones."""

import json
from typing import Any

import pyarrow as pa
import pytest

import lakevilla as lv

COUNT = 1000


@pytest.fixture
def lake() -> lv.Lake:
    """A lake in memory with a table of one file, in which row 5 has id 5."""
    lake = lv.Lake("memory://", engine="local", merge_on_read=True)
    rows = {"id": list(range(COUNT)), "v": [0] * COUNT, "name": [f"n{i}" for i in range(COUNT)]}
    lake.create("t", pa.table(rows))
    return lake


def actions(lake: lv.Lake, kind: str, version: int | None = None) -> list[dict[str, Any]]:
    """The actions of a kind in a version of the table, by default the newest."""
    version = lake.history("t")[0].version if version is None else version
    found = lake._store.get(f"t/_delta_log/{version:020}.json")
    assert found is not None
    return [a[kind] for a in map(json.loads, found.data.splitlines()) if kind in a]


def vectors(lake: lv.Lake) -> list[dict[str, Any]]:
    """The deletion vectors that the newest version adds."""
    found = [add.get("deletionVector") for add in actions(lake, "add")]
    return [vector for vector in found if vector is not None]


def objects(lake: lv.Lake) -> list[str]:
    """The files of deletion vectors in the store."""
    return [meta.key for meta in lake._store.list("t/") if meta.key.endswith(".bin")]


def state(lake: Any) -> dict[int, int]:
    rows = [tuple(row) for row in lake.sql("SELECT id, v FROM t").collect()]
    assert len(dict(rows)) == len(rows)
    return dict(rows)


def with_rows(changed: dict[int, int] | None = None, gone: range | tuple[int, ...] = ()) -> dict[int, int]:
    return {i: v for i, v in (dict.fromkeys(range(COUNT), 0) | (changed or {})).items() if i not in gone}


# What a statement writes.


def test_update_of_one_row_writes_that_row_alone(lake: lv.Lake) -> None:
    assert lake.sql("UPDATE t SET v = 7 WHERE id = 5").updated == 1
    added, (removed,) = actions(lake, "add"), actions(lake, "remove")
    (masked,), (fresh,) = ([a for a in added if ("deletionVector" in a) is flag] for flag in (True, False))
    assert removed["path"] == masked["path"]
    assert "deletionVector" not in removed
    assert masked["deletionVector"]["cardinality"] == 1
    statistics = json.loads(masked["stats"])
    assert (statistics["numRecords"], statistics["tightBounds"]) == (COUNT, False)
    assert statistics["maxValues"] == {"id": COUNT - 1, "v": 0, "name": "n999"}
    assert json.loads(fresh["stats"])["numRecords"] == 1
    assert state(lake) == with_rows({5: 7})
    assert lake.sql("SELECT name FROM t WHERE id = 5").collect() == [("n5",)]


@pytest.mark.parametrize(
    "text",
    [
        "UPDATE t SET v = id + 1 WHERE id % 100 = 5 OR name = 'n5'",
        "UPDATE t SET v = v + id + 1 WHERE id IN (SELECT id FROM t WHERE id % 100 = 5)",
        "MERGE INTO t USING (SELECT id AS k, id + 1 AS w FROM t WHERE id % 100 = 5) AS s ON t.id = s.k "
        "WHEN MATCHED THEN UPDATE SET v = s.w",
    ],
    ids=["update", "subquery", "merge"],
)
def test_rows_found_in_any_way_get_their_values(lake: lv.Lake, text: str) -> None:
    assert lake.sql(text).updated == 10
    assert (len(actions(lake, "add")), len(actions(lake, "remove"))) == (2, 1)
    assert [vector["cardinality"] for vector in vectors(lake)] == [10]
    assert state(lake) == with_rows({i: i + 1 for i in range(5, COUNT, 100)})
    assert lake.sql("SELECT count(*) FROM t WHERE name = 'n' || id").collect() == [(COUNT,)]


def test_delete_writes_no_row(lake: lv.Lake) -> None:
    assert lake.sql("DELETE FROM t WHERE id BETWEEN 100 AND 299 AND v = 0").deleted == 200
    assert [vector["cardinality"] for vector in vectors(lake)] == [200]
    assert len(actions(lake, "add")) == 1
    assert state(lake) == with_rows(gone=range(100, 300))
    assert lake.read("t").count() == 800


def test_next_change_of_a_file_keeps_the_rows_deleted_before(lake: lv.Lake) -> None:
    lake.sql("UPDATE t SET v = 7 WHERE id = 5")
    lake.sql("DELETE FROM t WHERE id IN (8, 9)")
    assert [vector["cardinality"] for vector in vectors(lake)] == [3]
    (removed,) = actions(lake, "remove")
    assert removed["deletionVector"]["cardinality"] == 1
    assert state(lake) == with_rows({5: 7}, gone=(8, 9))
    # A row that was deleted is not found again.
    assert lake.sql("UPDATE t SET v = 1 WHERE id = 8").updated == 0
    assert lake.sql("DELETE FROM t WHERE id <= 9").deleted == 8


def test_file_of_which_most_rows_go_is_rewritten(lake: lv.Lake) -> None:
    lake.sql("DELETE FROM t WHERE id < 500 AND v = 0")
    assert len(vectors(lake)) == 1
    lake.sql("DELETE FROM t WHERE id = 500 AND v = 0")
    assert vectors(lake) == []
    (added,), (removed,) = actions(lake, "add"), actions(lake, "remove")
    assert removed["deletionVector"]["cardinality"] == 500
    assert json.loads(added["stats"])["numRecords"] == 499
    assert state(lake) == with_rows(gone=range(501))


def test_update_of_most_rows_rewrites_the_file(lake: lv.Lake) -> None:
    assert lake.sql("UPDATE t SET v = 1 WHERE id > 10").updated == COUNT - 11
    assert (vectors(lake), len(actions(lake, "add"))) == ([], 1)
    assert state(lake) == with_rows(dict.fromkeys(range(11, COUNT), 1))


def test_file_whose_last_rows_go_is_removed_with_its_vector(lake: lv.Lake) -> None:
    lake.sql("DELETE FROM t WHERE id < 400 AND name <> ''")
    # Neither reads the file: bounds prove that all its rows match. Then by reading it.
    assert lake.sql("DELETE FROM t WHERE id >= 0").deleted == 600
    assert (actions(lake, "add"), len(actions(lake, "remove"))) == ([], 1)
    assert state(lake) == {}
    lake.sql("INSERT INTO t VALUES (1, 0, 'a'), (2, 0, 'a'), (3, 0, 'a'), (4, 0, 'a')")
    assert lake.sql("DELETE FROM t WHERE id IN (1, 2)").deleted == 2
    assert lake.sql("DELETE FROM t WHERE name LIKE 'a%'").deleted == 2
    assert (actions(lake, "add"), len(actions(lake, "remove"))) == ([], 1)


def test_overwrite_of_some_rows_deletes_them_where_they_are(lake: lv.Lake) -> None:
    counts = lake.overwrite("t", pa.table({"id": [3], "v": [9], "name": ["x"]}), where="id < 4 AND v >= 0")
    assert (counts.inserted, counts.deleted) == (1, 4)
    assert [vector["cardinality"] for vector in vectors(lake)] == [4]
    assert state(lake) == with_rows({3: 9}, gone=(0, 1, 2))


def test_statement_that_finds_no_row_publishes_nothing(lake: lv.Lake) -> None:
    assert lake.sql("UPDATE t SET v = 1 WHERE name = 'nobody'").updated == 0
    assert lake.sql("DELETE FROM t WHERE name = 'nobody'").deleted == 0
    assert lake.history("t")[0].version == 0


def test_history_counts_vectors_as_spark_does(lake: lv.Lake) -> None:
    lake.sql("UPDATE t SET v = 7 WHERE id = 5")
    lake.sql("DELETE FROM t WHERE id = 6")
    second, first = (entry.metrics for entry in lake.history("t")[:2])
    assert (first["numDeletionVectorsAdded"], first["numDeletionVectorsUpdated"]) == ("1", "0")
    assert (second["numDeletionVectorsAdded"], second["numDeletionVectorsUpdated"]) == ("0", "1")
    assert (first["numFiles"], first["numRemovedFiles"], first["numOutputRows"]) == ("1", "0", "1")


# MERGE.


def test_merge_with_every_clause_deletes_and_writes_only_what_it_touches(lake: lv.Lake) -> None:
    rows = [(1, "up"), (2, "gone"), (3, "same"), (COUNT, "new"), (COUNT + 1, "no")]
    source = pa.table({"k": [k for k, _ in rows], "act": [act for _, act in rows]})
    counts = lake.sql(
        "MERGE INTO t USING s ON t.id = s.k "
        "WHEN MATCHED AND s.act = 'gone' THEN DELETE "
        "WHEN MATCHED AND s.act = 'up' THEN UPDATE SET v = t.v + s.k, name = concat(t.name, s.act) "
        "WHEN NOT MATCHED AND s.act = 'new' THEN INSERT (id, v, name) VALUES (s.k, 5, 'z') "
        "WHEN NOT MATCHED BY SOURCE AND t.id = 998 THEN DELETE "
        "WHEN NOT MATCHED BY SOURCE AND t.id > 990 THEN UPDATE SET v = -t.id",
        views={"s": source},
    )
    assert (counts.inserted, counts.updated, counts.deleted) == (1, 9, 2)
    assert [vector["cardinality"] for vector in vectors(lake)] == [11]
    changed = {1: 1, COUNT: 5} | {i: -i for i in range(991, COUNT)}
    assert state(lake) == with_rows(changed, gone=(2, 998))
    names = lake.sql("SELECT id, name FROM t WHERE id IN (1, 3, 995)").collect()
    assert sorted(map(tuple, names)) == [(1, "n1up"), (3, "n3"), (995, "n995")]


def test_merge_of_most_rows_of_one_file_spares_the_other(lake: lv.Lake) -> None:
    lake.append("t", pa.table({"id": [COUNT, COUNT + 1], "v": [0, 0], "name": ["a", "b"]}))
    source = pa.table({"id": [4, COUNT, COUNT + 1], "v": [1, 2, 3], "name": ["x", "y", "z"]})
    assert lake.merge("t", source, on=["id"], matched="update").updated == 3
    assert [vector["cardinality"] for vector in vectors(lake)] == [1]
    assert len(actions(lake, "remove")) == 2
    assert state(lake) == with_rows({4: 1, COUNT: 2, COUNT + 1: 3})


def test_ambiguous_merge_changes_nothing(lake: lv.Lake) -> None:
    source = pa.table({"id": [4, 4], "v": [1, 2], "name": ["x", "y"]})
    with pytest.raises(lv.InvalidInput, match="ambiguous"):
        lake.merge("t", source, on=["id"], matched="update")
    assert lake.history("t")[0].version == 0
    # To delete a row twice is not ambiguous.
    text = "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN DELETE"
    assert lake.sql(text, views={"s": source}).deleted == 1
    assert state(lake) == with_rows(gone=(4,))


# Rules of the table.


def test_new_rows_are_checked_and_the_others_are_not_computed(lake: lv.Lake) -> None:
    lake.sql("ALTER TABLE t ADD CONSTRAINT positive CHECK (v >= 0)")
    with pytest.raises(lv.InvalidInput, match="positive"):
        lake.sql("UPDATE t SET v = -1 WHERE id = 5")
    with pytest.raises(lv.InvalidInput, match="positive"):
        lake.sql("MERGE INTO t USING (SELECT 5 AS k) AS s ON t.id = s.k WHEN MATCHED THEN UPDATE SET v = -1")
    # For the other rows this would be a division by zero.
    assert lake.sql("UPDATE t SET v = CAST(10 / (id - 4) AS BIGINT) WHERE id = 5 OR id = 6").updated == 2
    assert state(lake) == with_rows({5: 10, 6: 5})


def test_append_only_table_refuses_deleted_rows(lake: lv.Lake) -> None:
    lake.sql("ALTER TABLE t SET TBLPROPERTIES ('delta.appendOnly' = 'true')")
    with pytest.raises(lv.InvalidInput, match="append-only"):
        lake.sql("DELETE FROM t WHERE id = 5")
    assert state(lake) == with_rows()


def test_partitioned_table_keeps_its_partitions() -> None:
    lake = lv.Lake("memory://", engine="local", merge_on_read=True)
    rows = {"id": list(range(40)), "v": [0] * 40, "p": [None if i < 10 else f"p{i // 10}" for i in range(40)]}
    lake.create("t", pa.table(rows), partition_by=["p"])
    assert lake.sql("UPDATE t SET v = 1 WHERE p = 'p2' AND id < 23").updated == 3
    assert lake.sql("UPDATE t SET p = 'p3', v = 2 WHERE p IS NULL AND id = 1").updated == 1
    assert lake.sql("DELETE FROM t WHERE p = 'p1'").deleted == 10
    (masked,) = (add for add in actions(lake, "add", 2) if "deletionVector" in add)
    assert masked["partitionValues"] == {"p": None}
    found = lake.sql("SELECT p, count(*), sum(v) FROM t GROUP BY p").collect()
    assert sorted(map(tuple, found), key=repr) == [("p2", 10, 3), ("p3", 11, 2), (None, 9, 0)]


def test_rows_in_later_row_groups_are_found_at_their_positions() -> None:
    lake = lv.Lake("memory://", engine="local", merge_on_read=True)
    count = 600_000
    lake.create("t", pa.table({"id": pa.array(range(count)), "v": pa.array([0]).take([0] * count)}))
    assert lake.sql("UPDATE t SET v = 1 WHERE id = 599999").updated == 1
    assert lake.sql("UPDATE t SET v = 2 WHERE id IN (3, 300000, 599998)").updated == 3
    assert lake.sql("DELETE FROM t WHERE id >= 599000 AND v < 1").deleted == 998
    found = lake.sql("SELECT count(*), sum(id), sum(v) FROM t").collect()
    assert found == [(count - 998, sum(range(599_000)) + 599_999 + 599_998, 7)]
    assert lake.sql("SELECT id FROM t WHERE v > 0 ORDER BY id").collect() == [
        (3,), (300_000,), (599_998,), (599_999,)
    ]  # fmt: skip


# Tables that are switched.


def test_property_switches_an_existing_table_and_back() -> None:
    lake = lv.Lake("memory://", engine="local")
    lake.create("t", pa.table({"id": list(range(COUNT)), "v": [0] * COUNT}))
    lake.sql("DELETE FROM t WHERE id = 1")
    assert vectors(lake) == []
    lake.sql("ALTER TABLE t SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    (protocol,) = actions(lake, "protocol")
    assert (protocol["minReaderVersion"], protocol["minWriterVersion"]) == (3, 7)
    assert protocol["readerFeatures"] == ["deletionVectors"]
    assert "deletionVectors" in protocol["writerFeatures"]
    lake.sql("DELETE FROM t WHERE id = 2")
    assert len(vectors(lake)) == 1
    lake.sql("ALTER TABLE t UNSET TBLPROPERTIES ('delta.enableDeletionVectors')")
    lake.sql("DELETE FROM t WHERE id = 3")
    assert vectors(lake) == []
    assert state(lake) == with_rows(gone=(1, 2, 3))


def test_lake_that_asks_for_vectors_makes_its_tables_so(lake: lv.Lake) -> None:
    key = "delta.enableDeletionVectors"
    assert actions(lake, "metaData", 0)[0]["configuration"] == {key: "true"}
    lake.create("plain", "id BIGINT", properties={key: "false"})
    lake.sql("CREATE OR REPLACE TABLE t (id BIGINT, v BIGINT)")
    assert actions(lake, "metaData")[0]["configuration"] == {key: "true"}
    lake.sql("INSERT INTO plain VALUES (1), (2), (3)")
    lake.sql("DELETE FROM plain WHERE id = 1")
    found = lake._store.get("plain/_delta_log/00000000000000000002.json")
    assert found is not None
    assert b"deletionVector" not in found.data


# Transactions.


def test_statements_of_one_transaction_leave_one_vector_for_each_file(lake: lv.Lake) -> None:
    with lake.transaction() as tx:
        tx.append("t", pa.table({"id": [COUNT + i for i in range(9)], "v": [0] * 9, "name": ["a"] * 9}))
        tx.sql("UPDATE t SET v = 1 WHERE id IN (1, 1000)")
        assert tx.sql("SELECT id FROM t WHERE v = 1 ORDER BY id").collect() == [(1,), (COUNT,)]
        tx.sql("DELETE FROM t WHERE id IN (2, 1001)")
        tx.sql("UPDATE t SET v = v + 1 WHERE id IN (1, 3)")
    (removed,) = actions(lake, "remove")
    assert "deletionVector" not in removed
    by_rows = {json.loads(add["stats"])["numRecords"]: add for add in actions(lake, "add")}
    assert by_rows[COUNT]["path"] == removed["path"]
    assert by_rows[COUNT]["deletionVector"]["cardinality"] == 3
    assert by_rows[9]["deletionVector"]["cardinality"] == 2
    appended = dict.fromkeys(range(COUNT, COUNT + 9), 0)
    assert state(lake) == with_rows({**appended, 1: 2, 3: 1, COUNT: 1}, gone=(2, COUNT + 1))


def test_savepoint_brings_rows_back(lake: lv.Lake) -> None:
    with lake.transaction() as tx:
        tx.sql("DELETE FROM t WHERE id = 1")
        tx.savepoint("s")
        tx.sql("DELETE FROM t WHERE id % 2 = 0")
        tx.sql("UPDATE t SET v = 1 WHERE id = 3")
        tx.rollback_to("s")
        tx.sql("UPDATE t SET v = 4 WHERE id = 4")
    assert [vector["cardinality"] for vector in vectors(lake)] == [2]
    assert state(lake) == with_rows({4: 4}, gone=(1,))


def test_large_vectors_of_a_statement_share_a_file_that_names_the_transaction(lake: lv.Lake) -> None:
    lake.append("t", pa.table({"id": list(range(COUNT, 2 * COUNT)), "v": [0] * COUNT, "name": ["a"] * COUNT}))
    with lake.transaction() as tx:
        tx.sql("DELETE FROM t WHERE id % 3 = 0")
        # Reads the vectors, which may still be on their way.
        assert tx.sql("SELECT count(*) FROM t").collect() == [(1333,)]
    (key,) = objects(lake)
    assert key.startswith(f"t/vectors-{tx.id}/deletion_vector_")
    assert sorted(vector["offset"] for vector in vectors(lake))[0] == 1
    assert lake.sql("SELECT count(*) FROM t WHERE id % 3 = 0").collect() == [(0,)]


def test_change_of_a_file_that_another_commit_changed_is_redone(lake: lv.Lake) -> None:
    with lake.transaction() as tx:
        tx.sql("UPDATE t SET v = v + 1 WHERE id <= 5")
        lake.sql("UPDATE t SET v = 10 WHERE id = 5")
    assert tx.receipt is not None
    assert tx.receipt.redone == 1
    assert state(lake) == with_rows({**dict.fromkeys(range(5), 1), 5: 11})


def test_files_that_stay_do_not_count_as_saved_uploads(lake: lv.Lake) -> None:
    lake.append("t", pa.table({"id": list(range(COUNT, 2 * COUNT)), "v": [0] * COUNT, "name": ["a"] * COUNT}))
    with lake.transaction() as tx:
        tx.sql(f"UPDATE t SET v = 1 WHERE id = {COUNT + 5}")
        tx.sql("UPDATE t SET v = v + 1 WHERE id = 5")
        lake.sql("UPDATE t SET v = 10 WHERE id = 5")
    assert tx.receipt is not None
    (kept,) = (
        add for add in actions(lake, "add") if str(COUNT + 5) in add["stats"] and "deletionVector" not in add
    )
    assert (tx.receipt.redone, tx.receipt.saved_bytes) == (1, kept["size"])
    assert state(lake)[5] == 11


# What comes later.


def test_vectors_survive_checkpoints_and_restores(lake: lv.Lake) -> None:
    lake.tag("start")
    lake.sql("DELETE FROM t WHERE id % 3 = 0")
    lake.tag("thirds")
    for i in range(1, 21, 3):
        lake.sql(f"DELETE FROM t WHERE id = {i}")
    lake.sql("UPDATE t SET v = 1 WHERE id = 2")
    lake.sql("INSERT INTO t VALUES (-1, 0, 'x')")
    assert any("checkpoint" in meta.key for meta in lake._store.list("t/_delta_log/"))
    fresh = lv.Lake("memory://", engine="local", store=lake._store)
    thirds = with_rows(gone=tuple(range(0, COUNT, 3)))
    latest = {i: v for i, v in thirds.items() if i not in range(1, 21, 3)} | {2: 1, -1: 0}
    assert state(fresh) == latest
    assert state(fresh.at(tag="thirds")) == thirds
    fresh.sql("DELETE FROM t WHERE id = 500")
    fresh.restore(tag="thirds")
    assert state(fresh) == thirds
    fresh.sql("DELETE FROM t WHERE id = 2")
    fresh.restore(tag="start")
    assert state(fresh) == with_rows()
    assert vectors(fresh) == []
