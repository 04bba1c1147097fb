"""Transactions that outlive their client: stored sublogs and `lake.resume`."""

import json
from datetime import date
from decimal import Decimal
from pathlib import Path
from time import monotonic, sleep

import pytest

import lakevilla as lv
from lakevilla.errors import Unavailable
from tests.support.left_open import (
    abandon,
    add,
    hooked,
    insert,
    make_lake,
    open_lake,
    records,
    store_all,
    values,
)
from tests.support.outsiders import OUTSIDERS

pytestmark = pytest.mark.formats("delta", "vectors", "iceberg", "deletes")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_lake(tmp_path)


def test_restarted_client_goes_on_after_the_last_statement(root: Path, begin: int) -> None:
    old = abandon(root, add(3, 1), insert(30, 7), add(30, 1))
    lake = open_lake(root)
    with lake.resume(old.id) as tx:
        assert (tx.id, tx.statements) == (old.id, 3)
        assert (values(tx, 3, 30), values(lake, 3, 30)) == ([1, 8], [0])
        tx.delete("t", where="id = 4")
    assert tx.receipt is not None
    assert (tx.receipt.id, tx.receipt.versions, tx.receipt.redone) == (old.id, {"t": begin + 3}, 0)
    assert (values(lake, 3, 4, 30), lake.history("t")[0].txn) == ([1, 8], old.id)
    lake.close()
    assert records(root) == []


def test_one_statement_stores_nothing(root: Path) -> None:
    tx = abandon(root, lambda tx: tx.savepoint("a"), add(3, 1))
    assert records(root) == []
    with pytest.raises(lv.InvalidInput, match="it left no records"):
        open_lake(root).resume(tx.id)


@pytest.mark.parametrize("end", [lv.Transaction.commit, lv.Transaction.abort])
def test_end_of_a_transaction_removes_what_it_stored(root: Path, end: object) -> None:
    lake = open_lake(root)
    tx = lake.transaction(lv.R)
    add(3, 1)(tx)
    add(4, 1)(tx)
    lake.close()
    assert records(root)
    end(tx)  # type: ignore[operator]
    lake.close()
    assert records(root) == []
    with pytest.raises(lv.InvalidInput, match="it left no records"):
        lake.resume(tx.id)


def test_old_client_that_commits_second_is_fenced(root: Path, begin: int) -> None:
    old = abandon(root, add(3, 1), add(4, 1))
    lake = open_lake(root)
    with lake.resume(old.id) as tx:
        add(5, 1)(tx)
    with pytest.raises(lv.Fenced) as caught:
        old.commit()
    assert (caught.value.table, caught.value.version) == ("t", begin + 3)
    assert (values(lake, 3, 4, 5), len(lake.history("t"))) == ([1, 1, 1], 4)


def test_old_client_that_commits_first_wins_and_the_resumed_one_is_fenced(root: Path, begin: int) -> None:
    old = abandon(root, add(3, 1), insert(30, 7))
    lake = open_lake(root)
    tx = lake.resume(old.id)
    add(4, 1)(tx)
    lake.update("t", {"v": 9}, where="id = 15")
    old.commit()
    with pytest.raises(lv.Fenced) as caught:
        tx.commit()
    assert (caught.value.table, caught.value.version) == ("t", begin + 4)
    assert (values(lake, 3, 4, 15, 30), len(lake.history("t"))) == ([1, 0, 9, 7], 5)


def test_blind_appends_of_two_clients_that_go_on_are_published_once(root: Path) -> None:
    old = abandon(root, insert(30, 1), insert(31, 1))
    lake = open_lake(root)
    tx = lake.resume(old.id)
    tx.commit()
    with pytest.raises(lv.Fenced):
        old.commit()
    assert lake.sql("SELECT count(*) AS n FROM t").collect()[0].n == 22


def test_transaction_that_was_committed_meanwhile_is_not_resumed(root: Path, begin: int) -> None:
    lake, store = hooked(root)
    tx = lake.transaction(lv.R)
    add(3, 1)(tx)
    add(4, 1)(tx)
    lake.close()

    def die(kind: str, key: str) -> None:
        if kind == "delete":
            raise Unavailable("the client died right after its commit")

    store.hook = die
    tx.commit()
    lake.close()
    assert records(root)
    other = open_lake(root)
    other.update("t", {"v": 9}, where="id = 15")
    with pytest.raises(lv.InvalidInput) as caught:
        other.resume(tx.id)
    assert (caught.value.table, caught.value.version) == ("t", begin + 3)


