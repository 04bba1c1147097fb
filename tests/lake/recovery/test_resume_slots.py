"""Transactions that a slot decides (CT, I) and that outlive their client: `lake.resume` continues them."""

import json
from collections.abc import Callable
from pathlib import Path
from time import sleep
from typing import Any

import pytest

import lakevilla as lv
from lakevilla.store import keys
from lakevilla.store.open import open_store
from lakevilla.transaction.lifecycle import start
from tests.support.hooked import Hooked
from tests.support.lakes.abandoned import PICKS, abandon, add, look, make_two_tables, open_lake, values
from tests.support.left_open import OPTIONS, records, store_all

pytestmark = pytest.mark.formats("delta", "iceberg")


@pytest.fixture(autouse=True)
def stored_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start, "STORED_AFTER_SECONDS", 0.0)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    make_two_tables(tmp_path)
    return tmp_path


@pytest.mark.parametrize("features", PICKS)
def test_transaction_on_several_tables_goes_on_after_its_last_statement(
    root: Path, features: lv.Features
) -> None:
    old = abandon(root, add("a", 1), add("b", 2), add("a", 1), features=features)
    lake = open_lake(root)
    with lake.resume(old.id) as tx:
        assert (tx.id, tx.statements) == (old.id, 3)
        assert (values(tx, "a"), values(tx, "b")) == ([2, 0, 0], [0, 1, 0])
        assert (values(lake, "a"), values(lake, "b")) == ([0, 0, 0], [0, 0, 0])
        add("b", 3)(tx)
    assert tx.receipt is not None
    assert (tx.receipt.id, tx.receipt.seq is not None, tx.receipt.redone) == (old.id, True, 0)
    assert (values(lake, "a"), values(lake, "b")) == ([2, 0, 0], [0, 1, 1])
    lake.close()
    assert records(root) == []


@pytest.mark.parametrize("features", PICKS)
def test_transaction_on_one_table_may_go_on_with_another(root: Path, features: lv.Features) -> None:
    old = abandon(root, add("a", 1), add("a", 2), features=features)
    lake = open_lake(root)
    with lake.resume(old.id) as tx:
        add("b", 3)(tx)
    assert (values(lake, "a"), values(lake, "b")) == ([1, 1, 0], [0, 0, 1])
    with pytest.raises(lv.Fenced):
        old.commit()
    assert (values(lake, "a"), values(lake, "b")) == ([1, 1, 0], [0, 0, 1])


@pytest.mark.parametrize("features", PICKS)
def test_old_client_that_commits_second_is_fenced(root: Path, features: lv.Features) -> None:
    old = abandon(root, add("a", 1), add("b", 2), features=features)
    lake = open_lake(root)
    with lake.resume(old.id) as tx:
        add("b", 3)(tx)
    with pytest.raises(lv.Fenced):
        old.commit()
    assert (values(lake, "a"), values(lake, "b")) == ([1, 0, 0], [0, 1, 1])
    assert lake.outcome(old.id).state == "committed"


@pytest.mark.parametrize("features", PICKS)
def test_old_client_that_commits_first_wins(root: Path, features: lv.Features) -> None:
    old = abandon(root, add("a", 1), add("b", 2), features=features)
    lake = open_lake(root)
    tx = lake.resume(old.id)
    add("b", 3)(tx)
    old.commit()
    with pytest.raises(lv.Fenced):
        tx.commit()
    assert (values(lake, "a"), values(lake, "b")) == ([1, 0, 0], [0, 1, 0])


@pytest.mark.parametrize("features", PICKS)
@pytest.mark.parametrize("later", [40, 1])
def test_old_client_whose_tables_others_left_alone_is_fenced(
    root: Path, features: lv.Features, later: int
) -> None:
    """The resumed transaction ended on other tables, and the HEAD that the old client meets is newer by more
    entries than it tells itself: each of them was looked at all the same."""
    old = abandon(root, lambda tx: tx.savepoint("s"), add("a", 1), add("a", 2), features=features)
    lake = open_lake(root)
    with lake.resume(old.id) as tx:
        tx.rollback_to("s")
        tx.append("b", [{"id": 4, "v": 4}])
    for number in range(later):
        lake.create(f"t{number}", "id BIGINT")
    with pytest.raises(lv.Fenced):
        old.commit()
    assert (values(lake, "a"), values(lake, "b")) == ([0, 0, 0], [0, 0, 0, 4])


