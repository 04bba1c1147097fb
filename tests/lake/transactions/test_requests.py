"""Store requests, counted exactly: they are the price that users pay on a real object store."""

from collections.abc import Mapping

import pyarrow as pa
import pytest

import lakevilla as lv
from lakevilla.store.metered import KINDS

pytestmark = pytest.mark.formats("delta", "iceberg")


PUTS = {
    "delta": 1,
    # Before the version the manifest of what is added and what is removed, and the list of manifests; after
    # it the hint.
    "iceberg": 1 + 2 + 1,
}
"""How many objects a commit puts on one table that adds one data file."""


@pytest.fixture
def puts(table_format: str) -> int:
    return PUTS[table_format]


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


def test_update_costs_the_miss_the_data_and_one_create(warm: lv.Lake, puts: int) -> None:
    with warm.transaction(lv.NONE) as tx:
        tx.update("t", {"v": 1}, where="id = 7")
    assert tx.receipt is not None
    assert _sent(tx.receipt.requests) == {"get": 2, "put": puts, "create": 1}


def test_append_costs_the_miss_the_data_and_one_create(warm: lv.Lake, puts: int) -> None:
    with warm.transaction(lv.NONE) as tx:
        tx.append("t", [{"id": 100, "v": 0}])
    assert tx.receipt is not None
    assert _sent(tx.receipt.requests) == {"get": 1, "put": puts, "create": 1}


def test_update_with_recovery_costs_two_gets_and_one_create_beside_the_data(warm: lv.Lake, puts: int) -> None:
    with warm.transaction(lv.R) as tx:
        tx.update("t", {"v": 1}, where="id = 7")
    assert tx.receipt is not None
    assert _sent(tx.receipt.requests) == {"get": 3, "put": puts, "create": 1}


def test_blind_append_with_recovery_costs_what_it_costs_without(warm: lv.Lake, puts: int) -> None:
    with warm.transaction(lv.R) as tx:
        tx.append("t", [{"id": 100, "v": 0}])
    assert tx.receipt is not None
    assert _sent(tx.receipt.requests) == {"get": 1, "put": puts, "create": 1}


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
def test_commit_on_several_tables_costs_three_requests_and_two_per_table(
    warm: lv.Lake, count: int, puts: int
) -> None:
    names = _several(warm, count)
    with warm.transaction(lv.R | lv.CT) as tx:
        for name in names:
            tx.update(name, {"id": "id + 1"})
    assert tx.receipt is not None
    # Besides the data: one get and one put for each table.
    expected = {"get": 2 * count + 1, "put": count * puts, "create": count + 1, "replace": 1}
    assert _sent(tx.receipt.requests) == expected


@pytest.mark.parametrize("count", [2, 4, 32])
def test_appends_to_several_tables_seen_a_moment_ago_cost_one_request_per_table(
    warm: lv.Lake, count: int, puts: int
) -> None:
    names = _several(warm, count)
    with warm.transaction(lv.R | lv.CT) as tx:
        for name in names:
            tx.append(name, [{"id": 1}])
    assert tx.receipt is not None
    assert _sent(tx.receipt.requests) == {
        "get": 2,
        "put": count * puts,
        "create": count + 1,
        "replace": 1,
    }


WITH_I = [lv.I, lv.R | lv.I, lv.R | lv.CT | lv.I]


@pytest.fixture
def isolated(warm: lv.Lake) -> lv.Lake:
    """The same, when HEAD knows the table's newest version."""
    assert warm.sync() == {}
    return warm


@pytest.mark.parametrize("features", WITH_I)
def test_read_with_isolation_costs_head_and_one_request_per_table(
    isolated: lv.Lake, features: lv.Features
) -> None:
    with isolated.transaction(features) as tx:
        tx.sql("SELECT v FROM t WHERE id = 7000").collect()
    assert tx.receipt is not None
    assert _sent(tx.receipt.requests) == {"get": 2}


@pytest.mark.parametrize("features", WITH_I)
def test_update_with_isolation_costs_five_requests_beside_the_data(
    isolated: lv.Lake, features: lv.Features, puts: int
) -> None:
    with isolated.transaction(features) as tx:
        tx.update("t", {"v": 1}, where="id = 7")
    assert tx.receipt is not None
    # HEAD and the next version in one round, the data, the slot, the publish, HEAD.
    assert _sent(tx.receipt.requests) == {"get": 3, "put": puts, "create": 2, "replace": 1}


@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("features", WITH_I)
def test_commit_on_several_tables_with_isolation_costs_three_requests_and_two_per_table(
    isolated: lv.Lake, features: lv.Features, count: int, puts: int
) -> None:
    names = _several(isolated, count)
    isolated.sync()
    with isolated.transaction(features) as tx:
        for name in names:
            tx.update(name, {"id": "id + 1"})
    assert tx.receipt is not None
    expected = {"get": 2 * count + 1, "put": count * puts, "create": count + 1, "replace": 1}
    assert _sent(tx.receipt.requests) == expected


@pytest.mark.parametrize("features", WITH_I)
def test_exclusive_tables_cost_one_request_each_and_none_to_read(
    warm: lv.Lake, features: lv.Features, puts: int
) -> None:
    for name in ("x", "y"):
        warm.create(name, "id BIGINT", properties={"lakevilla.exclusive": "true"})
        with warm.transaction(lv.CT) as tx:
            tx.append(name, [{"id": 0}])
    with warm.transaction(features) as tx:
        tx.update("x", {"id": "id + 1"})
        tx.update("y", {"id": "id + 1"})
    assert tx.receipt is not None
    assert _sent(tx.receipt.requests) == {"get": 2 + 1, "put": 2 * puts, "create": 2 + 1, "replace": 1}
    with warm.transaction(features) as tx:
        tx.sql("SELECT x.id FROM x, y WHERE x.id = 7000 AND y.id = 7000").collect()
    assert tx.receipt is not None
    assert _sent(tx.receipt.requests) == {"get": 1}


def test_version_that_head_does_not_know_costs_one_entry_once(isolated: lv.Lake) -> None:
    with isolated.transaction(lv.R) as tx:
        tx.append("t", [{"id": 100, "v": 0}])
    for expected in ({"get": 2, "create": 1, "replace": 1}, {"get": 2}):
        with isolated.transaction(lv.I) as tx:
            tx.sql("SELECT v FROM t WHERE id = 7000").collect()
        assert tx.receipt is not None
        assert _sent(tx.receipt.requests) == expected