def test_savepoints_are_there_again(root: Path) -> None:
    old = abandon(
        root,
        add(3, 1),
        lambda tx: tx.savepoint("a"),
        add(3, 10),
        lambda tx: tx.rollback_to("a"),
        add(4, 1),
        lambda tx: tx.savepoint("b"),
        add(4, 10),
    )
    lake = open_lake(root)
    with lake.resume(old.id) as tx:
        assert (tx.statements, values(tx, 3, 4)) == (4, [1, 11])
        tx.rollback_to("b")
        assert values(tx, 3, 4) == [1, 1]
        tx.rollback_to("a")
        with pytest.raises(lv.InvalidInput, match="unknown savepoint 'b'"):
            tx.rollback_to("b")
        assert values(tx, 3, 4) == [1, 0]
    assert values(lake, 3, 4) == [1, 0]


def test_statement_given_as_sql_is_redone_after_a_resume(root: Path) -> None:
    old = abandon(root, add(3, 1), lambda tx: tx.update("t", {"v": "v * 2"}, where="id = 3"), insert(30, 7))
    lake = open_lake(root)
    with lake.resume(old.id) as tx:
        lake.update("t", {"v": "v + 10"}, where="id = 3")
    assert tx.receipt is not None
    assert (values(lake, 3, 30), tx.receipt.redone) == ([22, 7], 2)


def test_statement_not_given_as_sql_cannot_be_redone_after_a_resume(root: Path) -> None:
    old = abandon(root, insert(30, 7), lambda tx: tx.overwrite("t", [{"id": 3, "v": 5}], where="id = 3"))
    lake = open_lake(root)
    tx = lake.resume(old.id)
    lake.update("t", {"v": "v + 10"}, where="id = 3")
    with pytest.raises(lv.Conflict, match="its dead client did not run it as SQL"):
        tx.commit()
    assert values(lake, 3, 30) == [10]


def test_number_of_rows_that_the_old_client_was_given_may_not_change(root: Path) -> None:
    old = abandon(root, lambda tx: tx.sql("UPDATE t SET v = 1 WHERE id <= 5"), add(15, 1))
    lake = open_lake(root)
    tx = lake.resume(old.id)
    lake.append("t", [{"id": 0, "v": 0}])
    with pytest.raises(lv.Conflict, match="a result that its client has seen has changed"):
        tx.commit()


def test_result_that_the_old_client_was_given_stands_for_all_that_it_could_read(root: Path) -> None:
    """Perhaps it was looked at after its record had been written, with other filters."""
    old = abandon(root, lambda tx: tx.sql("SELECT v FROM t WHERE id = 5"), add(3, 1))
    lake = open_lake(root)
    tx = lake.resume(old.id)
    lake.delete("t", where="id > 10")
    with pytest.raises(lv.Conflict, match="its dead client has seen the result"):
        tx.commit()


def test_failure_that_the_old_client_has_seen_still_counts(root: Path) -> None:
    def fail(tx: lv.Transaction) -> None:
        with pytest.raises(lv.InvalidInput, match="two rows of the source"):
            tx.sql(
                "MERGE INTO t USING (SELECT 5 AS id, id AS n FROM t WHERE id IN (1, 2)) s ON t.id = s.id "
                "WHEN MATCHED THEN UPDATE SET v = s.n"
            )

    old = abandon(root, add(15, 1), fail, add(16, 1))
    lake = open_lake(root)
    tx = lake.resume(old.id)
    assert tx.statements == 2
    lake.delete("t", where="id = 1")
    with pytest.raises(lv.Conflict, match="rolled back"):
        tx.commit()


def test_resumed_transaction_reads_the_versions_that_it_read_before(root: Path) -> None:
    lake = open_lake(root)
    lake.create("u", [{"id": 1, "v": 1}])
    old = abandon(root, lambda tx: tx.sql("SELECT * FROM u").collect(), add(3, 1), add(4, 1))
    lake.update("u", {"v": 2})
    lake.update("t", {"v": 9}, where="id = 15")
    tx = lake.resume(old.id)
    assert (tx.sql("SELECT v FROM u").collect(), values(tx, 3, 15)) == ([(1,)], [1, 0])


def test_now_means_the_same_after_a_resume(root: Path) -> None:
    open_lake(root).create("u", "at TIMESTAMP")
    stamp = "INSERT INTO u SELECT now()"
    old = abandon(root, lambda tx: tx.sql(stamp), lambda tx: tx.sql(stamp))
    sleep(0.01)
    lake = open_lake(root)
    with lake.resume(old.id) as tx:
        tx.sql(stamp)
    assert lake.sql("SELECT count(*) AS n, count(DISTINCT at) AS d FROM u").collect() == [(3, 1)]


