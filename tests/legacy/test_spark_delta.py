"""Spark + Delta, unmodified, on the tables that we write: it reads equal rows, changes them, and we go on."""

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import lakevilla as lv
from bench.spark import sessions
from bench.stores.seaweed import S3Server
from tests.legacy.clients.spark_delta import Spark, ours, simple
from tests.legacy.test_delta_clients import AWKWARD, EVERY_TYPE, every_type, sorted_rows


@pytest.fixture
def lake(tmp_path: Path) -> lv.Lake:
    return lv.Lake(tmp_path / "lake", engine="local", storage_options={"fsync": "false"})


@pytest.fixture
def delta(spark_delta: SparkSession, tmp_path: Path) -> Iterator[Spark]:
    yield Spark(spark_delta, str(tmp_path / "lake"))
    spark_delta.catalog.clearCache()


def test_every_type_is_read_as_we_wrote_it_also_through_statistics(lake: lv.Lake, delta: Spark) -> None:
    lake.create("t", every_type())
    lake.append("t", pa.Table.from_pylist([{"id": 4, "text": "other"}], EVERY_TYPE))
    assert delta.rows("t") == ours(lake, "t")
    conditions = (
        "id = 1",
        "tiny = -128",
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
    (expected,) = delta.sql(f"SELECT {counts} FROM {{}}", "t").collect()
    union = " UNION ALL ".join(f"SELECT {n}, count(*) FROM {{0}} WHERE {c}" for n, c in enumerate(conditions))
    found = dict(delta.sql(union, "t").collect())
    assert [found[n] for n in range(len(conditions))] == list(expected)
    assert 0 not in expected


def test_partition_values_of_every_type_are_read_as_we_wrote_them(lake: lv.Lake, delta: Spark) -> None:
    by = ["flag", "tiny", "whole", "single", "double", "price", "huge", "text", "day", "at", "local"]
    rows = every_type().select([*by, "id"])
    lake.create("t", rows, partition_by=by)
    awkward = pa.table({"p": AWKWARD, "v": list(range(len(AWKWARD)))})
    lake.create("awkward", awkward, partition_by=["p"])
    assert delta.rows("t") == ours(lake, "t")
    assert delta.rows("awkward") == sorted_rows(awkward)
    # It writes into the same partitions, under names of its own, and we find them.
    delta.append("awkward", awkward)
    delta.sql("DELETE FROM {} WHERE p = 'a/b' OR p IS NULL", "awkward")
    kept = [row for row in awkward.to_pylist() if row["p"] not in (None, "a/b")]
    assert ours(lake, "awkward") == sorted(kept * 2, key=repr)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("mode", ["name", "id"])
def test_columns_that_we_renamed_and_dropped_are_read_and_changed_by_new_names(
    lake: lv.Lake, delta: Spark, mode: str
) -> None:
    mapping = {"delta.columnMapping.mode": mode}
    schema = "a BIGINT, s STRUCT<x: STRING>, gone BIGINT, p STRING"
    lake.create("t", schema, partition_by=["p"], properties=mapping)
    lake.append("t", pa.table({"a": [1], "s": [{"x": "q"}], "gone": [7], "p": ["k"]}))
    lake.sql("ALTER TABLE t RENAME COLUMN a TO b")
    lake.sql("ALTER TABLE t DROP COLUMN gone")
    lake.add_column("t", "gone", "STRING")
    lake.sql("INSERT INTO t (b, s, p, gone) VALUES (2, struct('r'), NULL, 'new')")
    expected = [
        {"b": 1, "s": {"x": "q"}, "p": "k", "gone": None},
        {"b": 2, "s": {"x": "r"}, "p": None, "gone": "new"},
    ]
    assert delta.rows("t") == sorted(expected, key=repr) == ours(lake, "t")
    delta.sql("ALTER TABLE {} RENAME COLUMN b TO c", "t")
    delta.sql("UPDATE {} SET c = 20, s = named_struct('x', 'z') WHERE c = 2", "t")
    lake.sql("UPDATE t SET c = 10 WHERE c = 1")
    assert delta.rows("t") == ours(lake, "t")
    assert {(row["c"], row["s"]["x"]) for row in ours(lake, "t")} == {(10, "q"), (20, "z")}


CHECKPOINTS = {
    "classic": {},
    "structs": {"delta.checkpoint.writeStatsAsStruct": "true", "delta.checkpoint.writeStatsAsJson": "false"},
    "v2": {"delta.checkpointPolicy": "v2"},
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", CHECKPOINTS)
def test_a_table_is_opened_cold_from_our_checkpoint_and_checkpointed_in_turn(
    lake: lv.Lake, delta: Spark, kind: str
) -> None:
    rows = every_type().append_column("p", pa.array(["a/b", None, "c"]))
    lake.create(
        "t", rows, partition_by=["p"], properties={**CHECKPOINTS[kind], "delta.checkpointInterval": "3"}
    )
    lake.append("t", rows)
    lake.delete("t", "id = 3")
    lake.append("t", rows.slice(0, 1))
    log = Path(delta.path("t"), "_delta_log")
    assert json.loads((log / "_last_checkpoint").read_text())["version"] == 3
    _forget_entries(log, 3)
    assert delta.rows("t") == ours(lake, "t")
    delta.sql("DELETE FROM {} WHERE id = 1", "t")
    delta.checkpoint("t")
    assert json.loads((log / "_last_checkpoint").read_text())["version"] == 4
    # Our version again, over what Spark left in the log (Hadoop keeps checksums of its files in hidden ones).
    for _ in range(2):
        lake.append("t", rows.slice(2, 1))
    assert json.loads((log / "_last_checkpoint").read_text())["version"] == 6
    _forget_entries(log, 6)
    delta.forget()
    assert delta.rows("t") == ours(lake, "t") == ours(_fresh(lake), "t")
    assert len(ours(lake, "t")) == 4


def _forget_entries(log: Path, checkpoint: int) -> None:
    """As log cleanup does: Spark wants the checkpoint's own entry to stay."""
    for version in range(checkpoint):
        (log / f"{version:020}.json").unlink(missing_ok=True)


def _fresh(lake: lv.Lake) -> lv.Lake:
    return lv.Lake(lake.url, engine="local", storage_options={"fsync": "false"})


def test_every_version_is_read_alike_also_by_time_in_the_commit(lake: lv.Lake, delta: Spark) -> None:
    lake.create("t", simple(1, 2, 3), properties={"delta.enableInCommitTimestamps": "true"})
    lake.sql("UPDATE t SET v = 'changed' WHERE id = 2")
    delta.append("t", simple(4))
    delta.sql("DELETE FROM {} WHERE id = 1", "t")
    lake.append("t", simple(5))
    assert [entry.version for entry in lake.history("t")] == [4, 3, 2, 1, 0]
    for version in range(5):
        assert delta.rows("t", version) == ours(lake, "t", version)
    told = {row.version: row.timestamp for row in delta.sql("DESCRIBE HISTORY {}", "t").collect()}
    assert {version: round(time.timestamp() * 1000) for version, time in told.items()} == {
        entry.version: entry.timestamp_ms for entry in lake.history("t")
    }
    assert sorted(told.values()) == [told[version] for version in range(5)]


def test_spark_appends_updates_deletes_and_merges_and_we_go_on(lake: lv.Lake, delta: Spark) -> None:
    lake.create("t", simple(1, 2, 3), partition_by=["p"])
    delta.append("t", simple(4, 5, p="c/d"))
    delta.sql("UPDATE {} SET v = 'updated' WHERE id = 2", "t")
    delta.sql("DELETE FROM {} WHERE id = 3", "t")
    lake.create("s", simple(1, 9, v="merged"))
    merge = "MERGE INTO {0} t USING {1} s ON s.id = t.id WHEN MATCHED THEN UPDATE SET *"
    delta.sql(f"{merge} WHEN NOT MATCHED THEN INSERT *", "t", "s")
    expected = {(1, "merged"), (2, "updated"), (4, "new"), (5, "new"), (9, "merged")}
    assert {(row["id"], row["v"]) for row in ours(lake, "t")} == expected
    lake.update("t", {"v": "'again'"}, "id IN (2, 4)")
    lake.delete("t", "id = 5")
    lake.merge("t", simple(9, 10, v="ours"), "source.id = target.id", matched="update", not_matched="insert")
    lake.overwrite("t", simple(1, v="over"), where="id = 1")
    expected = {(1, "over"), (2, "again"), (4, "again"), (9, "ours"), (10, "ours")}
    assert {(row["id"], row["v"]) for row in delta.rows("t")} == expected
    assert delta.rows("t") == ours(lake, "t") == ours(_fresh(lake), "t")


def test_spark_optimizes_and_vacuums_and_we_go_on(lake: lv.Lake, delta: Spark) -> None:
    lake.create("t", simple(0, p="ü 1"), partition_by=["p"])
    for number in range(1, 4):
        lake.append("t", simple(number, p="ü 1"))
    lake.delete("t", "id = 2")
    delta.sql("OPTIMIZE {}", "t")
    folder = Path(delta.path("t"))
    assert len(list(folder.rglob("*.parquet"))) == 5
    check = "spark.databricks.delta.retentionDurationCheck.enabled"
    delta.session.conf.set(check, "false")
    try:
        delta.sql("VACUUM {} RETAIN 0 HOURS", "t")
    finally:
        delta.session.conf.unset(check)
    assert len(list(folder.rglob("*.parquet"))) == 1
    assert ours(lake, "t") == ours(_fresh(lake), "t") == sorted_rows(simple(0, 1, 3, p="ü 1"))
    lake.sql("UPDATE t SET v = 'late' WHERE id = 3")
    assert delta.rows("t") == ours(lake, "t")
    assert lake.optimize("t", zorder_by=["id"]).added.count == 1
    assert delta.rows("t") == ours(lake, "t")


def test_rows_that_spark_deleted_with_vectors_stay_deleted_when_we_change_the_rest(
    lake: lv.Lake, delta: Spark
) -> None:
    lake.create("t", simple(*range(20)), properties={"delta.enableDeletionVectors": "true"})
    delta.sql("DELETE FROM {} WHERE id % 5 = 0", "t")
    assert list(Path(delta.path("t")).glob("deletion_vector*.bin")), "no vector was written"
    assert ours(lake, "t") == delta.rows("t")
    lake.append("t", simple(*range(20, 30)))
    delta.sql("UPDATE {} SET v = 'spark' WHERE id IN (1, 21)", "t")
    lake.sql("UPDATE t SET v = 'ours' WHERE id IN (2, 22)")
    delta.sql("DELETE FROM {} WHERE id IN (3, 23)", "t")
    lake.delete("t", "id = 4")
    found = {row["id"]: row["v"] for row in ours(lake, "t")}
    changed = {1: "spark", 21: "spark", 2: "ours", 22: "ours"}
    gone = {0, 5, 10, 15, 3, 23, 4}
    assert found == {number: changed.get(number, "new") for number in range(30) if number not in gone}
    assert delta.rows("t") == ours(lake, "t") == ours(_fresh(lake), "t")


def test_spark_respects_our_constraints_and_append_only(lake: lv.Lake, delta: Spark) -> None:
    lake.create("t", simple(1), properties={"delta.appendOnly": "true"})
    lake.sql("ALTER TABLE t ADD CONSTRAINT positive CHECK (id > 0)")
    with pytest.raises(Exception, match="DELTA_CANNOT_MODIFY_APPEND_ONLY"):
        delta.sql("DELETE FROM {}", "t")
    with pytest.raises(Exception, match="DELTA_VIOLATE_CONSTRAINT"):
        delta.append("t", simple(-1))
    delta.append("t", simple(2))
    with pytest.raises(lv.InvalidInput, match="positive"):
        lake.append("t", simple(-1))
    assert ours(lake, "t") == sorted_rows(simple(1, 2))


@pytest.mark.long
def test_in_turns_on_s3_each_reads_what_the_other_wrote(spark: SparkSession, s3: S3Server) -> None:
    url = s3.new_url()
    lake = lv.Lake(url, engine="local", storage_options=s3.storage_options)
    delta = Spark(
        sessions.with_delta(spark, sessions.s3a(s3.storage_options)), url.replace("s3://", "s3a://")
    )
    lake.create("t", simple(1, 2, p="ü/%"), partition_by=["p"], properties={"delta.checkpointInterval": "3"})
    delta.append("t", simple(3, p="x y"))
    lake.sql("UPDATE t SET v = 'ours' WHERE id = 1")
    delta.sql("UPDATE {} SET v = 'spark' WHERE id = 2", "t")
    lake.append("t", simple(4))
    delta.sql("DELETE FROM {} WHERE id = 3", "t")
    lake.append("t", simple(5))
    found = {row["id"]: row["v"] for row in ours(lake, "t")}
    assert found == {1: "ours", 2: "spark", 4: "new", 5: "new"}
    delta.forget()
    assert delta.rows("t") == ours(lake, "t")
