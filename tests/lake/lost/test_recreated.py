"""A table is deleted and another one created in its place, while a client goes on that knows the first."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import lakevilla as lv
from lakevilla.formats import identity
from lakevilla.formats.identity import Recreated
from lakevilla.settle import entries
from tests.support.outsiders import OUTSIDERS

pytestmark = pytest.mark.formats("delta", "iceberg")

FEATURES = [lv.NONE, lv.R, lv.R | lv.CT, lv.R | lv.CT | lv.I]


@pytest.fixture(autouse=True)
def look(monkeypatch: pytest.MonkeyPatch, patience: None) -> None:
    """As outside of tests: on a directory a client looks before every publish."""
    monkeypatch.setattr(identity, "TRUST_DIRECTORY_SECONDS", 0.0)


def _open(path: Path, features: lv.Features = lv.R | lv.CT | lv.I) -> lv.Lake:
    return lv.Lake(path / "lake", engine="local", storage_options={"fsync": "false"}, features=features)


def _ids(lake: lv.Lake) -> list[int]:
    return sorted(row["id"] for row in lake.read("t").collect())


def _make(lake: lv.Lake, path: Path, first: int, commits: int) -> None:
    lake.create("t", "id BIGINT", location=f"file://{path}/far/t")
    for number in range(commits):
        lake.append("t", [{"id": first + number}])


def _recreate(path: Path, commits: int) -> None:
    """Another client drops the table, deletes its folder, and creates it anew."""
    other = _open(path)
    other.sql("DROP TABLE t")
    shutil.rmtree(path / "far")
    _make(other, path, 100, commits)


def _again(work: Callable[[], object]) -> None:
    """What the error advises: run it again."""
    try:
        work()
    except Recreated:
        work()


@pytest.mark.parametrize("features", FEATURES, ids=str)
@pytest.mark.parametrize("commits", [0, 1, 3, 5])
def test_append_by_a_client_that_knew_the_table_before_leaves_the_new_table_whole(
    tmp_path: Path, table_format: str, features: lv.Features, commits: int
) -> None:
    warm = _open(tmp_path, features)
    _make(warm, tmp_path, 0, 3)
    assert _ids(warm) == [0, 1, 2]
    _recreate(tmp_path, commits)
    _again(lambda: warm.append("t", [{"id": 200}]))
    expected = [*range(100, 100 + commits), 200]
    assert _ids(_open(tmp_path)) == expected
    assert _ids(warm) == expected
    rows = OUTSIDERS[table_format].rows(tmp_path / "far" / "t")
    assert sorted(row["id"] for row in rows) == expected


@pytest.mark.parametrize("features", FEATURES, ids=str)
def test_read_after_a_while_sees_the_new_table(
    tmp_path: Path, features: lv.Features, monkeypatch: pytest.MonkeyPatch
) -> None:
    warm = _open(tmp_path, features)
    _make(warm, tmp_path, 0, 3)
    assert _ids(warm) == [0, 1, 2]
    _recreate(tmp_path, 4)
    monkeypatch.setattr(identity, "TRUST_SECONDS", -1.0)
    assert _ids(warm) == [100, 101, 102, 103]


@pytest.mark.parametrize("features", [lv.R, lv.R | lv.CT], ids=str)
def test_open_transaction_ends_with_recreated_and_writes_nothing(
    tmp_path: Path, features: lv.Features
) -> None:
    warm = _open(tmp_path, features)
    _make(warm, tmp_path, 0, 3)
    tx = warm.transaction()
    tx.sql("DELETE FROM t WHERE id = 1")
    _recreate(tmp_path, 1)
    with pytest.raises(Recreated):
        tx.commit()
    assert _ids(_open(tmp_path)) == [100]


@pytest.mark.parametrize("features", [lv.NONE, lv.R], ids=str)
def test_commit_after_the_folder_was_deleted_is_not_acknowledged(
    tmp_path: Path, features: lv.Features
) -> None:
    warm = _open(tmp_path, features)
    warm.create("t", "id BIGINT")
    warm.append("t", [{"id": 0}])
    tx = warm.transaction()
    tx.append("t", [{"id": 1}])
    folder = tmp_path / "lake" / "t"
    while folder.exists():
        # An upload may still be under way.
        shutil.rmtree(folder, ignore_errors=True)
    with pytest.raises(Recreated):
        tx.commit()


def test_one_client_drops_and_recreates_a_table_in_the_same_place(tmp_path: Path) -> None:
    lake = _open(tmp_path)
    for first in (0, 10):
        _make(lake, tmp_path, first, 2)
        assert _ids(lake) == [first, first + 1]
        lake.sql("DROP TABLE t")
        shutil.rmtree(tmp_path / "far")


def test_decided_entry_is_not_published_on_a_table_that_took_the_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = _open(tmp_path)
    _make(lake, tmp_path, 0, 1)
    lake.create("u", "id BIGINT")
    with monkeypatch.context() as patch:
        patch.setattr("lakevilla.transaction.commit.slot_commit.CommitSettler.settle", _die)
        with pytest.raises(KeyboardInterrupt), lake.transaction() as tx:
            tx.append("t", [{"id": 1}])
            tx.append("u", [{"id": 1}])
    shutil.rmtree(tmp_path / "far")
    outside = lv.Lake(tmp_path / "far", engine="local", storage_options={"fsync": "false"}, features=lv.R)
    outside.create("t", "id BIGINT")
    for number in range(3):
        outside.append("t", [{"id": 100 + number}])
    monkeypatch.setattr(entries, "HELP_AFTER_SECONDS", 0.0)
    _open(tmp_path).create("v", "id BIGINT")
    assert _ids(outside) == [100, 101, 102]
    assert _open(tmp_path).read("u").count() == 0


def _die(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("features", [lv.R, lv.R | lv.CT | lv.I], ids=str)
@pytest.mark.parametrize("commits", [1, 5])
def test_earlier_instant_does_not_show_the_table_that_took_the_place(
    tmp_path: Path, features: lv.Features, commits: int
) -> None:
    lake = _open(tmp_path, features)
    _make(lake, tmp_path, 0, 1)
    lake.sync()
    lake.tag("before")
    assert [row["id"] for row in lake.at(tag="before").read("t").collect()] == [0]
    _recreate(tmp_path, commits)
    lake.sync()
    lake.tag("after")
    for asked in (lake, _open(tmp_path)):
        with pytest.raises(lv.InvalidInput, match="another table was created in its location"):
            asked.at(tag="before").read("t").collect()
        assert len(asked.at(tag="after").read("t").collect()) == commits


def test_earlier_instant_shows_a_table_that_was_dropped_and_registered_again(tmp_path: Path) -> None:
    lake = _open(tmp_path)
    _make(lake, tmp_path, 0, 1)
    lake.tag("before")
    lake.sql("DROP TABLE t")
    lake.register("t", f"file://{tmp_path}/far/t")
    assert [row["id"] for row in lake.at(tag="before").read("t").collect()] == [0]
