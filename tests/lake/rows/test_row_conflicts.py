"""Two clients that change rows of one file: different rows do not conflict, the same rows do."""

from pathlib import Path

import pyarrow as pa
import pytest

import lakevilla as lv

COUNT = 200
NONE = lv.Features.NONE
RECOVERING = [lv.R, lv.R | lv.CT, lv.R | lv.I, lv.R | lv.CT | lv.I]
REBASING = [NONE, lv.CT, *RECOVERING]
ALL = lv.R | lv.CT | lv.I


def _open(path: Path, *, vectors: bool = True) -> lv.Lake:
    return lv.Lake(path, engine="local", storage_options={"fsync": "false"}, merge_on_read=vectors)


@pytest.fixture
def lake(tmp_path: Path) -> lv.Lake:
    """A lake with a table that has one file and deletion vectors, `t`, and a small table."""
    lake = _open(tmp_path)
    lake.create("t", pa.table({"id": list(range(COUNT)), "v": [0] * COUNT}))
    lake.create("other", pa.table({"id": [1], "v": [0]}))
    return lake


@pytest.fixture
def second(lake: lv.Lake, tmp_path: Path) -> lv.Lake:
    """Another client, which has seen the table."""
    other = _open(tmp_path)
    assert state(other) == with_rows({})
    return other


def state(lake: lv.Lake | lv.Transaction, name: str = "t") -> dict[int, int]:
    rows = [tuple(row) for row in lake.sql(f"SELECT id, v FROM {name}").collect()]
    assert len(dict(rows)) == len(rows)
    return dict(rows)


def with_rows(changed: dict[int, int], gone: tuple[int, ...] = ()) -> dict[int, int]:
    return {i: v for i, v in (dict.fromkeys(range(COUNT), 0) | changed).items() if i not in gone}


# Writes of rows.


@pytest.mark.parametrize("features", REBASING)
def test_different_rows_of_one_file_are_both_changed_without_redo(
    lake: lv.Lake, second: lv.Lake, features: lv.Features
) -> None:
    with lake.transaction(features) as tx:
        tx.sql("UPDATE t SET v = 1 WHERE id = 5")
        second.sql("UPDATE t SET v = 2 WHERE id = 7")
        second.sql("DELETE FROM t WHERE id IN (9, 150)")
    assert tx.receipt is not None
    assert tx.receipt.redone == 0
    assert state(lake) == state(second) == with_rows({5: 1, 7: 2}, gone=(9, 150))


@pytest.mark.parametrize("features", RECOVERING)
def test_same_row_is_changed_by_a_redo(lake: lv.Lake, second: lv.Lake, features: lv.Features) -> None:
    with lake.transaction(features) as tx:
        tx.sql("UPDATE t SET v = v + 1 WHERE id = 5 OR id = 6")
        second.sql("UPDATE t SET v = v + 10 WHERE id = 5")
    assert tx.receipt is not None
    assert tx.receipt.redone == 1
    assert state(lake) == with_rows({5: 11, 6: 1})


@pytest.mark.parametrize("features", [NONE, lv.CT])
def test_same_row_is_a_conflict_without_recovery(
    lake: lv.Lake, second: lv.Lake, features: lv.Features
) -> None:
    with pytest.raises(lv.Conflict, match="row"), lake.transaction(features) as tx:
        tx.sql("DELETE FROM t WHERE id = 5")
        second.sql("UPDATE t SET v = v + 10 WHERE id = 5")
    assert state(lake) == with_rows({5: 10})


@pytest.mark.parametrize("features", REBASING)
def test_later_commits_are_met_under_the_vector_that_the_file_has_then(
    lake: lv.Lake, second: lv.Lake, features: lv.Features
) -> None:
    """The second commit removes the file by another identity than the transaction knows."""
    with lake.transaction(features) as tx:
        tx.sql("UPDATE t SET v = v + 1 WHERE id = 5")
        second.sql("UPDATE t SET v = 2 WHERE id = 7")
        if features & lv.R:
            second.sql("UPDATE t SET v = v + 10 WHERE id = 5")
        else:
            second.sql("UPDATE t SET v = v + 10 WHERE id = 8")
    expected = {5: 11, 7: 2} if features & lv.R else {5: 1, 7: 2, 8: 10}
    assert state(lake) == with_rows(expected)


@pytest.mark.parametrize("features", RECOVERING)
def test_row_that_the_second_of_two_commits_deleted_does_not_come_back(
    lake: lv.Lake, second: lv.Lake, features: lv.Features
) -> None:
    """The second one finds the file under another vector than the transaction did, and adds no row."""
    with lake.transaction(features) as tx:
        tx.sql("UPDATE t SET v = v + 1 WHERE id = 5")
        second.sql("UPDATE t SET v = 2 WHERE id = 7")
        second.sql("DELETE FROM t WHERE id = 5")
    assert state(lake) == with_rows({7: 2}, gone=(5,))


