"""Transactions on several tables (CT): all or nothing, redone or refused, whatever others do."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from time import sleep

import pytest

import lakevilla as lv
from lakevilla.store import keys
from lakevilla.store.adapters.directory import Directory
from lakevilla.store.metered import Meter
from lakevilla.store.open import open_store
from tests.support.hooked import Hooked
from tests.support.outsiders import OUTSIDERS

pytestmark = pytest.mark.formats("delta", "vectors", "iceberg", "deletes", "mixed")
each = pytest.mark.formats("delta", "iceberg")

BOTH = lv.R | lv.CT


@pytest.fixture
def lake(tmp_path: Path) -> lv.Lake:
    """Two banks with two accounts each."""
    lake = lv.Lake(tmp_path, engine="local", storage_options={"fsync": "false"})
    for name in ("x", "y"):
        lake.create(name, "id BIGINT, balance BIGINT")
        lake.append(name, [{"id": 1, "balance": 100}, {"id": 2, "balance": 100}])
    return lake


def _balances(lake: lv.Lake | lv.Transaction, name: str) -> dict[int, int]:
    return {row.id: row.balance for row in lake.read(name).collect()}


def _transfer(tx: lv.Transaction, amount: int) -> None:
    tx.update("x", {"balance": f"balance - {amount}"}, where="id = 1")
    tx.update("y", {"balance": f"balance + {amount}"}, where="id = 1")


@each
@pytest.mark.parametrize("features", [lv.CT, BOTH])
def test_commit_changes_all_tables_and_says_so(lake: lv.Lake, features: lv.Features, begin: int) -> None:
    with lake.transaction(features) as tx:
        _transfer(tx, 30)
        assert (_balances(tx, "x")[1], _balances(lake, "x")[1]) == (70, 100)
    assert tx.receipt is not None
    assert tx.receipt.versions == {"x": begin + 2, "y": begin + 2}
    assert tx.receipt.seq == 5
    assert (_balances(lake, "x")[1], _balances(lake, "y")[1]) == (70, 130)


def test_abort_changes_no_table(lake: lv.Lake) -> None:
    with pytest.raises(ZeroDivisionError), lake.transaction(BOTH) as tx:
        _transfer(tx, 30)
        raise ZeroDivisionError
    assert _balances(lake, "x") == _balances(lake, "y") == {1: 100, 2: 100}


@each
def test_one_table_without_other_reads_needs_no_slot(lake: lv.Lake, begin: int) -> None:
    with lake.transaction(BOTH) as tx:
        tx.update("x", {"balance": 5}, where="id = 1")
        tx.update("x", {"balance": 6}, where="id = 2")
    assert tx.receipt is not None
    assert (tx.receipt.seq, tx.receipt.versions) == (None, {"x": begin + 2})


def test_conflict_with_another_multi_table_commit_is_redone(lake: lv.Lake) -> None:
    with lake.transaction(BOTH) as tx:
        _transfer(tx, 30)
        lake.run(lambda other: _transfer(other, 5), features=BOTH)
    assert tx.receipt is not None
    assert tx.receipt.redone == 2
    assert (_balances(lake, "x")[1], _balances(lake, "y")[1]) == (65, 135)


def test_conflict_without_recovery_is_raised(lake: lv.Lake) -> None:
    tx = lake.transaction(lv.CT)
    _transfer(tx, 30)
    lake.run(lambda other: _transfer(other, 5), features=BOTH)
    with pytest.raises(lv.Conflict, match="without recovery"):
        tx.commit()
    assert (_balances(lake, "x")[1], _balances(lake, "y")[1]) == (95, 105)


@each
@pytest.mark.parametrize("table", ["x", "y"])
def test_outside_writer_between_is_passed_or_redone(
    lake: lv.Lake, tmp_path: Path, table: str, table_format: str
) -> None:
    with lake.transaction(BOTH) as tx:
        _transfer(tx, 30)
        OUTSIDERS[table_format].update(tmp_path / table, {"balance": "balance + 1000"}, "id = 1")
    assert tx.receipt is not None
    assert tx.receipt.redone > 0
    assert sum(_balances(lake, "x").values()) + sum(_balances(lake, "y").values()) == 1400
    assert _balances(lake, table)[1] == {"x": 1070, "y": 1130}[table]


@each
def test_outside_conflict_without_recovery_takes_everything_back(
    lake: lv.Lake, tmp_path: Path, table_format: str
) -> None:
    tx = lake.transaction(lv.CT)
    _transfer(tx, 30)
    outside = OUTSIDERS[table_format]
    outside.delete(tmp_path / "y", "id = 1")
    with pytest.raises(lv.Conflict):
        tx.commit()
    assert (_balances(lake, "x"), _balances(lake, "y")) == ({1: 100, 2: 100}, {2: 100})
    assert len(outside.rows(tmp_path / "x")) == 2


def test_read_of_one_table_that_changed_stops_a_write_of_another(lake: lv.Lake) -> None:
    tx = lake.transaction(BOTH)
    total = sum(_balances(tx, "x").values())
    tx.append("y", [{"id": 3, "balance": total}])
    lake.run(lambda other: _transfer(other, 5), features=BOTH)
    with pytest.raises(lv.Conflict, match="seen has changed"):
        tx.commit()
    assert 3 not in _balances(lake, "y")


def test_write_skew_over_two_tables_is_prevented(lake: lv.Lake) -> None:
    def move(tx: lv.Transaction, source: str, target: str) -> None:
        total = sum(_balances(tx, "x").values()) + sum(_balances(tx, "y").values())
        if total >= 400:
            tx.update(target, {"balance": "balance - 300"}, where="id = 1")

    first, second = lake.transaction(BOTH), lake.transaction(BOTH)
    move(first, "x", "y")
    move(second, "y", "x")
    first.commit()
    with pytest.raises(lv.Conflict):
        second.commit()


def test_statement_across_tables_reads_and_writes_in_one_commit(lake: lv.Lake) -> None:
    with lake.transaction(BOTH) as tx:
        tx.sql("INSERT INTO y SELECT id + 10, balance FROM x")
        tx.sql("MERGE INTO x USING y ON x.id = y.id WHEN MATCHED THEN UPDATE SET balance = y.balance + 1")
    assert tx.receipt is not None
    assert tx.receipt.seq is not None
    assert _balances(lake, "y") == {1: 100, 2: 100, 11: 100, 12: 100}
    assert _balances(lake, "x") == {1: 101, 2: 101}


def test_insert_from_another_table_is_redone_when_that_table_changed(lake: lv.Lake) -> None:
    with lake.transaction(BOTH) as tx:
        tx.sql("INSERT INTO y SELECT id + 10, balance FROM x")
        lake.run(lambda other: _transfer(other, 5), features=BOTH)
    assert tx.receipt is not None
    assert tx.receipt.redone == 1
    assert _balances(lake, "y")[11] == 95


def test_savepoint_undoes_over_all_tables(lake: lv.Lake) -> None:
    with lake.transaction(BOTH) as tx:
        tx.update("x", {"balance": 1}, where="id = 1")
        tx.savepoint("a")
        tx.update("y", {"balance": 1}, where="id = 1")
        tx.rollback_to("a")
    assert (_balances(lake, "x")[1], _balances(lake, "y")[1]) == (1, 100)


def test_transfers_by_many_threads_keep_the_sum(lake: lv.Lake) -> None:
    def work(number: int) -> None:
        def transfer(tx: lv.Transaction) -> None:
            names = ("x", "y") if number % 2 else ("y", "x")
            tx.update(names[0], {"balance": "balance - 1"}, where="id = 1")
            tx.update(names[1], {"balance": "balance + 1"}, where=f"id = {1 + number % 2}")

        lake.run(transfer, features=BOTH)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(24)))
    assert sum(_balances(lake, "x").values()) + sum(_balances(lake, "y").values()) == 400


def test_single_table_writer_settles_an_entry_that_its_owner_left(lake: lv.Lake, tmp_path: Path) -> None:
    """The owner dies after it published one table of two."""
    tx = lake.transaction(BOTH)
    _transfer(tx, 30)
    died = RuntimeError("the client died")

    def die(*_: object) -> None:
        raise died

    y = tx._workspace.base("y").table
    y.publish = die  # type: ignore[method-assign,assignment]
    with pytest.raises(RuntimeError):
        tx.commit()
    other = lv.Lake(tmp_path, engine="local", storage_options={"fsync": "false"})
    other.update("x", {"balance": "balance + 1"}, where="id = 2")
    assert (_balances(other, "x"), _balances(other, "y")[1]) == ({1: 70, 2: 101}, 130)


def test_rows_for_a_column_that_another_client_just_added_are_taken(lake: lv.Lake, tmp_path: Path) -> None:
    other = lv.Lake(tmp_path, engine="local", storage_options={"fsync": "false"})
    other.add_column("y", "note", "STRING")
    with lake.transaction(BOTH) as tx:
        tx.append("x", [{"id": 3, "balance": 0}])
        tx.append("y", [{"id": 3, "balance": 0, "note": "new"}])
        with pytest.raises(lv.InvalidInput, match="nonsense"):
            tx.append("y", [{"nonsense": 1}])
    assert lake.sql("SELECT note FROM y WHERE id = 3").collect() == [("new",)]


def test_upload_that_fails_in_the_background_aborts_the_transaction(
    lake: lv.Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = Directory.put

    def refuse(self: Directory, key: str, data: bytes) -> None:
        if "part-" in key and "/y" in f"/{key}":
            raise lv.Unavailable("the disk is full")
        put(self, key, data)

    monkeypatch.setattr(Directory, "put", refuse)
    tx = lake.transaction(BOTH)
    tx.append("x", [{"id": 3, "balance": 0}])
    tx.append("y", [{"id": 3, "balance": 0}])
    with pytest.raises(lv.Unavailable, match="disk is full"):
        tx.commit()
    assert (3 in _balances(lake, "x"), 3 in _balances(lake, "y")) == (False, False)


def test_own_rows_are_read_while_their_upload_is_on_its_way(
    lake: lv.Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = Directory.put

    def slowly(self: Directory, key: str, data: bytes) -> None:
        sleep(0.2)
        put(self, key, data)

    monkeypatch.setattr(Directory, "put", slowly)
    with lake.transaction(BOTH) as tx:
        tx.append("x", [{"id": 3, "balance": 7}])
        assert _balances(tx, "x")[3] == 7


def test_who_redoes_lines_up_in_one_order_and_shifts_if_it_held_a_later_place(lake: lv.Lake) -> None:
    tx = lake.transaction(BOTH)
    _transfer(tx, 30)
    y = tx._workspace.base("y")
    tx._queues.claim(y.ref, y.snapshot)
    held = tx._queues.ticket(y.ref)
    lake.run(lambda other: _transfer(other, 5), features=BOTH)
    tx.commit()
    assert (_balances(lake, "x")[1], _balances(lake, "y")[1]) == (65, 135)
    assert tx._queues.shifts == 1
    newest = lake._catalog.pin("y", Meter()).snapshot
    assert held is not None
    assert newest.coordination.ticket > held
    assert lake.status().tickets == ()


@each
@pytest.mark.parametrize("recovers", [True, False])
def test_entry_between_the_look_at_a_table_and_head_is_noticed(
    lake: lv.Lake, tmp_path: Path, recovers: bool, table_format: str, begin: int
) -> None:
    """Each reads what the other writes, and only one of them can have been first."""
    other = lv.Lake(tmp_path, engine="local", storage_options={"fsync": "false"})
    store = Hooked(open_store(str(tmp_path), {"fsync": "false"}))
    mine = lv.Lake(tmp_path, engine="local", store=store)
    tx = mine.transaction(BOTH if recovers else lv.CT)
    tx.sql("INSERT INTO x SELECT 10, count(*) FROM y")
    looked = Event()

    def step(kind: str, key: str) -> None:
        if kind == "get" and key == f"y/{OUTSIDERS[table_format].entry(begin + 2)}":
            looked.set()
        elif kind == "get" and key == keys.HEAD and looked.wait(60):
            store.hook = None
            sleep(0.05)
            with other.transaction(BOTH) as first:
                first.sql("INSERT INTO y SELECT 10, count(*) FROM x")

    store.hook = step
    if recovers:
        assert tx.commit().redone == 1
        assert _balances(lake, "x")[10] == 3
    else:
        with pytest.raises(lv.Conflict):
            tx.commit()
        assert 10 not in _balances(lake, "x")
    assert _balances(lake, "y")[10] == 2
