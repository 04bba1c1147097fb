"""Commits of tables that a catalog keeps: answers that get lost, clients that die, and what others change
meanwhile that the catalog lets our commits pass over."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.exceptions import CommitFailedException, CommitStateUnknownException
from pyiceberg.table import CommitTableResponse

import lakevilla as lv
from lakevilla.formats.iceberg.log import catalog_log, publish
from tests.support.warehouses import KINDS, SCHEMA, Commit, Commits, Warehouse, client_of, warehouse

ALL = lv.R | lv.CT | lv.I


class Died(BaseException):
    """The client has died."""


@pytest.fixture
def house(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Warehouse]:
    with warehouse(request.param, tmp_path, "orders", "items") as made:
        yield made


@pytest.fixture
def commits(house: Warehouse, monkeypatch: pytest.MonkeyPatch) -> Commits:
    """What may step in before a commit reaches the catalog, and after."""
    commits, client = Commits(), client_of(house.options["type"])
    monkeypatch.setattr(client, "commit_table", commits.around(client.commit_table))
    monkeypatch.setattr(catalog_log, "_PAUSE_SECONDS", 0.001)
    return commits


@pytest.fixture
def lake(house: Warehouse, commits: Commits) -> lv.Lake:
    return _with_tables(house.lake())


def _with_tables(lake: lv.Lake) -> lv.Lake:
    for name in ("orders", "items"):
        lake.register(name, catalog="prod", table=f"sales.{name}")
    lake.create("delta", SCHEMA, format="delta")
    return lake


def _rows(lake: lv.Lake | lv.Transaction, name: str = "orders") -> dict[int, int]:
    return {row.id: row.v for row in lake.read(name).collect()}


def _silent(commit: Commit) -> CommitTableResponse:
    raise CommitStateUnknownException("the catalog hung up")


def _broken(commit: Commit) -> CommitTableResponse:
    raise OSError("connection reset")


def _lost(commit: Commit) -> CommitTableResponse:
    commit()
    raise CommitStateUnknownException("the catalog hung up")


def _dies_before(commit: Commit) -> CommitTableResponse:
    raise Died


def _dies_after(commit: Commit) -> CommitTableResponse:
    commit()
    raise Died


def _set_property(house: Warehouse, name: str = "orders", key: str = "theirs") -> None:
    with house.table(name).transaction() as change:
        change.set_properties({key: "1"})


def _after_property(house: Warehouse, then: Callable[[Commit], CommitTableResponse], key: str = "theirs"):
    """Another client changes a property right before the commit."""

    def step(commit: Commit) -> CommitTableResponse:
        _set_property(house, key=key)
        return then(commit)

    return step


def _sent(commit: Commit) -> CommitTableResponse:
    return commit()


@pytest.mark.parametrize("options", [None, "another catalog"])
def test_client_without_the_right_catalog_does_not_give_up_the_table(
    lake: lv.Lake, house: Warehouse, commits: Commits, tmp_path: Path, options: str | None
) -> None:
    """The part in the catalog is published, and the client dies before it knows."""
    commits.steps["orders"] = [_dies_after]
    tx = lake.transaction(ALL)
    tx.sql("UPDATE orders SET v = v + 1 WHERE id = 1")
    tx.append("delta", [{"id": 1, "v": 1}])
    with pytest.raises(Died):
        tx.commit()
    empty = {"type": "sql", "uri": f"sqlite:///{tmp_path}/empty.db"}
    stranger = house.lake(catalogs={} if options is None else {"prod": empty})
    with pytest.raises(lv.Unavailable, match=f"{tx.id} is decided.*table 'orders'.*catalog"):
        stranger.create("other", SCHEMA, format="delta")
    told = stranger.outcome(tx.id)
    assert (told.state, told.seq is not None) == ("undecided", True)
    assert "lake.recover() completes" in told.advice
    explained = str(stranger.explain())
    assert tx.id in explained
    assert "'orders' cannot be read" in explained
    house.lake().recover()
    assert house.lake().outcome(tx.id).state == "committed"
    assert (house.rows()[1], _rows(house.lake(), "delta")) == (11, {1: 1})
    assert stranger.sync() == {}


def test_outcome_is_not_guessed_where_the_table_is_in_another_catalog(
    lake: lv.Lake, house: Warehouse, tmp_path: Path
) -> None:
    with lake.transaction(lv.R) as tx:
        tx.append("orders", [{"id": 4, "v": 40}])
    empty = {"type": "sql", "uri": f"sqlite:///{tmp_path}/empty.db"}
    with pytest.raises(lv.Unavailable, match=r"could not be read.*check that the options"):
        house.lake(catalogs={"prod": empty}).outcome(tx.id)
    assert house.lake().outcome(tx.id).state == "committed"


@pytest.mark.parametrize(
    ("features", "answers"),
    [(lv.NONE, [_lost]), (ALL, [_lost]), (lv.NONE, [_broken, _silent]), (ALL, [_silent, _lost])],
)
def test_answer_that_got_lost_is_found_in_the_table(
    lake: lv.Lake, house: Warehouse, commits: Commits, features: lv.Features, answers: list
) -> None:
    commits.steps["orders"] = list(answers)
    with lake.transaction(features) as tx:
        tx.sql("UPDATE orders SET v = v + 1 WHERE id = 1")
    assert not commits.steps["orders"]
    assert (house.version(), house.rows()[1]) == (2, 11)
    assert (lake.history("orders")[0].txn, lake.outcome(tx.id).state) == (tx.id, "committed")


@pytest.mark.parametrize(
    "statement", ["INSERT INTO orders VALUES (4, 40)", "UPDATE orders SET v = v + 1 WHERE id = 1"]
)
def test_lost_answer_is_found_above_many_changes_of_properties(
    lake: lv.Lake, house: Warehouse, commits: Commits, statement: str
) -> None:
    def step(commit: Commit) -> CommitTableResponse:
        for number in range(6):
            _set_property(house, key=f"theirs-{number}")
        return _lost(commit)

    commits.steps["orders"] = [step]
    with lake.transaction(lv.NONE) as tx:
        tx.sql(statement)
    assert tx.receipt is not None
    assert tx.receipt.versions == {"orders": house.version()} == {"orders": 8}
    rows = house.table().scan().to_arrow().to_pylist()
    assert sum(row["v"] for row in rows) == (100 if "INSERT" in statement else 61)


@pytest.mark.parametrize("house", ["rest"], indirect=True)
def test_commit_that_may_still_come_is_sent_again_and_not_made_anew(
    lake: lv.Lake, house: Warehouse, commits: Commits, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a failure meanwhile would be told as one that changed nothing."""
    late: list[Commit] = []

    def step(commit: Commit) -> CommitTableResponse:
        _set_property(house)
        late.append(commit)
        return _silent(commit)

    uploads, really = list[object](), publish.upload

    def upload(*given: Any) -> None:
        uploads.append(given)
        if len(uploads) > 1:
            raise lv.Unavailable("the store does not answer")
        really(*given)

    commits.steps["orders"] = [step]
    monkeypatch.setattr(publish, "upload", upload)
    with lake.transaction(lv.NONE) as tx:
        tx.append("orders", [{"id": 4, "v": 40}])
    with pytest.raises(CommitFailedException):
        late[0]()
    assert house.rows() == {1: 10, 2: 20, 3: 30, 4: 40}


