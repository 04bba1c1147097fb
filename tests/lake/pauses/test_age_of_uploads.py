"""A transaction that commits long after its uploads: vacuum may have deleted them meanwhile."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import lakevilla as lv
from lakevilla.environment import SystemEnvironment
from lakevilla.errors import Unavailable
from lakevilla.formats import identity
from lakevilla.maintenance.vacuum import Vacuum
from lakevilla.store.open import open_store
from lakevilla.transaction.commit import writer_queues
from tests.support.hooked import Hooked

pytestmark = pytest.mark.formats("delta", "iceberg")

DAY = 24 * 3600.0
OPTIONS = {"fsync": "false"}
KINDS = {"R": lv.R, "R,CT": lv.R | lv.CT, "CT": lv.CT, "R,CT,I": lv.R | lv.CT | lv.I}


class Clock(SystemEnvironment):
    """The real world, whose clocks can be moved on together."""

    ahead = 0.0

    def elapsed(self) -> float:
        return super().elapsed() + self.ahead

    def now_ms(self) -> int:
        return super().now_ms() + int(self.ahead * 1000)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> Hooked:
    return Hooked(open_store(str(tmp_path), OPTIONS, environment=clock))


@pytest.fixture
def lake(tmp_path: Path, clock: Clock, store: Hooked) -> lv.Lake:
    lake = lv.Lake(tmp_path, engine="local", store=store, environment=clock, lease_seconds=0.2)
    for name in ("t", "u"):
        lake.create(name, "id BIGINT, v BIGINT")
        lake.append(name, [{"id": 1, "v": 1}])
    return lake


@pytest.fixture
def other(tmp_path: Path, clock: Clock) -> lv.Lake:
    return lv.Lake(tmp_path, engine="local", storage_options=OPTIONS, environment=clock, lease_seconds=0.2)


def _ids(lake: lv.Lake, name: str = "t") -> list[int]:
    return sorted(row["id"] for row in lake.read(name).collect())


def _uploads(root: Path, tx: lv.Transaction) -> list[Path]:
    tx._workspace.uploads.finish()
    return [path for path in root.rglob(f"part-{tx.id}-*.parquet") if "_delta_log" not in path.parts]


def _once(kind: str, part: str, act: Callable[[], object]) -> Callable[[str, str], None]:
    """Act before the first request of this kind whose key has this part."""
    done: list[str] = []

    def hook(request: str, key: str) -> None:
        if request == kind and part in key and not done:
            done.append(key)
            act()

    return hook


@pytest.mark.parametrize("kind", KINDS)
def test_transaction_that_catches_up_after_vacuum_deleted_its_uploads_conflicts(
    lake: lv.Lake,
    other: lv.Lake,
    clock: Clock,
    tmp_path: Path,
    kind: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(writer_queues, "OPEN_SECONDS", 1.0)
    tx = lake.transaction(KINDS[kind])
    tx.append("t", [{"id": 50, "v": 50}])
    if kind != "R":
        tx.append("u", [{"id": 51, "v": 51}])
    assert _uploads(tmp_path, tx)
    clock.ahead = 10 * DAY
    other.append("t", [{"id": 2, "v": 2}])
    other.vacuum(dry_run=False)
    assert not _uploads(tmp_path, tx)
    with pytest.raises(lv.Conflict):
        tx.update("t", {"v": "v + 1"}, where="id = 1")
        tx.commit()
    fresh = lv.Lake(tmp_path, engine="local", storage_options=OPTIONS, environment=clock)
    assert (_ids(fresh), _ids(fresh, "u")) == ([1, 2], [1])


def test_transaction_that_catches_up_with_its_uploads_in_place_commits(
    lake: lv.Lake, other: lv.Lake, clock: Clock
) -> None:
    tx = lake.transaction(lv.R)
    tx.append("t", [{"id": 50, "v": 50}])
    clock.ahead = 10 * DAY
    other.append("t", [{"id": 2, "v": 2}])
    tx.update("t", {"v": "v + 1"}, where="id = 1")
    tx.commit()
    assert _ids(other) == [1, 2, 50]


@pytest.mark.parametrize("features", [lv.NONE, lv.R], ids=["NONE", "R"])
def test_commit_that_is_sent_after_vacuum_deleted_its_uploads_finds_its_number_taken(
    lake: lv.Lake, other: lv.Lake, store: Hooked, clock: Clock, tmp_path: Path, features: lv.Features
) -> None:
    tx = lake.transaction(features)
    tx.append("t", [{"id": 50, "v": 50}])
    tx._workspace.uploads.finish()

    def sleep() -> None:
        clock.ahead = 10 * DAY
        other.vacuum(dry_run=False)
        assert not _uploads(tmp_path, tx)

    store.hook = _once(
        "create", "metadata.json" if (tmp_path / "t/metadata").exists() else "_delta_log", sleep
    )
    with pytest.raises(lv.Conflict):
        tx.commit()
    fresh = lv.Lake(tmp_path, engine="local", storage_options=OPTIONS, environment=clock)
    newest = fresh.history("t", limit=1)[0]
    assert newest.operation == "VACUUM"
    assert _ids(fresh) == [1]
    fresh.vacuum(dry_run=False)
    assert fresh.history("t", limit=1)[0].version == newest.version


@pytest.mark.parametrize("features", [lv.NONE, lv.R], ids=["NONE", "R"])
def test_commit_that_was_sent_after_vacuum_deleted_its_uploads_is_rolled_back(
    lake: lv.Lake,
    other: lv.Lake,
    store: Hooked,
    clock: Clock,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    features: lv.Features,
) -> None:
    """The vacuum of an earlier release, which takes no number."""
    monkeypatch.setattr(Vacuum, "_occupy_next", lambda *_: None)
    tx = lake.transaction(features)
    tx.append("t", [{"id": 50, "v": 50}])
    tx._workspace.uploads.finish()

    def sleep() -> None:
        clock.ahead = 10 * DAY
        other.vacuum(dry_run=False)
        assert not _uploads(tmp_path, tx)

    store.hook = _once(
        "create", "metadata.json" if (tmp_path / "t/metadata").exists() else "_delta_log", sleep
    )
    with pytest.raises(lv.Conflict):
        tx.commit()
    store.hook = None
    fresh = lv.Lake(tmp_path, engine="local", storage_options=OPTIONS, environment=clock)
    assert _ids(fresh) == [1]
    newest = fresh.history("t", limit=1)[0]
    assert newest.operation == "ROLLBACK"
    told = fresh.outcome(tx.id)
    assert told.state == "undecided"
    assert f"rolled back, by version {newest.version} of 't'" in told.advice
    fresh.append("t", [{"id": 3, "v": 3}])
    assert _ids(fresh) == [1, 3]


@pytest.mark.parametrize("kind", KINDS)
def test_commit_of_old_uploads_while_vacuum_deletes_them_conflicts(
    lake: lv.Lake, other: lv.Lake, store: Hooked, clock: Clock, tmp_path: Path, kind: str
) -> None:
    tx = other.transaction(KINDS[kind])
    tx.append("t", [{"id": 50, "v": 50}])
    if kind != "R":
        tx.append("u", [{"id": 51, "v": 51}])
    assert _uploads(tmp_path, tx)
    clock.ahead = 10 * DAY
    raised: list[type[BaseException]] = []

    def commit() -> None:
        try:
            tx.commit()
        except lv.Aborted as error:
            raised.append(type(error))

    store.hook = _once("delete", f"part-{tx.id}", commit)
    lake.vacuum(dry_run=False)
    store.hook = None
    assert raised == [lv.Conflict]
    fresh = lv.Lake(tmp_path, engine="local", storage_options=OPTIONS, environment=clock)
    assert (_ids(fresh), _ids(fresh, "u")) == ([1], [1])


@pytest.mark.parametrize("kind", KINDS)
def test_vacuum_that_meets_a_commit_of_old_uploads_leaves_them(
    lake: lv.Lake, other: lv.Lake, store: Hooked, clock: Clock, tmp_path: Path, kind: str
) -> None:
    tx = other.transaction(KINDS[kind])
    tx.append("t", [{"id": 50, "v": 50}])
    if kind != "R":
        tx.append("u", [{"id": 51, "v": 51}])
    _uploads(tmp_path, tx)
    clock.ahead = 10 * DAY
    # Vacuum has found no sign of the transaction, and is about to take hold of it.
    store.hook = _once("create", f"txns/{tx.id}", tx.commit)
    lake.vacuum(dry_run=False)
    store.hook = None
    fresh = lv.Lake(tmp_path, engine="local", storage_options=OPTIONS, environment=clock)
    assert 50 in _ids(fresh)


@pytest.mark.parametrize("kind", ["R,CT", "CT", "R,CT,I"])
def test_slot_that_was_created_after_vacuum_deleted_its_uploads_is_refused(
    lake: lv.Lake, other: lv.Lake, store: Hooked, clock: Clock, tmp_path: Path, kind: str
) -> None:
    tx = lake.transaction(KINDS[kind])
    for name in ("t", "u"):
        tx.append(name, [{"id": 50, "v": 50}])
    tx._workspace.uploads.finish()

    def sleep() -> None:
        clock.ahead = 10 * DAY
        other.vacuum(dry_run=False)
        assert not _uploads(tmp_path, tx)

    store.hook = _once("create", "_lakevilla/global/log/", sleep)
    with pytest.raises(lv.Conflict):
        tx.commit()
    store.hook = None
    fresh = lv.Lake(tmp_path, engine="local", storage_options=OPTIONS, environment=clock)
    assert (_ids(fresh), _ids(fresh, "u")) == ([1], [1])
    # No table is torn: nothing of the commit was published.
    assert not fresh.explain().findings
    assert fresh.outcome(tx.id).state != "torn"
    with fresh.transaction(KINDS[kind]) as again:
        for name in ("t", "u"):
            again.append(name, [{"id": 51, "v": 51}])
    assert (_ids(fresh), _ids(fresh, "u")) == ([1, 51], [1, 51])


@pytest.mark.parametrize("new", [False, True], ids=["tables that exist", "a new table too"])
def test_slot_without_some_of_its_uploads_is_refused_by_a_client_that_settles_it(
    lake: lv.Lake, other: lv.Lake, store: Hooked, clock: Clock, tmp_path: Path, new: bool
) -> None:
    tx = lake.transaction(lv.CT)
    for name in ("t", "u"):
        tx.append(name, [{"id": 50, "v": 50}])
    if new:
        tx.create("w", pa.table({"id": [50], "v": [50]}))
    tx._workspace.uploads.finish()
    asked: list[str] = []

    def sleep() -> None:
        clock.ahead = 10 * DAY
        gone = [path for path in _uploads(tmp_path, tx) if path.relative_to(tmp_path).parts[0] != "t"]
        assert len(gone) == (2 if new else 1)
        for path in gone:
            path.unlink()

    def hook(request: str, key: str) -> None:
        slot = request == "create" and "_lakevilla/global/log/" in key
        if asked and not slot:
            raise Unavailable("the client has died")
        if slot:
            asked.append(key)
            sleep()

    store.hook = hook
    with pytest.raises(lv.CommitUnknown):
        tx.commit()
    store.hook = None
    other.recover()
    assert (_ids(other), _ids(other, "u"), other.tables()) == ([1], [1], ["t", "u"])
    assert other.outcome(tx.id).state == "aborted"
    assert not [found for found in other.explain().findings if found.kind == "torn"]
    with other.transaction() as again:
        for name in ("t", "u"):
            again.append(name, [{"id": 51, "v": 51}])
    assert (_ids(other), _ids(other, "u")) == ([1, 51], [1, 51])


@pytest.mark.parametrize("kind", ["R", "R,CT"])
def test_commit_whose_table_was_deleted_while_its_client_slept_is_not_called_absent(
    lake: lv.Lake, store: Hooked, clock: Clock, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(identity, "TRUST_DIRECTORY_SECONDS", 0.0)
    tx = lake.transaction(KINDS[kind])
    tx.append("t", [{"id": 50, "v": 50}])
    tx._workspace.uploads.finish()
    sent: list[str] = []

    def hook(request: str, key: str) -> None:
        if request == "create" and ("_delta_log" in key or "metadata/v" in key):
            # Suspended right before it is sent, and again when it has applied.
            sent.append(key)
            clock.ahead = 10 * DAY
        elif sent:
            shutil.rmtree(tmp_path / "t", ignore_errors=True)

    store.hook = hook
    with pytest.raises(lv.CommitUnknown, match="was deleted or recreated"):
        tx.commit()


def _register(tmp_path: Path, clock: Clock) -> lv.Lake:
    """Another lake, which knows the table `t`."""
    lake = lv.Lake(
        tmp_path / "another", engine="local", storage_options=OPTIONS, environment=clock, lease_seconds=0.2
    )
    lake.register("t", f"file://{tmp_path}/t")
    return lake


def test_uploads_of_another_lake_that_its_owner_may_delete_are_not_published(
    lake: lv.Lake, clock: Clock, tmp_path: Path
) -> None:
    another = _register(tmp_path, clock)
    with lake.transaction() as tx:
        # The table has the owner that CT gives it.
        tx.append("t", [{"id": 2, "v": 2}])
        tx.append("u", [{"id": 2, "v": 2}])
    tx = another.transaction(lv.R)
    tx.append("t", [{"id": 50, "v": 50}])
    tx._workspace.uploads.finish()
    clock.ahead = 1.3 * DAY
    with pytest.raises(lv.Conflict, match="which owns the table, may delete"):
        tx.commit()
    assert _ids(lake) == [1, 2]


def test_uploads_of_another_lake_from_the_same_day_are_published(
    lake: lv.Lake, clock: Clock, tmp_path: Path
) -> None:
    tx = _register(tmp_path, clock).transaction(lv.R)
    tx.append("t", [{"id": 50, "v": 50}])
    clock.ahead = 0.9 * DAY
    tx.commit()
    assert _ids(lake) == [1, 50]


def test_old_uploads_to_a_table_of_the_own_lake_are_published(
    lake: lv.Lake, clock: Clock, other: lv.Lake
) -> None:
    tx = lake.transaction(lv.R)
    tx.append("t", [{"id": 50, "v": 50}])
    clock.ahead = 1.3 * DAY
    tx.commit()
    assert _ids(other) == [1, 50]
