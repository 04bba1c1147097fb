"""Odd tables of others on Spark: known rows and right changes, or an error of ours."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import lakevilla as lv
from tests.golden.odd_writes import (
    CHANGED,
    COMPACTED,
    CONTRADICTING,
    EVOLVED,
    TIMES,
    change_in_every_way,
    continue_feed,
    copied,
    needed,
    refuse_every_change,
)

pytestmark = needed


@pytest.fixture
def on_spark(quick: Any) -> Callable[[Path], lv.Lake]:
    return lambda root: lv.Lake(root, spark=quick, storage_options={"fsync": "false"})


@pytest.mark.parametrize("name", CHANGED)
def test_odd_table_keeps_its_rows_through_changes_on_spark(
    on_spark: Callable[[Path], lv.Lake], tmp_path: Path, name: str
) -> None:
    change_in_every_way(name, tmp_path, on_spark)


def test_partition_column_that_files_leave_out_is_never_null_on_spark(
    on_spark: Callable[[Path], lv.Lake], tmp_path: Path
) -> None:
    lake = copied(EVOLVED, tmp_path, on_spark)
    judge = lv.Lake(tmp_path, engine="local")
    before = sorted(map(tuple, judge.read("t").collect()))
    assert sorted(map(tuple, lake.read("t").collect())) == before
    assert lake.sql("SELECT * FROM t WHERE event_type IS NULL").count() == 0
    lake.sql("UPDATE t SET user_id = user_id")
    assert sorted(map(tuple, judge.read("t").collect())) == before


def test_feed_that_others_wrote_is_continued_on_spark(
    on_spark: Callable[[Path], lv.Lake], tmp_path: Path
) -> None:
    continue_feed(copied(COMPACTED, tmp_path, on_spark))


def test_times_are_refused_on_spark(on_spark: Callable[[Path], lv.Lake], tmp_path: Path) -> None:
    lake = copied(TIMES, tmp_path, on_spark)
    with pytest.raises(lv.Unsupported, match="time64"):
        lake.read("t")
    refuse_every_change(lake, "user_id")


def test_contradicting_table_is_an_error_of_ours_on_spark(
    on_spark: Callable[[Path], lv.Lake], tmp_path: Path
) -> None:
    lake = copied(CONTRADICTING, tmp_path, on_spark)
    with pytest.raises(lv.Corrupt, match="struct_1_col"):
        lake.read("t").collect()
    refuse_every_change(lake, "struct_1_col", lv.LakeVillaError)