def test_catalog_that_stays_silent_leaves_the_commit_unknown(
    lake: lv.Lake, house: Warehouse, commits: Commits
) -> None:
    commits.steps["orders"] = [_silent] * 4
    with pytest.raises(lv.CommitUnknown, match="the catalog hung up"), lake.transaction(lv.NONE) as tx:
        tx.sql("UPDATE orders SET v = v + 1 WHERE id = 1")
    assert (house.version(), lake.outcome(tx.id).state) == (1, "undecided")


def test_silent_catalog_does_not_undo_what_the_global_log_decided(
    lake: lv.Lake, house: Warehouse, commits: Commits
) -> None:
    commits.steps["orders"] = [_silent] * 4
    with pytest.raises(lv.CommitUnknown, match="completes it"), lake.transaction(lv.CT) as tx:
        tx.sql("UPDATE orders SET v = v + 1 WHERE id = 1")
        tx.sql("INSERT INTO delta VALUES (1, 1)")
    house.lake().append("delta", [{"id": 2, "v": 2}])
    assert (house.rows()[1], _rows(lake, "delta")) == (11, {1: 1, 2: 2})


def test_lost_answer_is_found_below_what_another_client_built_on_it(
    lake: lv.Lake, house: Warehouse, commits: Commits
) -> None:
    def step(commit: Commit) -> CommitTableResponse:
        commit()
        house.table().append(pa.table({"id": [1], "v": [0]}, SCHEMA))
        return _silent(commit)

    commits.steps["orders"] = [step]
    with lake.transaction() as tx:
        tx.sql("UPDATE orders SET v = v + 1 WHERE id = 1")
    assert tx.receipt is not None
    assert tx.receipt.versions == {"orders": 2}
    assert sorted(row["v"] for row in house.table().scan().to_arrow().to_pylist()) == [0, 11, 20, 30]


