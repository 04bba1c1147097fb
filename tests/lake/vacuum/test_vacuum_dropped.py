"""Vacuum of dropped tables while clients restore them, and of tables that belong to another lake."""

import shutil
from pathlib import Path

import pytest

import lakevilla as lv
from lakevilla.store.metered import Meter
from lakevilla.store.open import open_store
from lakevilla.versions.records import Head
from tests.support.clocks import Days
from tests.support.hooked import Hooked

OPTIONS = {"fsync": "false"}


@pytest.fixture
def clock() -> Days:
    return Days()


@pytest.fixture
def store(tmp_path: Path, clock: Days) -> Hooked:
    return Hooked(open_store(str(tmp_path), OPTIONS, environment=clock))


@pytest.fixture
def lake(tmp_path: Path, clock: Days, store: Hooked) -> lv.Lake:
    """A lake whose table `x` was dropped a month ago."""
    lake = lv.Lake(tmp_path, engine="local", store=store, environment=clock)
    lake.create("x", "id BIGINT")
    lake.append("x", [{"id": 1}])
    lake.drop("x")
    lake.create("z", "id BIGINT")
    clock.pass_days(30)
    return lake


def _open(root: Path, clock: Days) -> lv.Lake:
    return lv.Lake(root, engine="local", storage_options=OPTIONS, environment=clock)


def _head(lake: lv.Lake) -> Head:
    head = lake._catalog.head(Meter(), fresh=True)
    assert head is not None
    return head


def _ids(lake: lv.Lake, name: str) -> list[int]:
    return sorted(row["id"] for row in lake.read(name).collect())


def test_table_is_brought_back_or_deleted_whenever_it_is_registered_during_vacuum(
    tmp_path: Path, clock: Days
) -> None:
    """Before each request of vacuum in turn."""

    def play(root: Path, at: int | None) -> int:
        store = Hooked(open_store(str(root), OPTIONS, environment=clock))
        lake = lv.Lake(root, engine="local", store=store, environment=clock)
        lake.create("x", "id BIGINT")
        lake.append("x", [{"id": 1}])
        lake.drop("x")
        clock.pass_days(30)
        other, asked, back = _open(root, clock), list[tuple[str, str]](), list[bool]()

        def hook(kind: str, key: str) -> None:
            asked.append((kind, key))
            if len(asked) == at:
                try:
                    other.register("x", "x")
                except lv.InvalidInput:
                    back.append(False)
                else:
                    back.append(True)

        store.hook = hook
        report = lake.vacuum(dry_run=False, dropped=True)
        store.hook = None
        fresh = _open(root, clock)
        if back == [True]:
            assert _ids(fresh, "x") == [1], (at, asked[at - 1 if at else 0])
            assert not [folder for folder in report.dropped if not folder.kept]
        else:
            assert "x" not in fresh.tables()
            assert not list((root / "x").rglob("*.parquet"))
        return len(asked)

    count = play(tmp_path / "never", None)
    for at in range(1, count + 1):
        play(tmp_path / str(at), at)


def test_table_cannot_be_made_where_vacuum_deletes_files(
    lake: lv.Lake, store: Hooked, tmp_path: Path, clock: Days
) -> None:
    other, refused = _open(tmp_path, clock), list[str]()

    def hook(kind: str, key: str) -> None:
        if kind == "delete" and key.startswith("x/_delta_log/") and not refused:
            refused.append(key)
            with pytest.raises(lv.LakeVillaError):
                other.create("y", "id BIGINT", location=f"file://{tmp_path}/x")

    store.hook = hook
    lake.vacuum(dry_run=False, dropped=True)
    store.hook = None
    assert refused
    assert _open(tmp_path, clock).tables() == ["z"]


def test_interrupted_vacuum_of_a_dropped_table_is_completed_by_the_next(
    lake: lv.Lake, store: Hooked, tmp_path: Path, clock: Days
) -> None:
    class Died(BaseException):
        pass

    def hook(kind: str, key: str) -> None:
        if kind == "delete" and key.startswith("x/_delta_log/"):
            raise Died

    store.hook = hook
    with pytest.raises(Died):
        lake.vacuum(dry_run=False, dropped=True)
    store.hook = None
    other = _open(tmp_path, clock)
    with pytest.raises(lv.LakeVillaError):
        other.register("x", "x")
    other.vacuum(dry_run=False, dropped=True)
    assert not list((tmp_path / "x").rglob("*.*"))
    other.create("x", "id BIGINT")
    other.append("x", [{"id": 2}])
    assert _ids(_open(tmp_path, clock), "x") == [2]


