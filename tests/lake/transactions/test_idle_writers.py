"""Transactions on several tables that find no row to change: what they read decided that, so it must hold."""

from pathlib import Path

import pytest

import lakevilla as lv

BOTH = lv.R | lv.CT


@pytest.fixture
def lake(tmp_path: Path) -> lv.Lake:
    lake = lv.Lake(tmp_path, engine="local", features=lv.R, storage_options={"fsync": "false"})
    for name, value in (("x", 10), ("y", 20)):
        lake.create(name, "id BIGINT, v BIGINT")
        lake.append(name, [{"id": 1, "v": value}])
    return lake


def _set_both(tx: lv.Transaction) -> None:
    tx.update("x", {"v": 12})
    tx.update("y", {"v": 18})


def _first(reader: lv.Lake | lv.Transaction, name: str) -> int:
    value: int = reader.read(name).collect()[0].v
    return value


@pytest.mark.parametrize("features", [lv.CT, BOTH])
def test_who_finds_no_row_after_a_read_that_changed_is_refused(lake: lv.Lake, features: lv.Features) -> None:
    tx = lake.transaction(features)
    assert _first(tx, "x") == 10
    lake.run(_set_both, features=BOTH)
    tx.delete("y", where="v = 20")
    with pytest.raises(lv.Conflict):
        tx.commit()


def test_who_finds_no_row_is_run_again_on_what_is_there_now(lake: lv.Lake) -> None:
    seen = []

    def work(tx: lv.Transaction) -> None:
        seen.append(_first(tx, "x"))
        if len(seen) == 1:
            lake.run(_set_both, features=BOTH)
        tx.delete("y", where="v = 20")

    receipt = lake.run(work, features=BOTH)
    assert seen == [10, 12]
    assert receipt.attempts == 2
    assert receipt.versions == {}


def test_statement_that_finds_a_row_only_when_redone_changes_it(lake: lv.Lake) -> None:
    with lake.transaction(BOTH) as tx:
        tx.update("x", {"v": "v + 1"}, where="v = 12")
        tx.sql("DELETE FROM y WHERE v IN (SELECT v + 100 FROM x)")
        lake.run(_set_both, features=BOTH)
    assert _first(lake, "x") == 13


def test_outcome_of_a_transaction_that_found_no_row_is_committed(lake: lv.Lake) -> None:
    with lake.transaction(BOTH) as tx:
        assert _first(tx, "x") == 10
        tx.delete("y", where="v = 0")
    assert lake.outcome(tx.id).state == "committed"


def test_transaction_that_only_reads_needs_no_entry(lake: lv.Lake) -> None:
    with lake.transaction(BOTH) as tx:
        assert (_first(tx, "x"), _first(tx, "y")) == (10, 20)
    assert tx.receipt is not None
    assert tx.receipt.seq is None


def test_changes_that_were_rolled_back_leave_a_reader(lake: lv.Lake) -> None:
    with lake.transaction(BOTH) as tx:
        assert _first(tx, "x") == 10
        tx.savepoint("a")
        tx.delete("y")
        tx.rollback_to("a")
    assert tx.receipt is not None
    assert tx.receipt.seq is None
