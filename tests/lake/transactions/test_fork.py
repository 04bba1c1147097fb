"""A process that forks while a transaction is open: only the parent continues it, and nothing hangs."""

import os
import pickle
import signal
from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest

import lakevilla as lv
from lakevilla.store import keys

ALL = lv.R | lv.CT | lv.I

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform has no fork"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]


@pytest.fixture
def lake(tmp_path: Path) -> lv.Lake:
    lake = lv.Lake(tmp_path, engine="local", storage_options={"fsync": "false"}, lease_seconds=0.3)
    lake.create("t", "id BIGINT, v BIGINT")
    lake.append("t", [{"id": 1, "v": 0}])
    return lake


def in_child(work: Callable[[], Any]) -> Any:
    """What the work gives in a forked child, or the error that it raises; TimeoutError if it hangs."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            found = work()
        except Exception as error:  # noqa: BLE001 - shown to the parent
            found = error
        os.write(writing, pickle.dumps(found))
        os._exit(0)
    os.close(writing)
    end = monotonic() + 20
    while os.waitpid(pid, os.WNOHANG)[0] == 0:
        if monotonic() > end:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise TimeoutError("the child hangs")
        sleep(0.01)
    with os.fdopen(reading, "rb") as pipe:
        return pickle.loads(pipe.read())


@pytest.mark.parametrize("features", [lv.NONE, lv.R, lv.R | lv.CT, ALL])
def test_commit_in_a_forked_child_is_refused_and_the_parent_commits_once(
    lake: lv.Lake, features: lv.Features
) -> None:
    tx = lake.transaction(features)
    tx.append("t", [{"id": 2, "v": 2}])
    assert isinstance(in_child(tx.commit), lv.InvalidInput)
    tx.commit()
    assert lake.read("t").count() == 2


def test_statement_in_a_forked_child_is_refused(lake: lv.Lake) -> None:
    tx = lake.transaction(ALL)
    tx.append("t", [{"id": 2, "v": 2}])
    for work in (
        lambda: tx.append("t", [{"id": 3, "v": 3}]),
        lambda: tx.savepoint("a"),
        lambda: tx.read("t"),
    ):
        assert isinstance(in_child(work), lv.InvalidInput)
    tx.commit()
    assert lake.read("t").count() == 2


def test_abort_in_a_forked_child_takes_nothing_from_the_parent(lake: lv.Lake, tmp_path: Path) -> None:
    tx = lake.transaction(lv.R)
    tx.update("t", {"v": 1})
    tx._queues.claim(tx._workspace.base("t").ref, tx._workspace.base("t").snapshot)
    tx.update("t", {"v": 2})
    lake.close()

    def kept() -> list[str]:
        found = [
            path for path in tmp_path.rglob("*.json") if keys.MARKERS in str(path) or keys.TXNS in str(path)
        ]
        return sorted(str(path) for path in found if path.name != "lease.json")

    before = kept()
    assert before

    def leave() -> None:
        with tx:
            raise RuntimeError("the child gives up")

    assert isinstance(in_child(leave), RuntimeError)
    assert kept() == before
    tx.commit()
    assert [row.v for row in lake.read("t").collect()] == [2]


def test_forked_child_begins_transactions_of_its_own(lake: lv.Lake) -> None:
    tx = lake.transaction(ALL)
    tx.append("t", [{"id": 2, "v": 2}])
    assert in_child(lambda: lake.append("t", [{"id": 3, "v": 3}]).inserted) == 1
    tx.commit()
    assert lake.read("t").count() == 3


def test_result_of_an_open_transaction_can_be_read_in_a_forked_child(lake: lv.Lake) -> None:
    tx = lake.transaction(ALL)
    tx.append("t", [{"id": 2, "v": 2}])
    result = tx.sql("SELECT count(*) AS n FROM t")
    assert in_child(lambda: result.collect()[0].n) == 2
    tx.commit()
