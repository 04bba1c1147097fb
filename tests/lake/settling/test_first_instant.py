"""The first entries of a lake's global log, made by several clients at once."""

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

import lakevilla as lv
from lakevilla.store import keys
from lakevilla.store.open import open_store
from lakevilla.store.port import Ambiguous, Unanswered
from tests.support.hooked import Hooked

OPTIONS = {"fsync": "false"}


def _bump(lake: lv.Lake) -> None:
    with lake.transaction() as tx:
        for name in ("a", "b"):
            tx.update(name, {"v": "v + 1"}, where="id = 1")


def _values(lake: lv.Lake) -> list[int]:
    with lake.transaction() as tx:
        return [tx.read(name).collect()[0][1] for name in ("a", "b")]


def test_log_that_a_rival_makes_between_look_and_first_entry_does_not_go_back(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_deltalake(tmp_path / name, pa.table({"id": [1], "v": [0]}))
    rival = lv.Lake(tmp_path, engine="local", storage_options=OPTIONS)
    store = Hooked(open_store(str(tmp_path), OPTIONS))
    slow = lv.Lake(tmp_path, engine="local", store=store)
    left = [_bump, _bump]

    def hook(kind: str, key: str) -> None:
        if (kind, key) == ("create", keys.HEAD):
            while left:
                left.pop()(rival)

    store.hook = hook
    assert _values(slow) == [2, 2]
    assert not left, "the rival had its turn"
    _bump(slow)
    assert _values(slow) == _values(rival) == [3, 3]


def _client(path: Path, *refused: str) -> lv.Lake:
    """A client that may not create log entries of these tables."""
    store = Hooked(open_store(str(path), OPTIONS))

    def hook(kind: str, key: str) -> None:
        if kind == "create" and key.partition("/_delta_log/")[0] in refused:
            raise lv.Unavailable(f"access denied: {key}")

    store.hook = hook
    return lv.Lake(path, engine="local", store=store)


def test_half_of_a_commit_on_a_table_that_head_does_not_know_is_not_shown(tmp_path: Path) -> None:
    """Somebody's table is written for the first time, together with one that this client may only read."""
    whole = _client(tmp_path)
    whole.create("a", [{"id": 1, "v": 0}])
    whole.sync()
    write_deltalake(tmp_path / "b", pa.table({"id": [1], "v": [0]}))
    dying = _client(tmp_path, "a").transaction(lv.R | lv.CT)
    dying.update("b", {"v": "v + 1"})
    dying.update("a", {"v": "v + 1"})
    with pytest.raises(lv.CommitUnknown):
        dying.commit()
    with pytest.raises(lv.Unavailable, match="cannot"), _client(tmp_path, "a").transaction() as tx:
        tx.read("b").collect()
    whole.sync()
    assert _values(whole) == [1, 1]


def test_table_that_a_commit_without_isolation_only_read_can_be_read_with_it(tmp_path: Path) -> None:
    """What was read becomes part of the instant, so its name must be known there."""
    lake = _client(tmp_path)
    lake.create("a", [{"id": 1, "v": 0}])
    write_deltalake(tmp_path / "b", pa.table({"id": [1], "v": [7]}))
    with lake.transaction(lv.R | lv.CT) as tx:
        value = tx.read("b").collect()[0][1]
        tx.update("a", {"v": str(value)})
    assert _values(_client(tmp_path)) == [7, 7]


def test_outside_version_is_not_left_out_because_the_store_went_away(tmp_path: Path) -> None:
    """A read-only client sees what HEAD knows; a client without an answer gets an error and reads no old
    state."""
    lake = _client(tmp_path)
    lake.create("a", [{"id": 1, "v": 0}])
    lake.update("a", {"v": "1"})
    with lake.transaction(lv.R) as tx:
        tx.update("a", {"v": "2"})
    store = Hooked(open_store(str(tmp_path), OPTIONS))

    def hook(kind: str, key: str) -> None:
        if kind == "replace" and key == keys.HEAD:
            raise Ambiguous("not known") from Unanswered("no route")

    store.hook = hook
    with pytest.raises(lv.Unavailable), lv.Lake(tmp_path, engine="local", store=store).transaction() as tx:
        tx.read("a").collect()
    assert lake.read("a").collect()[0][1] == 2
