"""Markers in the log on every store: nothing lost by writers that take turns."""

from concurrent.futures import ThreadPoolExecutor

import pytest

import lakevilla as lv
from lakevilla.store.port import Store

pytestmark = pytest.mark.formats("delta", "iceberg")

CLIENTS, TIMES = 4, 5


@pytest.fixture
def lake(any_store: Store) -> lv.Lake:
    lake = lv.Lake(any_store.url, engine="local", features=lv.R, store=any_store)
    lake.create("t", "id BIGINT, v BIGINT", properties={"lakevilla.markers": "log"})
    lake.append("t", [{"id": 1, "v": 0}])
    return lake


def test_writers_side_by_side_lose_no_update(lake: lv.Lake, any_store: Store) -> None:
    def client(_: int) -> int:
        mine, redone = lv.Lake(any_store.url, engine="local", features=lv.R, store=any_store), 0
        for _ in range(TIMES):
            with mine.transaction(lv.R) as tx:
                tx.sql("UPDATE t SET v = v + 1 WHERE id = 1")
            assert tx.receipt is not None
            redone += tx.receipt.redone
        return redone

    with ThreadPoolExecutor(CLIENTS) as pool:
        redone = sum(pool.map(client, range(CLIENTS)))
    assert redone > 0, "they never met"
    assert lake.sql("SELECT v FROM t").collect()[0].v == CLIENTS * TIMES


def test_owner_that_aborts_leaves_a_version_that_changes_nothing(lake: lv.Lake) -> None:
    before = lake.history("t")[0].version
    tx = lake.transaction(lv.R)
    tx.sql("UPDATE t SET v = 99")
    tx.abort()
    lake.append("t", [{"id": 2, "v": 1}])
    assert lake.history("t")[0].version == before + 2
    assert sorted((row.id, row.v) for row in lake.read("t").collect()) == [(1, 0), (2, 1)]
