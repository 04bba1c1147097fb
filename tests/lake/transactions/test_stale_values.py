"""What a client was given counts until the commit, in whatever way it came to know it."""

from pathlib import Path
from threading import Timer

import pytest

import lakevilla as lv

pytestmark = pytest.mark.formats("delta", "vectors", "iceberg", "deletes")

BOTH = lv.R | lv.CT


@pytest.fixture
def lake(tmp_path: Path) -> lv.Lake:
    """Two tables of three rows, each in a file of its own."""
    lake = _open(tmp_path)
    for name in ("x", "y"):
        lake.create(name, "id BIGINT, v BIGINT")
        for number in (1, 2, 3):
            lake.append(name, [{"id": number, "v": number}])
    return lake


def _open(path: Path) -> lv.Lake:
    return lv.Lake(path, engine="local", features=lv.R, storage_options={"fsync": "false"})


def _rows(lake: lv.Lake | lv.Transaction, name: str) -> list[tuple[int, ...]]:
    return sorted(tuple(row) for row in lake.read(name).collect())


def test_order_that_the_client_asked_for_and_that_changed_is_a_conflict(lake: lv.Lake) -> None:
    tx = lake.transaction()
    assert [row.id for row in tx.sql("SELECT id FROM x WHERE id < 3 ORDER BY v").collect()] == [1, 2]
    tx.append("x", [{"id": 10, "v": 1}])
    lake.sql("UPDATE x SET v = 3 - v WHERE id < 3")
    with pytest.raises(lv.Conflict, match="seen has changed"):
        tx.commit()


def test_rows_in_no_order_that_moved_to_other_files_are_no_conflict(lake: lv.Lake) -> None:
    tx = lake.transaction()
    assert len(tx.sql("SELECT id FROM x WHERE id < 3").collect()) == 2
    tx.append("x", [{"id": 10, "v": 1}])
    lake.sql("UPDATE x SET v = 3 - v WHERE id < 3")
    tx.commit()


def test_rows_for_a_new_column_do_not_move_a_table_that_was_read(lake: lv.Lake, tmp_path: Path) -> None:
    tx = lake.transaction()
    assert _rows(tx, "x")[0] == (1, 1)
    other = _open(tmp_path)
    other.add_column("x", "w", "BIGINT")
    other.update("x", {"v": 100}, where="id = 1")
    with pytest.raises(lv.InvalidInput, match="w"):
        tx.append("x", [{"id": 10, "v": 1, "w": 1}])


def test_count_that_was_seen_and_rolled_back_still_counts(lake: lv.Lake) -> None:
    tx = lake.transaction()
    tx.savepoint("a")
    assert tx.update("x", {"v": 7}, where="id = 1").updated == 1
    tx.rollback_to("a")
    tx.append("x", [{"id": 10, "v": 1}])
    lake.delete("x", "id = 1")
    with pytest.raises(lv.Conflict, match="rolled back"):
        tx.commit()


def test_own_rows_that_were_seen_and_rolled_back_count_as_what_they_came_from(lake: lv.Lake) -> None:
    tx = lake.transaction()
    tx.savepoint("a")
    tx.update("x", {"v": 7}, where="id = 1")
    assert _rows(tx, "x")[0] == (1, 7)
    tx.rollback_to("a")
    tx.append("x", [{"id": 10, "v": 1}])
    lake.delete("x", "id = 1")
    with pytest.raises(lv.Conflict, match="rolled back"):
        tx.commit()


@pytest.mark.formats("delta")
def test_failure_of_a_statement_tells_of_the_rows_that_it_met(lake: lv.Lake) -> None:
    lake.sql("ALTER TABLE x ADD CONSTRAINT positive CHECK (v > 0)")
    tx = lake.transaction()
    with pytest.raises(lv.InvalidInput) as caught:
        tx.update("x", {"v": -1}, where="id = 1")
    assert caught.value.rule == "positive"
    tx.append("x", [{"id": 10, "v": 1}])
    lake.delete("x", "id = 1")
    with pytest.raises(lv.Conflict, match="was removed"):
        tx.commit()


