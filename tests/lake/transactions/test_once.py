"""Batches of pipelines (`once=`): each is committed once, by whichever client, however often it is run."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lakevilla as lv
from lakevilla.errors import Unavailable
from lakevilla.store import keys
from lakevilla.store.open import open_store
from lakevilla.transaction.lifecycle import start
from lakevilla.versions import batches
from tests.support.hooked import Hooked
from tests.support.left_open import OPTIONS, store_all
from tests.support.outsiders import OUTSIDERS

pytestmark = pytest.mark.formats("delta", "vectors", "iceberg", "deletes", "mixed")
each = pytest.mark.formats("delta", "iceberg")

PICKS = [lv.CT, lv.I, lv.R | lv.CT, lv.CT | lv.I, lv.R | lv.CT | lv.I]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    lake = open_lake(tmp_path)
    for name in ("a", "b"):
        lake.create(name, "v BIGINT")
    return tmp_path


def open_lake(root: Path, store: Any = None) -> lv.Lake:
    return lv.Lake(root, engine="local", storage_options=OPTIONS, store=store, lease_seconds=0.3)


def both(value: int) -> Any:
    def work(tx: lv.Transaction) -> None:
        tx.append("a", [{"v": value}])
        tx.append("b", [{"v": value}])

    return work


def values(lake: lv.Lake, table: str) -> list[int]:
    return sorted(row.v for row in lake.read(table).collect())


class Interrupted(Exception):
    """The process of a client ends."""


def die_before(kind: str, key: str) -> Any:
    def hook(asked: str, at: str) -> None:
        if asked == kind and at.startswith(key):
            raise Interrupted

    return hook


@each
@pytest.mark.parametrize("features", PICKS)
def test_batch_that_runs_again_changes_nothing_and_says_so(root: Path, features: lv.Features) -> None:
    first = open_lake(root).run(both(1), features=features, once=("etl", 7))
    lake = open_lake(root)
    calls = []
    again = lake.run(lambda tx: calls.append(tx), features=features, once=("etl", 7))
    assert (first.replayed, again.replayed, calls) == (False, True, [])
    assert (again.versions, again.seq) == ({}, first.seq)
    assert (values(lake, "a"), values(lake, "b")) == ([1], [1])


def test_with_block_of_a_replay_says_so_at_once_and_commits_nothing(root: Path) -> None:
    lake = open_lake(root)
    for _ in range(2):
        with lake.transaction(once=("etl", 1)) as tx:
            known = tx.replayed
            both(1)(tx)
    assert known
    assert tx.receipt is not None
    assert (tx.replayed, tx.receipt.replayed) == (True, True)
    assert values(lake, "a") == [1]


def test_earlier_batch_counts_as_committed_and_a_later_one_does_not(root: Path) -> None:
    lake = open_lake(root)
    lake.run(both(1), once=("etl", 5))
    earlier = lake.run(both(2), once=("etl", 4))
    assert (earlier.replayed, earlier.seq) == (True, None)
    assert not lake.run(both(3), once=("etl", np.int64(6))).replayed
    assert not lake.run(both(4), once=("other", 5)).replayed
    assert values(lake, "a") == [1, 3, 4]


@each
@pytest.mark.parametrize("features", PICKS)
def test_client_that_ran_the_same_batch_at_the_same_time_commits_nothing(
    root: Path, features: lv.Features
) -> None:
    slow, fast = open_lake(root), open_lake(root)
    tx = slow.transaction(features, once=("etl", 1))
    assert not tx.replayed
    tx.sql("DELETE FROM a")
    both(1)(tx)
    fast.run(both(1), features=features, once=("etl", 1))
    assert tx.commit().replayed
    assert (values(slow, "a"), values(slow, "b")) == ([1], [1])


@each
def test_rival_that_wins_the_slot_with_the_same_batch_leaves_a_no_op(root: Path) -> None:
    store = Hooked(open_store(str(root), OPTIONS))
    lake = open_lake(root, store)

    def hook(kind: str, key: str) -> None:
        if kind == "create" and key.startswith(keys.GLOBAL_LOG):
            store.hook = None
            open_lake(root).run(both(1), once=("etl", 1))

    tx = lake.transaction(once=("etl", 1))
    both(1)(tx)
    store.hook = hook
    assert tx.commit().replayed
    assert (values(lake, "a"), values(lake, "b")) == ([1], [1])


@each
@pytest.mark.parametrize(
    ("kind", "key", "committed"),
    [
        ("create", keys.GLOBAL_LOG, False),
        ("create", "a/", True),
        ("create", "b/", True),
        ("replace", keys.HEAD, True),
    ],
)
def test_batch_of_a_client_that_died_is_committed_once(
    root: Path, kind: str, key: str, committed: bool
) -> None:
    store = Hooked(open_store(str(root), OPTIONS))
    lake = open_lake(root, store)
    tx = lake.transaction(once=("etl", 1))
    both(1)(tx)
    tx._workspace.uploads.finish()
    store.hook = die_before(kind, key)
    with pytest.raises(Interrupted):
        tx.commit()
    again = open_lake(root).run(both(1), once=("etl", 1))
    assert again.replayed == committed
    lake = open_lake(root)
    assert (values(lake, "a"), values(lake, "b")) == ([1], [1])


def test_batch_without_changes_is_committed_too(root: Path) -> None:
    lake = open_lake(root)
    calls: list[int] = []
    receipts = [lake.run(lambda _: calls.append(1), once=("etl", 1)) for _ in range(2)]
    assert [receipt.replayed for receipt in receipts] == [False, True]
    assert len(calls) == 1


def test_batch_that_was_rolled_back_is_not_committed(root: Path) -> None:
    lake = open_lake(root)
    with pytest.raises(ZeroDivisionError), lake.transaction(once=("etl", 1)) as tx:
        both(1)(tx)
        raise ZeroDivisionError
    assert not lake.run(both(2), once=("etl", 1)).replayed
    assert values(lake, "a") == [2]


def test_unknown_commit_says_that_the_batch_may_run_again(root: Path) -> None:
    store = Hooked(open_store(str(root), OPTIONS))
    lake = open_lake(root, store)
    tx = lake.transaction(once=("etl", 1))
    both(1)(tx)

    def hook(kind: str, key: str) -> None:
        if kind == "replace" and key == keys.HEAD:
            raise Unavailable("the store went away")

    store.hook = hook
    with pytest.raises(lv.CommitUnknown, match=r"batch 1 of 'etl'.*is safe"):
        tx.commit()
    store.hook = None
    assert lake.run(both(1), once=("etl", 1)).replayed
    assert values(lake, "b") == [1]


def test_resumed_transaction_keeps_its_batch(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start, "STORED_AFTER_SECONDS", 0.0)
    lake = open_lake(root)
    old = lake.transaction(once=("etl", 1))
    both(1)(old)
    store_all(lake, old)
    other = open_lake(root)
    other.run(both(1), once=("etl", 1))
    assert other.resume(old.id).commit().replayed
    assert (values(lake, "a"), values(lake, "b")) == ([1], [1])


@each
def test_batch_that_an_outside_writer_refused_is_named_when_it_was_redone(
    root: Path, table_format: str
) -> None:
    outsider, folder = OUTSIDERS[table_format], root / "b"
    lake = open_lake(root)
    lake.run(both(1), once=("etl", 1))
    store = Hooked(open_store(str(root), OPTIONS))
    tx = open_lake(root, store).transaction(once=("etl", 2))
    for name in ("a", "b"):
        tx.sql(f"UPDATE {name} SET v = v + 10")
    entry = f"b/{outsider.entry(outsider.version(folder) + 1)}"

    def hook(kind: str, key: str) -> None:
        if kind == "create" and key == entry:
            store.hook = None
            outsider.update(folder, {"v": "v + 100"})

    store.hook = hook
    assert not tx.commit().replayed
    assert (values(lake, "a"), values(lake, "b")) == ([11], [111])
    assert [batch for batch in named_batches(root / "a", table_format) if batch is not None] == [1, 2, 1, 2]
    assert lake.run(both(1), once=("etl", 2)).replayed


def named_batches(folder: Path, table_format: str) -> list[int | None]:
    """The batches that the versions of a table name, oldest first."""
    if table_format == "delta":
        entries = [path.read_text() for path in sorted((folder / "_delta_log").glob("*.json"))]
        lines = [json.loads(line) for entry in entries for line in entry.splitlines()]
        return [line["txn"]["version"] for line in lines if "txn" in line]
    newest = max((folder / "metadata").glob("v*.metadata.json"), key=lambda path: path.stat().st_mtime_ns)
    snapshots = json.loads(newest.read_text())["snapshots"]
    return [int(told) if (told := one["summary"].get("lakevilla.batch")) else None for one in snapshots]


@pytest.mark.formats("delta")
def test_delta_log_names_the_batch_as_a_txn_action(root: Path) -> None:
    open_lake(root).run(both(1), once=("etl", 9))
    for table in ("a", "b"):
        newest = max((root / table / "_delta_log").glob("*.json"))
        actions = [json.loads(line) for line in newest.read_text().splitlines()]
        (txn,) = [action["txn"] for action in actions if "txn" in action]
        assert (txn["appId"], txn["version"]) == ("etl", 9)


@pytest.mark.formats("iceberg")
def test_iceberg_snapshot_names_the_batch(root: Path) -> None:
    open_lake(root).run(both(1), once=("etl", 9))
    newest = max((root / "a" / "metadata").glob("v*.metadata.json"))
    summary = json.loads(newest.read_text())["snapshots"][-1]["summary"]
    assert (summary["lakevilla.app"], summary["lakevilla.batch"]) == ("etl", "9")


def test_apps_beyond_the_limit_are_refused_until_others_expire(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "APPS_KEPT", 2)
    lake = open_lake(root)
    for app in ("one", "two"):
        lake.run(both(1), once=(app, 1))
    with pytest.raises(lv.InvalidInput, match="keeps the batches of 2 apps"):
        lake.run(both(2), once=("three", 1))
    assert lake.run(both(2), once=("two", 1)).replayed
    assert values(lake, "a") == [1, 1]


@pytest.mark.parametrize(
    "once",
    [("etl", -1), ("etl", True), ("etl", "1"), ("", 1), ("x" * 201, 1), ("a\nb", 1), "etl", ("etl", 2**63)],
)
@pytest.mark.formats("delta")
def test_batch_that_is_none_is_refused(root: Path, once: Any) -> None:
    with pytest.raises(lv.InvalidInput, match="once cannot be"):
        open_lake(root).transaction(once=once)


@pytest.mark.formats("delta")
@pytest.mark.parametrize("features", [lv.NONE, lv.R])
def test_batch_without_the_global_log_is_refused(root: Path, features: lv.Features) -> None:
    with pytest.raises(lv.InvalidInput, match=r"needs lakevilla\.CT or lakevilla\.I"):
        open_lake(root).transaction(features, once=("etl", 1))


@pytest.mark.formats("delta")
def test_registering_a_table_has_no_batch(root: Path) -> None:
    with (
        pytest.raises(lv.InvalidInput, match="cannot be combined with once"),
        open_lake(root).transaction(once=("e", 1)) as tx,
    ):
        tx.sql("ALTER TABLE a RENAME TO c")
