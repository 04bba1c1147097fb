"""A commit of old uploads that goes unanswered, and applies after vacuum has run."""

import os
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event, Thread

import pytest
from deltalake import DeltaTable

import lakevilla as lv
from lakevilla.markers.records import VACUUM, Lease
from lakevilla.store import keys
from lakevilla.store.open import open_store
from lakevilla.store.port import Ambiguous, Created, Exists, Store
from tests.lake.pauses.test_age_of_uploads import DAY, OPTIONS, Clock
from tests.support.hooked import Hooked

pytestmark = pytest.mark.formats("delta", "iceberg")

FEATURES = {"NONE": lv.NONE, "R": lv.R, "R,CT": lv.R | lv.CT}


class Delayed(Hooked):
    """So many creates in a table's log go unanswered, unless the store `answers`; the first applies when
    `arrive` is called. Its client is suspended for so many `days` before it, and `meanwhile` is called; or
    the commit applies, its client is suspended, and `afterwards` is called."""

    clock: Clock
    days = 0.0
    unanswered = 2
    answers = False
    meanwhile: Callable[[], object] = staticmethod(lambda: None)
    afterwards: Callable[[], object] | None = None
    first: Callable[[], object] | None = None
    """The first copy of the next commit applies, its answer is lost, this is called, and it is sent again."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.sent: list[tuple[str, bytes]] = []

    def create(self, key: str, data: bytes) -> Created | Exists:
        is_commit = "/_delta_log/" in key or "/metadata/v" in key
        if self.first is not None and is_commit:
            assert isinstance(super().create(key, data), Created)
            act, self.first = self.first, None
            act()
            self.clock.ahead += self.days * DAY
            answer = super().create(key, data)
            return replace(answer, doubtful=True)
        if self.afterwards is not None and is_commit:
            answer, act, self.afterwards = super().create(key, data), self.afterwards, None
            act()
            self.clock.ahead += self.days * DAY
            return answer
        if len(self.sent) == self.unanswered or not is_commit:
            return super().create(key, data)
        self.sent.append((key, data))
        if len(self.sent) == 1:
            self.clock.ahead += self.days * DAY
            self.meanwhile()
        if self.answers:
            return super().create(key, data)
        raise Ambiguous(f"{key} went unanswered")

    def arrive(self) -> Created | Exists:
        return self.inner.create(*self.sent[0])


@dataclass
class Scene:
    """A table with one row, and a transaction with another one whose commit will go unanswered."""

    root: Path
    clock: Clock
    store: Delayed
    tx: lv.Transaction

    def other(self) -> lv.Lake:
        return _lake(self.root, self.clock)

    def ids(self) -> list[int]:
        return sorted(row["id"] for row in self.other().read("t").collect())

    def clean_log(self) -> None:
        """Another client writes two versions, only the last of which stays in the log, and a day passes."""
        for number in (2, 3):
            self.other().append("t", [{"id": number}])
        table = DeltaTable(str(self.root / "t"))
        table.create_checkpoint()
        log = self.root / "t" / "_delta_log"
        for version in range(table.version()):
            (log / f"{version:020d}.json").unlink()
        for left in log.iterdir():
            # The store's clock moves on as well.
            os.utime(left, (left.stat().st_mtime - DAY,) * 2)

    def uploads(self) -> list[Path]:
        return [path for path in self.root.rglob(f"part-{self.tx.id}-*.parquet") if path.is_file()]


def _lake(root: Path, clock: Clock) -> lv.Lake:
    return lv.Lake(root, engine="local", storage_options=OPTIONS, environment=clock, lease_seconds=0.2)


@pytest.fixture(params=FEATURES)
def scene(tmp_path: Path, request: pytest.FixtureRequest) -> Scene:
    clock = Clock()
    maker = _lake(tmp_path, clock)
    maker.create("t", "id BIGINT")
    maker.append("t", [{"id": 1}])
    store = Delayed(open_store(str(tmp_path), OPTIONS, environment=clock))
    store.clock = clock
    lake = lv.Lake(tmp_path, engine="local", store=store, environment=clock, lease_seconds=0.2)
    tx = lake.transaction(FEATURES[request.param])
    tx.append("t", [{"id": 50}])
    tx._workspace.uploads.finish()
    return Scene(tmp_path, clock, store, tx)


@pytest.mark.parametrize("suspended", ["before the commit", "in the commit"])
def test_vacuum_keeps_uploads_of_an_unanswered_commit_for_the_retention(scene: Scene, suspended: str) -> None:
    if suspended == "in the commit":
        scene.store.days = 10.0
    else:
        scene.clock.ahead += 10 * DAY
    with pytest.raises(lv.CommitUnknown):
        scene.tx.commit()
    scene.other().vacuum(dry_run=False)
    assert isinstance(scene.store.arrive(), Created)
    assert scene.ids() == [1, 50]
    assert scene.other().outcome(scene.tx.id).state == "committed"


def test_vacuum_deletes_uploads_of_an_unanswered_commit_after_the_retention(scene: Scene) -> None:
    scene.clock.ahead += 10 * DAY
    with pytest.raises(lv.CommitUnknown):
        scene.tx.commit()
    scene.clock.ahead += 10 * DAY
    scene.other().vacuum(dry_run=False)
    assert not scene.uploads()
    assert not list((scene.root / "_lakevilla" / "txns").rglob("*.json"))


def test_unanswered_commit_of_a_suspended_client_is_sent_again(scene: Scene) -> None:
    scene.store.days, scene.store.unanswered = 10.0, 1
    scene.tx.commit()
    assert isinstance(scene.store.arrive(), Exists)
    assert scene.ids() == [1, 50]


def test_unanswered_commit_is_rolled_back_if_vacuum_deleted_its_uploads(scene: Scene) -> None:
    scene.store.days, scene.store.unanswered = 10.0, 1
    scene.store.meanwhile = lambda: scene.other().vacuum(dry_run=False)
    with pytest.raises(lv.Conflict, match="took too long"):
        scene.tx.commit()
    assert not scene.uploads()
    assert isinstance(scene.store.arrive(), Exists)
    assert scene.ids() == [1]


def test_commit_whose_answer_was_lost_is_rolled_back_if_vacuum_deleted_its_uploads(scene: Scene) -> None:
    """It is read back; on Iceberg what it names cannot be read any more."""

    def lose() -> None:
        scene.other().vacuum(dry_run=False)
        scene.store.arrive()

    scene.store.days, scene.store.unanswered, scene.store.meanwhile = 10.0, 1, lose
    with pytest.raises(lv.Conflict, match="took too long"):
        scene.tx.commit()
    assert scene.ids() == [1]
    assert scene.other().outcome(scene.tx.id).state != "committed"


@pytest.mark.formats("delta")
def test_unanswered_commit_whose_log_entry_was_cleaned_up_stays_unknown(scene: Scene) -> None:
    def clean() -> None:
        scene.store.arrive()
        scene.clean_log()

    scene.store.days, scene.store.unanswered, scene.store.meanwhile = 10.0, 1, clean
    with pytest.raises(lv.CommitUnknown):
        scene.tx.commit()
    assert scene.ids() == [1, 2, 3, 50]
    assert len(list((scene.root / "t" / "_delta_log").glob("*.json"))) == 1


@pytest.mark.formats("delta")
def test_commit_whose_first_copy_may_have_been_cleaned_up_is_not_called_a_conflict(scene: Scene) -> None:
    """Its number is free again when the second copy applies, because the log was cleaned up meanwhile."""
    scene.store.days, scene.store.unanswered, scene.store.first = 10.0, 0, scene.clean_log
    with pytest.raises(lv.CommitUnknown, match="cleaned up"):
        scene.tx.commit()
    assert scene.ids() == [1, 2, 3, 50]
    assert len(list((scene.root / "t" / "_delta_log").glob("*.json"))) == 1


def test_commit_that_is_sent_while_vacuum_deletes_its_uploads_is_rolled_back(scene: Scene) -> None:
    """Vacuum has asked the log for commits, and is about to delete: the files are still there."""
    asleep, awake, raised = Event(), Event(), []

    def sleep() -> None:
        asleep.set()
        assert awake.wait(30)

    def commit() -> None:
        with pytest.raises(lv.Conflict, match="took too long") as error:
            scene.tx.commit()
        raised.append(error)

    def wake(request: str, key: str) -> None:
        if request == "delete" and f"part-{scene.tx.id}" in key and not awake.is_set():
            assert scene.uploads()
            awake.set()
            client.join(30)

    scene.store.days, scene.store.meanwhile, scene.store.answers = 10.0, sleep, True
    client = Thread(target=commit)
    client.start()
    assert asleep.wait(30)
    store = Hooked(open_store(str(scene.root), OPTIONS, environment=scene.clock))
    store.hook = wake
    keeper = lv.Lake(scene.root, engine="local", store=store, environment=scene.clock, lease_seconds=0.2)
    keeper.vacuum(dry_run=False)
    assert raised
    assert scene.ids() == [1]


@pytest.mark.formats("delta")
@pytest.mark.parametrize("kept", [True, False], ids=["its uploads stay", "its uploads were deleted"])
def test_commit_that_others_have_built_on_and_cleaned_up_is_not_rolled_back(scene: Scene, kept: bool) -> None:
    """Its answer comes days later. Numbers right after it are not free."""

    def clean() -> None:
        if not kept:
            for upload in scene.uploads():
                upload.unlink()
        # Vacuum of this lake believes that the transaction is dead.
        lease = Lease(scene.tx.id, VACUUM, "put", 1, 0).encode()
        scene.store.inner.create(keys.lease(scene.tx.id), lease)
        scene.clean_log()

    scene.store.days, scene.store.unanswered, scene.store.afterwards = 10.0, 0, clean
    with nullcontext() if kept else pytest.raises(lv.Corrupt, match="restore the file"):
        scene.tx.commit()
    log = scene.root / "t" / "_delta_log"
    assert [path.name for path in log.glob("*.json")] == [f"{4:020d}.json"]


def test_late_answer_of_a_commit_whose_rows_were_rewritten_since_is_a_success(scene: Scene) -> None:
    """Its uploads are not needed any more, and vacuum has deleted them."""

    def rewrite() -> None:
        other = scene.other()
        other.update("t", set={"id": "id + 1"}, where="id = 50")
        scene.clock.ahead += 10 * DAY
        other.vacuum(dry_run=False)
        assert not scene.uploads()

    scene.store.unanswered, scene.store.afterwards = 0, rewrite
    scene.tx.commit()
    assert scene.ids() == [1, 51]


def test_vacuum_that_was_suspended_leaves_the_lease_of_a_client_that_is_alive_again(scene: Scene) -> None:
    """Another vacuum has let the transaction go meanwhile, and its client has written a lease since."""
    scene.clock.ahead += 10 * DAY
    key = keys.lease(scene.tx.id)
    store = Hooked(open_store(str(scene.root), OPTIONS, environment=scene.clock))

    def sleep(request: str, deleted: str) -> None:
        if request == "delete" and f"part-{scene.tx.id}" in deleted:
            store.hook = None
            scene.other().vacuum(dry_run=False)
            assert store.get(key) is None
            assert scene.tx._queues.write_lease() is None

    store.hook = sleep
    keeper = lv.Lake(scene.root, engine="local", store=store, environment=scene.clock, lease_seconds=0.2)
    keeper.vacuum(dry_run=False)
    assert store.hook is None
    found = store.get(key)
    assert found is not None
    assert Lease.decode(found.data, key).attempt == scene.tx.id
    scene.tx.abort()