@pytest.mark.parametrize("matched", [None, [("target.v > 5", {"v": "0"})]])
def test_merge_inserts_a_row_whose_match_was_deleted_meanwhile(lake: lv.Lake, matched: object) -> None:
    tx = lake.transaction()
    source = [{"id": 1, "v": 50}, {"id": 9, "v": 50}]
    tx.merge("x", source, on="target.id = source.id", matched=matched, not_matched="insert")
    lake.delete("x", "id = 1")
    tx.commit()
    assert _rows(lake, "x") == [(1, 50), (2, 2), (3, 3), (9, 50)]


def test_counts_that_are_looked_at_after_the_commit_are_those_of_the_redo(lake: lv.Lake) -> None:
    tx = lake.transaction()
    counts = tx.delete("x", "v > 0")
    lake.append("x", [{"id": 4, "v": 4}])
    tx.commit()
    assert _rows(lake, "x") == []
    assert counts == lv.Counts(deleted=4)


@pytest.mark.parametrize("features", [lv.CT, BOTH])
def test_read_of_a_table_that_a_single_statement_changed_stops_a_write_of_another(
    lake: lv.Lake, features: lv.Features
) -> None:
    tx = lake.transaction(features)
    assert _rows(tx, "y")[0] == (1, 1)
    tx.update("x", {"v": 100}, where="id = 1")
    lake.update("y", {"v": 55}, where="id = 1")
    with pytest.raises(lv.Conflict):
        tx.commit()
    assert _rows(lake, "x")[0] == (1, 1)


def test_read_of_a_table_that_was_dropped_stops_a_write_of_another(lake: lv.Lake) -> None:
    tx = lake.transaction(BOTH)
    assert _rows(tx, "y")[0] == (1, 1)
    tx.update("x", {"v": 100}, where="id = 1")
    lake.drop("y")
    with pytest.raises(lv.Conflict, match="dropped"):
        tx.commit()


def test_table_that_is_renamed_before_a_commit_of_several_keeps_only_its_new_name(lake: lv.Lake) -> None:
    with lake.transaction(BOTH) as tx:
        tx.update("x", {"v": 100}, where="id = 1")
        tx.update("y", {"v": 100}, where="id = 1")
        lake.rename("x", "z")
    assert lake.tables() == ["y", "z"]
    assert _rows(lake, "z")[0] == (1, 100)


def test_function_that_commits_by_itself_is_called_again_like_any_other(lake: lv.Lake) -> None:
    calls: list[int] = []

    def work(tx: lv.Transaction) -> None:
        calls.append(len(_rows(tx, "x")))
        tx.append("x", [{"id": 20, "v": calls[-1]}])
        if len(calls) == 1:
            lake.append("x", [{"id": 4, "v": 4}])
        tx.commit()

    assert lake.run(work).attempts == 2
    assert calls == [3, 4]


def test_function_that_hides_the_conflict_of_its_own_commit_commits_nothing(lake: lv.Lake) -> None:
    def work(tx: lv.Transaction) -> None:
        tx.append("x", [{"id": 20, "v": len(_rows(tx, "x"))}])
        lake.append("x", [{"id": 4, "v": 4}])
        with pytest.raises(lv.Conflict):
            tx.commit()

    with pytest.raises(lv.InvalidInput, match="nothing to commit"):
        lake.run(work)
    assert _rows(lake, "x") == [(1, 1), (2, 2), (3, 3), (4, 4)]


def test_transaction_goes_no_further_after_a_statement_that_met_a_conflict(lake: lv.Lake) -> None:
    first = lake.transaction()
    first.update("x", {"v": 77}, where="id = 1")
    pinned = first._workspace.base("x")
    first._queues.claim(pinned.ref, pinned.snapshot)
    tx = lake.transaction()
    value = _rows(tx, "x")[0][1]
    later = Timer(0.2, first.commit)
    later.start()
    with pytest.raises(lv.Conflict, match="seen has changed"):
        tx.update("x", {"v": value + 1}, where="id = 1")
    later.join()
    with pytest.raises(lv.Conflict, match="could not be redone"):
        tx.update("x", {"v": value + 1}, where="id = 1")
    with pytest.raises(lv.Conflict, match="could not be redone"):
        tx.commit()
    assert _rows(lake, "x")[0] == (1, 77)