def test_transaction_can_be_resumed_again_and_again(root: Path) -> None:
    old = abandon(root, add(3, 1), add(3, 1))
    first = open_lake(root)
    middle = first.resume(old.id)
    add(3, 1)(middle)
    store_all(first, middle)
    old.abort()
    old_lake_is_done = open_lake(root)
    with old_lake_is_done.resume(old.id) as last:
        assert last.statements == 3
        add(3, 1)(last)
    with pytest.raises(lv.Fenced):
        middle.commit()
    assert values(first, 3) == [4]


def _wait_until_fenced(tx: lv.Transaction) -> None:
    """Until a beat of its lease finds the lease of the client that resumed it."""
    end = monotonic() + 60
    while not tx._queues._leases.fenced(tx.id):
        assert monotonic() < end
        sleep(0.02)


def test_fenced_client_leaves_its_records_to_whoever_goes_on(root: Path) -> None:
    old = abandon(root, add(3, 1), add(4, 1))
    before = records(root)
    open_lake(root).resume(old.id)
    with pytest.raises(lv.Fenced, match="another client resumed"), old:
        old._queues.claim(old._workspace.base("t").ref, old._workspace.base("t").snapshot)
        _wait_until_fenced(old)
        old._queues.wait(old._workspace.base("t"))
    with pytest.raises(lv.InvalidInput, match="aborted"):
        old.commit()
    assert set(before) < set(records(root))


def test_partitioned_and_altered_tables_are_resumed(root: Path) -> None:
    lake = open_lake(root)
    lake.create("p", "id BIGINT, day DATE, at TIMESTAMP", partition_by=["day"])
    lake.sql(
        "INSERT INTO p VALUES (1, DATE'2026-01-01', now()), (2, DATE'2026-01-02', now()), (3, NULL, NULL)"
    )
    old = abandon(
        root,
        lambda tx: tx.add_column("p", "w", "DECIMAL(5, 2)"),
        lambda tx: tx.sql("UPDATE p SET w = :w WHERE day = :day", w=Decimal("1.50"), day=date(2026, 1, 1)),
        lambda tx: tx.sql("INSERT INTO p VALUES (4, NULL, NULL, 0.25)"),
        lambda tx: tx.delete("p", where="id = 3"),
    )
    lake.append("p", [{"id": 5, "day": date(2026, 1, 5), "at": None}])
    with lake.resume(old.id) as tx:
        tx.update("p", {"w": "w * 2"}, where="w IS NOT NULL")
    assert lake.sql("SELECT id, w FROM p ORDER BY id").collect() == [
        (1, Decimal("3.00")), (2, None), (4, Decimal("0.50")), (5, None),
    ]  # fmt: skip


def test_uploaded_file_that_vanished_is_a_conflict(root: Path) -> None:
    old = abandon(root, insert(30, 7), add(3, 1))
    gone = next((root / "t").rglob(f"part-{old.id}-*.parquet"))
    gone.unlink()
    with pytest.raises(lv.Conflict, match="cleaned up"):
        open_lake(root).resume(old.id)


def test_log_that_was_cleaned_up_is_a_conflict(root: Path, table_format: str, begin: int) -> None:
    old = abandon(root, insert(30, 7), add(3, 1))
    lake = open_lake(root)
    for number in range(10):
        lake.append("t", [{"id": 100 + number, "v": 0}])
    for version in range(begin, begin + 5):
        (root / "t" / OUTSIDERS[table_format].entry(version)).unlink()
    with pytest.raises(lv.Conflict) as caught:
        lake.resume(old.id)
    assert (caught.value.table, caught.value.version) == ("t", begin + 2)


def test_record_of_a_newer_format_is_refused(root: Path) -> None:
    old = abandon(root, add(3, 1), add(4, 1))
    path = root / records(root)[0]
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 99}))
    with pytest.raises(lv.Unsupported, match="record format 99"):
        open_lake(root).resume(old.id)


def test_transaction_that_changed_nothing_is_not_resumed(root: Path) -> None:
    old = abandon(root, lambda tx: values(tx, 1), lambda tx: values(tx, 2))
    with pytest.raises(lv.InvalidInput, match="changed nothing"):
        open_lake(root).resume(old.id)


@pytest.mark.parametrize("txn", ["", "x", "../../t", "0" * 31, "0" * 33])
def test_what_is_no_id_is_refused(root: Path, txn: str) -> None:
    for ask in (open_lake(root).resume, open_lake(root).outcome):
        with pytest.raises(lv.InvalidInput, match="not the id of a transaction"):
            ask(txn)
