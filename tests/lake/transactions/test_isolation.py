"""Transactions with isolation: all tables at one instant, validated commits, concurrent clients."""

from pathlib import Path
from typing import NoReturn

import pyarrow as pa
import pytest

import lakevilla as lv
from lakevilla.environment import SystemEnvironment
from lakevilla.store.adapters.directory import Directory
from tests.support.hooked import Hooked
from tests.support.outsiders import OUTSIDERS, Outsider

pytestmark = pytest.mark.formats("delta", "iceberg")

OPTIONS = {"fsync": "false"}
WITH_I = [lv.I, lv.CT | lv.I, lv.R | lv.I, lv.R | lv.CT | lv.I]
REDONE = [lv.R | lv.I, lv.R | lv.CT | lv.I]


def _open(path: Path) -> lv.Lake:
    return lv.Lake(path, engine="local", storage_options=OPTIONS)


@pytest.fixture
def lake(tmp_path: Path) -> lv.Lake:
    lake = _open(tmp_path)
    for name in ("a", "b", "c"):
        lake.create(name, [{"id": 1, "v": 10}, {"id": 2, "v": 20}])
    return lake


def _v(lake: lv.Lake | lv.Transaction, name: str, key: int = 1) -> int:
    (row,) = lake.sql(f"SELECT v FROM {name} WHERE id = {key}").collect()
    value: int = row.v
    return value


def _both(lake: lv.Lake, features: lv.Features = lv.R | lv.CT | lv.I) -> None:
    """Somebody's commit on two tables."""
    with lake.transaction(features) as tx:
        tx.update("a", {"v": "v + 1"}, where="id = 1")
        tx.update("b", {"v": "v + 1"}, where="id = 1")


@pytest.fixture
def outside(table_format: str) -> Outsider:
    """A client that knows nothing of us."""
    return OUTSIDERS[table_format]


def _row(key: int) -> pa.Table:
    return pa.table({"id": [key], "v": [0]})


# One instant.


@pytest.mark.parametrize("features", WITH_I)
def test_reader_sees_all_tables_at_the_instant_of_its_first_statement(
    lake: lv.Lake, tmp_path: Path, features: lv.Features
) -> None:
    with lake.transaction(features) as tx:
        assert _v(tx, "a") == 10
        _both(_open(tmp_path))
        assert (_v(tx, "b"), _v(tx, "a")) == (10, 10)
    with lake.transaction(features) as tx:
        assert (_v(tx, "a"), _v(tx, "b")) == (11, 11)


def test_reader_without_isolation_may_see_tables_at_different_instants(lake: lv.Lake, tmp_path: Path) -> None:
    with lake.transaction(lv.R | lv.CT) as tx:
        assert _v(tx, "a") == 10
        _both(_open(tmp_path))
        assert _v(tx, "b") == 11


def test_own_changes_lie_over_the_instant(lake: lv.Lake, tmp_path: Path) -> None:
    tx = lake.transaction()
    tx.update("a", {"v": 1})
    _open(tmp_path).update("c", {"v": 5})
    tx.append("c", [{"id": 3, "v": 30}])
    assert (_v(tx, "a"), _v(tx, "c"), _v(tx, "c", 3)) == (1, 10, 30)
    tx.abort()
    assert (_v(lake, "a"), _v(lake, "c"), lake.read("c").count()) == (10, 5, 2)


@pytest.mark.parametrize("features", WITH_I)
def test_who_only_reads_writes_nothing_and_is_not_validated(
    lake: lv.Lake, tmp_path: Path, features: lv.Features
) -> None:
    with lake.transaction(features) as tx:
        assert _v(tx, "a") == 10
        _both(_open(tmp_path))
        assert _v(tx, "b") == 10
    assert tx.receipt is not None
    assert tx.receipt.seq is None
    assert not any(tx.receipt.requests[kind] for kind in ("put", "create", "replace", "delete"))


