"""Odd tables of others, changed by the local engine: right rows for all readers, or an error of ours."""

from datetime import time
from pathlib import Path

import pytest

import lakevilla as lv
from tests.golden.odd_writes import (
    CHANGED,
    COMPACTED,
    CONTRADICTING,
    TIMES,
    change_in_every_way,
    continue_feed,
    copied,
    needed,
    others_count,
    refuse_every_change,
)

pytestmark = needed


def local(root: Path) -> lv.Lake:
    return lv.Lake(root, engine="local", storage_options={"fsync": "false"})


@pytest.mark.parametrize("name", CHANGED)
def test_odd_table_keeps_its_rows_through_changes(tmp_path: Path, name: str) -> None:
    change_in_every_way(name, tmp_path, local)


def test_table_by_times_is_changed(tmp_path: Path) -> None:
    lake = copied(TIMES, tmp_path, local)
    assert lake.sql("UPDATE t SET user_id = 5").updated == 2
    assert lake.append("t", lake.read("t")).inserted == 2
    assert lake.sql("DELETE FROM t WHERE event_type = 'click'").deleted == 2
    found = {(row.partition_col, row.user_id, row.event_type) for row in lake.read("t").collect()}
    assert found == {(time(8, 21, 9), 5, "purchase")}
    assert others_count(tmp_path / "t") == 2


def test_feed_that_others_wrote_is_continued(tmp_path: Path) -> None:
    continue_feed(copied(COMPACTED, tmp_path, local))


def test_contradicting_table_is_an_error_of_ours(tmp_path: Path) -> None:
    lake = copied(CONTRADICTING, tmp_path, local)
    with pytest.raises(lv.Corrupt, match="struct_1_col"):
        lake.read("t").toArrow()
    refuse_every_change(lake, "struct_1_col", lv.LakeVillaError)
