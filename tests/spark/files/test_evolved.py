"""Partition specs that changed, over files that leave partition columns out, on Spark."""

from pathlib import Path
from typing import Any

import pytest

import lakevilla as lv
from lakevilla.engines.spark.scan import relation
from tests.support.evolved import ROWS, make_evolved

Rows = list[tuple[Any, ...]]


def rows(lake: lv.Lake, where: str = "true") -> Rows:
    found = lake.sql(f"SELECT id, day, kind FROM t WHERE {where} ORDER BY id").collect()
    return [tuple(row) for row in found]


@pytest.mark.parametrize("index", [True, False], ids=["file index", "by paths"])
def test_column_that_some_files_leave_out_has_the_partition_value_on_spark(
    quick: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, index: bool
) -> None:
    if not index:
        monkeypatch.setattr(relation, "driver_side", lambda session: None)
    make_evolved(tmp_path / "t")
    lake = lv.Lake(tmp_path, spark=quick)
    assert rows(lake) == ROWS
    assert rows(lake, "kind = 'b'") == ROWS[2:4]
    assert rows(lake, "kind IS NULL") == [ROWS[1], ROWS[4]]
    assert rows(lake, "kind <> 'b' AND day = 'wed'") == ROWS[5:]


def test_update_on_spark_keeps_values_that_only_the_log_has(quick: Any, tmp_path: Path) -> None:
    make_evolved(tmp_path / "t")
    lake = lv.Lake(tmp_path, spark=quick)
    lake.sql("UPDATE t SET id = id + 10 WHERE id IN (1, 3, 5)")
    kept = [(number + 10 if number in (1, 3, 5) else number, *rest) for number, *rest in ROWS]
    assert rows(lake) == sorted(kept)
    assert rows(lv.Lake(tmp_path, engine="local")) == sorted(kept)


def test_files_are_pruned_by_values_that_only_the_log_has(quick: Any, tmp_path: Path) -> None:
    make_evolved(tmp_path / "t")
    lake = lv.Lake(tmp_path, spark=quick)
    assert len(lake.sql("SELECT id FROM t WHERE kind = 'b'").inputFiles()) == 4
    (tmp_path / "t" / "data" / "fourth.parquet").unlink()
    # The file of another kind is deleted; none of these reads it.
    assert [row.id for row in lake.sql("SELECT id FROM t WHERE kind = 'b' ORDER BY id").collect()] == [3, 4]
    assert lake.sql("SELECT id FROM t WHERE kind IN ('b', 'q')").count() == 2
    assert lake.sql("DELETE FROM t WHERE kind = 'b'").deleted == 2
