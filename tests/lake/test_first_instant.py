"""The first entries of a lake's global log, made by several clients at once."""

from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake

import lakevilla as lv
from lakevilla.store import keys
from lakevilla.store.opening import open_store
from tests.lake.hooked import Hooked

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