def test_update_that_finds_no_row_is_a_read(lake: lv.Lake) -> None:
    with lake.transaction() as tx:
        tx.update("a", {"v": 0}, where="id = 77")
        assert _v(tx, "b") == 10
    assert tx.receipt is not None
    assert (tx.receipt.seq, tx.receipt.versions) == (None, {})


# Validation.


@pytest.mark.parametrize("features", [lv.I, lv.CT | lv.I])
@pytest.mark.parametrize("slack", [0, 1])
def test_outdated_read_is_invalid_without_recovery_beyond_the_slack(
    lake: lv.Lake, tmp_path: Path, features: lv.Features, slack: int, begin: int
) -> None:
    tx = lake.transaction(features, slack=slack)
    _v(tx, "a")
    _both(_open(tmp_path))
    tx.update("c", {"v": 0})
    if slack:
        tx.commit()
        assert _v(lake, "c") == 0
    else:
        told = rf"'a' violates rule R1 \(version {begin} was read, the newest is {begin + 1}"
        with pytest.raises(lv.ValidationFailed, match=told):
            tx.commit()
        assert _v(lake, "c") == 10


@pytest.mark.parametrize("isolation", ["serializable", "write-serializable", "snapshot"])
def test_taken_number_is_invalid_without_recovery(lake: lv.Lake, tmp_path: Path, isolation: str) -> None:
    tx = lake.transaction(lv.I, isolation=isolation, slack=5)
    tx.update("a", {"v": 0})
    _both(_open(tmp_path))
    with pytest.raises(lv.ValidationFailed) as caught:
        tx.commit()
    assert (caught.value.table, caught.value.rule) == ("a", "R2")
    assert (_v(lake, "a"), _v(lake, "b")) == (11, 11)


def test_run_repeats_what_is_invalid(lake: lv.Lake, tmp_path: Path) -> None:
    tries: list[int] = []

    def work(tx: lv.Transaction) -> None:
        tries.append(_v(tx, "a"))
        if len(tries) == 1:
            _both(_open(tmp_path))
        tx.update("c", {"v": tries[-1]})

    receipt = lake.run(work, features=lv.I)
    assert (tries, receipt.attempts, _v(lake, "c")) == ([10, 11], 2, 11)


@pytest.mark.parametrize("features", REDONE)
def test_statement_on_what_has_moved_is_redone(lake: lv.Lake, tmp_path: Path, features: lv.Features) -> None:
    with lake.transaction(features) as tx:
        tx.sql("UPDATE c SET v = (SELECT sum(v) FROM a)")
        _both(_open(tmp_path))
    assert tx.receipt is not None
    assert (tx.receipt.redone, _v(lake, "c")) == (1, 31)


@pytest.mark.parametrize("features", REDONE)
def test_commit_past_entries_that_do_not_concern_it_redoes_nothing(
    lake: lv.Lake, tmp_path: Path, features: lv.Features
) -> None:
    with lake.transaction(features) as tx:
        tx.update("c", {"v": 0})
        _both(_open(tmp_path))
    assert tx.receipt is not None
    assert tx.receipt.redone == 0
    assert (_v(lake, "a"), _v(lake, "c")) == (11, 0)


def test_value_that_was_given_and_has_changed_is_a_conflict(lake: lv.Lake, tmp_path: Path) -> None:
    with pytest.raises(lv.Conflict), lake.transaction() as tx:
        seen = _v(tx, "a")
        _both(_open(tmp_path))
        tx.update("c", {"v": seen})
    assert _v(lake, "c") == 10


def _skew(lake: lv.Lake, other: lv.Lake, isolation: str) -> list[bool]:
    """Two transactions that each read both tables and change one; returns which of them committed."""
    first, second = lake.transaction(isolation=isolation), other.transaction(isolation=isolation)
    for tx in (first, second):
        tx.sql("SELECT a.v + b.v AS s FROM a JOIN b ON a.id = b.id").collect()
    first.update("a", {"v": -5}, where="id = 1")
    second.update("b", {"v": -5}, where="id = 1")
    first.commit()
    try:
        second.commit()
    except lv.Aborted:
        return [True, False]
    return [True, True]


