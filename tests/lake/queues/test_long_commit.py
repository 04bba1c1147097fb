"""A commit on several tables that takes long keeps its places in the queues: its client is at work."""

from pathlib import Path
from threading import Event, Thread
from time import sleep

import lakevilla as lv
from lakevilla.store.open import open_store
from tests.support.hooked import Hooked

BOTH = lv.R | lv.CT
LEASE_SECONDS = 0.2
"""Leases are renewed for six times as long after the last statement."""


def _transfer(tx: lv.Transaction) -> None:
    tx.update("x", {"v": "v - 1"}, where="id = 1")
    tx.update("y", {"v": "v + 1"}, where="id = 1")


def test_redo_that_takes_longer_than_an_idle_client_is_waited_for_keeps_its_places(tmp_path: Path) -> None:
    store = Hooked(open_store(str(tmp_path), {"fsync": "false"}))
    lake = lv.Lake(tmp_path, engine="local", features=lv.R, store=store, lease_seconds=LEASE_SECONDS)
    for name in ("x", "y"):
        lake.create(name, "id BIGINT, v BIGINT")
        lake.append(name, [{"id": 1, "v": 0}])
    other = lv.Lake(tmp_path, engine="local", features=lv.R, lease_seconds=LEASE_SECONDS)
    tx, redoing, go_on = lake.transaction(BOTH), Event(), Event()
    _transfer(tx)
    other.run(_transfer, features=BOTH)

    def read_slowly(kind: str, key: str) -> None:
        if kind.startswith("get") and key.startswith("y/part-") and not redoing.is_set():
            redoing.set()
            go_on.wait(60)

    store.hook = read_slowly
    commit = Thread(target=tx.commit)
    commit.start()
    assert redoing.wait(60)
    sleep(8 * LEASE_SECONDS)
    held = {ticket.table for ticket in other.status().tickets}
    freed = other.recover().freed
    assert commit.is_alive(), "the redo is still under way"
    go_on.set()
    commit.join()
    assert held == {"x", "y"}
    assert freed == ()
    assert tx.receipt is not None
    assert [lake.sql(f"SELECT v FROM {name}").collect() for name in ("x", "y")] == [[(-2,)], [(2,)]]
