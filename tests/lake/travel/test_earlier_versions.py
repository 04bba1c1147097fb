"""Versions and times that a statement asks for never lie past what its transaction sees."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import lakevilla as lv

pytestmark = pytest.mark.formats("delta", "iceberg")

OPTIONS = {"fsync": "false"}
WITH_I = [lv.I, lv.CT | lv.I, lv.R | lv.I, lv.R | lv.CT | lv.I]
PINNED = [lv.R, lv.CT, lv.R | lv.CT, *WITH_I]
FUTURE = datetime.now(UTC) + timedelta(days=365)
IN_FUTURE = f"TIMESTAMP AS OF '{FUTURE:%Y-%m-%d %H:%M:%S}'"


def _open(path: Path) -> lv.Lake:
    return lv.Lake(path, engine="local", storage_options=OPTIONS)


@pytest.fixture
def lake(tmp_path: Path) -> lv.Lake:
    lake = _open(tmp_path)
    for name in ("a", "b", "c"):
        lake.create(name, [{"id": 1, "v": 100}])
    return lake


def _move(lake: lv.Lake) -> None:
    """Another client's commit on two tables."""
    with lake.transaction() as tx:
        tx.update("a", {"v": "v - 50"})
        tx.update("b", {"v": "v + 50"})


@pytest.mark.parametrize("features", WITH_I)
def test_time_past_the_instant_gives_the_instant(
    lake: lv.Lake, tmp_path: Path, features: lv.Features
) -> None:
    with lake.transaction(features) as tx:
        assert tx.read("a").collect() == [(1, 100)]
        _move(_open(tmp_path))
        assert tx.read("b", at=FUTURE).collect() == [(1, 100)]
        assert tx.sql(f"SELECT v FROM b {IN_FUTURE}").collect() == [(100,)]
        assert tx.read("b").collect() == [(1, 100)]
    assert lake.read("b", at=FUTURE).collect() == [(1, 150)]


@pytest.mark.parametrize("features", WITH_I)
def test_version_past_the_instant_is_refused(
    lake: lv.Lake, tmp_path: Path, features: lv.Features, begin: int
) -> None:
    with lake.transaction(features) as tx:
        tx.read("a").collect()
        _move(_open(tmp_path))
        with pytest.raises(lv.InvalidInput, match=f"sees is {begin}"):
            tx.read("b", version=begin + 1)
        with pytest.raises(lv.InvalidInput):
            tx.sql(f"SELECT * FROM b VERSION AS OF {begin + 1}")
        assert tx.read("b", version=begin).collect() == [(1, 100)]
    assert lake.read("b", version=begin + 1).collect() == [(1, 150)]


@pytest.mark.parametrize("features", PINNED)
def test_pinned_table_is_not_seen_past_its_pin(
    lake: lv.Lake, tmp_path: Path, features: lv.Features, begin: int
) -> None:
    with lake.transaction(features) as tx:
        assert tx.read("b").collect() == [(1, 100)]
        _move(_open(tmp_path))
        assert tx.read("b", at=FUTURE).collect() == [(1, 100)]
        with pytest.raises(lv.InvalidInput):
            tx.read("b", version=begin + 1)


@pytest.mark.parametrize("features", [lv.R | lv.CT, lv.R | lv.CT | lv.I])
def test_time_that_leads_to_the_newest_version_is_a_read(
    lake: lv.Lake, tmp_path: Path, features: lv.Features
) -> None:
    tx = lake.transaction(features)
    (row,) = tx.read("b", at=FUTURE).collect()
    _move(_open(tmp_path))
    tx.append("c", [{"id": 2, "v": row.v}])
    with pytest.raises(lv.Conflict):
        tx.commit()
    assert lake.read("c").count() == 1


@pytest.mark.parametrize("features", [lv.R | lv.CT, lv.R | lv.CT | lv.I])
def test_statement_over_a_time_is_redone_when_the_table_moved(
    lake: lv.Lake, tmp_path: Path, features: lv.Features
) -> None:
    with lake.transaction(features) as tx:
        tx.sql(f"INSERT INTO c SELECT id + 1 AS id, v FROM b {IN_FUTURE}")
        _move(_open(tmp_path))
    assert sorted(lake.read("c").collect()) == [(1, 100), (2, 150)]


@pytest.mark.parametrize("features", PINNED)
def test_version_that_was_named_is_never_a_conflict(
    lake: lv.Lake, tmp_path: Path, features: lv.Features, begin: int
) -> None:
    with lake.transaction(features) as tx:
        (row,) = tx.read("b", version=begin).collect()
        _move(_open(tmp_path))
        tx.append("c", [{"id": 2, "v": row.v}])
    assert sorted(lake.read("c").collect()) == [(1, 100), (2, 100)]


def test_table_that_the_transaction_changed_is_seen_without_its_changes(
    lake: lv.Lake, tmp_path: Path, begin: int
) -> None:
    tx = lake.transaction()
    tx.update("b", {"v": "7"})
    _move(_open(tmp_path))
    assert tx.read("b", at=FUTURE).collect() == tx.read("b", version=begin).collect() == [(1, 100)]
    assert tx.read("b").collect() == [(1, 7)]
    with pytest.raises(lv.InvalidInput):
        tx.read("b", version=begin + 1)
    with pytest.raises(lv.Conflict):
        tx.commit()


def test_earlier_time_stays_where_it_is(lake: lv.Lake, tmp_path: Path) -> None:
    _move(lake)
    second = sorted(lake.history("b"), key=lambda entry: entry.version)[1]
    # Right before the second version: the store's time of the first may be later than its writer's.
    first = datetime.fromtimestamp((second.timestamp_ms - 1) / 1000, UTC)
    with lake.transaction() as tx:
        tx.append("c", [{"id": 2, "v": 0}])
        assert tx.read("b", at=first).collect() == [(1, 100)]
        with _open(tmp_path).transaction() as other:
            other.update("b", {"v": "0"})
    assert lake.read("b", at=first).collect() == [(1, 100)]


def test_time_before_the_table_names_it(lake: lv.Lake) -> None:
    with pytest.raises(lv.InvalidInput, match="table 'a': no version of the table is as old") as error:
        lake.sql("SELECT * FROM b, a TIMESTAMP AS OF '1999-01-01'")
    assert error.value.table == "a"