def test_blind_appends_of_two_clients_are_published_once(root: Path) -> None:
    steps = [lambda tx: tx.append("a", [{"id": 4, "v": 4}]), lambda tx: tx.append("b", [{"id": 4, "v": 4}])]
    old = abandon(root, *steps)
    lake = open_lake(root)
    lake.resume(old.id).commit()
    with pytest.raises(lv.Fenced):
        old.commit()
    assert (len(values(lake, "a")), len(values(lake, "b"))) == (4, 4)


@pytest.mark.parametrize("features", PICKS)
def test_single_table_that_others_may_have_resumed_is_decided_by_a_slot(
    root: Path, features: lv.Features
) -> None:
    old = abandon(root, add("a", 1), add("a", 2), features=features)
    assert old.commit().seq is not None


def test_short_transaction_stores_nothing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start, "STORED_AFTER_SECONDS", 1e9)
    abandon(root, add("a", 1), add("b", 2), add("a", 2))
    assert records(root) == []


def test_records_of_several_tables_have_a_format_of_their_own(root: Path) -> None:
    """An older client would take them for those of a transaction with R alone."""
    abandon(root, add("a", 1), add("b", 2))
    abandon(root, add("a", 1), add("a", 2), features=lv.R)
    found = [json.loads((root / path).read_text()) for path in records(root)]
    assert {(one["format"], "terms" in one) for one in found} == {(1, False), (2, True)}


def test_instant_is_the_same_after_a_resume(root: Path) -> None:
    old = abandon(root, look("b"), add("a", 1), add("a", 2))
    lake = open_lake(root)
    lake.update("b", {"v": 7})
    tx = lake.resume(old.id)
    assert (values(tx, "b"), values(tx, "a")) == ([0, 0, 0], [1, 1, 0])


def test_serializable_transaction_whose_reads_changed_conflicts(root: Path) -> None:
    old = abandon(root, look("b"), add("a", 1), add("a", 2))
    lake = open_lake(root)
    tx = lake.resume(old.id)
    lake.update("b", {"v": 7})
    with pytest.raises(lv.Conflict):
        tx.commit()
    assert values(lake, "a") == [0, 0, 0]


@pytest.mark.parametrize("picked", [{"isolation": "snapshot"}, {"slack": 3}])
def test_isolation_and_slack_are_the_same_after_a_resume(root: Path, picked: dict[str, Any]) -> None:
    old = abandon(root, look("b"), add("a", 1), add("a", 2), **picked)
    lake = open_lake(root)
    tx = lake.resume(old.id)
    lake.update("b", {"v": 7})
    tx.commit()
    assert values(lake, "a") == [1, 1, 0]


def test_statements_are_redone_on_the_new_instant_after_a_resume(root: Path) -> None:
    old = abandon(root, add("a", 1), lambda tx: tx.sql("UPDATE b SET v = v + (SELECT sum(v) FROM a)"))
    lake = open_lake(root)
    with lake.resume(old.id) as tx:
        lake.update("a", {"v": "v + 10"})
    assert tx.receipt is not None
    assert (tx.receipt.redone, values(lake, "a"), values(lake, "b")) == (2, [11, 10, 10], [31, 31, 31])


def test_tables_made_and_dropped_are_there_again(root: Path, table_format: str) -> None:
    old = abandon(
        root,
        lambda tx: tx.sql("CREATE TABLE c AS SELECT id, v FROM a"),
        lambda tx: tx.create("d", "id BIGINT, v BIGINT"),
        lambda tx: tx.append("d", [{"id": 1, "v": 5}]),
        add("c", 1, 9),
        add("d", 1, 1),
        lambda tx: tx.drop("b"),
    )
    lake = open_lake(root)
    with lake.resume(old.id) as tx:
        assert (values(tx, "c"), values(tx, "d")) == ([9, 0, 0], [6])
        with pytest.raises(lv.InvalidInput, match="dropped"):
            values(tx, "b")
        tx.append("d", [{"id": 2, "v": 7}])
    assert (sorted(lake.tables()), values(lake, "c"), values(lake, "d")) == (
        ["a", "c", "d"], [9, 0, 0], [6, 7],
    )  # fmt: skip
    with pytest.raises(lv.Fenced):
        old.commit()


