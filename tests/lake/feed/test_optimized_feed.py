"""OPTIMIZE changes no rows: it gives no changes, and leaves feeds as they are."""

from typing import Any

import pyarrow as pa
import pytest

import lakevilla as lv

FEED = {"delta.enableChangeDataFeed": "true"}


@pytest.mark.formats("delta", "vectors", "iceberg")
def test_optimize_gives_no_changes(table_format: str) -> None:
    lake = lv.Lake("memory://", engine="local")
    properties: dict[str, Any] = {} if table_format == "iceberg" else FEED
    lake.create("t", pa.table({"id": list(range(100)), "v": [0] * 100}), properties=properties)
    for number in range(3):
        lake.append("t", [{"id": 200 + number, "v": 0}])
    lake.sql("DELETE FROM t WHERE id = 7")
    since = lake.history()[0].seq
    lake.optimize("t", full=True)
    assert lake.history()[0].seq > since
    assert lake.changes("t", since).count() == 0
    lake.sql("UPDATE t SET v = v + 1 WHERE id = 8")
    rows = lake.changes("t", since).toArrow().to_pylist()
    assert sorted((row["id"], row["v"]) for row in rows) == [(8, 0), (8, 1)]


@pytest.mark.formats("delta", "vectors")
def test_change_of_rows_that_optimize_moved_meanwhile_keeps_its_feed(table_format: str) -> None:
    lake = lv.Lake("memory://", engine="local", merge_on_read=table_format == "vectors")
    lake.create("t", pa.table({"id": list(range(100)), "v": [0] * 100}), properties=FEED)
    lake.append("t", [{"id": 200, "v": 0}])
    lake.sql("DELETE FROM t WHERE id = 7")
    with lake.transaction() as tx:
        tx.sql("UPDATE t SET v = v + 1 WHERE id IN (8, 200)")
        tx.sql("UPDATE t SET v = v + 10 WHERE id = 8")
        lake.optimize("t", full=True)
        since = lake.history()[0].seq
    rows = lake.changes("t", since).toArrow().to_pylist()
    assert sorted((row["id"], row["v"], row["_change_type"]) for row in rows) == [
        (8, 0, "update_preimage"),
        (8, 11, "update_postimage"),
        (200, 0, "update_preimage"),
        (200, 1, "update_postimage"),
    ]


def test_changes_of_rows_of_one_file_that_merge_their_vectors_keep_their_feeds() -> None:
    lake = lv.Lake("memory://", engine="local", merge_on_read=True)
    lake.create("t", pa.table({"id": list(range(100)), "v": [0] * 100}), properties=FEED)
    with lake.transaction() as tx:
        tx.sql("UPDATE t SET v = 1 WHERE id = 1")
        lake.sql("UPDATE t SET v = 2 WHERE id = 2")
        since = lake.history()[0].seq
    assert tx.receipt is not None
    assert tx.receipt.redone == 0
    rows = lake.changes("t", since).toArrow().to_pylist()
    assert [(row["id"], row["v"], row["_change_type"]) for row in rows] == [
        (1, 0, "update_preimage"),
        (1, 1, "update_postimage"),
    ]
