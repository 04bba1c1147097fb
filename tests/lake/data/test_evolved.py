"""Partition specs that changed, over files that leave partition columns out: the log's value counts."""

from pathlib import Path

import pytest

import lakevilla as lv
from lakevilla.environment import SystemEnvironment
from lakevilla.formats.registry import open_table
from lakevilla.store.open import open_store
from tests.support.evolved import ROWS, make_evolved


@pytest.fixture
def lake(tmp_path: Path) -> lv.Lake:
    make_evolved(tmp_path / "t")
    return lv.Lake(tmp_path, engine="local")


def rows(lake: lv.Lake, where: str = "true") -> list[tuple[object, ...]]:
    found = lake.sql(f"SELECT id, day, kind FROM t WHERE {where} ORDER BY id").collect()
    return [tuple(row) for row in found]


def test_column_that_some_files_leave_out_has_the_partition_value_there(lake: lv.Lake) -> None:
    assert rows(lake) == ROWS
    assert rows(lake, "kind = 'b'") == ROWS[2:4]
    assert rows(lake, "kind IS NULL") == [ROWS[1], ROWS[4]]


def test_update_keeps_values_that_only_the_log_has(lake: lv.Lake) -> None:
    lake.sql("UPDATE t SET id = id + 10 WHERE id IN (1, 3, 5)")
    kept = [(number + 10 if number in (1, 3, 5) else number, *rest) for number, *rest in ROWS]
    assert rows(lake) == sorted(kept)


def test_snapshot_names_the_columns_that_files_may_leave_out(tmp_path: Path) -> None:
    make_evolved(tmp_path / "t")
    table = open_table("iceberg", open_store(str(tmp_path / "t")), SystemEnvironment(), open_store)
    found = table.latest()
    assert found is not None
    assert found.partition_columns == ("day",)
    assert found.unstored() == {frozenset(), frozenset({"kind"})}


def test_empty_table_has_one_kind_of_files(tmp_path: Path) -> None:
    lake = lv.Lake(tmp_path, engine="local")
    lake.create("t", "id BIGINT, kind STRING", format="iceberg", partition_by=["kind"])
    table = open_table("iceberg", open_store(str(tmp_path / "t")), SystemEnvironment(), open_store)
    found = table.latest()
    assert found is not None
    assert found.unstored() == {frozenset()}
