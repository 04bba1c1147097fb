"""Transactions with features NONE: one statement, atomic, rebased or refused."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakevilla as lv

pytestmark = pytest.mark.formats("delta", "iceberg")


@pytest.fixture
def lake(tmp_path: Path) -> lv.Lake:
    """Accounts in two files: ids 1 to 10, and 11 to 20."""
    lake = lv.Lake(tmp_path, engine="local")
    lake.create("t", "id BIGINT, v BIGINT")
    lake.append("t", pa.table({"id": list(range(1, 11)), "v": [0] * 10}))
    lake.append("t", pa.table({"id": list(range(11, 21)), "v": [0] * 10}))
    return lake


def _value(lake: lv.Lake, key: int) -> int:
    value: int = lake.sql("SELECT v FROM t WHERE id = :key", key=key).collect()[0].v
    return value


def test_leaving_the_block_commits_and_gives_a_receipt(lake: lv.Lake, begin: int) -> None:
    with lake.transaction(lv.NONE) as tx:
        counts = tx.update("t", {"v": 5}, where="id = 3")
        assert tx.receipt is None
    assert counts == lv.Counts(updated=1)
    assert tx.receipt is not None
    assert (tx.receipt.id, tx.receipt.versions) == (tx.id, {"t": begin + 3})
    assert tx.receipt.requests["create"] == 1
    assert _value(lake, 3) == 5
    assert lake.history("t")[0].txn == tx.id


def test_exception_in_the_block_aborts(lake: lv.Lake) -> None:
    with pytest.raises(ZeroDivisionError), lake.transaction(lv.NONE) as tx:
        tx.delete("t")
        raise ZeroDivisionError
    assert lake.read("t").count() == 20
    assert len(lake.history("t")) == 3


def test_keyboard_interrupt_in_the_block_aborts(lake: lv.Lake) -> None:
    with pytest.raises(KeyboardInterrupt), lake.transaction(lv.NONE) as tx:
        tx.delete("t")
        raise KeyboardInterrupt
    assert lake.read("t").count() == 20


def test_second_statement_is_refused_and_the_first_still_commits(lake: lv.Lake) -> None:
    with lake.transaction(lv.NONE) as tx:
        tx.update("t", {"v": 5}, where="id = 3")
        with pytest.raises(lv.InvalidInput, match="one statement"):
            tx.read("t")
    assert _value(lake, 3) == 5


def test_ended_transaction_refuses_statements_and_commits(lake: lv.Lake) -> None:
    committed, aborted = lake.transaction(lv.NONE), lake.transaction(lv.NONE)
    committed.commit()
    aborted.abort()
    aborted.abort()
    for tx in (committed, aborted):
        with pytest.raises(lv.InvalidInput, match="Start a new one"):
            tx.read("t")
        with pytest.raises(lv.InvalidInput):
            tx.commit()
    with pytest.raises(lv.InvalidInput):
        committed.abort()


@pytest.mark.parametrize(
    ("wish", "told"),
    [
        ({"isolation": "repeatable"}, "serializable.*snapshot"),
        ({"slack": -1}, "0 or more"),
        ({"slack": "2"}, "0 or more"),
        ({"features": "R"}, "lakevilla.R"),
    ],
)
def test_what_cannot_be_picked_is_refused(lake: lv.Lake, wish: dict[str, Any], told: str) -> None:
    with pytest.raises(lv.InvalidInput, match=told):
        lake.transaction(**wish)


def test_blind_appends_never_fail(lake: lv.Lake) -> None:
    first, second = lake.transaction(lv.NONE), lake.transaction(lv.NONE)
    first.append("t", [{"id": 30, "v": 1}])
    second.append("t", [{"id": 31, "v": 1}])
    lake.update("t", {"v": 9})
    second.commit()
    first.commit()
    assert lake.read("t").count() == 22


def test_updates_of_different_files_both_succeed(lake: lv.Lake) -> None:
    first, second = lake.transaction(lv.NONE), lake.transaction(lv.NONE)
    first.update("t", {"v": 1}, where="id = 5")
    second.update("t", {"v": 2}, where="id = 15")
    first.commit()
    second.commit()
    assert (_value(lake, 5), _value(lake, 15)) == (1, 2)


def test_second_update_of_one_file_conflicts_and_names_the_winner(lake: lv.Lake, begin: int) -> None:
    first, second = lake.transaction(lv.NONE), lake.transaction(lv.NONE)
    first.update("t", {"v": "v + 1"}, where="id = 5")
    second.update("t", {"v": "v + 1"}, where="id = 6")
    first.commit()
    with pytest.raises(lv.Conflict) as caught:
        second.commit()
    assert caught.value.table == "t"
    assert caught.value.operation == "UPDATE"
    assert "part-" in caught.value.file
    assert f"version {begin + 3}" in caught.value.winner
    assert (_value(lake, 5), _value(lake, 6)) == (1, 0)


def test_append_that_an_update_would_have_seen_conflicts(lake: lv.Lake) -> None:
    update = lake.transaction(lv.NONE)
    update.update("t", {"v": 1}, where="id = 5")
    lake.append("t", [{"id": 5, "v": 0}])
    with pytest.raises(lv.Conflict, match="a file was added"):
        update.commit()


def test_append_elsewhere_does_not_disturb_an_update(lake: lv.Lake) -> None:
    update = lake.transaction(lv.NONE)
    update.update("t", {"v": 1}, where="id = 5")
    lake.append("t", [{"id": 500, "v": 0}])
    update.commit()
    assert _value(lake, 5) == 1


def test_insert_from_the_same_table_conflicts_when_its_rows_change(lake: lv.Lake) -> None:
    insert = lake.transaction(lv.NONE)
    insert.sql("INSERT INTO t SELECT id + 100, v FROM t WHERE id <= 10")
    lake.delete("t", where="id = 1")
    with pytest.raises(lv.Conflict, match="a file that this statement read was removed"):
        insert.commit()


def test_new_column_stops_even_blind_appends(lake: lv.Lake) -> None:
    append = lake.transaction(lv.NONE)
    append.append("t", [{"id": 30, "v": 1}])
    lake.add_column("t", "w", "STRING")
    with pytest.raises(lv.Conflict, match="schema or properties"):
        append.commit()


def test_statement_that_changes_no_row_publishes_nothing(lake: lv.Lake) -> None:
    assert lake.update("t", {"v": 1}, where="id = 999") == lv.Counts()
    assert lake.delete("t", where="false") == lv.Counts()
    assert lake.append("t", []) == lv.Counts()
    assert len(lake.history("t")) == 3


def test_run_repeats_the_work_after_a_conflict(lake: lv.Lake, begin: int) -> None:
    calls: list[int] = []

    def work(tx: lv.Transaction) -> None:
        tx.update("t", {"v": "v + 1"}, where="id = 5")
        if not calls:
            lake.update("t", {"v": "v + 10"}, where="id = 5")
        calls.append(1)

    receipt = lake.run(work, features=lv.NONE)
    assert len(calls) == 2
    assert receipt.versions == {"t": begin + 4}
    assert _value(lake, 5) == 11


def test_run_gives_up_after_its_retries_and_raises_the_conflict(lake: lv.Lake) -> None:
    def work(tx: lv.Transaction) -> None:
        tx.update("t", {"v": "v + 1"}, where="id = 5")
        lake.update("t", {"v": "v + 10"}, where="id = 5")

    with pytest.raises(lv.Conflict):
        lake.run(work, retries=2, features=lv.NONE)
    assert _value(lake, 5) == 30


def test_one_lake_serves_many_threads_and_loses_nothing(lake: lv.Lake) -> None:
    def work(number: int) -> None:
        for step in range(5):
            lake.append("t", [{"id": 1000 + number * 10 + step, "v": 0}])
            lake.run(
                lambda tx: tx.update("t", {"v": "v + 1"}, where="id = 5"), retries=1000, features=lv.NONE
            )

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))
    assert _value(lake, 5) == 30
    assert lake.read("t").count() == 20 + 30


def test_one_who_is_far_behind_catches_up_without_trying_every_version(
    lake: lv.Lake, tmp_path: Path, begin: int
) -> None:
    other = lv.Lake(tmp_path, storage_options={"fsync": "false"}, engine="local")
    with lake.transaction(lv.NONE) as tx:
        tx.append("t", pa.table({"id": [100], "v": [1]}))
        for number in range(30):
            other.append("t", pa.table({"id": [200 + number], "v": [2]}))
    assert tx.receipt is not None
    assert tx.receipt.versions == {"t": begin + 33}
    assert tx.receipt.requests["create"] <= 6
    assert lake.read("t").count() == 51


def test_conflict_among_what_is_caught_up_with_is_found(lake: lv.Lake, tmp_path: Path, begin: int) -> None:
    other = lv.Lake(tmp_path, storage_options={"fsync": "false"}, engine="local")
    tx = lake.transaction(lv.NONE)
    tx.update("t", {"v": "v + 1"}, where="id = 3")
    for number in range(12):
        other.append("t", pa.table({"id": [200 + number], "v": [2]}))
    other.update("t", {"v": "v + 1"}, where="id = 3")
    with pytest.raises(lv.Conflict, match=f"version {begin + 15}"):
        tx.commit()
    assert _value(lake, 3) == 1