@pytest.mark.parametrize("then", [_sent, _lost])
@pytest.mark.parametrize("features", [lv.NONE, ALL])
def test_commit_that_passed_over_a_change_of_properties_is_known_as_ours(
    lake: lv.Lake, house: Warehouse, commits: Commits, features: lv.Features, then: Callable
) -> None:
    commits.steps["orders"] = [_after_property(house, then)]
    with lake.transaction(features) as tx:
        tx.sql("UPDATE orders SET v = v + 1 WHERE id = 1")
    _set_property(house, key="later")
    assert (house.version(), house.rows()[1]) == (4, 11)
    assert {"theirs", "later"} <= house.table().properties.keys()
    for client in (lake, house.lake()):
        told = {entry.version: entry.txn for entry in client.history("orders")}
        assert told == {4: None, 3: tx.id, 2: None, 1: None, 0: None}
        assert _rows(client)[1] == 11
    assert tx.receipt is not None
    assert tx.receipt.versions == {"orders": 3}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dies", [_dies_before, _dies_after])
@pytest.mark.parametrize("between", [False, True])
@pytest.mark.parametrize("house", KINDS, indirect=True)
def test_death_between_slot_and_version_is_settled_by_another_client(
    lake: lv.Lake, house: Warehouse, commits: Commits, dies: Callable, between: bool
) -> None:
    commits.steps["orders"] = [_after_property(house, dies) if between else dies]
    if between and house.options["type"] == "sql":
        # This catalog takes the commit only when it knows of the property.
        commits.steps["orders"] = [_after_property(house, _sent), dies]
    with pytest.raises(Died), lake.transaction(lv.CT) as tx:
        tx.sql("UPDATE orders SET v = v + 1 WHERE id = 1")
        tx.sql("UPDATE items SET v = v - 1 WHERE id = 1")
    _set_property(house, key="later")
    other = house.lake()
    other.append("delta", [{"id": 1, "v": 1}])
    other.append("orders", [{"id": 4, "v": 40}])
    assert house.rows() == _rows(other) == {1: 11, 2: 20, 3: 30, 4: 40}
    assert house.rows("items")[1] == 9
    assert other.outcome(tx.id).state == "committed"
    assert [entry.txn for entry in other.history("orders")].count(tx.id) == 1


def test_commit_is_taken_back_by_the_catalog_and_leaves_what_others_changed(
    lake: lv.Lake, house: Warehouse, commits: Commits
) -> None:
    def in_the_way(commit: Commit) -> CommitTableResponse:
        house.table("items").overwrite(pa.table({"id": [1], "v": [0]}, SCHEMA))
        return commit()

    commits.steps |= {"orders": [_after_property(house, _sent)], "items": [in_the_way]}
    with pytest.raises(lv.Conflict) as caught, lake.transaction(lv.CT) as tx:
        tx.sql("ALTER TABLE orders SET TBLPROPERTIES ('ours' = '1')")
        tx.sql("INSERT INTO orders VALUES (4, 40)")
        tx.sql("UPDATE items SET v = v - 1 WHERE id = 1")
    assert caught.value.table == "items"
    assert house.rows() == _rows(lake) == {1: 10, 2: 20, 3: 30}
    assert house.rows("items") == {1: 0}
    assert ("theirs" in house.table().properties, "ours" in house.table().properties) == (True, False)
    assert lake.history("orders")[0].operation == "ROLLBACK"
    assert lake.outcome(tx.id).state == "aborted"


