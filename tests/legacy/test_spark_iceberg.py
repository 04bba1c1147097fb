"""Spark + Iceberg, unmodified, on the tables that we write: it reads equal rows, changes them, and we go on.

Its Hadoop catalog is for directories: elsewhere it overwrites what others commit.
"""

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import lakevilla as lv
from tests.legacy.clients.iceberg_readers import by_duckdb, by_pyiceberg
from tests.legacy.clients.spark_delta import ours, simple
from tests.legacy.clients.spark_iceberg import Spark
from tests.legacy.test_delta_clients import AWKWARD, EVERY_TYPE, every_type, sorted_rows


@pytest.fixture
def iceberg(spark_iceberg: SparkSession, tmp_path: Path) -> Spark:
    return Spark(spark_iceberg, tmp_path.name)


@pytest.fixture
def lake(iceberg: Spark) -> lv.Lake:
    return _open(iceberg)


def _open(iceberg: Spark) -> lv.Lake:
    return lv.Lake(iceberg.root, engine="local", default_format="iceberg", storage_options={"fsync": "false"})


def test_every_type_is_read_as_we_wrote_it_also_through_statistics(lake: lv.Lake, iceberg: Spark) -> None:
    lake.create("t", every_type())
    lake.append("t", pa.Table.from_pylist([{"id": 4, "text": "other"}], EVERY_TYPE))
    assert iceberg.rows("t") == ours(lake, "t")
    conditions = (
        "id = 1",
        "whole < 0",
        "single > 2",  # NaN is larger than any number
        "double > 1e300",
        "price = -1234567.89",
        "huge > 1234567890123456789012345678",
        "text >= 'Ünï'",
        "day = DATE '1582-10-15'",
        "at > TIMESTAMP '2026-01-02 03:04:05.678900Z'",
        "local < TIMESTAMP_NTZ '1970-01-01 00:00:00'",
        "struct.x = 1",
        "struct.deep.y = 'q'",
    )
    counts = ", ".join(f"count_if({condition})" for condition in conditions)
    (expected,) = iceberg.sql(f"SELECT {counts} FROM {{}}", "t").collect()
    union = " UNION ALL ".join(f"SELECT {n}, count(*) FROM {{0}} WHERE {c}" for n, c in enumerate(conditions))
    found = dict(iceberg.sql(union, "t").collect())
    assert [found[n] for n in range(len(conditions))] == list(expected)
    assert 0 not in expected


def test_rows_that_either_divided_by_transforms_are_read_and_changed_by_the_other(
    lake: lv.Lake, iceberg: Spark
) -> None:
    by = ["bucket(4, id)", "truncate(2, text)", "years(day)", "hours(at)", "truncate(50, price)", "whole"]
    rows = every_type().select(["id", "text", "day", "at", "price", "whole", "local"])
    lake.create("t", rows, partition_by=by)
    lake.create("awkward", pa.table({"p": AWKWARD, "v": list(range(len(AWKWARD)))}), partition_by=["p"])
    iceberg.sql(
        "CREATE TABLE {} (id BIGINT, text STRING, day DATE, at TIMESTAMP, price DECIMAL(9, 2), whole INT, "
        "local TIMESTAMP_NTZ) USING iceberg PARTITIONED BY (bucket(4, id), truncate(2, text), months(day), "
        "days(at), truncate(50, price), whole)",
        "theirs",
    )
    iceberg.append("theirs", rows)
    assert iceberg.rows("t") == ours(lake, "t") == ours(lake, "theirs") == sorted_rows(rows)
    for table in ("t", "theirs"):
        iceberg.append(table, rows)
        lake.append(table, rows)
        iceberg.sql("DELETE FROM {} WHERE text IS NULL AND id = 3", table)
        lake.sql(f"UPDATE {table} SET whole = 7 WHERE price < 0")
        assert iceberg.rows(table) == ours(lake, table)
        assert [row["whole"] for row in ours(lake, table)].count(7) == 3
        partitions = f"SELECT count(DISTINCT partition) FROM iceberg.`{iceberg.name}`.{table}.files"
        assert iceberg.session.sql(partitions).collect() == [(2,)], "both divide rows in the same way"
    iceberg.append("awkward", pa.table({"p": AWKWARD, "v": list(range(len(AWKWARD)))}))
    iceberg.sql("DELETE FROM {} WHERE p = 'a/b' OR p IS NULL", "awkward")
    lake.sql("UPDATE awkward SET v = -1 WHERE p = 'x:y?z#&'")
    assert iceberg.rows("awkward") == ours(lake, "awkward")
    assert len(ours(lake, "awkward")) == 2 * (len(AWKWARD) - 2)


