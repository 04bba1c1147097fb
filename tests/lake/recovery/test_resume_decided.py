"""Clients that die in a commit which a slot decides: it is completed, or their transaction is resumed."""

from pathlib import Path

import pytest

import lakevilla as lv
from lakevilla.errors import Unavailable
from lakevilla.store import keys
from lakevilla.store.open import open_store
from lakevilla.transaction.lifecycle import start
from tests.support.hooked import Hooked
from tests.support.lakes.abandoned import ALL, PICKS, add, make_two_tables, open_lake, values
from tests.support.left_open import OPTIONS, records, store_all
from tests.support.outsiders import OUTSIDERS

pytestmark = pytest.mark.formats("delta", "iceberg")


@pytest.fixture(autouse=True)
def stored_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start, "STORED_AFTER_SECONDS", 0.0)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    make_two_tables(tmp_path)
    return tmp_path


@pytest.mark.parametrize("features", PICKS)
@pytest.mark.parametrize("place", ["slot", "table", "head"])
def test_client_that_dies_in_its_commit_is_completed_and_not_resumed(
    root: Path, features: lv.Features, place: str
) -> None:
    class Died(BaseException):
        pass

    store = Hooked(open_store(str(root), OPTIONS))
    lake = open_lake(root, store)
    tx = lake.transaction(features)
    add("a", 1)(tx)
    add("b", 1)(tx)
    store_all(lake, tx)
    slots: list[str] = []

    def die(kind: str, key: str) -> None:
        if kind == "create" and key.startswith(keys.slot(1).rsplit("/", 1)[0]):
            slots.append(key)
            return
        reached = {"slot": kind == "create", "table": key.startswith("b/"), "head": kind == "replace"}
        if slots and reached[place]:
            raise Died

    store.hook = die
    with pytest.raises(Died):
        tx.commit()
    other = open_lake(root)
    with pytest.raises(lv.InvalidInput, match="is committed, as entry"):
        other.resume(tx.id)
    assert (values(other, "a"), values(other, "b")) == ([1, 0, 0], [1, 0, 0])


def test_client_that_died_after_its_commit_was_rolled_back_is_resumed(root: Path, table_format: str) -> None:
    """An outside writer was in the way of `b`: what was published on `a` is rolled back."""
    store = Hooked(open_store(str(root), OPTIONS))
    lake = open_lake(root, store)
    tx = lake.transaction(ALL)
    add("a", 1)(tx)
    add("b", 1)(tx)
    store_all(lake, tx)
    came: list[str] = []

    class Died(BaseException):
        pass

    def meddle(kind: str, key: str) -> None:
        if kind == "create" and key.startswith(keys.slot(1).rsplit("/", 1)[0]):
            if came:
                raise Died
            came.append(key)
            OUTSIDERS[table_format].update(root / "b", {"v": "v + 100"})

    store.hook = meddle
    with pytest.raises(Died):
        tx.commit()
    other = open_lake(root)
    assert values(other, "a") == [0, 0, 0]
    with other.resume(tx.id) as resumed:
        assert resumed.statements == 2
    assert (values(other, "a"), values(other, "b")) == ([1, 0, 0], [101, 100, 100])


def test_slot_whose_create_went_unanswered_is_cleared_up_by_resume(root: Path) -> None:
    store = Hooked(open_store(str(root), OPTIONS))
    lake = open_lake(root, store)
    tx = lake.transaction(ALL)
    add("a", 1)(tx)
    add("b", 1)(tx)
    store_all(lake, tx)

    def fail(kind: str, key: str) -> None:
        if key.startswith(keys.slot(1).rsplit("/", 1)[0]):
            raise Unavailable("the store went away")

    store.hook = fail
    with pytest.raises(lv.LakeVillaError):
        tx.commit()
    lake.close()
    other = open_lake(root)
    if records(root):
        other.resume(tx.id).commit()
        assert (values(other, "a"), values(other, "b")) == ([1, 0, 0], [1, 0, 0])
