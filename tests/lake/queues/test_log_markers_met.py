"""Markers in the log, and clients or transactions that get in their way. See test_log_markers."""

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

import lakevilla as lv
from tests.support.lakes.marked import (
    is_pending,
    legacy,
    marked_lake,
    open_lake,
    outsider,
    sent,
    value,
    versions,
)

pytestmark = pytest.mark.formats("delta", "iceberg")


@pytest.fixture
def lake(tmp_path: Path) -> lv.Lake:
    return marked_lake(tmp_path)


def add_outside(place: Path) -> None:
    outsider(place).append(place / "t", pa.table({"id": [5], "v": [50]}))


def test_commit_of_an_outside_writer_above_the_marker_moves_it(
    lake: lv.Lake, tmp_path: Path, begin: int
) -> None:
    with lake.transaction(lv.R) as tx:
        tx.update("t", {"v": "v + 1"}, where="id = 5")
        add_outside(tmp_path)
    assert tx.receipt is not None
    assert (tx.receipt.versions, tx.receipt.redone) == ({"t": begin + 5}, 1)
    assert not is_pending(tmp_path, begin + 3)
    assert legacy(tmp_path) == (begin + 5, 21, 52), "the update has seen the outside writer's row too"
    assert lake.read("t").count() == 21


@pytest.mark.formats("delta")
def test_checkpoint_over_the_marker_moves_it(lake: lv.Lake, tmp_path: Path) -> None:
    with lake.transaction(lv.R) as tx:
        tx.update("t", {"v": "v + 1"}, where="id = 5")
        DeltaTable(tmp_path / "t").create_checkpoint()
    assert tx.receipt is not None
    assert tx.receipt.versions == {"t": 4}
    assert legacy(tmp_path) == (4, 20, 1)
    assert (value(open_lake(tmp_path), 5), value(lake, 5)) == (1, 1)


def test_outside_change_of_what_was_shown_is_a_conflict(lake: lv.Lake, tmp_path: Path, begin: int) -> None:
    with pytest.raises(lv.Conflict), lake.transaction(lv.R) as tx:
        assert value(tx, 5) == 0
        tx.update("t", {"v": 1}, where="id = 15")
        add_outside(tmp_path)
    assert legacy(tmp_path)[1:] == (21, 50)
    # The outsider's own version lies above that of the marker, and names no transaction of ours.
    ours = [version for version in range(begin + 3, begin + versions(tmp_path)) if version != begin + 4]
    assert not any(is_pending(tmp_path, version) for version in ours)


def test_others_behind_the_marker_do_not_count_as_outside_writers(
    lake: lv.Lake, tmp_path: Path, begin: int
) -> None:
    first, aborted, last = (lake.transaction(lv.R) for _ in range(3))
    first.append("t", [{"id": 30, "v": 1}])
    aborted.append("t", [{"id": 31, "v": 1}])
    last.append("t", [{"id": 32, "v": 1}])
    aborted.abort()
    assert first.commit().versions == {"t": begin + 3}
    assert last.commit().versions == {"t": begin + 5}
    assert legacy(tmp_path) == (begin + 5, 22, 2)


def test_dropped_table_takes_no_commit_of_a_marker_below_the_drop(lake: lv.Lake, tmp_path: Path) -> None:
    tx = lake.transaction(lv.R)
    tx.append("t", [{"id": 30, "v": 1}])
    open_lake(tmp_path).drop("t")
    with pytest.raises(lv.Conflict):
        tx.commit()
    assert legacy(tmp_path)[1:] == (20, 0)
    assert "t" not in lake.tables()


def test_table_that_gets_markers_in_its_log_later_redoes_who_was_at_work(tmp_path: Path, begin: int) -> None:
    lake = open_lake(tmp_path)
    lake.create("t", pa.table({"id": [1], "v": [0]}))
    with lake.transaction(lv.R) as tx:
        tx.update("t", {"v": "v + 1"}, where="id = 1")
        lake.sql("ALTER TABLE t SET TBLPROPERTIES ('lakevilla.markers' = 'log')")
    assert tx.receipt is not None
    assert (tx.receipt.versions, tx.receipt.redone) == ({"t": begin + 2}, 1)
    assert sent(tx.receipt.requests)["replace"] >= 1
    assert legacy(tmp_path) == (begin + 2, 1, 1)