MODES = {
    mode: {f"write.{verb}.mode": mode for verb in ("update", "delete", "merge")}
    for mode in ("copy-on-write", "merge-on-read")
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("mode", MODES)
def test_spark_appends_updates_deletes_and_merges_and_we_go_on(
    lake: lv.Lake, iceberg: Spark, mode: str
) -> None:
    lake.create("t", simple(1, 2, 3, 6), partition_by=["p"], properties=MODES[mode])
    iceberg.append("t", simple(4, 5, p="c/d"))
    iceberg.sql("UPDATE {} SET v = 'updated' WHERE id = 2", "t")
    iceberg.sql("DELETE FROM {} WHERE id = 3", "t")
    lake.create("s", simple(1, 9, v="merged"))
    merge = "MERGE INTO {0} t USING {1} s ON s.id = t.id WHEN MATCHED THEN UPDATE SET *"
    iceberg.sql(f"{merge} WHEN NOT MATCHED THEN INSERT *", "t", "s")
    expected = {(1, "merged"), (2, "updated"), (4, "new"), (5, "new"), (6, "new"), (9, "merged")}
    deletes = list(Path(iceberg.path("t")).rglob("*-deletes.parquet"))
    assert bool(deletes) == (mode == "merge-on-read")
    assert {(row["id"], row["v"]) for row in ours(lake, "t")} == expected
    lake.update("t", {"v": "'again'"}, "id IN (2, 4)")
    lake.delete("t", "id = 5")
    lake.merge("t", simple(9, 10, v="ours"), "source.id = target.id", matched="update", not_matched="insert")
    lake.overwrite("t", simple(1, v="over"), where="id = 1")
    iceberg.sql("DELETE FROM {} WHERE id = 6", "t")
    expected = {(1, "over"), (2, "again"), (4, "again"), (9, "ours"), (10, "ours")}
    assert {(row["id"], row["v"]) for row in iceberg.rows("t")} == expected
    assert (
        iceberg.rows("t") == ours(lake, "t") == ours(_open(iceberg), "t") == by_pyiceberg(iceberg.path("t"))
    )


def test_transaction_that_spark_gets_in_the_way_of_is_redone_on_its_delete_files(
    lake: lv.Lake, iceberg: Spark
) -> None:
    lake.create("t", simple(1, 2, 3), properties=MODES["merge-on-read"])
    with lake.transaction() as tx:
        tx.sql("UPDATE t SET v = concat(v, '!') WHERE id < 3")
        iceberg.sql("UPDATE {} SET v = 'theirs' WHERE id = 2", "t")
    assert tx.receipt is not None
    assert tx.receipt.redone == 1
    assert [row["v"] for row in ours(lake, "t")] == ["new!", "theirs!", "new"]
    tx = lake.transaction(lv.NONE)
    tx.delete("t", "id = 1")
    iceberg.sql("DELETE FROM {} WHERE id = 1", "t")
    with pytest.raises(lv.Conflict, match="by spark") as caught:
        tx.commit()
    assert caught.value.operation == "DELETE"
    assert iceberg.rows("t") == ours(lake, "t")


def test_columns_and_partitioning_that_spark_changes_are_ours_too_and_the_other_way_round(
    lake: lv.Lake, iceberg: Spark
) -> None:
    lake.create("t", "a INT, s STRUCT<x: STRING>, gone BIGINT, p STRING", partition_by=["p"])
    lake.append("t", pa.table({"a": [1], "s": [{"x": "q"}], "gone": [7], "p": ["k"]}))
    iceberg.sql("ALTER TABLE {} RENAME COLUMN a TO b", "t")
    iceberg.sql("ALTER TABLE {} ALTER COLUMN b TYPE BIGINT", "t")
    iceberg.sql("ALTER TABLE {} DROP COLUMN gone", "t")
    iceberg.sql("ALTER TABLE {} ADD COLUMNS (gone STRING AFTER b, s.y INT)", "t")
    iceberg.sql("ALTER TABLE {} REPLACE PARTITION FIELD p WITH bucket(4, b)", "t")
    assert ours(lake, "t") == [{"b": 1, "gone": None, "s": {"x": "q", "y": None}, "p": "k"}]
    lake.sql("INSERT INTO t VALUES (5000000000, 'new', named_struct('x', 'r', 'y', 5), NULL)")
    assert iceberg.rows("t") == ours(lake, "t")
    lake.sql("ALTER TABLE t RENAME COLUMN b TO c")
    lake.add_column("t", "last", "DATE")
    iceberg.sql("UPDATE {} SET last = DATE '2026-01-01', c = c + 1 WHERE p = 'k'", "t")
    lake.sql("UPDATE t SET p = 'z' WHERE c = 2")
    assert iceberg.rows("t") == ours(lake, "t") == by_pyiceberg(iceberg.path("t"))
    assert {(row["c"], row["p"], row["gone"]) for row in ours(lake, "t")} == {
        (2, "z", None),
        (5 * 10**9, None, "new"),
    }
    assert [entry.operation for entry in lake.history("t")].count("ALTER TABLE") >= 5


def test_table_that_spark_made_is_registered_and_changed_by_both(iceberg: Spark, tmp_path: Path) -> None:
    iceberg.sql(
        "CREATE TABLE {} (id BIGINT, v STRING, p STRING) USING iceberg PARTITIONED BY (bucket(4, id)) "
        "TBLPROPERTIES ('write.delete.mode' = 'merge-on-read', 'kept.by' = 'them')",
        "t",
    )
    iceberg.append("t", simple(*range(1, 6)))
    iceberg.sql("DELETE FROM {} WHERE id = 4", "t")
    lake = lv.Lake(tmp_path / "lake", engine="local", storage_options={"fsync": "false"})
    lake.register("far", Path(iceberg.path("t")).as_uri())
    lake.create("near", simple(1), format="delta")
    with lake.transaction() as tx:
        tx.update("far", {"v": "'ours'"}, "id <= 2")
        tx.update("near", {"v": "'ours'"})
    assert {(row["id"], row["v"]) for row in iceberg.rows("t")} == {
        (1, "ours"),
        (2, "ours"),
        (3, "new"),
        (5, "new"),
    }
    iceberg.sql("UPDATE {} SET v = 'theirs' WHERE id = 3", "t")
    assert iceberg.rows("t") == ours(lake, "far")
    properties = dict(iceberg.sql("SHOW TBLPROPERTIES {}", "t").collect())
    assert (properties["kept.by"], properties["write.delete.mode"]) == ("them", "merge-on-read")


def test_spark_rewrites_files_and_manifests_and_expires_snapshots_and_we_go_on(
    lake: lv.Lake, iceberg: Spark
) -> None:
    lake.create("t", simple(0, p="ü 1"), partition_by=["p"], properties=MODES["merge-on-read"])
    for number in range(1, 4):
        lake.append("t", simple(number, p="ü 1"))
    iceberg.sql("DELETE FROM {} WHERE id = 2", "t")
    iceberg.call("rewrite_data_files", "t", "options => map('rewrite-all', 'true')")
    lake.append("t", simple(4, p="ü 1"))
    iceberg.call("rewrite_manifests", "t")
    lake.delete("t", "id = 1")
    iceberg.call("expire_snapshots", "t", "older_than => TIMESTAMP '2100-01-01', retain_last => 1")
    expected = sorted_rows(simple(0, 3, 4, p="ü 1"))
    assert ours(lake, "t") == ours(_open(iceberg), "t") == expected
    # Removed files are deleted: only what the newest snapshot needs is there.
    assert len(list(Path(iceberg.path("t"), "data").rglob("*.parquet"))) <= 3
    lake.sql("UPDATE t SET v = 'late' WHERE id = 3")
    assert iceberg.rows("t") == ours(lake, "t") == by_duckdb(iceberg.path("t"))
    assert lake.optimize("t", zorder_by=["id"]).added.count == 1
    assert iceberg.rows("t") == ours(lake, "t") == by_duckdb(iceberg.path("t"))


def test_every_version_is_read_alike(lake: lv.Lake, iceberg: Spark) -> None:
    lake.create("t", simple(1, 2, 3))
    lake.sql("UPDATE t SET v = 'changed' WHERE id = 2")
    iceberg.append("t", simple(4))
    iceberg.sql("DELETE FROM {} WHERE id = 1", "t")
    lake.append("t", simple(5))
    assert [entry.version for entry in lake.history("t")] == [5, 4, 3, 2, 1]
    for version in range(1, 6):
        assert iceberg.rows_at("t", version) == ours(lake, "t", version)
