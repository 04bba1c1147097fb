"""A commit of old uploads that goes unanswered, and applies after vacuum has run."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

import lakevilla as lv
from lakevilla.store.open import open_store
from lakevilla.store.port import Ambiguous, Created, Exists, Store
from lakevilla.transaction.commit.premises import Premises
from tests.lake.pauses.test_age_of_uploads import DAY, OPTIONS, Clock
from tests.support.hooked import Hooked

pytestmark = pytest.mark.formats("delta", "iceberg")

FEATURES = {"NONE": lv.NONE, "R": lv.R, "R,CT": lv.R | lv.CT}


class Delayed(Hooked):
    """So many creates in a table's log go unanswered, unless the store `answers`; the first applies when
    `arrive` is called. Its client is suspended for so many `days` before it, and `meanwhile` is called."""

    clock: Clock
    days = 0.0
    unanswered = 2
    answers = False
    meanwhile: Callable[[], object] = staticmethod(lambda: None)

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.sent: list[tuple[str, bytes]] = []

    def create(self, key: str, data: bytes) -> Created | Exists:
        if len(self.sent) == self.unanswered or not ("/_delta_log/" in key or "/metadata/v" in key):
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


@pytest.mark.parametrize("hours", [20, 30])
def test_uploads_to_a_table_of_another_lake_that_were_published_too_late_are_rolled_back(
    tmp_path: Path, hours: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, root = Clock(), tmp_path / "owner"
    owner, other = _lake(root, clock), _lake(tmp_path / "other", clock)
    for name in ("t", "u"):
        owner.create(name, "id BIGINT")
    with owner.transaction() as both:
        # The tables have the owner that CT gives them.
        for name in ("t", "u"):
            both.append(name, [{"id": 1}])
    other.register("t", f"file://{root}/t")
    publish = Premises.publish

    def late(premises: Premises, send: Callable[[], Any]) -> Any:
        clock.ahead += hours * 3600.0
        return publish(premises, send)

    monkeypatch.setattr(Premises, "publish", late)
    tx = other.transaction(lv.R)
    tx.append("t", [{"id": 50}])
    with pytest.raises(lv.Conflict, match="took too long") if hours > 24 else nullcontext():
        tx.commit()
    assert sorted(row["id"] for row in owner.read("t").collect()) == ([1] if hours > 24 else [1, 50])