def test_write_skew_is_possible_with_snapshot_and_with_nothing_else(lake: lv.Lake, tmp_path: Path) -> None:
    assert _skew(lake, _open(tmp_path), "serializable") == [True, False]
    assert _skew(lake, _open(tmp_path), "snapshot") == [True, True]


@pytest.mark.parametrize("features", REDONE)
def test_snapshot_loses_no_update(lake: lv.Lake, tmp_path: Path, features: lv.Features) -> None:
    """What it wrote has moved: it goes to the new instant as a whole, or not at all."""
    tx = lake.transaction(features, isolation="snapshot")
    seen = _v(tx, "b")
    tx.update("a", {"v": f"v + {seen}"}, where="id = 1")
    _both(_open(tmp_path))
    with pytest.raises(lv.Conflict):
        tx.commit()
    with lake.transaction(features, isolation="snapshot") as tx:
        tx.update("a", {"v": "v + 100"}, where="id = 1")
        _both(_open(tmp_path))
    assert _v(lake, "a") == 112


def test_table_dropped_after_it_was_read_is_a_conflict(lake: lv.Lake, tmp_path: Path) -> None:
    with pytest.raises(lv.Conflict, match="dropped"), lake.transaction() as tx:
        _v(tx, "a")
        _open(tmp_path).drop("a")
        assert _v(tx, "a") == 10
        tx.update("b", {"v": 0})


# Outside writers.


def test_version_of_an_outside_writer_is_adopted_by_the_first_statement(
    lake: lv.Lake, tmp_path: Path, outside: Outsider
) -> None:
    outside.append(tmp_path / "a", _row(9))
    with lake.transaction() as tx:
        assert tx.read("a").count() == 3
        outside.append(tmp_path / "a", _row(10))
        assert tx.read("a").count() == 3
    assert lake.sync() == {"a": outside.begin + 2}
    assert lake.sync() == {}


def test_table_touched_later_is_seen_with_outside_versions_if_nothing_else_has_moved(
    lake: lv.Lake, tmp_path: Path, outside: Outsider
) -> None:
    with lake.transaction() as tx:
        assert _v(tx, "b") == 10
        outside.append(tmp_path / "a", _row(9))
        assert tx.read("a").count() == 3


def test_outside_version_past_the_instant_is_not_seen_when_something_has_moved(
    lake: lv.Lake, tmp_path: Path, outside: Outsider
) -> None:
    with lake.transaction() as tx:
        assert _v(tx, "b") == 10
        _both(_open(tmp_path))
        outside.append(tmp_path / "a", _row(9))
        assert (tx.read("a").count(), _v(tx, "a")) == (2, 10)


def test_reader_never_sees_a_cause_without_its_effect_beside_an_outside_writer(
    lake: lv.Lake, tmp_path: Path, outside: Outsider
) -> None:
    """A commit with CT that read an outside version makes it part of the instant in which it is seen."""
    outside.append(tmp_path / "a", _row(9))
    with _open(tmp_path).transaction(lv.R | lv.CT) as tx:
        tx.sql("UPDATE c SET v = (SELECT count(*) FROM a)")
    with lake.transaction() as tx:
        assert _v(tx, "c") == 3
        assert tx.read("a").count() == 3


@pytest.mark.parametrize("features", WITH_I)
def test_outside_commit_that_does_not_concern_it_is_built_on(
    lake: lv.Lake, tmp_path: Path, features: lv.Features, outside: Outsider
) -> None:
    with lake.transaction(features) as tx:
        tx.append("a", [{"id": 3, "v": 30}])
        outside.append(tmp_path / "a", _row(9))
    assert tx.receipt is not None
    assert tx.receipt.versions == {"a": outside.begin + 2}
    with lake.transaction(features) as tx:
        assert (_v(tx, "b"), tx.read("a").count()) == (10, 4)


