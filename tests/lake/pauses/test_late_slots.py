"""A slot that is created days after its entry was made: the tables' logs may have been cleaned up before."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread

import pyarrow as pa
import pytest
from deltalake import DeltaTable

import lakevilla as lv
from lakevilla.environment import Environment
from lakevilla.maintenance import file_listing
from lakevilla.settle.premise import Premise
from lakevilla.store.open import open_store
from lakevilla.store.port import Store
from tests.lake.pauses.test_age_of_uploads import DAY, OPTIONS, Clock
from tests.lake.pauses.test_age_while_settling import SlowAnswers
from tests.support.hooked import Hooked
from tests.support.outsiders import OUTSIDERS

SLOT = "_lakevilla/global/log/"
KINDS = {"CT": lv.CT, "R,CT": lv.R | lv.CT, "CT,I": lv.CT | lv.I, "R,CT,I": lv.R | lv.CT | lv.I}


class Died(BaseException):
    """Ends a client where a process would be killed."""


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> Hooked:
    return Hooked(open_store(str(tmp_path), OPTIONS, environment=clock))


@pytest.fixture
def other(tmp_path: Path, clock: Clock) -> lv.Lake:
    return lv.Lake(tmp_path, engine="local", storage_options=OPTIONS, environment=clock)


def _open(
    tmp_path: Path, clock: Clock, store: Hooked, features: lv.Features, table_format: str = "delta"
) -> lv.Transaction:
    """A transaction that has changed two tables."""
    lake = lv.Lake(tmp_path, engine="local", store=store, environment=clock)
    for name in "ab":
        lake.create(name, "id BIGINT, v BIGINT", format=table_format)
        lake.append(name, [{"id": 1, "v": 1}])
    tx = lake.transaction(features)
    for name in "ab":
        tx.append(name, [{"id": 2, "v": 2}])
    return tx


def _clean(folder: Path, table_format: str = "delta", begin: int = 10) -> None:
    """Another client appends three rows, and cleans the log, but for what is newest."""
    client = OUTSIDERS[table_format]
    for number in range(3):
        client.append(folder, pa.table({"id": [begin + number], "v": [0]}))
    if table_format == "delta":
        DeltaTable(str(folder)).create_checkpoint()
    for version in range(client.version(folder)):
        (folder / client.entry(version)).unlink(missing_ok=True)


def _sleep(
    tmp_path: Path,
    clock: Clock,
    store: Hooked,
    cleaned: str,
    then: Callable[[], None],
    table_format: str = "delta",
) -> None:
    """Right before the slot is created its client sleeps. Others append to these tables, and clean their
    logs, but for what is newest."""

    def hook(kind: str, key: str) -> None:
        if kind != "create" or not key.startswith(SLOT):
            return
        store.hook = None
        for name in cleaned:
            _clean(tmp_path / name, table_format)
        clock.ahead += 5 * DAY
        then()

    store.hook = hook


def _ids(lake: lv.Lake, name: str) -> list[int]:
    return sorted(row["id"] for row in lake.read(name).collect())


OTHERS = [10, 11, 12]


@pytest.mark.parametrize("cleaned", ["a", "ab"])
@pytest.mark.parametrize("kind", KINDS)
def test_slot_created_after_the_logs_were_cleaned_is_refused(
    tmp_path: Path, clock: Clock, store: Hooked, other: lv.Lake, kind: str, cleaned: str
) -> None:
    tx = _open(tmp_path, clock, store, KINDS[kind])
    _sleep(tmp_path, clock, store, cleaned, lambda: None)
    with pytest.raises((lv.Conflict, lv.ValidationFailed)):
        tx.commit()
    # With recovery a later entry of the same transaction might have been committed.
    assert other.outcome(tx.id).state == ("undecided" if lv.R in KINDS[kind] else "aborted")
    for name in "ab":
        assert _ids(other, name) == [1] + (OTHERS if name in cleaned else [])
        other.append(name, [{"id": 20, "v": 0}])


def _decide_and_die(tx: lv.Transaction, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client dies right after its slot was created."""
    with monkeypatch.context() as patched:
        patched.setattr(Premise, "decided", _die)
        with pytest.raises(Died):
            tx.commit()


@pytest.mark.parametrize("days", [0, 5])
@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
def test_slot_created_after_the_logs_were_cleaned_is_refused_by_a_client_that_finds_it(
    tmp_path: Path,
    clock: Clock,
    store: Hooked,
    other: lv.Lake,
    monkeypatch: pytest.MonkeyPatch,
    table_format: str,
    days: int,
) -> None:
    tx = _open(tmp_path, clock, store, lv.R | lv.CT | lv.I, table_format)
    _sleep(tmp_path, clock, store, "a", lambda: None, table_format)
    _decide_and_die(tx, monkeypatch)
    clock.ahead += days * DAY
    other.recover()
    assert other.outcome(tx.id).state != "torn"
    other.append("a", [{"id": 20, "v": 0}])
    assert (_ids(other, "a"), _ids(other, "b")) == ([1, *OTHERS, 20], [1])
    assert sorted(row["id"] for row in OUTSIDERS[table_format].rows(tmp_path / "a")) == [1, *OTHERS, 20]


