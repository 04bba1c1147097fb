"""Store requests, counted exactly: they are the price that users pay on a real object store."""

from collections.abc import Mapping

import pyarrow as pa
import pytest

import lakevilla as lv
from lakevilla.store.metered import KINDS


def _sent(requests: Mapping[str, int]) -> dict[str, int]:
    return {kind: requests[kind] for kind in KINDS if requests[kind]}


@pytest.fixture
def warm(any_place: tuple[str, dict[str, str]]) -> lv.Lake:
    """A lake whose client knows the newest version of a table of one file."""
    url, options = any_place
    lake = lv.Lake(url, storage_options=options, engine="local", features=lv.R)
    lake.create("t", pa.table({"id": list(range(100)), "v": [0] * 100}))
    lake.read("t").toArrow()
    return lake


def test_warm_read_of_an_unchanged_table_costs_one_request_beside_the_data(warm: lv.Lake) -> None:
    with warm.transaction(lv.NONE) as tx:
        result = tx.read("t")
    assert tx.receipt is not None
    assert _sent(tx.receipt.requests) == {"get": 1}
    assert result.count() == 100


def test_point_read_costs_the_miss_and_one_data_file(warm: lv.Lake) -> None:
    with warm.transaction(lv.NONE) as tx:
        tx.sql("SELECT v FROM t WHERE id = 7").collect()
    assert tx.receipt is not None
    assert _sent(tx.receipt.requests) == {"get": 2}


def test_update_costs_the_miss_the_data_and_one_create(warm: lv.Lake) -> None:
    with warm.transaction(lv.NONE) as tx:
        tx.update("t", {"v": 1}, where="id = 7")
    assert tx.receipt is not None
    assert _sent(tx.receipt.requests) == {"get": 2, "put": 1, "create": 1}


def test_append_costs_the_miss_the_data_and_one_create(warm: lv.Lake) -> None:
    with warm.transaction(lv.NONE) as tx:
        tx.append("t", [{"id": 100, "v": 0}])
    assert tx.receipt is not None
    assert _sent(tx.receipt.requests) == {"get": 1, "put": 1, "create": 1}


def test_update_with_recovery_costs_two_gets_and_one_create_beside_the_data(warm: lv.Lake) -> None:
    with warm.transaction(lv.R) as tx:
        tx.update("t", {"v": 1}, where="id = 7")
    assert tx.receipt is not None
    assert _sent(tx.receipt.requests) == {"get": 3, "put": 1, "create": 1}


def test_blind_append_with_recovery_costs_what_it_costs_without(warm: lv.Lake) -> None:
    with warm.transaction(lv.R) as tx:
        tx.append("t", [{"id": 100, "v": 0}])
    assert tx.receipt is not None
    assert _sent(tx.receipt.requests) == {"get": 1, "put": 1, "create": 1}


def test_read_that_prunes_every_file_costs_the_miss_alone(warm: lv.Lake) -> None:
    with warm.transaction(lv.NONE) as tx:
        assert tx.sql("SELECT v FROM t WHERE id = 7000").collect() == []
    assert tx.receipt is not None
    assert _sent(tx.receipt.requests) == {"get": 1}


def _several(lake: lv.Lake, count: int) -> list[str]:
    names = [f"m{number}" for number in range(count)]
    for name in names:
        lake.create(name, "id BIGINT")
        lake.append(name, [{"id": 0}])
    return names


@pytest.mark.parametrize("count", [2, 4, 32])
def test_commit_on_several_tables_costs_three_requests_and_two_per_table(warm: lv.Lake, count: int) -> None:
    names = _several(warm, count)
    with warm.transaction(lv.R | lv.CT) as tx:
        for name in names:
            tx.update(name, {"id": "id + 1"})
    assert tx.receipt is not None
    # Beside the data: one get and one put for each table.
    expected = {"get": 2 * count + 1, "put": count, "create": count + 1, "replace": 1}
    assert _sent(tx.receipt.requests) == expected


@pytest.mark.parametrize("count", [2, 4, 32])
def test_appends_to_several_tables_seen_a_moment_ago_cost_one_request_per_table(
    warm: lv.Lake, count: int
) -> None:
    names = _several(warm, count)
    with warm.transaction(lv.R | lv.CT) as tx:
        for name in names:
            tx.append(name, [{"id": 1}])
    assert tx.receipt is not None
    assert _sent(tx.receipt.requests) == {"get": 2, "put": count, "create": count + 1, "replace": 1}
