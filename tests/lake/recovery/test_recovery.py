"""Transactions with recovery (R): many statements on one table, own writes, undo, redo."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic, sleep

import pyarrow as pa
import pytest

import lakevilla as lv

pytestmark = pytest.mark.formats("delta", "iceberg")


@pytest.fixture
def lake(tmp_path: Path) -> lv.Lake:
    """Rows in two files: ids 1 to 10, and 11 to 20."""
    lake = lv.Lake(tmp_path, engine="local", features=lv.R, storage_options={"fsync": "false"})
    lake.create("t", "id BIGINT, v BIGINT")
    lake.append("t", pa.table({"id": list(range(1, 11)), "v": [0] * 10}))
    lake.append("t", pa.table({"id": list(range(11, 21)), "v": [0] * 10}))
    return lake


def _value(lake: lv.Lake | lv.Transaction, key: int) -> int:
    value: int = lake.sql("SELECT v FROM t WHERE id = :key", key=key).collect()[0].v
    return value


def _count(lake: lv.Lake | lv.Transaction, where: str = "true") -> int:
    count: int = lake.sql(f"SELECT count(*) AS n FROM t WHERE {where}").collect()[0].n
    return count


def test_statements_see_what_the_ones_before_them_wrote_and_nobody_else_does(
    lake: lv.Lake, begin: int
) -> None:
    with lake.transaction(lv.R) as tx:
        tx.update("t", {"v": 1}, where="id = 3")
        tx.append("t", [{"id": 30, "v": 3}])
        tx.sql("UPDATE t SET v = v + 10 WHERE id IN (3, 30)")
        tx.delete("t", where="id = 4")
        assert (_value(tx, 3), _value(tx, 30), _count(tx)) == (11, 13, 20)
        assert (_value(lake, 3), _count(lake)) == (0, 20)
    assert tx.receipt is not None
    assert (tx.receipt.versions, tx.receipt.redone) == ({"t": begin + 3}, 0)
    assert (_value(lake, 3), _value(lake, 30), _count(lake)) == (11, 13, 20)


def test_transaction_of_several_statements_is_one_version_with_their_names(lake: lv.Lake, begin: int) -> None:
    with lake.transaction(lv.R) as tx:
        tx.update("t", {"v": 1}, where="id = 3")
        tx.delete("t", where="id = 4")
    newest = lake.history("t")[0]
    assert (newest.version, newest.operation) == (begin + 3, "TRANSACTION")
    assert newest.parameters["statements"] == '["UPDATE", "DELETE"]'


def test_what_cancels_out_publishes_nothing(lake: lv.Lake) -> None:
    with lake.transaction(lv.R) as tx:
        tx.append("t", [{"id": 30, "v": 3}])
        tx.delete("t", where="id = 30")
    assert tx.receipt is not None
    assert tx.receipt.versions == {}
    assert len(lake.history("t")) == 3


def test_rolling_back_undoes_what_came_after_the_savepoint(lake: lv.Lake) -> None:
    with lake.transaction(lv.R) as tx:
        tx.update("t", {"v": 1}, where="id = 3")
        tx.savepoint("a")
        tx.update("t", {"v": 2}, where="id = 3")
        tx.savepoint("b")
        tx.delete("t")
        assert _count(tx) == 0
        tx.rollback_to("b")
        assert _value(tx, 3) == 2
        tx.rollback_to("a")
        assert _value(tx, 3) == 1
        with pytest.raises(lv.InvalidInput, match="unknown savepoint 'b'"):
            tx.rollback_to("b")
        tx.update("t", {"v": "v + 5"}, where="id = 3")
    assert (_value(lake, 3), _count(lake)) == (6, 20)


def test_rolling_back_everything_frees_the_transaction_for_another_table(lake: lv.Lake) -> None:
    lake.create("u", "id BIGINT")
    with lake.transaction(lv.R) as tx:
        tx.savepoint("start")
        tx.delete("t")
        with pytest.raises(lv.InvalidInput, match="one table"):
            tx.append("u", [{"id": 1}])
        tx.rollback_to("start")
        tx.append("u", [{"id": 1}])
    assert (_count(lake), lake.read("u").count()) == (20, 1)


def test_lost_race_is_redone_and_nothing_is_lost(lake: lv.Lake, begin: int) -> None:
    with lake.transaction(lv.R) as tx:
        tx.update("t", {"v": "v + 1"}, where="id = 5")
        lake.update("t", {"v": "v + 10"}, where="id = 5")
    assert tx.receipt is not None
    assert (tx.receipt.versions, tx.receipt.redone) == ({"t": begin + 4}, 1)
    assert _value(lake, 5) == 11


def test_redo_keeps_the_files_of_statements_that_still_stand(lake: lv.Lake) -> None:
    with lake.transaction(lv.R) as tx:
        tx.update("t", {"v": 7}, where="id = 15")
        tx.append("t", [{"id": 40, "v": 0}])
        tx.update("t", {"v": "v + 1"}, where="id = 5")
        lake.update("t", {"v": "v + 10"}, where="id = 5")
    assert tx.receipt is not None
    assert tx.receipt.redone == 1
    assert tx.receipt.saved_bytes > 0
    assert (_value(lake, 5), _value(lake, 15), _count(lake)) == (11, 7, 21)


def test_statement_that_built_on_a_redone_one_is_redone_too(lake: lv.Lake) -> None:
    with lake.transaction(lv.R) as tx:
        tx.update("t", {"v": "v + 1"}, where="id = 5")
        tx.sql("INSERT INTO t SELECT id + 100, v FROM t WHERE id = 5")
        tx.update("t", {"v": "v * 2"}, where="id = 105")
        lake.update("t", {"v": "v + 10"}, where="id = 5")
    assert tx.receipt is not None
    assert tx.receipt.redone == 3
    assert (_value(lake, 5), _value(lake, 105)) == (11, 22)


def test_row_that_a_redone_delete_leaves_is_seen_by_the_statements_after_it(lake: lv.Lake) -> None:
    lake.update("t", {"v": 1}, where="id = 5")
    with lake.transaction(lv.R) as tx:
        tx.delete("t", where="v = 1")
        tx.update("t", {"v": 100}, where="id = 5")
        lake.update("t", {"v": 2}, where="id = 5")
    assert _value(lake, 5) == 100


def test_value_that_the_client_read_and_that_changed_is_a_conflict_with_the_reason(
    lake: lv.Lake, begin: int
) -> None:
    tx = lake.transaction(lv.R)
    value = _value(tx, 5)
    tx.update("t", {"v": value + 1}, where="id = 5")
    lake.update("t", {"v": "v + 10"}, where="id = 5")
    with pytest.raises(lv.Conflict, match="a result that its client has seen has changed") as caught:
        tx.commit()
    assert (caught.value.table, f"version {begin + 3}" in caught.value.winner) == ("t", True)
    assert _value(lake, 5) == 10


def test_value_that_the_client_read_and_that_did_not_change_is_no_conflict(lake: lv.Lake) -> None:
    with lake.transaction(lv.R) as tx:
        value = _value(tx, 5)
        tx.update("t", {"v": value + 1}, where="id = 5")
        lake.update("t", {"v": "v + 10"}, where="id = 6")
    assert (_value(lake, 5), _value(lake, 6)) == (1, 10)


def test_count_that_nobody_looked_at_may_change_in_a_redo(lake: lv.Lake) -> None:
    with lake.transaction(lv.R) as tx:
        tx.update("t", {"v": "v + 1"}, where="id <= 5")
        lake.append("t", [{"id": 0, "v": 0}])
    assert _count(lake, "v = 1") == 6


def test_count_that_the_client_looked_at_and_that_changed_is_a_conflict(lake: lv.Lake) -> None:
    tx = lake.transaction(lv.R)
    assert tx.update("t", {"v": "v + 1"}, where="id <= 5").updated == 5
    lake.append("t", [{"id": 0, "v": 0}])
    with pytest.raises(lv.Conflict):
        tx.commit()
    assert _count(lake, "v = 1") == 0


def test_what_was_read_before_a_rollback_still_counts(lake: lv.Lake) -> None:
    tx = lake.transaction(lv.R)
    tx.savepoint("a")
    value = _value(tx, 5)
    tx.rollback_to("a")
    tx.update("t", {"v": value + 1}, where="id = 15")
    lake.update("t", {"v": 7}, where="id = 5")
    with pytest.raises(lv.Conflict, match="rolled back"):
        tx.commit()


def test_run_calls_the_function_again_when_what_it_read_changed(lake: lv.Lake) -> None:
    seen: list[int] = []

    def work(tx: lv.Transaction) -> None:
        seen.append(_value(tx, 5))
        tx.update("t", {"v": seen[-1] + 1}, where="id = 5")
        if len(seen) == 1:
            lake.update("t", {"v": "v + 10"}, where="id = 5")

    receipt = lake.run(work)
    assert (seen, receipt.attempts, _value(lake, 5)) == ([0, 10], 2, 11)


def test_insert_after_a_read_is_not_blind(lake: lv.Lake) -> None:
    tx = lake.transaction(lv.R)
    total = _count(tx)
    tx.append("t", [{"id": 1000 + total, "v": 0}])
    lake.append("t", [{"id": 500, "v": 0}])
    with pytest.raises(lv.Conflict):
        tx.commit()


def test_new_column_lets_a_blind_append_be_written_again(lake: lv.Lake) -> None:
    with lake.transaction(lv.R) as tx:
        rows = [{"id": 30, "v": 1}]
        tx.append("t", rows)
        rows[0]["v"] = 99
        lake.add_column("t", "w", "STRING")
    assert lake.sql("SELECT * FROM t WHERE id = 30").collect() == [(30, 1, None)]


def test_rows_of_a_stream_cannot_be_merged_again(lake: lv.Lake) -> None:
    table = pa.table({"id": [5], "v": [1]})
    tx = lake.transaction(lv.R)
    stream = pa.RecordBatchReader.from_batches(table.schema, table.to_batches())
    tx.merge("t", stream, on="target.id = source.id", matched="update")
    lake.update("t", {"v": 7}, where="id = 5")
    with pytest.raises(lv.Conflict, match="stream"):
        tx.commit()


def test_statement_that_fails_on_the_new_state_is_a_conflict(lake: lv.Lake) -> None:
    tx = lake.transaction(lv.R)
    tx.sql("MERGE INTO t USING (SELECT id, v FROM t WHERE id >= 5 AND id < 6) s ON t.id = s.id "
           "WHEN MATCHED THEN UPDATE SET v = s.v + 1")  # fmt: skip
    lake.append("t", [{"id": 5, "v": 5}])
    with pytest.raises(lv.Conflict, match="it fails on the newest version"):
        tx.commit()


def test_alter_comes_before_the_rows_of_a_transaction(lake: lv.Lake) -> None:
    with lake.transaction(lv.R) as tx:
        tx.add_column("t", "w", "STRING")
        tx.sql("INSERT INTO t VALUES (50, 5, 'x')")
        assert tx.sql("SELECT w FROM t WHERE id = 50").collect() == [("x",)]
    assert lake.sql("SELECT w FROM t WHERE id = 50").collect() == [("x",)]
    with lake.transaction(lv.R) as tx:
        tx.delete("t", where="id = 50")
        with pytest.raises(lv.InvalidInput, match="cannot alter table"):
            tx.add_column("t", "z", "STRING")
    assert _count(lake, "id = 50") == 0


def test_tables_are_made_in_a_transaction_of_their_own(lake: lv.Lake) -> None:
    with lake.transaction(lv.R) as tx:
        tx.delete("t", where="id = 1")
        with pytest.raises(lv.InvalidInput, match="separate transaction"):
            tx.create("u", "id BIGINT")
    assert lake.tables() == ["t"]


def test_redo_under_contention_loses_nothing_and_nobody_gives_up(lake: lv.Lake) -> None:
    def work(number: int) -> None:
        for _ in range(5):
            with lake.transaction(lv.R) as tx:
                tx.update("t", {"v": "v + 1"}, where="id = 5")
                tx.update("t", {"v": "v + 1"}, where=f"id = {10 + number}")

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))
    assert _value(lake, 5) == 30
    assert [_value(lake, 10 + number) for number in range(6)] == [5] * 6


def test_read_modify_write_by_run_under_contention_loses_nothing(lake: lv.Lake, begin: int) -> None:
    def step(tx: lv.Transaction) -> None:
        tx.update("t", {"v": _value(tx, 5) + 1}, where="id = 5")

    with ThreadPoolExecutor(6) as pool:
        receipts = list(pool.map(lambda _: lake.run(step), range(30)))
    assert _value(lake, 5) == 30
    assert sorted(receipt.versions["t"] for receipt in receipts) == list(range(begin + 3, begin + 33))


def test_own_files_with_odd_partition_names_are_known_again(tmp_path: Path) -> None:
    lake = lv.Lake(tmp_path, engine="local", features=lv.R)
    lake.create("p", "id BIGINT, k STRING", partition_by=["k"])
    with lake.transaction(lv.R) as tx:
        tx.append("p", [{"id": 1, "k": "a b/c%20=ü"}, {"id": 2, "k": "a b/c%20=ü"}])
        tx.update("p", {"id": "id + 10"}, where="id = 1")
        tx.delete("p", where="id = 2")
    assert lake.read("p").collect() == [(11, "a b/c%20=ü")]
    assert len(list(tmp_path.rglob("part-*.parquet"))) == 3


def test_rows_given_to_a_statement_may_be_changed_after_it(lake: lv.Lake) -> None:
    rows = [{"id": 5, "v": 1}]
    with lake.transaction(lv.R) as tx:
        tx.merge("t", rows, on="target.id = source.id", matched="update")
        rows[0]["v"] = 99
        lake.update("t", {"v": 7}, where="id = 5")
    assert tx.receipt is not None
    assert (tx.receipt.redone, _value(lake, 5)) == (1, 1)


def _waiting(lake: lv.Lake) -> lv.Transaction:
    """A transaction that waits in the queue of writers, with its change done."""
    tx = lake.transaction(lv.R)
    tx.update("t", {"v": "v + 100"}, where="id = 20")
    tx._queues.claim(tx._workspace.base("t").ref, tx._workspace.base("t").snapshot)
    return tx


def _commit_when_somebody_waits(lake: lv.Lake, first: lv.Transaction) -> None:
    end = monotonic() + 60
    while len(lake.status().tickets) < 2:
        assert monotonic() < end
        sleep(0.01)
    first.commit()


def test_statement_lets_those_pass_who_wait_and_keeps_what_it_wrote_before(lake: lv.Lake, begin: int) -> None:
    first = _waiting(lake)
    with lake.transaction(lv.R) as tx:
        tx.append("t", [{"id": 30, "v": 0}])
        with ThreadPoolExecutor(1) as pool:
            later = pool.submit(_commit_when_somebody_waits, lake, first)
            tx.update("t", {"v": "v + 1"}, where="id IN (20, 30)")
            later.result()
        assert (_value(tx, 20), _value(tx, 30)) == (101, 1)
    assert tx.receipt is not None
    assert (tx.receipt.versions, tx.receipt.redone) == ({"t": begin + 4}, 0)
    assert (_value(lake, 20), _value(lake, 30)) == (101, 1)


def test_run_that_waited_before_its_change_does_its_data_work_once(lake: lv.Lake, tmp_path: Path) -> None:
    first = _waiting(lake)
    seen: list[int] = []

    def work(tx: lv.Transaction) -> None:
        seen.append(_value(tx, 20))
        tx.update("t", {"v": seen[-1] + 1}, where="id = 20")

    with ThreadPoolExecutor(1) as pool:
        receipt = pool.submit(lake.run, work)
        _commit_when_somebody_waits(lake, first)
        assert receipt.result().attempts == 2
    assert (seen, _value(lake, 20)) == ([0, 100], 101)
    written = list(tmp_path.rglob(f"part-{receipt.result().id}-*.parquet"))
    assert len(written) == 1, "only the attempt that could stand wrote a file"
