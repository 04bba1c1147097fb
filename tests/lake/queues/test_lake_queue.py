"""The queue for the lake's slots: a client that has lost slots often goes first, and no client stays in the
queue."""

from pathlib import Path
from threading import Thread

import pytest

import lakevilla as lv
from lakevilla.markers.records import Marker
from lakevilla.store import keys
from lakevilla.store.open import open_store
from lakevilla.transaction.commit import slot_commit
from lakevilla.transaction.commit.writer_queues import WriterQueues

OPTIONS = {"fsync": "false"}
DEAD = "0197" + "d" * 28


def _open(path: Path) -> lv.Lake:
    return lv.Lake(path, engine="local", storage_options=OPTIONS, lease_seconds=0.3)


@pytest.fixture
def lake(tmp_path: Path) -> lv.Lake:
    lake = _open(tmp_path)
    lake.create("a", [{"id": 1, "v": 0}])
    lake.create("b", [{"id": 1, "v": 0}])
    return lake


def test_who_loses_slots_queues_and_commits(
    lake: lv.Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slot_commit, "QUEUE_AFTER", 1)
    rival, waited = _open(tmp_path), list[int | None]()
    wait = WriterQueues.wait_for_the_lake

    def note(self: WriterQueues, log: object) -> None:
        wait(self, log)  # type: ignore[arg-type]
        waited.append(self.lake_ticket)
        assert [ticket.table for ticket in lake.status().tickets] == ["(the lake)"]

    monkeypatch.setattr(WriterQueues, "wait_for_the_lake", note)
    with lake.transaction() as tx:
        tx.append("a", [{"id": 2, "v": 0}])
        rival.append("b", [{"id": 2, "v": 0}])
    assert waited == [1]
    assert tx.receipt is not None
    assert lake.status().tickets == ()
    assert (lake.read("a").count(), lake.read("b").count()) == (2, 2)


def test_place_of_a_client_that_is_gone_is_passed_over(
    lake: lv.Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slot_commit, "QUEUE_AFTER", 1)
    store = open_store(str(tmp_path))
    store.put(keys.marker(1), Marker(DEAD, DEAD, "p", 0, live=True).encode())
    assert [(t.table, t.transaction) for t in lake.status().tickets] == [("(the lake)", DEAD)]
    rival = _open(tmp_path)
    with lake.transaction() as tx:
        tx.append("a", [{"id": 2, "v": 0}])
        rival.append("b", [{"id": 2, "v": 0}])
    assert lake.status().tickets == ()
    store.put(keys.marker(9), Marker(DEAD, DEAD, "q", 0, live=True).encode())
    assert [ticket.table for ticket in lake.recover().freed] == ["(the lake)"]


@pytest.mark.parametrize("features", [lv.R | lv.CT, lv.R | lv.CT | lv.I, lv.I])
def test_crowd_that_queues_at_once_loses_nothing(
    lake: lv.Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, features: lv.Features
) -> None:
    monkeypatch.setattr(slot_commit, "QUEUE_AFTER", 1)

    def client() -> None:
        mine = _open(tmp_path)
        for _ in range(5):
            mine.run(_transfer, retries=1000, features=features)

    threads = [Thread(target=client) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    values = [lake.sql(f"SELECT v FROM {name} WHERE id = 1").collect()[0].v for name in ("a", "b")]
    assert values == [-30, 30]
    assert lake.status().tickets == ()


def _transfer(tx: lv.Transaction) -> None:
    tx.update("a", {"v": "v - 1"}, where="id = 1")
    tx.update("b", {"v": "v + 1"}, where="id = 1")
