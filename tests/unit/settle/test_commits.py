"""Settling a commit on two tables: by its owner, by helpers, and past outside writers."""

from collections.abc import Callable
from functools import partial

import pytest

import lakevilla as lv
from lakevilla.environment import SystemEnvironment
from lakevilla.formats.port import Snapshot, Table
from lakevilla.model import Change, ReadSet, TableRef
from lakevilla.predicates import ANYTHING
from lakevilla.settle.commits import CommitSettler
from lakevilla.settle.places import owner_of
from lakevilla.store.metered import Meter
from lakevilla.tables.catalog import CatalogPlaces
from lakevilla.versions.commits import NEW, Commit, Drop, Settled, Write

World = tuple[lv.Lake, Callable[[], CommitSettler], Commit]


@pytest.fixture
def world() -> World:
    """Tables x and y at version 1, and a commit that updates a row of each."""
    lake = lv.Lake("memory://", engine="local", features=lv.R)
    for name in ("x", "y"):
        lake.create(name, "id BIGINT, v BIGINT")
        lake.append(name, [{"id": 1, "v": 0}, {"id": 2, "v": 0}])
    commit = Commit((_write(lake, "x", "id = 1"), _write(lake, "y", "id = 2")))

    def settler() -> CommitSettler:
        places = CatalogPlaces(lake._catalog, Meter())
        open_at = partial(_open, lake)
        return CommitSettler("lake", 1, "txn", "attempt", SystemEnvironment(), places, open_at)

    return lake, settler, commit


def _open(lake: lv.Lake, ref: TableRef, version: int) -> tuple[Table, Snapshot]:
    table = lake._catalog.open(ref, Meter())
    return table, table.at_version(version)


def _write(lake: lv.Lake, name: str, where: str, blind: bool = False) -> Write:
    """The change of a statement that ran and was not published."""
    tx = lake.transaction(lv.NONE)
    if blind:
        tx.append(name, [{"id": 9, "v": 9}])
    else:
        tx.update(name, {"v": "v + 100"}, where=where)
    pinned = tx._operations.targets[0]
    change = tx._operations.net(pinned.ref.location)
    assert isinstance(change, Change)
    encoded = pinned.table.encode_change(pinned.snapshot, change)
    return Write(pinned.ref, pinned.snapshot.version, encoded, change.read, blind)


def _rows(lake: lv.Lake, name: str) -> list[tuple[int, int]]:
    return sorted(tuple(row) for row in lake.read(name).collect())


def test_commit_lands_on_both_tables_and_helpers_find_it_done(world: World) -> None:
    lake, settler, commit = world
    first = settler().settle(commit)
    again = settler().settle(commit)
    assert (first.settled, first.refused) == (Settled(True, {"x": 2, "y": 2}), None)
    assert again.settled == first.settled
    assert (_rows(lake, "x"), _rows(lake, "y")) == ([(1, 100), (2, 0)], [(1, 0), (2, 100)])
    assert [len(lake.history(name)) for name in ("x", "y")] == [3, 3]


def test_outside_commit_that_does_not_concern_it_is_passed(world: World) -> None:
    lake, settler, commit = world
    lake.append("y", [{"id": 7, "v": 7}])
    assert settler().settle(commit).settled == Settled(True, {"x": 2, "y": 3})
    assert _rows(lake, "y") == [(1, 0), (2, 100), (7, 7)]


@pytest.mark.parametrize("loser", ["x", "y"])
def test_outside_conflict_on_one_table_takes_the_other_back(world: World, loser: str) -> None:
    lake, settler, commit = world
    other = {"x": "y", "y": "x"}[loser]
    lake.update(loser, {"v": "v + 1"}, where="id = 1 OR id = 2")
    outcome = settler().settle(commit)
    settled, refused = outcome.settled, outcome.refused
    assert settled == Settled(False, {other: 3, loser: 2})
    assert refused is not None
    assert "version 2" in refused.winner.summary
    assert _rows(lake, loser) == [(1, 1), (2, 1)]
    assert _rows(lake, other) == [(1, 0), (2, 0)]
    assert lake.history(other)[0].operation == "ROLLBACK"
    assert settler().settle(commit).settled == settled
    assert len(lake.history(other)) == 4


def test_helper_that_comes_late_takes_back_what_the_owner_published(world: World) -> None:
    lake, settler, commit = world
    settler().settle(Commit((commit.writes[0],)))
    lake.delete("y", where="id = 2")
    assert settler().settle(commit).settled == Settled(False, {"x": 3, "y": 2})
    assert _rows(lake, "x") == [(1, 0), (2, 0)]


