"""Clients that find a decided commit which they are not allowed to complete."""

from pathlib import Path

import pytest

import lakevilla as lv
from lakevilla.errors import Unavailable
from lakevilla.store.opening import open_store
from tests.lake.hooked import Hooked

BOTH = lv.R | lv.CT


def client(place: Path, refused: tuple[str, ...] = ()) -> lv.Lake:
    """A client that may not create log entries of these tables."""
    store = Hooked(open_store(str(place), {"fsync": "false"}))

    def step(kind: str, key: str) -> None:
        if kind == "create" and key.partition("/_delta_log/")[0] in refused:
            raise Unavailable(f"access denied: {key}")

    store.hook = step
    return lv.Lake(place, engine="local", features=lv.R, store=store)


@pytest.fixture
def decided(tmp_path: Path) -> str:
    """A transaction on a and b that is decided and not published; c has nothing to do with it."""
    lake = client(tmp_path)
    for name in ("a", "b", "c"):
        lake.create(name, "id BIGINT, v BIGINT")
        lake.append(name, [{"id": 1, "v": 0}])
    tx = client(tmp_path, ("a", "b")).transaction(BOTH)
    tx.update("a", {"v": "1"})
    tx.update("b", {"v": "1"})
    with pytest.raises(lv.CommitUnknown, match="do not rerun"):
        tx.commit()
    return tx.id


def values(lake: lv.Lake, *names: str) -> list[int]:
    return [lake.read(name).collect()[0].v for name in names]


def test_helper_without_a_right_says_on_which_table(decided: str, tmp_path: Path) -> None:
    helper = client(tmp_path, ("b",))
    with (
        pytest.raises(lv.Unavailable, match=f"(?s){decided} is decided.*table 'b': access denied"),
        helper.transaction(BOTH) as tx,
    ):
        tx.update("a", {"v": "v + 10"})
        tx.update("c", {"v": "v + 10"})
    assert values(helper, "c") == [0]


def test_others_read_and_change_tables_that_it_does_not_concern(decided: str, tmp_path: Path) -> None:
    other = client(tmp_path, ("a", "b"))
    assert values(other, "a", "b", "c") == [0, 0, 0]
    other.update("c", {"v": "5"})
    assert values(other, "c") == [5]
    assert decided


def test_whoever_has_all_rights_completes_it(decided: str, tmp_path: Path) -> None:
    whole = client(tmp_path)
    with whole.transaction(BOTH) as tx:
        tx.update("a", {"v": "v + 10"})
        tx.update("c", {"v": "v + 10"})
    assert values(whole, "a", "b", "c") == [11, 1, 10]
    assert whole.outcome(decided).state == "committed"
