"""Vacuum during transactions: those that may still commit keep their files, whatever comes between."""

from pathlib import Path

import pyarrow as pa
import pytest

import lakevilla as lv
from lakevilla.markers.records import Lease, Marker
from lakevilla.store import keys
from lakevilla.store.adapters.directory import Directory
from lakevilla.store.open import open_store
from lakevilla.store.port import Store
from lakevilla.store.prefixed import Prefixed
from lakevilla.versions.log import GlobalLog
from tests.lake.vacuum.vacuum_lake import abort, new_lake, only, open_lake, parquet, uploaded
from tests.support.clocks import Days
from tests.support.hooked import Hooked
from tests.support.left_open import store_all
from tests.support.outsiders import OUTSIDERS

pytestmark = pytest.mark.formats("delta", "iceberg")


@pytest.fixture
def clock() -> Days:
    return Days()


@pytest.fixture
def lake(tmp_path: Path, clock: Days) -> lv.Lake:
    return new_lake(tmp_path, clock)


# Transactions that may still commit.


def test_files_of_a_transaction_that_holds_a_ticket_stay(lake: lv.Lake, clock: Days, tmp_path: Path) -> None:
    txn = abort(lake)
    store = open_store(str(tmp_path), environment=clock)
    Prefixed(store, "t").put(keys.marker(5), Marker(txn, txn, "p", 0, live=True).encode())
    clock.pass_days(8)
    told = only(lake.vacuum(dry_run=False))
    assert (told.orphans.count, told.kept_undecided.count) == (0, 1)
    assert "may still commit" in str(lake.vacuum())
    lake.recover()
    assert only(lake.vacuum(dry_run=False)).orphans.count == 1


@pytest.mark.parametrize("dry_run", [True, False])
def test_files_of_a_transaction_whose_lease_moves_stay(tmp_path: Path, clock: Days, dry_run: bool) -> None:
    """Its lease is old by the store's clock, and still its owner writes it while vacuum watches."""
    store = Hooked(Directory(str(tmp_path), clock))
    lake = open_lake(tmp_path, clock, store)
    lake.create("t", "id BIGINT, v BIGINT")
    txn = abort(lake)
    store.put(keys.lease(txn), Lease(txn, txn, "p", 1, 0).encode())
    clock.pass_days(8)
    looks: list[str] = []

    def beat(kind: str, key: str) -> None:
        if (kind, key) == ("get", keys.lease(txn)):
            looks.append(key)
            if len(looks) > 2:
                store.inner.put(key, Lease(txn, txn, f"p{len(looks)}", 1, 0).encode())

    store.hook = beat
    told = only(lake.vacuum("t", dry_run=dry_run))
    assert (told.orphans.count, told.kept_undecided.count) == (0, 1)


def test_young_sublogs_keep_the_files_and_old_ones_go_with_them(
    lake: lv.Lake, clock: Days, tmp_path: Path
) -> None:
    txn = abort(lake)
    store = open_store(str(tmp_path), environment=clock)
    clock.pass_days(5)
    store.put(keys.sublog(txn, txn, 0), b"{}")
    clock.pass_days(5)
    told = only(lake.vacuum(dry_run=False))
    assert (told.orphans.count, told.kept_undecided.count) == (0, 1)
    assert store.head(keys.sublog(txn, txn, 0)) is not None
    clock.pass_days(5)
    assert only(lake.vacuum(dry_run=False)).orphans.count == 1
    assert not list(store.list(keys.TXNS))


def test_records_without_data_files_go_too(lake: lv.Lake, clock: Days, tmp_path: Path) -> None:
    store = open_store(str(tmp_path), environment=clock)
    store.put(keys.sublog("a" * 32, "a" * 32, 0), b"{}")
    store.put(keys.lease("b" * 32), Lease("b" * 32, "b", "p", 1, 0).encode())
    clock.pass_days(8)
    assert set(lake.vacuum().transactions) == {"a" * 32, "b" * 32}
    assert lake.vacuum(dry_run=False).transactions
    assert not list(store.list(keys.TXNS))


@pytest.mark.parametrize("when", ["create", "delete"])
def test_transaction_that_is_resumed_while_vacuum_takes_hold_of_it_keeps_its_files(
    tmp_path: Path, clock: Days, when: str
) -> None:
    """Another client takes the lease over right before vacuum fences it, or while it deletes the sublogs."""
    store = Hooked(Directory(str(tmp_path), clock))
    lake = open_lake(tmp_path, clock, store)
    lake.create("t", "id BIGINT, v BIGINT")
    txn = abort(lake)
    store.put(keys.sublog(txn, txn, 0), b"{}")
    clock.pass_days(8)

    def resume(kind: str, key: str) -> None:
        if kind == when and key.startswith(keys.txn_folder(txn)):
            store.hook = None
            store.inner.put(keys.lease(txn), Lease(txn, "resumed", "r", 1, 0).encode())

    store.hook = resume
    told = only(lake.vacuum("t", dry_run=False))
    assert (told.orphans.count, told.kept_undecided.count) == (0, 1)
    assert [name for name in parquet(tmp_path) if txn in name]
    found = store.get(keys.lease(txn))
    assert found is not None
    assert b"resumed" in found.data


