"""Delete files of Iceberg between clients: others read those that we write, and we go on where they wrote."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import lakevilla as lv
from tests.legacy.clients.iceberg_readers import by_duckdb, by_pyiceberg
from tests.legacy.clients.spark_delta import ours
from tests.legacy.clients.spark_iceberg import Spark
from tests.support.iceberg_files import FilesCatalog

COUNT = 5000


@pytest.fixture
def iceberg(spark_iceberg: SparkSession, tmp_path: Path) -> Spark:
    return Spark(spark_iceberg, tmp_path.name)


def opened(root: Path) -> lv.Lake:
    options = {"fsync": "false"}
    return lv.Lake(
        root, engine="local", default_format="iceberg", merge_on_read=True, storage_options=options
    )


def make(lake: lv.Lake, count: int = COUNT, version: str = "2") -> None:
    rows = {"id": list(range(count)), "v": [0] * count, "p": [f"p{i % 2}" for i in range(count)]}
    lake.create("t", pa.table(rows), partition_by=["p"], properties={"format-version": version})


def deletes(folder: str | Path) -> int:
    """How many delete files and vectors apply to the files of the newest version."""
    table = FilesCatalog().load_table(str(folder))
    return sum(len(task.delete_files) for task in table.scan().plan_files())


@pytest.mark.parametrize("version", ["2", "3"])
def test_pyiceberg_and_duckdb_read_our_deletes_and_pyiceberg_changes_rows_between(
    tmp_path: Path, version: str
) -> None:
    lake, url = opened(tmp_path), str(tmp_path / "t")
    make(lake, version=version)
    lake.sql("DELETE FROM t WHERE id % 7 = 1")
    lake.sql("UPDATE t SET v = 1 WHERE id BETWEEN 500 AND 700")
    lake.sql("UPDATE t SET v = 2 WHERE id = 4999")
    assert by_pyiceberg(url) == by_duckdb(url) == ours(lake, "t")
    if version == "3":
        # PyIceberg does not write format 3. It plans each vector of a file with every data file that another
        # vector of the file is for, and reads the right one.
        return
    assert deletes(url) == 2
    # What it rewrites it reads with our deletes.
    FilesCatalog().load_table(url).delete("id = 9 or id = 502")
    assert by_pyiceberg(url) == by_duckdb(url) == ours(lake, "t")
    assert lake.sql("UPDATE t SET v = 3 WHERE id IN (9, 10, 502, 503)").updated == 2
    assert by_pyiceberg(url) == by_duckdb(url) == ours(lake, "t")


@pytest.mark.parametrize("version", ["2", "3"])
def test_spark_reads_our_deletes_changes_rows_and_we_go_on(iceberg: Spark, version: str) -> None:
    lake, url = opened(iceberg.root), iceberg.path("t")
    make(lake, version=version)
    lake.sql("DELETE FROM t WHERE id % 7 = 1")
    lake.sql("UPDATE t SET v = 1 WHERE id BETWEEN 500 AND 700")

    def alike() -> list[dict[str, Any]]:
        rows = ours(lake, "t")
        assert iceberg.rows("t") == rows == ours(opened(iceberg.root), "t") == by_pyiceberg(url)
        if version == "3":
            ids = iceberg.sql("SELECT _row_id FROM {}", "t").collect()
            assert len({row[0] for row in ids} - {None}) == len(rows)
        return rows

    alike()
    # Theirs on ours, and ours on theirs.
    iceberg.sql("DELETE FROM {} WHERE id % 1000 = 998", "t")
    iceberg.sql("UPDATE {} SET v = 2 WHERE id = 4996", "t")
    alike()
    assert lake.sql("UPDATE t SET v = v + 1 WHERE id IN (4998, 4996, 4997)").updated == 2
    alike()
    before = deletes(url)
    if version == "2":
        # It has nothing to do where a data file has one vector.
        iceberg.call("rewrite_position_delete_files", "t", "options => map('rewrite-all', 'true')")
    lake.sql("DELETE FROM t WHERE id = 3")
    assert deletes(url) <= before
    alike()
    iceberg.call("rewrite_data_files", "t", "options => map('rewrite-all', 'true')")
    assert deletes(url) == 0
    lake.sql("DELETE FROM t WHERE id = 5")
    assert deletes(url) == 1
    rows = alike()
    assert len(rows) == COUNT - len([i for i in range(COUNT) if i % 7 == 1 or i % 1000 == 998 or i in (3, 5)])
    assert [row["v"] for row in rows if row["id"] > 4990] == [0, 0, 0, 0, 3, 1]


def test_deletes_that_spark_wrote_for_several_files_stay_under_ours(iceberg: Spark) -> None:
    lake = opened(iceberg.root)
    make(lake, 100)
    lake.append("t", pa.table({"id": [100, 101, 102], "v": [0] * 3, "p": ["p0"] * 3}))
    lake.sql("ALTER TABLE t SET TBLPROPERTIES ('write.delete.granularity' = 'partition')")
    lake.tag("before")
    iceberg.sql("DELETE FROM {} WHERE id IN (2, 100)", "t")
    assert lake.sql("DELETE FROM t WHERE id IN (2, 4, 101)").deleted == 2
    left = [i for i in range(103) if i not in (2, 4, 100, 101)]
    assert sorted(row["id"] for row in iceberg.rows("t")) == left
    assert iceberg.rows("t") == ours(lake, "t") == by_pyiceberg(iceberg.path("t"))
    with pytest.raises(lv.Unsupported, match="several data files"):
        lake.restore(tag="before")


def test_rows_keep_their_ids_where_spark_and_we_delete_others(iceberg: Spark) -> None:
    lake = opened(iceberg.root)
    make(lake, 100)
    lake.sql("DELETE FROM t WHERE id = 1")
    lake.sql("ALTER TABLE t SET TBLPROPERTIES ('format-version' = '3')")
    lake.append("t", pa.table({"id": [100, 101], "v": [0, 0], "p": ["p0", "p1"]}))

    def ids() -> dict[int, tuple[int, int]]:
        rows = iceberg.sql("SELECT id, _row_id, _last_updated_sequence_number FROM {}", "t").collect()
        return {row[0]: (row[1], row[2]) for row in rows}

    before = ids()
    assert len({number for number, _ in before.values()}) == len(before) == 101
    lake.sql("DELETE FROM t WHERE id IN (2, 100)")
    iceberg.sql("DELETE FROM {} WHERE id IN (3, 4)", "t")
    lake.sql("UPDATE t SET v = 1 WHERE id = 5")
    after = ids()
    assert {i: known for i, known in after.items() if i != 5} == {
        i: known for i, known in before.items() if i not in (2, 3, 4, 5, 100)
    }
    iceberg.sql("UPDATE {} SET v = 2 WHERE id = 7", "t")
    assert ids()[7][0] == before[7][0]
    lake.sql("DELETE FROM t WHERE id = 9")
    assert iceberg.rows("t") == ours(lake, "t") == ours(opened(iceberg.root), "t")
    iceberg.call("rewrite_data_files", "t", "options => map('rewrite-all', 'true')")
    assert {i: number for i, (number, _) in ids().items() if i not in (5, 7)} == {
        i: number for i, (number, _) in before.items() if i not in (2, 3, 4, 5, 7, 9, 100)
    }
    lake.sql("DELETE FROM t WHERE id = 11")
    assert iceberg.rows("t") == ours(lake, "t") == by_pyiceberg(iceberg.path("t"))