def test_table_that_somebody_built_on_before_the_inverse_is_torn(world: World) -> None:
    lake, settler, commit = world
    settler().settle(Commit((commit.writes[0],)))
    lake.update("x", {"v": "v + 1"})
    lake.delete("y", where="id = 2")
    settled = settler().settle(commit).settled
    assert settled == Settled(False, {"y": 2}, frozenset({"x"}))
    assert _rows(lake, "x") == [(1, 101), (2, 1)]


def test_blind_append_is_published_only_after_the_tables_that_can_conflict(world: World) -> None:
    lake, settler, commit = world
    append = _write(lake, "x", "", blind=True)
    lake.update("y", {"v": 5}, where="id = 2")
    settled = settler().settle(Commit((append, commit.writes[1]))).settled
    assert settled == Settled(False, {"y": 2})
    assert len(lake.history("x")) == 2


def test_what_was_read_of_a_written_table_counts(world: World) -> None:
    lake, settler, commit = world
    x = commit.writes[0]
    reading = Write(x.table, x.base, x.change, ReadSet((ANYTHING,)), False)
    lake.append("x", [{"id": 50, "v": 0}])
    assert settler().settle(Commit((reading,))).settled == Settled(False, {"x": 2})


def test_entries_name_the_slot_that_decided_them(world: World) -> None:
    lake, settler, commit = world
    settler().settle(commit)
    pinned = lake._catalog.pin("x", Meter())
    assert pinned.snapshot.coordination.slot == 1


def _new(lake: lv.Lake, name: str) -> Write:
    """A table with a row, made by a transaction that did not commit."""
    tx = lake.transaction(lv.CT)
    tx.create(name, [{"id": 7}])
    pinned = tx._operations.targets[0]
    change = tx._operations.net(name)
    assert change is not None
    tx._workspace.uploads.finish()
    return Write(pinned.ref, NEW, pinned.table.encode_change(pinned.snapshot, change), ReadSet(), False)


def _drop(lake: lv.Lake, name: str) -> Drop:
    pinned = lake._catalog.pin(name, Meter())
    return Drop(pinned.ref, pinned.snapshot.version)


def test_new_table_is_made_once_and_belongs_to_the_lake(world: World) -> None:
    lake, settler, commit = world
    whole = Commit((*commit.writes, _new(lake, "new")))
    settled = settler().settle(whole).settled
    assert settled == Settled(True, {"x": 2, "y": 2, "new": 0}, owned=frozenset({"new"}))
    assert settler().settle(whole).settled == settled
    assert (_rows(lake, "new"), len(lake.history("new"))) == ([(7,)], 1)
    owner = owner_of(lake._catalog.store_of("new", Meter()))
    assert owner is not None
    assert owner.lake == "lake"


def test_new_table_is_not_even_made_where_an_update_is_refused(world: World) -> None:
    lake, settler, commit = world
    whole = Commit((*commit.writes, _new(lake, "new")))
    lake.update("y", {"v": 5}, where="id = 2")
    assert settler().settle(whole).settled == Settled(False, {"x": 3, "y": 2})
    assert "new" not in lake.tables()


def test_place_of_a_new_table_that_somebody_took_refuses_all_and_drops_the_other_new_one(
    world: World,
) -> None:
    lake, settler, commit = world
    whole = Commit((commit.writes[0], _new(lake, "new"), _new(lake, "taken")), (), (_drop(lake, "y"),))
    lake._catalog.open(TableRef("", "taken", "delta"), Meter()).publish_first(_FOREIGN, "somebody")
    settled = settler().settle(whole).settled
    assert settled == Settled(False, {"x": 3}, dropped=frozenset({"new"}))
    assert settler().settle(whole).settled == settled
    assert [entry.operation for entry in lake._catalog.pin("new", Meter()).table.history()] == [
        "DROP TABLE",
        "CREATE TABLE AS SELECT",
    ]
    # What the commit would have dropped is told only when all else is published.
    assert (len(lake.history("y")), owner_of(lake._catalog.store_of("taken", Meter()))) == (2, None)


def test_dropped_table_is_told_once_after_all_else(world: World) -> None:
    lake, settler, commit = world
    whole = Commit(
        (commit.writes[0],), (), (_drop(lake, "y"), Drop(TableRef("z", "memory://z", "delta"), None))
    )
    settled = settler().settle(whole).settled
    assert settled == Settled(True, {"x": 2})
    assert settler().settle(whole).settled == settled
    history = lake._catalog.open(TableRef("y", "y", "delta"), Meter()).history()
    assert [entry.operation for entry in history][:2] == ["DROP TABLE", "WRITE"]


_FOREIGN = b"""{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}
{"metaData":{"id":"3f1a8c5e-0000-4000-8000-000000000000","format":{"provider":"parquet","options":{}},\
"schemaString":"{\\"type\\":\\"struct\\",\\"fields\\":[]}","partitionColumns":[],"configuration":{}}}
"""