def test_hold_that_was_interrupted_is_taken_again(lake: lv.Lake, clock: Days, tmp_path: Path) -> None:
    txn = abort(lake)
    clock.pass_days(8)
    store = open_store(str(tmp_path), environment=clock)
    store.put(keys.lease(txn), Lease(txn, "vacuum", "p", 1, 0).encode())
    assert only(lake.vacuum(dry_run=False)).orphans.count == 1
    assert not list(store.list(keys.TXNS))


def test_commit_that_lands_right_before_the_deletes_keeps_its_files(
    tmp_path: Path, clock: Days, table_format: str
) -> None:
    """A statement of many days, whose first look at its files was long ago."""
    store = Hooked(Directory(str(tmp_path), clock))
    lake = open_lake(tmp_path, clock, store)
    lake.create("t", "id BIGINT, v BIGINT")
    slow = lake.transaction()
    slow.append("t", [{"id": 5, "v": 5}])
    uploaded(lake, slow)
    clock.pass_days(8)

    def commit(kind: str, key: str) -> None:
        if kind == "list" and key == keys.txn_folder(slow.id):
            store.hook = None
            slow.commit()

    store.hook = commit
    told = only(lake.vacuum("t", dry_run=False))
    assert slow.receipt is not None
    assert (told.files.count, told.keys) == (0, ())
    assert len(OUTSIDERS[table_format].rows(tmp_path / "t")) == 1


def test_transaction_can_be_resumed_within_the_retention_and_not_after_it_was_vacuumed(
    lake: lv.Lake, clock: Days, tmp_path: Path
) -> None:
    left = [_leave(tmp_path, clock, key) for key in (20, 30)]
    clock.pass_days(6)
    assert only(lake.vacuum(dry_run=False)).kept_undecided.count == 0
    lake.resume(left[0]).commit()
    clock.pass_days(2)
    assert left[1] in "".join(only(lake.vacuum(dry_run=False)).keys)
    with pytest.raises(lv.InvalidInput, match="it left no records"):
        lake.resume(left[1])
    assert sorted(row.id for row in lake.read("t").collect()) == [1, 20, 21]


def _leave(root: Path, clock: Days, key: int) -> str:
    """A client that dies after two statements; its records are stored, in one object or two."""
    lake = open_lake(root, clock)
    tx = lake.transaction(lv.R)
    tx.append("t", [{"id": key, "v": 0}])
    tx.append("t", [{"id": key + 1, "v": 0}])
    store_all(lake, tx)
    return tx.id


def test_version_that_isolated_readers_see_is_kept_while_others_go_on(
    lake: lv.Lake, clock: Days, tmp_path: Path, table_format: str
) -> None:
    lake.create("u", "id BIGINT")
    with lake.transaction(lv.R | lv.CT) as tx:
        tx.update("t", {"v": 2})
        tx.append("u", [{"id": 1}])
    assert tx.receipt is not None
    seen = tx.receipt.versions["t"]
    lake.update("t", {"v": 3})
    clock.pass_days(8)
    lake.vacuum(dry_run=False)
    assert OUTSIDERS[table_format].rows(tmp_path / "t", seen) == [{"id": 1, "v": 2}]


def test_what_is_decided_and_not_visible_yet_is_settled_before_anything_is_deleted(
    lake: lv.Lake, clock: Days, tmp_path: Path
) -> None:
    store = open_store(str(tmp_path), environment=clock)
    before = store.get(keys.HEAD)
    assert before is not None
    lake.create("u", pa.table({"id": [1]}))
    store.put(keys.HEAD, before.data)
    clock.pass_days(8)
    fresh = open_lake(tmp_path, clock)
    fresh.vacuum()
    assert store.get(keys.HEAD) is not None
    assert _tables(store) == {"t"}
    fresh.vacuum(dry_run=False)
    assert _tables(store) == {"t", "u"}


def _tables(store: Store) -> set[str]:
    read = GlobalLog(store, Days()).read_head()
    assert read is not None
    return set(read.head.tables)


# Crashes.


@pytest.mark.parametrize(
    "interruption", [lv.Unavailable("gone"), KeyboardInterrupt()], ids=["store", "ctrl-c"]
)
def test_interrupted_run_is_completed_by_the_next(
    tmp_path: Path, clock: Days, interruption: BaseException
) -> None:
    store = Hooked(Directory(str(tmp_path), clock))
    lake = open_lake(tmp_path, clock, store)
    lake.create("t", "id BIGINT, v BIGINT")
    for key in range(5):
        lake.append("t", [{"id": key, "v": 0}])
        abort(lake)
    lake.delete("t", where="id < 4")
    clock.pass_days(8)
    deleted: list[str] = []

    def fail(kind: str, key: str) -> None:
        if kind == "delete" and key.endswith(".parquet"):
            deleted.append(key)
            if len(deleted) > 3:
                raise interruption

    store.hook = fail
    with pytest.raises(type(interruption)):
        lake.vacuum(dry_run=False)
    store.hook = None
    assert not list(store.list("_lakevilla/probe/"))
    assert lake.read("t").collect() == [(4, 0)]
    assert 0 < lake.vacuum(dry_run=False).files.count < 9
    assert (lake.read("t").collect(), len(parquet(tmp_path))) == ([(4, 0)], 1)