def test_outside_commit_that_concerns_it_is_redone_or_said(
    lake: lv.Lake, tmp_path: Path, outside: Outsider
) -> None:
    with lake.transaction() as tx:
        tx.update("a", {"v": "v + 1"})
        outside.update(tmp_path / "a", {"v": "100"})
    assert tx.receipt is not None
    assert tx.receipt.redone == 1
    assert _v(lake, "a") == 101
    with pytest.raises(lv.ValidationFailed) as caught, lake.transaction(lv.I) as tx:
        tx.update("a", {"v": "v + 1"})
        outside.update(tmp_path / "a", {"v": "200"})
    assert (caught.value.table, caught.value.rule) == ("a", "R2")
    assert _v(lake, "a") == 200


# Tables that HEAD does not know.


LEGACY = pa.table({"id": [1], "v": [10]})


def test_lake_of_tables_that_others_made_is_read_and_changed(tmp_path: Path, outside: Outsider) -> None:
    outside.create(tmp_path / "x", LEGACY)
    outside.create(tmp_path / "y", LEGACY)
    lake = _open(tmp_path)
    with lake.transaction() as tx:
        assert _v(tx, "x") == 10
        tx.update("y", {"v": "v + 1"})
    assert (_v(lake, "x"), _v(lake, "y")) == (10, 11)
    assert outside.rows(tmp_path / "y") == [{"id": 1, "v": 11}]


def test_new_table_is_included_later_if_nothing_has_moved_and_a_conflict_otherwise(
    lake: lv.Lake, tmp_path: Path, outside: Outsider
) -> None:
    with lake.transaction() as tx:
        _v(tx, "a")
        outside.create(tmp_path / "x", LEGACY)
        assert _v(tx, "x") == 10
    with (
        pytest.raises(lv.Conflict, match="table 'y' is not part of the transaction's instant"),
        lake.transaction() as tx,
    ):
        _v(tx, "a")
        _both(_open(tmp_path))
        outside.create(tmp_path / "y", LEGACY)
        _v(tx, "y")


def test_missing_table_makes_nothing(tmp_path: Path) -> None:
    with pytest.raises(lv.InvalidInput, match="unknown table"):
        _open(tmp_path / "nowhere").read("t")
    assert not (tmp_path / "nowhere").exists()


# Clients that cannot write entries.


class _ReadOnly(Hooked):
    """A store that lets itself be read."""

    def create(self, key: str, data: bytes) -> NoReturn:
        raise lv.Unavailable(f"no right to create {key}")


def test_client_that_may_only_read_sees_head_and_tables_that_it_does_not_know(
    lake: lv.Lake, tmp_path: Path, outside: Outsider
) -> None:
    outside.append(tmp_path / "a", _row(9))
    outside.create(tmp_path / "x", LEGACY)
    reader = lv.Lake(tmp_path, engine="local", store=_ReadOnly(Directory(str(tmp_path), SystemEnvironment())))
    with reader.transaction() as tx:
        assert tx.sql("SELECT count(*) AS n FROM a JOIN b ON a.id = b.id").collect()[0].n == 2
        assert _v(tx, "x") == 10


# Tables made at the instant.


@pytest.mark.parametrize("features", WITH_I)
def test_new_table_whose_place_another_client_takes_is_a_conflict_and_leaves_nothing(
    tmp_path: Path, features: lv.Features, outside: Outsider
) -> None:
    """Another client makes a table there between our decision and its publishing."""
    store = Hooked(Directory(str(tmp_path), SystemEnvironment()))
    lake = lv.Lake(tmp_path, engine="local", store=store)
    lake.create("a", [{"id": 1, "v": 10}])
    tx = lake.transaction(features)
    tx.update("a", {"v": 11})
    tx.create("n", "id BIGINT, v BIGINT")

    def squat(_: str, key: str) -> None:
        if key == f"n/{outside.entry(outside.begin)}":
            store.hook = None
            outside.create(tmp_path / "n", LEGACY)

    store.hook = squat
    told = "table 'n'" if features & lv.R else "rule R2"
    with pytest.raises(lv.Aborted, match=told):
        tx.commit()
    assert (_v(lake, "a"), lake.read("n").count(), len(lake.history("a"))) == (10, 1, 3)
