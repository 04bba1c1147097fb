"""Deletion vectors between clients: others read those that we write, and we change files with theirs."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import lakevilla as lv
from tests.legacy.clients.spark_delta import Spark, ours
from tests.legacy.test_delta_clients import by_deltalake, by_duckdb

COUNT = 200_000

KINDS = {
    "one row, in the log": "id = 5",
    "a few rows, in the log": "id IN (3, 70000, 199999)",
    "arrays": "id % 1000 = 1",
    "runs, in the log": "id BETWEEN 500 AND 90000",
    "runs and arrays": "id BETWEEN 500 AND 90000 OR id % 1000 = 2",
    "bitmaps": "id % 3 = 0",
}
"""Conditions whose rows take each form of a vector."""


@pytest.fixture
def lake(tmp_path: Path) -> lv.Lake:
    options = {"fsync": "false"}
    return lv.Lake(tmp_path / "lake", engine="local", merge_on_read=True, storage_options=options)


def make(lake: lv.Lake, count: int = COUNT) -> None:
    lake.create("t", pa.table({"id": list(range(count)), "v": pa.array([0]).take([0] * count)}))


def ids(rows: list[dict[str, Any]]) -> list[int]:
    return sorted(row["id"] for row in rows)


def vectors(folder: Path) -> list[dict[str, Any]]:
    """The vectors that the newest version of a table adds."""
    newest = max((folder / "_delta_log").glob("*.json"))
    adds = [line["add"] for line in map(json.loads, newest.read_text().splitlines()) if "add" in line]
    return [add["deletionVector"] for add in adds if add.get("deletionVector")]


@pytest.mark.parametrize("kind", KINDS)
def test_each_form_of_a_vector_is_read_by_deltalake_and_duckdb(
    lake: lv.Lake, tmp_path: Path, kind: str
) -> None:
    make(lake)
    lake.sql(f"DELETE FROM t WHERE {KINDS[kind]}")
    (vector,) = vectors(tmp_path / "lake" / "t")
    assert vector["storageType"] == ("i" if "in the log" in kind else "u")
    found = ids(lake.read("t").toArrow().to_pylist())
    assert len(found) == COUNT - vector["cardinality"]
    url = str(tmp_path / "lake" / "t")
    assert ids(by_deltalake(url)) == found
    assert ids(by_duckdb(url)) == found


def test_several_vectors_in_one_file_and_a_checkpoint_are_read_by_others(
    lake: lv.Lake, tmp_path: Path
) -> None:
    make(lake, 1000)
    lake.append("t", pa.table({"id": list(range(1000, 2000)), "v": [1] * 1000}))
    lake.sql("DELETE FROM t WHERE id % 3 = 0")
    for i in range(1, 26, 3):
        lake.sql(f"UPDATE t SET v = 7 WHERE id = {i}")
    assert list((tmp_path / "lake" / "t" / "_delta_log").glob("*.checkpoint.parquet"))
    lake.sql("UPDATE t SET v = 8 WHERE id IN (2, 1001)")
    url = str(tmp_path / "lake" / "t")
    assert by_deltalake(url) == by_duckdb(url) == ours(lake, "t")
    assert len(ours(lake, "t")) == len([i for i in range(2000) if i % 3])


@pytest.fixture
def delta(spark_delta: SparkSession, tmp_path: Path) -> Iterator[Spark]:
    yield Spark(spark_delta, str(tmp_path / "lake"))
    spark_delta.catalog.clearCache()


def test_spark_and_delta_reads_every_form_changes_rows_and_we_go_on(lake: lv.Lake, delta: Spark) -> None:
    make(lake)
    folder = Path(delta.path("t"))
    for condition in KINDS.values():
        lake.sql(f"DELETE FROM t WHERE {condition} AND v = 0")
        assert ids(delta.rows("t")) == ids(ours(lake, "t"))
    # Theirs on ours.
    delta.sql("DELETE FROM {} WHERE id % 1000 = 998", "t")
    assert len(vectors(folder)) == 1
    delta.sql("UPDATE {} SET v = 1 WHERE id = 199993", "t")
    assert delta.rows("t") == ours(lake, "t")
    # Ours on theirs.
    assert lake.sql("UPDATE t SET v = v + 1 WHERE id IN (199993, 199994)").updated == 2
    assert len(vectors(folder)) == 1
    assert delta.rows("t") == ours(lake, "t")
    assert [row["v"] for row in ours(lake, "t") if row["id"] >= 199_993] == [2, 1, 0, 0]
    delta.checkpoint("t")
    delta.forget()
    lake.sql("DELETE FROM t WHERE id > 199000 AND id % 7 = 1")
    assert delta.rows("t") == ours(lake, "t")
    delta.sql("REORG TABLE {} APPLY (PURGE)", "t")
    assert delta.rows("t") == ours(lake, "t")
    lake.sql("DELETE FROM t WHERE id = 199994")
    assert delta.rows("t") == ours(lake, "t")