def test_table_that_was_made_and_rolled_back_is_not_there(root: Path) -> None:
    old = abandon(
        root,
        add("a", 1),
        lambda tx: tx.savepoint("s"),
        lambda tx: tx.create("c", "id BIGINT, v BIGINT"),
        lambda tx: tx.append("c", [{"id": 1, "v": 5}]),
        lambda tx: tx.sql("SELECT * FROM c").collect(),
        lambda tx: tx.rollback_to("s"),
        add("b", 1),
    )
    lake = open_lake(root)
    with lake.resume(old.id) as tx:
        add("b", 2)(tx)
        tx.rollback_to("s")
        add("b", 3)(tx)
    assert (sorted(lake.tables()), values(lake, "a"), values(lake, "b")) == (
        ["a", "b"], [1, 0, 0], [0, 0, 1],
    )  # fmt: skip


def test_name_that_another_client_took_meanwhile_is_a_conflict(root: Path) -> None:
    old = abandon(root, add("a", 1), lambda tx: tx.create("c", "id BIGINT"))
    lake = open_lake(root)
    tx = lake.resume(old.id)
    lake.create("c", "x BIGINT")
    with pytest.raises(lv.Conflict):
        tx.commit()
    assert values(lake, "a") == [0, 0, 0]


def test_transaction_can_be_resumed_again_and_again(root: Path) -> None:
    old = abandon(root, add("a", 1), add("b", 1))
    first = open_lake(root)
    middle = first.resume(old.id)
    add("a", 2)(middle)
    store_all(first, middle)
    last = open_lake(root)
    with last.resume(old.id) as tx:
        assert tx.statements == 3
        add("b", 2)(tx)
    for other in (middle, old):
        with pytest.raises(lv.Fenced):
            other.commit()
    assert (values(last, "a"), values(last, "b")) == ([1, 1, 0], [1, 1, 0])


def test_uploaded_file_that_vanished_is_a_conflict(root: Path) -> None:
    old = abandon(root, add("a", 1), add("b", 1))
    next((root / "b").rglob(f"part-{old.id}-*.parquet")).unlink()
    with pytest.raises(lv.Conflict, match="missing"):
        open_lake(root).resume(old.id)
    lake = open_lake(root)
    assert (values(lake, "a"), values(lake, "b")) == ([0, 0, 0], [0, 0, 0])


def test_run_that_starts_again_after_it_was_resumed_is_fenced(root: Path) -> None:
    lake, other = open_lake(root), open_lake(root)
    calls: list[str] = []

    def work(tx: lv.Transaction) -> None:
        calls.append(tx.id)
        add("a", 1)(tx)
        add("b", 1)(tx)
        store_all(lake, tx)
        other.resume(tx.id).commit()
        raise lv.Conflict("run it again")

    with pytest.raises(lv.Fenced):
        lake.run(work)
    assert (len(calls), values(other, "a"), values(other, "b")) == (1, [1, 0, 0], [1, 0, 0])


@pytest.mark.parametrize("end", [lv.Transaction.commit, lv.Transaction.abort])
def test_end_of_a_resumed_transaction_leaves_nothing_behind(
    root: Path, end: Callable[[lv.Transaction], Any]
) -> None:
    old = abandon(root, add("a", 1), add("b", 1))
    lake = open_lake(root)
    end(lake.resume(old.id))
    lake.close()
    assert list((root / keys.TXNS).rglob("*.json")) == []


def test_recover_tells_that_a_decided_transaction_cannot_be_resumed(root: Path) -> None:
    left, idle = abandon(root, add("a", 1), add("b", 1)), abandon(root, look("a"), look("b"))
    done = abandon(root, add("a", 2), add("b", 2))
    done._journal.remove = lambda *_: None  # type: ignore[method-assign]
    done.commit()
    obstacles = {one.transaction: one.obstacle for one in open_lake(root).recover().transactions}
    assert {txn: bool(obstacle) for txn, obstacle in obstacles.items()} == {
        left.id: False, idle.id: True, done.id: True,
    }  # fmt: skip
    assert "as entry" in obstacles[done.id]


@pytest.mark.parametrize("features", PICKS)
def test_upload_that_is_on_its_way_at_the_commit_is_not_taken_for_missing(
    root: Path, features: lv.Features
) -> None:
    """The age of what the old client uploaded is not known, so files are looked at before the commit."""
    old = abandon(root, add("a", 1), add("b", 2), features=features)
    store = Hooked(open_store(str(root), OPTIONS))
    lake = open_lake(root, store)
    store.hook = lambda kind, key: sleep(0.3) if kind == "put" and key.endswith(".parquet") else None
    with lake.resume(old.id) as tx:
        add("b", 3)(tx)
    assert (values(lake, "a"), values(lake, "b")) == ([1, 0, 0], [0, 1, 1])