def test_log_cleaned_past_the_time_of_the_slot_leaves_the_table_torn(
    tmp_path: Path, clock: Clock, store: Hooked, other: lv.Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then the part may have been published there, and its entry cleaned up."""
    tx = _open(tmp_path, clock, store, lv.R | lv.CT | lv.I)
    _sleep(tmp_path, clock, store, "a", lambda: None)
    _decide_and_die(tx, monkeypatch)
    clock.ahead += 5 * DAY
    _touch(tmp_path / "a", clock)
    other.recover()
    assert other.outcome(tx.id).state == "torn"
    assert [row["id"] for row in OUTSIDERS["delta"].rows(tmp_path / "b")] == [1]
    assert OUTSIDERS["delta"].version(tmp_path / "a") == 4
    with pytest.raises(lv.Torn):
        other.append("a", [{"id": 20, "v": 0}])


def _not_answering_once_given_up(tmp_path: Path, clock: Clock, name: str) -> lv.Lake:
    """The client of a store that does not answer about this table after HEAD has given it up."""
    store = Hooked(open_store(str(tmp_path), OPTIONS, environment=clock))
    given_up = False

    def hook(kind: str, key: str) -> None:
        nonlocal given_up
        if given_up and key.startswith(f"{name}/"):
            raise lv.Unavailable(f"{kind} {key}: no route")
        given_up = given_up or (kind == "replace" and key.endswith("HEAD.json"))

    store.hook = hook
    return lv.Lake(tmp_path, engine="local", store=store, environment=clock)


def test_table_whose_store_does_not_answer_is_left_to_the_next_client(
    tmp_path: Path, clock: Clock, store: Hooked, other: lv.Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    tx = _open(tmp_path, clock, store, lv.CT)
    _sleep(tmp_path, clock, store, "a", lambda: None)
    _decide_and_die(tx, monkeypatch)
    helper = _not_answering_once_given_up(tmp_path, clock, "a")
    with pytest.raises(lv.Unavailable, match="no route"):
        helper.recover()
    other.recover()
    assert other.outcome(tx.id).state == "aborted"
    assert (_ids(other, "a"), _ids(other, "b")) == ([1, *OTHERS], [1])


def test_operator_ends_a_late_slot_on_a_table_whose_store_is_lost(
    tmp_path: Path, clock: Clock, store: Hooked, other: lv.Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    tx = _open(tmp_path, clock, store, lv.CT)
    _sleep(tmp_path, clock, store, "a", lambda: None)
    _decide_and_die(tx, monkeypatch)
    assert _not_answering_once_given_up(tmp_path, clock, "a").recover("b", give_up="A").settled
    assert other.outcome(tx.id).state == "torn"
    assert _ids(other, "b") == [1]
    other.append("b", [{"id": 20, "v": 0}])


def test_client_that_passed_what_was_cleaned_up_does_not_publish_a_part_that_others_refused(
    tmp_path: Path, clock: Clock, store: Hooked, other: lv.Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is suspended right before it publishes above the newest version, and others clean up below that."""
    tx = _open(tmp_path, clock, store, lv.CT)
    _sleep(tmp_path, clock, store, "", lambda: None)
    _decide_and_die(tx, monkeypatch)
    # Written before the slot was created, and met by the client that helps.
    folder = tmp_path / "a"
    for number in range(3):
        OUTSIDERS["delta"].append(folder, pa.table({"id": [10 + number], "v": [0]}))
    _touch(folder, clock, -2 * DAY)
    slow = Hooked(open_store(str(tmp_path), OPTIONS, environment=clock))
    helper = lv.Lake(tmp_path, engine="local", store=slow, environment=clock)

    def clean_and_settle() -> None:
        DeltaTable(str(folder)).create_checkpoint()
        for version in range(4):
            _log_entry(tmp_path, "a", version).unlink()
        clock.ahead += 5 * DAY
        other.recover()
        assert other.outcome(tx.id).state != "torn"

    def hook(kind: str, key: str) -> None:
        if kind == "create" and key.endswith(f"a/_delta_log/{5:020d}.json"):
            slow.hook = None
            clean_and_settle()

    slow.hook = hook
    helper.recover()
    assert slow.hook is None
    assert (_ids(other, "a"), _ids(other, "b")) == ([1, *OTHERS], [1])


def test_part_that_was_published_before_the_log_was_cleaned_below_it_leaves_the_table_torn(
    tmp_path: Path, clock: Clock, store: Hooked, other: lv.Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    tx = _open(tmp_path, clock, store, lv.CT)
    _sleep(tmp_path, clock, store, "", lambda: None)
    _decide_and_die(tx, monkeypatch)
    with monkeypatch.context() as patched:
        patched.setattr("lakevilla.settle.completion.move_head", _die)
        with pytest.raises(Died):
            other.recover()
    DeltaTable(str(tmp_path / "a")).create_checkpoint()
    for version in (0, 1):
        _log_entry(tmp_path, "a", version).unlink()
    other.recover()
    assert (other.outcome(tx.id).state, _ids(other, "b")) == ("torn", [1])


def test_owner_whose_slot_is_answered_late_deletes_what_it_creates_under_used_numbers(
    tmp_path: Path, clock: Clock, other: lv.Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that helped has published on one table, and rolled that back; then the logs were cleaned."""
    slow = SlowAnswers(open_store(str(tmp_path), OPTIONS, environment=clock))
    tx = _open(tmp_path, clock, slow, lv.CT)
    tx.sql("UPDATE a SET v = 5")
    tx.sql("UPDATE b SET v = 5")
    OUTSIDERS["delta"].update(tmp_path / "b", {"v": "v + 100"})

    def half() -> None:
        with monkeypatch.context() as patched:
            patched.setattr("lakevilla.settle.completion.move_head", _die)
            with pytest.raises(Died):
                other.recover()
        OUTSIDERS["delta"].append(tmp_path / "a", pa.table({"id": [10], "v": [0]}))
        DeltaTable(str(tmp_path / "a")).create_checkpoint()
        for version in range(4):
            _log_entry(tmp_path, "a", version).unlink()
        clock.ahead += 5 * DAY

    def hook(kind: str, key: str) -> None:
        if kind == "create" and key.startswith(SLOT):
            slow.hook, slow.then = None, half

    slow.hook = hook
    with pytest.raises(lv.LakeVillaError):
        tx.commit()
    assert not any(_log_entry(tmp_path, "a", version).exists() for version in range(4))
    assert sorted(row["id"] for row in OUTSIDERS["delta"].rows(tmp_path / "a")) == [1, 10]


def _die(*_: object) -> None:
    raise Died


def _touch(folder: Path, clock: Clock, seconds: float = 0.0) -> None:
    """The log's files are as old as if they had been written so long from now."""
    for path in (folder / "_delta_log").iterdir():
        os.utime(path, (time.time() + clock.ahead + seconds,) * 2)


def _log_entry(tmp_path: Path, name: str, version: int) -> Path:
    return tmp_path / name / "_delta_log" / f"{version:020d}.json"


@pytest.mark.parametrize("kind", KINDS)
def test_slot_created_while_vacuum_deletes_its_uploads_is_taken(
    tmp_path: Path, clock: Clock, store: Hooked, kind: str
) -> None:
    """Vacuum has asked the logs for commits, and is about to delete: the files are still there. The entry by
    which it moved the horizon has the slot."""
    tx = _open(tmp_path, clock, store, KINDS[kind])
    tx._workspace.uploads.finish()
    asleep, awake, raised = Event(), Event(), []

    def sleep(request: str, key: str) -> None:
        if request == "create" and key.startswith(SLOT):
            store.hook = None
            clock.ahead += 10 * DAY
            asleep.set()
            assert awake.wait(30)

    def commit() -> None:
        # Without recovery a version that vacuum made may be met first.
        with pytest.raises((lv.Conflict, lv.ValidationFailed)) as error:
            tx.commit()
        raised.append(error)

    def wake(request: str, key: str) -> None:
        if request == "delete" and f"part-{tx.id}" in key and not awake.is_set():
            awake.set()
            client.join(30)

    store.hook = sleep
    client = Thread(target=commit)
    client.start()
    assert asleep.wait(30)
    held = Hooked(open_store(str(tmp_path), OPTIONS, environment=clock))
    held.hook = wake
    lv.Lake(tmp_path, engine="local", store=held, environment=clock, lease_seconds=0.2).vacuum(dry_run=False)
    fresh = lv.Lake(tmp_path, engine="local", storage_options=OPTIONS, environment=clock)
    assert raised
    assert (_ids(fresh, "a"), _ids(fresh, "b")) == ([1], [1])
    assert fresh.outcome(tx.id).state != "committed"


@pytest.mark.parametrize("kind", KINDS)
def test_vacuum_that_was_suspended_keeps_uploads_of_an_entry_decided_meanwhile(
    tmp_path: Path, clock: Clock, store: Hooked, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """It settled all entries before. The new one is decided, and its client died before it was published."""
    tx = _open(tmp_path, clock, store, KINDS[kind])
    tx._workspace.uploads.finish()
    now_ms, asked = file_listing.store_now_ms, list[str]()

    def sleep(store: Store, environment: Environment) -> int:
        asked.append(store.url)
        if len(asked) == 2:
            # The time by the store of the first table.
            _decide_and_die(tx, monkeypatch)
            clock.ahead += 10 * DAY
        return now_ms(store, environment)

    fresh = lv.Lake(tmp_path, engine="local", storage_options=OPTIONS, environment=clock)
    with monkeypatch.context() as patched:
        patched.setattr(file_listing, "store_now_ms", sleep)
        fresh.vacuum(dry_run=False)
    fresh.recover()
    assert (_ids(fresh, "a"), _ids(fresh, "b")) == ([1, 2], [1, 2])
