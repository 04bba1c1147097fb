"""A lake's folder is deleted and another lake is created there, while a client commits to the first.

The log entries of both lakes have the same keys. The commit must neither move the new lake's HEAD nor be
completed by the new lake's clients, also not on tables outside of the root, which both lakes may know.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import lakevilla as lv
from lakevilla.settle import entries
from lakevilla.settle.commits import CommitSettler, Outcome
from lakevilla.versions.commits import Commit
from lakevilla.versions.log import GlobalLog, LakeRecreated

pytestmark = pytest.mark.formats("delta", "iceberg")


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entries, "HELP_AFTER_SECONDS", 0.0)


def _open(path: Path) -> lv.Lake:
    return lv.Lake(path / "lake", engine="local", storage_options={"fsync": "false"})


def _ids(lake: lv.Lake, table: str) -> list[int]:
    return sorted(row["id"] for row in lake.read(table).collect())


def _make(path: Path) -> lv.Lake:
    """A lake with some entries, a table in it and one outside of it."""
    lake = _open(path)
    lake.create("far", "id BIGINT", location=f"file://{path}/far")
    for name in ("t", "u", "v"):
        lake.create(name, "id BIGINT")
    return lake


def _delete(path: Path) -> None:
    shutil.rmtree(path / "lake")


def _use_anew(path: Path) -> None:
    """The folder is deleted, and another lake with fewer entries made there, which knows the table too."""
    _delete(path)
    _found(path)


def _found(path: Path) -> None:
    (path / "far/_lakevilla/owner.json").unlink()
    lake = _open(path)
    lake.register("far", f"file://{path}/far")
    lake.create("t", "id BIGINT")


def _commit(lake: lv.Lake) -> None:
    with lake.transaction() as tx:
        tx.append("t", [{"id": 1}])
        tx.append("far", [{"id": 1}])


def _go_on(path: Path) -> None:
    """The new lake comes past the number of the old one's entry."""
    lake = _open(path)
    for number in range(6):
        lake.append("t", [{"id": 10 + number}])
        lake.tag(f"tag{number}")
    assert _ids(lake, "t") == [10 + number for number in range(6)]
    assert lake.tables() == ["far", "t"]


def test_head_of_the_new_lake_is_not_moved_by_a_commit_to_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, settle = _make(tmp_path), CommitSettler.settle

    def settle_late(self: CommitSettler, commit: Commit) -> Outcome:
        found = settle(self, commit)
        monkeypatch.undo()
        _use_anew(tmp_path)
        return found

    monkeypatch.setattr(CommitSettler, "settle", settle_late)
    with pytest.raises(lv.errors.CommitUnknown, match=r"deleted or recreated.*Look at the data"):
        _commit(lake)
    _go_on(tmp_path)


@pytest.mark.parametrize("again", [_use_anew, _delete])
def test_entry_that_was_made_for_the_old_lake_does_nothing_in_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, again: Callable[[Path], None]
) -> None:
    lake, create_slot = _make(tmp_path), GlobalLog.create_slot

    def create_late(self: GlobalLog, entry: object) -> object:
        monkeypatch.undo()
        again(tmp_path)
        create_slot(self, entry)  # type: ignore[arg-type]
        raise KeyboardInterrupt

    monkeypatch.setattr(GlobalLog, "create_slot", create_late)
    with pytest.raises(KeyboardInterrupt):
        _commit(lake)
    if again is _delete:
        _found(tmp_path)
    _go_on(tmp_path)
    assert _ids(_open(tmp_path), "far") == []


def test_slot_is_not_created_in_the_log_of_another_lake_after_a_sleep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, create_slot = _make(tmp_path), GlobalLog.create_slot

    def create_late(self: GlobalLog, entry: object) -> object:
        monkeypatch.undo()
        _use_anew(tmp_path)
        with monkeypatch.context() as patch:
            patch.setattr(GlobalLog, "_is_fresh", lambda *_: False)
            return create_slot(self, entry)  # type: ignore[arg-type]

    monkeypatch.setattr(GlobalLog, "create_slot", create_late)
    with pytest.raises(LakeRecreated, match="run the transaction again"):
        _commit(lake)
    assert len(list((tmp_path / "lake/_lakevilla/global/log").iterdir())) == 2
    _commit(lake)
    assert _ids(_open(tmp_path), "far") == [1]


def test_client_that_slept_after_its_slot_deletes_no_slot_of_the_new_lake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its entry may have been settled before the lake was deleted, so the outcome is unknown."""
    lake, log = _make(tmp_path), tmp_path / "lake/_lakevilla/global/log"
    slots: dict[str, bytes] = {}

    def sleep_after_the_create(self: GlobalLog, seq: int) -> bool:
        if not (log / f"{seq:020d}.json").exists():
            return True
        monkeypatch.undo()
        _use_anew(tmp_path)
        _go_on(tmp_path)
        slots.update({path.name: path.read_bytes() for path in log.iterdir()})
        assert f"{seq:020d}.json" in slots
        return False

    monkeypatch.setattr(GlobalLog, "_is_fresh", sleep_after_the_create)
    with pytest.raises(lv.errors.CommitUnknown):
        _commit(lake)
    assert {path.name: path.read_bytes() for path in log.iterdir()} == slots
