"""Vacuum of a table that Spark + Delta changes, deletion vectors included: Spark reads what it may expect."""

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import lakevilla as lv
from tests.legacy.clients.spark_delta import Spark, ours
from tests.support.clocks import Days


def _vectors(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("deletion_vector_*.bin")}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("checkpoint", [True, False])
def test_spark_reads_every_version_within_the_retention_of_a_vacuumed_table(
    spark_delta: SparkSession, tmp_path: Path, checkpoint: bool
) -> None:
    clock, delta = Days(), Spark(spark_delta, str(tmp_path))
    lake = lv.Lake(tmp_path, engine="local", environment=clock, storage_options={"fsync": "false"})
    delta.sql(
        "CREATE TABLE {} (id BIGINT, v STRING) USING delta "
        "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
        "t",
    )
    delta.append("t", pa.table({"id": list(range(100)), "v": ["x"] * 100}))
    delta.sql("DELETE FROM {} WHERE id = 1", "t")
    (first,) = _vectors(tmp_path / "t")
    delta.sql("DELETE FROM {} WHERE id = 2", "t")
    assert len(_vectors(tmp_path / "t")) == 2
    if checkpoint:
        delta.checkpoint("t")
    assert not lake.vacuum(dry_run=False, foreign=True).files.count
    delta.forget()
    assert [len(delta.rows("t", version)) for version in range(4)] == [0, 100, 99, 98]

    clock.pass_days(8)
    (told,) = lake.vacuum(dry_run=False).tables
    assert told.keys == (first,)
    assert first not in _vectors(tmp_path / "t")
    delta.forget()
    assert delta.rows("t") == ours(lake, "t")
    assert len(delta.rows("t")) == 98
    lake.sql("UPDATE t SET v = 'y' WHERE id = 3")
    assert not lake.vacuum(dry_run=False, foreign=True).files.count
    assert delta.rows("t") == ours(lake, "t")
    assert [len(delta.rows("t", version)) for version in (3, 4)] == [98, 98]