def test_snapshot_that_came_and_was_rolled_back_is_not_overlooked(
    lake: lv.Lake, house: Warehouse, commits: Commits
) -> None:
    def to_and_fro(commit: Commit) -> CommitTableResponse:
        before = house.table().current_snapshot()
        assert before is not None
        house.table().append(pa.table({"id": [1], "v": [0]}, SCHEMA))
        house.table().manage_snapshots().set_current_snapshot(before.snapshot_id).commit()
        return commit()

    commits.steps["orders"] = [to_and_fro]
    with pytest.raises(lv.Conflict) as caught, lake.transaction(lv.NONE) as tx:
        tx.sql("UPDATE orders SET v = v + 1 WHERE id = 1")
    assert caught.value.table == "orders"
    assert (house.rows(), house.version()) == ({1: 10, 2: 20, 3: 30}, 3)


@pytest.mark.parametrize("house", KINDS, indirect=True)
def test_main_that_went_back_and_forth_is_noticed_where_the_catalog_judges_here(
    lake: lv.Lake, house: Warehouse, commits: Commits
) -> None:
    lake.update("orders", {"v": "v + 1"}, where="id = 1")
    first, second = [snapshot.snapshot_id for snapshot in house.table().snapshots()]

    def back_and_forth(commit: Commit) -> CommitTableResponse:
        house.table().manage_snapshots().set_current_snapshot(first).commit()
        house.table().manage_snapshots().set_current_snapshot(second).commit()
        return commit()

    commits.steps["orders"] = [back_and_forth]
    tx = lake.transaction(lv.NONE)
    tx.sql("UPDATE orders SET v = v + 1 WHERE id = 1")
    if house.options["type"] == "sql":
        with pytest.raises(lv.Conflict) as caught:
            tx.commit()
        assert caught.value.table == "orders"
    else:
        tx.commit()
    assert house.rows()[1] == (11 if house.options["type"] == "sql" else 12)


def test_change_of_properties_by_another_transaction_is_not_passed_over(
    lake: lv.Lake, house: Warehouse, commits: Commits
) -> None:
    def alter(commit: Commit) -> CommitTableResponse:
        house.lake().sql("ALTER TABLE orders SET TBLPROPERTIES ('a' = 'b')")
        return commit()

    commits.steps["orders"] = [alter]
    with pytest.raises(lv.Conflict, match="SET TBLPROPERTIES"), lake.transaction(lv.NONE) as tx:
        tx.sql("UPDATE orders SET v = v + 1 WHERE id = 1")
    assert (house.rows()[1], house.table().properties["a"]) == (10, "b")


def test_metadata_that_lies_elsewhere_is_found_there(tmp_path: Path) -> None:
    with warehouse("sql", tmp_path, "orders") as house:
        with house.table().transaction() as change:
            change.set_properties({"write.metadata.path": f"file://{tmp_path}/elsewhere"})
        lake = house.lake()
        lake.register("orders", catalog="prod", table="sales.orders")
        lake.update("orders", {"v": "v + 1"}, where="id = 1")
        house.table().append(pa.table({"id": [4], "v": [40]}, SCHEMA))
        assert house.rows() == _rows(lake) == _rows(house.lake()) == {1: 11, 2: 20, 3: 30, 4: 40}
        assert [entry.version for entry in lake.history("orders")] == [4, 3, 2, 1, 0]
        assert len(list((tmp_path / "elsewhere").glob("0000*.metadata.json"))) == 3


def test_metadata_that_tells_no_version_is_refused_until_the_catalog_numbers_it(tmp_path: Path) -> None:
    with warehouse("sql", tmp_path, "orders") as house:
        current = Path(house.table().metadata_location.removeprefix("file://"))
        odd = current.rename(current.with_name("v7.metadata.json"))
        house.catalog.register_table("sales.odd", f"file://{odd}")
        lake = house.lake()
        with pytest.raises(lv.Unsupported, match="version number"):
            lake.register("odd", catalog="prod", table="sales.odd")
        house.table("odd").append(pa.table({"id": [4], "v": [40]}, SCHEMA))
        lake.register("odd", catalog="prod", table="sales.odd")
        lake.update("odd", {"v": "v + 1"}, where="id = 4")
        assert house.rows("odd") == _rows(lake, "odd") == {1: 10, 2: 20, 3: 30, 4: 41}
