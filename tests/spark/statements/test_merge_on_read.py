"""Tables with deletion vectors or delete files on Spark: changes delete rows where they are, as the local
engine does it."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakevilla as lv
from lakevilla.engines.spark.write import writer
from tests.spark.both import Both
from tests.spark.statements.test_changes import CHANGES, FEW_ROWS
from tests.support.extent import in_turn

COUNT = 1000
OPTIONS = {"fsync": "false"}
KINDS = {
    f"{table_format} {way}": (way, table_format) for way in FEW_ROWS for table_format in ("delta", "iceberg")
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("sql", "kind"), in_turn({sql: [*KINDS] for sql in CHANGES[3:]}))
def test_change_of_rows_does_the_same_on_both_engines(
    quick: Any, tmp_path: Path, sql: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    way, table_format = KINDS[kind]
    monkeypatch.setattr(writer, "FEW_ROWS", FEW_ROWS[way])
    both = Both(tmp_path, quick, merge_on_read=True, table_format=table_format)
    assert both.spark.sql(sql) == both.local.sql(sql)
    for local, on_spark in both.tables():
        assert on_spark == local
    for name in both.local.tables():
        metrics = [lake.history(name)[0].metrics for lake in (both.local, both.judge)]
        local, on_spark = ({n: v for n, v in m.items() if n.endswith("Added")} for m in metrics)
        assert on_spark == local


@pytest.fixture
def lake(tmp_path: Path, quick: Any) -> lv.Lake:
    """A table of one file, in which row 5 has id 5."""
    rows = pa.table({"id": list(range(COUNT)), "v": [0] * COUNT})
    local = lv.Lake(tmp_path, engine="local", merge_on_read=True, storage_options=OPTIONS)
    local.create("t", rows)
    return lv.Lake(tmp_path, spark=quick, storage_options=OPTIONS)


def state(tmp_path: Path) -> dict[int, int]:
    rows = lv.Lake(tmp_path, engine="local").read("t").collect()
    assert len({row[0] for row in rows}) == len(rows)
    return {row[0]: row[1] for row in rows}


def metrics(lake: lv.Lake) -> tuple[int, int, int]:
    """New vectors, replaced vectors and removed files of the newest version."""
    names = ("numDeletionVectorsAdded", "numDeletionVectorsUpdated", "numRemovedFiles")
    found = lake.history("t")[0].metrics
    added, updated, removed = (int(found[name]) for name in names)
    return added, updated, removed


@pytest.mark.parametrize("way", FEW_ROWS)
def test_each_change_of_a_file_adds_to_its_vector_until_most_rows_are_gone(
    lake: lv.Lake, tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "FEW_ROWS", FEW_ROWS[way])
    assert lake.sql("UPDATE t SET v = id WHERE id % 100 = 5").updated == 10
    assert metrics(lake) == (1, 0, 0)
    assert lake.sql("DELETE FROM t WHERE id < 300").deleted == 300
    # The three updated rows below 300 are in a file of ten.
    assert metrics(lake) == (1, 1, 0)
    assert lake.sql("UPDATE t SET v = 7 WHERE id < 300").updated == 0
    merge = (
        "MERGE INTO t USING (SELECT id AS k FROM t WHERE id >= 800) AS s ON t.id = s.k "
        "WHEN MATCHED AND k < 900 THEN DELETE WHEN MATCHED THEN UPDATE SET v = -k "
        "WHEN NOT MATCHED BY SOURCE AND id = 300 THEN UPDATE SET v = 1"
    )
    counts = lake.sql(merge)
    assert (counts.updated, counts.deleted) == (101, 100)
    # More than half of the first file is deleted now: what is left of it is copied.
    assert metrics(lake) == (0, 1, 1)
    left = {i: i if i % 100 == 5 else 0 for i in range(300, 800)} | {i: -i for i in range(900, COUNT)}
    assert state(tmp_path) == left | {300: 1}


def test_deleted_rows_at_the_edges_of_words_and_no_others_are_left_out(lake: lv.Lake) -> None:
    # A second file, none of whose rows are deleted, is read by the same plan.
    lake.sql("INSERT INTO t SELECT id + 1000, v FROM t")
    gone = {0, 7, 8, 15, 16, 31, 47, 48, 640}
    lake.sql(f"DELETE FROM t WHERE id IN ({', '.join(map(str, gone))})")
    rows = lake.sql("SELECT id FROM t").collect()
    assert sorted(row[0] for row in rows) == [i for i in range(2 * COUNT) if i not in gone]
    near = lake.sql("SELECT id FROM t WHERE id > 5 AND id % 8 IN (0, 7) AND id < 50").collect()
    assert [row[0] for row in near] == [23, 24, 32, 39, 40]


def test_column_named_as_the_row_counter_of_spark_is_refused(quick: Any, tmp_path: Path) -> None:
    local = lv.Lake(tmp_path, engine="local", storage_options=OPTIONS)
    local.create("odd", pa.table({"id": [1, 2], "_tmp_metadata_row_index": [7, 8]}))
    with pytest.raises(lv.Unsupported, match="_tmp_metadata_row_index"):
        lv.Lake(tmp_path, spark=quick, storage_options=OPTIONS).sql("SELECT * FROM odd").collect()


def test_file_without_rows_left_is_removed_and_not_copied(lake: lv.Lake, tmp_path: Path) -> None:
    lake.sql("DELETE FROM t WHERE id < 400")
    assert lake.sql("DELETE FROM t WHERE id % 2 >= 0").deleted == 600
    assert metrics(lake) == (0, 0, 1)
    assert lake.history("t")[0].metrics["numFiles"] == "0"
    assert state(tmp_path) == {}


def test_constraint_is_asked_of_new_rows_alone(lake: lv.Lake, tmp_path: Path) -> None:
    lake.sql("ALTER TABLE t ADD CONSTRAINT positive CHECK (v >= 0)")
    with pytest.raises(lv.InvalidInput, match="positive"):
        lake.sql("UPDATE t SET v = -1 WHERE id = 5")
    assert lake.sql("UPDATE t SET v = CAST(10 / (id - 4) AS BIGINT) WHERE id IN (5, 6)").updated == 2
    assert {i: v for i, v in state(tmp_path).items() if v} == {5: 10, 6: 5}