@pytest.mark.parametrize("features", RECOVERING)
def test_row_that_comes_into_the_predicate_is_changed_too(
    lake: lv.Lake, second: lv.Lake, features: lv.Features
) -> None:
    with lake.transaction(features) as tx:
        tx.sql("UPDATE t SET v = v + 1 WHERE v = 3 OR id = 5")
        second.sql("UPDATE t SET v = 3 WHERE id = 7")
    assert tx.receipt is not None
    assert tx.receipt.redone == 1
    assert state(lake) == with_rows({5: 1, 7: 4})


@pytest.mark.parametrize("features", REBASING)
def test_new_rows_that_bounds_cannot_exclude_are_read(
    lake: lv.Lake, second: lv.Lake, features: lv.Features
) -> None:
    with lake.transaction(features) as tx:
        tx.sql("UPDATE t SET v = 1 WHERE id = 5")
        second.sql("UPDATE t SET v = 2 WHERE id = 3 OR id = 7")
    assert tx.receipt is not None
    assert tx.receipt.redone == 0
    assert state(lake) == with_rows({3: 2, 5: 1, 7: 2})


@pytest.mark.parametrize("features", REBASING)
def test_rewritten_file_without_our_rows_is_no_conflict(tmp_path: Path, features: lv.Features) -> None:
    """Copy on write: the new file has bounds that hold our row, and does not hold it."""
    lake, second = _open(tmp_path, vectors=False), _open(tmp_path, vectors=False)
    lake.create("t", pa.table({"id": list(range(0, COUNT, 2)), "v": [0] * (COUNT // 2)}))
    lake.append("t", pa.table({"id": list(range(1, COUNT, 2)), "v": [0] * (COUNT // 2)}))
    with lake.transaction(features) as tx:
        tx.sql("UPDATE t SET v = 1 WHERE id = 5")
        second.sql("UPDATE t SET v = 2 WHERE id = 8")
    assert tx.receipt is not None
    assert tx.receipt.redone == 0
    assert state(lake) == with_rows({5: 1, 8: 2})


@pytest.mark.parametrize("features", RECOVERING)
def test_file_that_another_client_rewrote_is_redone(
    lake: lv.Lake, second: lv.Lake, features: lv.Features
) -> None:
    with lake.transaction(features) as tx:
        tx.sql("UPDATE t SET v = v + 1 WHERE id = 5")
        second.sql(f"DELETE FROM t WHERE id >= {COUNT // 2 - 10}")
    assert tx.receipt is not None
    assert tx.receipt.redone == 1
    assert state(lake) == with_rows({5: 1}, gone=tuple(range(COUNT // 2 - 10, COUNT)))


@pytest.mark.parametrize("features", RECOVERING)
def test_statement_that_rewrites_the_file_is_redone(
    lake: lv.Lake, second: lv.Lake, features: lv.Features
) -> None:
    with lake.transaction(features) as tx:
        tx.sql(f"DELETE FROM t WHERE id >= {COUNT // 2 - 10}")
        second.sql("UPDATE t SET v = v + 1 WHERE id = 5")
    assert tx.receipt is not None
    assert tx.receipt.redone == 1
    assert state(lake) == with_rows({5: 1}, gone=tuple(range(COUNT // 2 - 10, COUNT)))


# Several statements.


@pytest.mark.parametrize("features", RECOVERING)
def test_statements_on_one_file_are_rebased_together(
    lake: lv.Lake, second: lv.Lake, features: lv.Features
) -> None:
    with lake.transaction(features) as tx:
        tx.sql("UPDATE t SET v = 1 WHERE id = 5")
        tx.sql("UPDATE t SET v = v + 2 WHERE id = 5 OR id = 6")
        second.sql("UPDATE t SET v = 9 WHERE id = 7")
        tx.sql("DELETE FROM t WHERE id = 8")
    assert tx.receipt is not None
    assert tx.receipt.redone == 0
    assert state(lake) == with_rows({5: 3, 6: 2, 7: 9}, gone=(8,))


@pytest.mark.parametrize("features", RECOVERING)
def test_only_the_statement_whose_row_was_changed_is_redone(
    lake: lv.Lake, second: lv.Lake, features: lv.Features
) -> None:
    with lake.transaction(features) as tx:
        tx.sql("UPDATE t SET v = v + 1 WHERE id = 5")
        tx.sql("UPDATE t SET v = v + 1 WHERE id = 6")
        second.sql("UPDATE t SET v = 10 WHERE id = 6")
    assert tx.receipt is not None
    assert tx.receipt.redone == 1
    assert state(lake) == with_rows({5: 1, 6: 11})


# What was read.


@pytest.mark.parametrize("features", RECOVERING)
def test_rows_that_were_read_and_not_changed_stay_true(
    lake: lv.Lake, second: lv.Lake, features: lv.Features
) -> None:
    with lake.transaction(features) as tx:
        assert tx.sql("SELECT v FROM t WHERE id = 5").collect() == [(0,)]
        tx.sql("UPDATE t SET v = 1 WHERE id = 6")
        second.sql("UPDATE t SET v = 9 WHERE id = 7")
    assert tx.receipt is not None
    assert tx.receipt.redone == 0
    assert state(lake) == with_rows({6: 1, 7: 9})


@pytest.mark.parametrize("features", RECOVERING)
def test_row_that_was_read_and_changed_is_a_conflict(
    lake: lv.Lake, second: lv.Lake, features: lv.Features
) -> None:
    with pytest.raises(lv.Conflict, match="a result that its client has seen"):  # noqa: SIM117
        with lake.transaction(features) as tx:
            assert tx.sql("SELECT v FROM t WHERE id = 5").collect() == [(0,)]
            tx.sql("UPDATE t SET v = 1 WHERE id = 6")
            second.sql("UPDATE t SET v = 9 WHERE id = 5")
    assert state(lake) == with_rows({5: 9})


@pytest.mark.parametrize("features", RECOVERING)
def test_insert_by_merge_notes_that_its_row_was_deleted(
    lake: lv.Lake, second: lv.Lake, features: lv.Features
) -> None:
    """A row that matched kept the MERGE from inserting one; it changed nothing of it."""
    with lake.transaction(features) as tx:
        tx.sql(
            "MERGE INTO t USING (SELECT 5 AS k) AS s ON t.id = s.k "
            "WHEN MATCHED AND t.v = 77 THEN DELETE WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.k, -1)"
        )
        tx.sql("UPDATE t SET v = 1 WHERE id = 6")
        second.sql("DELETE FROM t WHERE id = 5")
    assert tx.receipt is not None
    assert tx.receipt.redone == 1
    assert state(lake) == with_rows({5: -1, 6: 1})


def test_snapshot_isolation_lets_different_rows_pass_and_no_lost_update(
    lake: lv.Lake, second: lv.Lake
) -> None:
    with lake.transaction(ALL, isolation="snapshot") as tx:
        tx.sql("UPDATE t SET v = v + 1 WHERE id = 5")
        second.sql("UPDATE t SET v = v + 10 WHERE id = 6")
    assert tx.receipt is not None
    assert tx.receipt.redone == 0
    with lake.transaction(ALL, isolation="snapshot") as tx:
        tx.sql("UPDATE t SET v = v + 1 WHERE id = 5")
        second.sql("UPDATE t SET v = v + 10 WHERE id = 5")
    assert tx.receipt is not None
    assert tx.receipt.redone == 1
    assert state(lake) == with_rows({5: 12, 6: 10})


# Vectors in files.


@pytest.mark.parametrize("features", REBASING)
def test_vectors_in_files_are_merged_into_one(
    lake: lv.Lake, second: lv.Lake, tmp_path: Path, features: lv.Features
) -> None:
    ours, theirs = tuple(range(0, 120, 3)), tuple(range(1, 121, 3))
    lake.sql("DELETE FROM t WHERE id = 199")
    with lake.transaction(features) as tx:
        tx.sql(f"DELETE FROM t WHERE id IN {ours}")
        second.sql(f"DELETE FROM t WHERE id IN {theirs}")
    assert tx.receipt is not None
    assert tx.receipt.redone == 0
    assert state(_open(tmp_path)) == with_rows({}, gone=(*ours, *theirs, 199))
    lake.vacuum()
    assert state(_open(tmp_path)) == with_rows({}, gone=(*ours, *theirs, 199))


@pytest.mark.parametrize("features", RECOVERING)
def test_redone_statement_that_rewrites_a_file_removes_it_as_it_is_then(
    tmp_path: Path, features: lv.Features
) -> None:
    """The first statement stands, and its file has another vector by the time that the second removes it."""
    lake, second = _open(tmp_path), _open(tmp_path)
    lake.create("t", pa.table({"id": [0, 1, 2, 3], "v": [0] * 4}))
    with lake.transaction(features) as tx:
        tx.sql("UPDATE t SET v = 1 WHERE id = 2")
        tx.sql("UPDATE t SET v = v + 1 WHERE id = 1 OR v = 5")
        second.sql("UPDATE t SET v = 5 WHERE id = 3")
    assert tx.receipt is not None
    assert tx.receipt.redone == 1
    assert state(lake) == state(_open(tmp_path)) == {0: 0, 1: 1, 2: 1, 3: 6}
