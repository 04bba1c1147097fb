"""Writers without slots that meet a version whose slot is not settled: they settle it before they build on
it, wherever they met it, so that no client of ours tears a table."""

from pathlib import Path
from typing import Any

import pytest

import lakevilla as lv
from lakevilla.store.metered import Meter
from lakevilla.store.open import open_store
from lakevilla.transaction.commit import optimistic_commit
from tests.support.hooked import Hooked
from tests.support.outsiders import OUTSIDERS

pytestmark = pytest.mark.formats("delta", "iceberg")

OPTIONS = {"fsync": "false"}


class Died(BaseException):
    """The client dies here."""


def open_lake(root: Path, store: Any = None) -> lv.Lake:
    return lv.Lake(root, engine="local", storage_options=OPTIONS, store=store, lease_seconds=0.3)


class Half:
    """A commit on `a` and `b` whose client dies when `a` is published and `b` is not, and an outside writer
    who is in the way on `b`: the part on `a` has to be rolled back."""

    def __init__(self, root: Path, table_format: str) -> None:
        self.root = root
        self.store = Hooked(open_store(str(root), OPTIONS))
        self.lake = open_lake(root, self.store)
        self.outsider = OUTSIDERS[table_format]
        for name in ("a", "b"):
            self.lake.create(name, "id BIGINT, v BIGINT")
            self.lake.append(name, [{"id": 1, "v": 1}])
        self.lake.append("a", [{"id": 2, "v": 2}])

    def die(self) -> None:
        def hook(kind: str, key: str) -> None:
            if kind == "create" and key.startswith(("b/_delta_log/", "b/metadata/v")):
                raise Died

        tx = self.lake.transaction(lv.CT)
        tx.update("a", {"v": "v + 1"}, where="id = 2")
        tx.update("b", {"v": "v + 1"})
        self.store.hook = hook
        with pytest.raises(Died):
            tx.commit()
        self.store.hook = None
        self.outsider.update(self.root / "b", {"v": "v + 100"})

    def torn(self) -> frozenset[str]:
        lake = open_lake(self.root)
        lake.recover()
        head = lake._catalog.head(Meter(), fresh=True)
        assert head is not None
        return head.torn

    def values(self) -> list[tuple[int, int]]:
        return sorted((row.id, row.v) for row in open_lake(self.root).read("a").collect())


@pytest.fixture
def half(tmp_path: Path, table_format: str) -> Half:
    return Half(tmp_path, table_format)


def alter(tx: lv.Transaction, name: str = "x") -> None:
    """A change that no data commit concerns, and that stands in the way of every inverse."""
    tx.sql(f"ALTER TABLE a SET TBLPROPERTIES ('{name}' = '1')")


def test_version_met_while_waiting_in_the_queue_is_settled_first(half: Half) -> None:
    tx = open_lake(half.root).transaction(lv.R)
    alter(tx)
    tx._queues.claim(tx._workspace.base("a").ref, tx._workspace.base("a").snapshot)
    half.die()
    tx.commit()
    assert half.torn() == frozenset()
    assert half.values() == [(1, 1), (2, 2)]


def test_redo_behind_the_queue_works_on_what_is_settled(half: Half) -> None:
    tx = open_lake(half.root).transaction(lv.R)
    tx.update("a", {"v": "v + 10"}, where="id = 2")
    tx._queues.claim(tx._workspace.base("a").ref, tx._workspace.base("a").snapshot)
    half.die()
    tx.commit()
    assert (half.torn(), half.values()) == (frozenset(), [(1, 1), (2, 12)])
    assert tx.receipt is not None
    assert tx.receipt.redone == 0, "the commit that was rolled back and its inverse have done nothing"


def test_version_met_before_a_statement_is_settled_first(half: Half, monkeypatch: pytest.MonkeyPatch) -> None:
    tx = open_lake(half.root).transaction(lv.R)
    alter(tx)
    tx._queues._probed.clear()
    tx._queues.claim(tx._workspace.base("a").ref, tx._workspace.base("a").snapshot)
    monkeypatch.setattr(tx._queues, "probe", lambda _: True)
    half.die()
    alter(tx, "y")
    tx.commit()
    assert half.torn() == frozenset()
    assert half.values() == [(1, 1), (2, 2)]


def test_version_met_in_a_lost_race_is_settled_first(half: Half) -> None:
    tx = open_lake(half.root).transaction(lv.R)
    alter(tx)
    half.die()
    tx.commit()
    assert half.torn() == frozenset()
    assert half.values() == [(1, 1), (2, 2)]


def test_version_met_after_many_lost_races_is_settled_first(
    half: Half, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plain statement that lost often waits, and then catches up with all that came meanwhile."""
    tx = open_lake(half.root).transaction(lv.NONE)
    alter(tx)
    half.lake.append("a", [{"id": 4, "v": 4}])
    waits: list[int] = []

    def wait(*_: object) -> None:
        if not waits:
            half.die()
        waits.append(1)

    monkeypatch.setattr(optimistic_commit, "BACK_OFF_AFTER", 0)
    monkeypatch.setattr(optimistic_commit, "back_off", wait)
    tx.commit()
    assert waits
    assert half.torn() == frozenset()
    assert half.values() == [(1, 1), (2, 2), (4, 4)]


def test_resumed_transaction_settles_what_it_meets_first(half: Half) -> None:
    lake = open_lake(half.root)
    old = lake.transaction(lv.R)
    alter(old)
    alter(old, "y")
    lake.close()
    half.die()
    tx = open_lake(half.root).resume(old.id)
    tx._queues.claim(tx._workspace.base("a").ref, tx._workspace.base("a").snapshot)
    tx.commit()
    assert half.torn() == frozenset()


def test_marker_in_the_log_is_filled_only_on_what_is_settled(half: Half) -> None:
    """The table gets its markers in the log while a commit on it is half published."""
    half.die()
    tx = open_lake(half.root).transaction(lv.R)
    tx.sql("ALTER TABLE a SET TBLPROPERTIES ('lakevilla.markers' = 'log')")
    tx.commit()
    assert half.torn() == frozenset()