def test_list_of_dropped_folders_shrinks_when_they_are_deleted(lake: lv.Lake, clock: Days) -> None:
    for number in range(5):
        lake.create("x", "id BIGINT")
        lake.append("x", [{"id": number}])
        lake.drop("x")
    assert len(_head(lake).dropped) == 6
    clock.pass_days(30)
    lake.append("z", [{"id": 1}])
    lake.vacuum(dry_run=False, dropped=True)
    assert _head(lake).dropped == _head(lake).doomed == {"x"}
    lake.create("x", "id BIGINT")
    assert _ids(lake, "x") == []


def test_folder_that_a_late_client_wrote_to_stays_on_the_list(lake: lv.Lake, clock: Days) -> None:
    lake.create("x", "id BIGINT")
    (place,) = {ref.location for ref in _head(lake).tables.values()} - {"z"}
    lake.drop("x")
    clock.pass_days(30)
    late = lake._store

    def hook(kind: str, key: str) -> None:
        if kind == "delete" and key.startswith(f"{place}/"):
            late.inner.put(f"{place}/part-{'0' * 32}-{'1' * 32}.parquet", b"late")

    late.hook = hook
    lake.vacuum(dry_run=False, dropped=True)
    late.hook = None
    assert place in _head(lake).dropped


@pytest.mark.parametrize("name", [None, "t"], ids=["the whole lake", "the table"])
def test_table_of_another_lake_is_left_alone(tmp_path: Path, clock: Days, name: str | None) -> None:
    ours, theirs = _open(tmp_path / "a", clock), _open(tmp_path / "b", clock)
    ours.create("t", "id BIGINT, v BIGINT")
    ours.append("t", [{"id": 1, "v": 1}])
    ours.tag("keep")
    ours.update("t", {"v": "v + 1"})
    theirs.register("t", f"file://{tmp_path}/a/t")
    clock.pass_days(30)
    ours.vacuum(dry_run=False)
    if name is None:
        assert list(theirs.vacuum(dry_run=False).failed) == ["t"]
    else:
        with pytest.raises(lv.Unsupported):
            theirs.vacuum("t", dry_run=False)
    found = _open(tmp_path / "a", clock).at(tag="keep").read("t").collect()
    assert [row["v"] for row in found] == [1]


def test_dropped_folder_whose_table_belongs_to_another_lake_is_kept(tmp_path: Path, clock: Days) -> None:
    """It was made below this lake's root by another one."""
    ours, theirs = _open(tmp_path / "a", clock), _open(tmp_path / "b", clock)
    theirs.create("t", "id BIGINT", location=f"file://{tmp_path}/a/t")
    theirs.append("t", [{"id": 1}])
    ours.create("z", "id BIGINT")
    assert _ids(ours, "t") == [1]
    ours.drop("t")
    clock.pass_days(30)
    report = ours.vacuum(dry_run=False, dropped=True)
    assert [bool(folder.kept) for folder in report.dropped] == [True]
    assert _ids(_open(tmp_path / "b", clock), "t") == [1]


@pytest.mark.formats("delta", "iceberg")
@pytest.mark.parametrize("deleted", ["before the drop", "after the drop"])
def test_dropped_folder_in_which_another_client_made_a_table_is_kept(
    tmp_path: Path, clock: Days, deleted: str
) -> None:
    ours, theirs = _open(tmp_path / "a", clock), _open(tmp_path / "b", clock)
    for lake, number in ((ours, 1), (theirs, 2)):
        lake.create("t", "id BIGINT")
        lake.append("t", [{"id": number}])
    ours.create("z", "id BIGINT")
    folder = tmp_path / "a" / "t"
    for act in ("delete", "drop") if deleted == "before the drop" else ("drop", "delete"):
        if act == "drop":
            _open(tmp_path / "a", clock).drop("t")
        else:
            shutil.rmtree(folder)
    shutil.copytree(tmp_path / "b" / "t", folder, ignore=shutil.ignore_patterns("_lakevilla"))
    clock.pass_days(30)
    (found,) = ours.vacuum(dry_run=False, dropped=True).dropped
    assert found.kept == "another table is in it, which this lake has not dropped"
    assert list(folder.rglob("part-*.parquet"))


@pytest.mark.parametrize("place", ["x", "x/deep"])
def test_dropped_folder_that_holds_another_lake_is_kept(tmp_path: Path, clock: Days, place: str) -> None:
    outer, inner = _open(tmp_path, clock), _open(tmp_path / place, clock)
    outer.create("x", "id BIGINT")
    inner.create("t", "id BIGINT")
    outer.drop("x")
    clock.pass_days(30)
    (found,) = outer.vacuum(dry_run=False, dropped=True).dropped
    assert found.kept == "another lake is in it"
    inner.append("t", [{"id": 1}])
    assert _ids(_open(tmp_path / place, clock), "t") == [1]
