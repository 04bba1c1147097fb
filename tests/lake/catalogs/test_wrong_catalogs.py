"""A catalog that a client was given wrongly, and a table that its catalog has dropped."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.table import CommitTableResponse

import lakevilla as lv
from lakevilla.formats.iceberg.log import catalog_log
from lakevilla.settle import completion
from tests.support.warehouses import SCHEMA, Commit, Commits, Warehouse, client_of, warehouse

ALL = lv.R | lv.CT | lv.I
KINDS = {"CT": lv.CT, "R,CT": lv.R | lv.CT, "R,CT,I": ALL}


class Died(BaseException):
    """Ends a client where a process would be killed."""


@pytest.fixture
def house(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Warehouse]:
    with warehouse(request.param, _folder(tmp_path, "right"), "orders", "items") as made:
        yield made


@pytest.fixture(params=["namespace", "table"])
def wrong(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Warehouse]:
    """Another catalog, with the namespace of the table, or also with a table of that name."""
    names = ["orders", "items"] if request.param == "table" else ["returns"]
    with warehouse("sql", _folder(tmp_path, "wrong"), *names) as made:
        for name in names:
            for number in range(3):
                with made.table(name).transaction() as change:
                    change.set_properties({"theirs": str(number)})
        yield made


def _folder(tmp_path: Path, name: str) -> Path:
    (tmp_path / name).mkdir()
    return tmp_path / name


@pytest.fixture
def commits(house: Warehouse, monkeypatch: pytest.MonkeyPatch) -> Commits:
    commits, client = Commits(), client_of(house.options["type"])
    monkeypatch.setattr(client, "commit_table", commits.around(client.commit_table))
    monkeypatch.setattr(catalog_log, "_PAUSE_SECONDS", 0.001)
    monkeypatch.setattr(completion, "SECOND_LOOK_SECONDS", 0.0)
    return commits


@pytest.fixture
def lake(house: Warehouse, commits: Commits) -> lv.Lake:
    lake = house.lake()
    for name in ("orders", "items"):
        lake.register(name, catalog="prod", table=f"sales.{name}")
    lake.create("delta", SCHEMA, format="delta")
    return lake


def _rows(lake: lv.Lake, name: str) -> dict[int, int]:
    return {row.id: row.v for row in lake.read(name).collect()}


def _dies_before(commit: Commit) -> CommitTableResponse:
    raise Died


def _dies_after(commit: Commit) -> CommitTableResponse:
    commit()
    raise Died


def _die(*_: object) -> None:
    raise Died


def _begin(lake: lv.Lake, features: lv.Features = ALL) -> lv.Transaction:
    """A transaction that has changed the table in the catalog, and another one."""
    tx = lake.transaction(features)
    tx.sql("UPDATE orders SET v = v + 1 WHERE id = 1")
    tx.append("delta", [{"id": 1, "v": 1}])
    return tx


@pytest.mark.parametrize("dies", [_dies_before, _dies_after])
def test_client_with_the_wrong_catalog_leaves_a_decided_commit_to_others(
    lake: lv.Lake, house: Warehouse, wrong: Warehouse, commits: Commits, dies: Callable[[Commit], Any]
) -> None:
    commits.steps["orders"] = [dies]
    tx = _begin(lake)
    with pytest.raises(Died):
        tx.commit()
    misled = house.lake(catalogs={"prod": wrong.options})
    with pytest.raises(lv.Unavailable, match=f"{tx.id} is decided.*check that the options"):
        misled.create("other", SCHEMA, format="delta")
    house.lake().recover()
    assert house.lake().outcome(tx.id).state == "committed"
    assert (house.rows()[1], _rows(house.lake(), "delta")) == (11, {1: 1})


@pytest.mark.parametrize("features", [lv.R, ALL], ids=["R", "R,CT,I"])
def test_client_with_the_wrong_catalog_reads_and_adopts_nothing(
    lake: lv.Lake, house: Warehouse, wrong: Warehouse, features: lv.Features
) -> None:
    misled = house.lake(catalogs={"prod": wrong.options})
    with pytest.raises(lv.InvalidInput, match="check that the options"):
        misled.transaction(features).read("orders").collect()
    with pytest.raises(lv.InvalidInput, match="check that the options"), misled.transaction(features) as tx:
        tx.append("orders", [{"id": 4, "v": 40}])
    assert misled.sync() == {}
    assert set(misled.vacuum(dry_run=False).failed) == {"orders", "items"}
    with house.lake().transaction(ALL) as tx:
        assert tx.sql("SELECT v FROM orders WHERE id = 1").collect()[0].v == 10
        tx.append("orders", [{"id": 4, "v": 40}])
    assert house.rows() == {1: 10, 2: 20, 3: 30, 4: 40}


@pytest.mark.parametrize("kind", KINDS)
def test_table_dropped_in_its_catalog_before_its_part_is_published_refuses_the_commit(
    lake: lv.Lake, house: Warehouse, commits: Commits, kind: str
) -> None:
    def drop(commit: Commit) -> CommitTableResponse:
        house.catalog.drop_table("sales.orders")
        return commit()

    commits.steps["orders"] = [drop]
    tx = _begin(lake, KINDS[kind])
    with pytest.raises((lv.Conflict, lv.InvalidInput, lv.Corrupt)) as told:
        tx.commit()
    assert "torn" not in str(told.value)
    other = house.lake()
    assert _rows(other, "delta") == {}
    other.drop("orders")
    # With recovery a later entry of the same transaction might have been committed.
    assert other.outcome(tx.id).state == ("undecided" if lv.R in KINDS[kind] else "aborted")
    other.append("delta", [{"id": 2, "v": 2}])


def test_table_dropped_in_its_catalog_before_a_helper_came_refuses_the_commit(
    lake: lv.Lake, house: Warehouse, commits: Commits
) -> None:
    commits.steps["orders"] = [_dies_before]
    tx = _begin(lake)
    with pytest.raises(Died):
        tx.commit()
    house.catalog.drop_table("sales.orders")
    cold = house.lake()
    with pytest.raises(lv.Unavailable, match="check that the options"):
        cold.create("other", SCHEMA, format="delta")
    # Another table shows that this is the lake's catalog.
    assert len(_rows(cold, "items")) == 3
    cold.create("other", SCHEMA, format="delta")
    assert cold.outcome(tx.id).state == "undecided"
    assert _rows(cold, "delta") == {}
    cold.append("delta", [{"id": 2, "v": 2}])


def test_table_that_was_given_up_is_not_torn_by_a_client_that_cannot_tell(
    lake: lv.Lake, house: Warehouse, commits: Commits, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client has given the table up, and dies before it has completed the commit. To the next one the
    catalog has not shown a table of the lake yet."""
    commits.steps["orders"] = [_dies_before]
    tx = _begin(lake)
    with pytest.raises(Died):
        tx.commit()
    house.catalog.drop_table("sales.orders")
    dying, cold = house.lake(), house.lake()
    with monkeypatch.context() as patched:
        patched.setattr(completion, "move_head", _die)
        with pytest.raises(Died):
            _rows(dying, "items")
            dying.recover()
    with pytest.raises(lv.Unavailable, match=r"table 'orders'.*check that the options"):
        cold.create("other", SCHEMA, format="delta")
    assert len(_rows(cold, "items")) == 3
    cold.create("other", SCHEMA, format="delta")
    assert cold.outcome(tx.id).state == "undecided"
    assert _rows(cold, "delta") == {}
    cold.append("delta", [{"id": 2, "v": 2}])


def test_table_dropped_in_its_catalog_after_its_part_was_published_is_torn(
    lake: lv.Lake, house: Warehouse, commits: Commits
) -> None:
    """It may be registered there again, with the part."""
    commits.steps["orders"] = [_dies_after]
    tx = _begin(lake)
    with pytest.raises(Died):
        tx.commit()
    house.catalog.drop_table("sales.orders")
    other = house.lake()
    assert len(_rows(other, "items")) == 3
    other.create("other", SCHEMA, format="delta")
    assert other.outcome(tx.id).state == "torn"
    assert _rows(other, "delta") == {}


def test_table_that_the_wrong_catalog_does_not_have_can_be_dropped_from_the_lake(
    lake: lv.Lake, house: Warehouse, wrong: Warehouse
) -> None:
    misled = house.lake(catalogs={"prod": wrong.options})
    misled.drop("orders")
    misled.sql("DROP TABLE items")
    assert house.lake().tables() == ["delta"]
