"""Optimize on Spark: by tasks, and in this process where little has to be done."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakevilla as lv
from lakevilla.engines.spark.write import compaction

OPTIONS = {"fsync": "false"}


@pytest.mark.parametrize(("table_format", "here_bytes"), [("delta", 0), ("iceberg", 0), ("delta", 1 << 20)])
def test_files_are_rewritten_as_on_the_local_engine(
    quick: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table_format: str, here_bytes: int
) -> None:
    monkeypatch.setattr(compaction, "_HERE_BYTES", here_bytes)
    local = lv.Lake(
        tmp_path, engine="local", default_format=table_format, merge_on_read=True, storage_options=OPTIONS
    )
    local.create("t", "id BIGINT, amount DECIMAL(10, 2), day DATE, part INT", partition_by=["part"])
    for n in range(4):
        local.sql(f"INSERT INTO t VALUES ({n}, {n}.5, DATE'2026-01-01', {n % 2}), ({n + 10}, NULL, NULL, 1)")
    local.sql("DELETE FROM t WHERE id = 3")
    before = sorted(map(str, local.read("t").toArrow().to_pylist()))
    spark = lv.Lake(tmp_path, spark=quick, storage_options=OPTIONS)
    report = spark.optimize("t")
    assert (report.after.count, local.optimize("t").versions) == (2, ())
    assert spark.sql("OPTIMIZE t ZORDER BY (id, amount)").toArrow().num_rows == 2
    assert sorted(map(str, local.read("t").toArrow().to_pylist())) == before


def test_why_a_task_cannot_rewrite_its_files_is_told_as_it_is(
    quick: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "_HERE_BYTES", 0)
    lake = lv.Lake(tmp_path, spark=quick, storage_options=OPTIONS)
    local = lv.Lake(tmp_path, engine="local", storage_options=OPTIONS)
    for n in range(2):
        (local.append if n else local.create)("t", pa.table({"id": [n]}))
    next((tmp_path / "t").glob("*.parquet")).unlink()
    with pytest.raises(lv.Corrupt, match="missing"):
        lake.optimize("t")
