"""`lake.outcome` of transactions that the global log decided: what it once called final never changes."""

from collections.abc import Callable
from pathlib import Path

import pytest

import lakevilla as lv
from lakevilla.store import keys
from lakevilla.store.open import open_store
from tests.support.clocks import Days
from tests.support.hooked import Hooked
from tests.support.outsiders import OUTSIDERS

OPTIONS = {"fsync": "false"}


@pytest.fixture
def clock() -> Days:
    return Days()


@pytest.fixture
def store(tmp_path: Path, clock: Days) -> Hooked:
    return Hooked(open_store(str(tmp_path), OPTIONS, environment=clock))


@pytest.fixture
def lake(tmp_path: Path, clock: Days, store: Hooked) -> lv.Lake:
    lake = lv.Lake(tmp_path, engine="local", store=store, environment=clock)
    for name in "abc":
        lake.create(name, "id BIGINT, v BIGINT")
        lake.append(name, [{"id": 1, "v": 1}])
    return lake


@pytest.fixture
def ask(tmp_path: Path, clock: Days) -> Callable[[lv.Transaction], lv.Outcome]:
    """The outcome, as a client tells it that was not there."""
    return lambda tx: lv.Lake(
        tmp_path, engine="local", storage_options=OPTIONS, environment=clock, lease_seconds=0.2
    ).outcome(tx.id)


def _transfer(tx: lv.Transaction) -> None:
    tx.update("a", {"v": "v + 1"})
    tx.update("b", {"v": "v + 1"})


def _expire(lake: lv.Lake, clock: Days, entries: int = 20) -> None:
    """Others go on until the slots of what came before are deleted."""
    clock.pass_days(4)
    for number in range(entries):
        lake.append("c", [{"id": number, "v": 0}])
    for _ in range(2):
        clock.pass_days(10)
        lake.append("c", [{"id": 99, "v": 0}])
        lake.vacuum(dry_run=False)


def _tear(tx: lv.Transaction, store: Hooked, root: Path) -> None:
    """An outside writer is in the way on `b`, and another builds on `a` before it is rolled back."""
    met: list[str] = []

    def hook(kind: str, key: str) -> None:
        if kind == "create" and key.startswith(("a/_delta_log/", "b/_delta_log/")):
            met.append(key)
            if [k for k in met if k.startswith("b/")] and "b" not in met:
                met.append("b")
                OUTSIDERS["delta"].update(root / "b", {"v": "v + 100"})
            if len([k for k in met if k.startswith("a/")]) == 2:
                OUTSIDERS["delta"].update(root / "a", {"v": "v * 2"})

    store.hook = hook
    with pytest.raises(lv.Corrupt):
        tx.commit()
    store.hook = None


@pytest.mark.parametrize("entries", [20, 80], ids=["told by HEAD", "not told any more"])
def test_torn_transaction_is_torn_until_nothing_tells(
    lake: lv.Lake,
    store: Hooked,
    clock: Days,
    tmp_path: Path,
    ask: Callable[[lv.Transaction], lv.Outcome],
    entries: int,
) -> None:
    tx = lake.transaction(lv.CT)
    _transfer(tx)
    _tear(tx, store, tmp_path)
    found = ask(tx)
    assert (found.state, "may be run again" in found.advice) == ("torn", False)
    lake.sync("a", accept_torn=True)
    assert ask(tx).state == "torn"
    _expire(lake, clock, entries)
    assert ask(tx).state == ("torn" if entries == 20 else "unknown")


@pytest.mark.parametrize("entries", [20, 80], ids=["told by HEAD", "not told any more"])
def test_aborted_transaction_is_aborted_until_nothing_tells(
    lake: lv.Lake,
    clock: Days,
    tmp_path: Path,
    ask: Callable[[lv.Transaction], lv.Outcome],
    entries: int,
) -> None:
    tx = lake.transaction(lv.CT)
    _transfer(tx)
    OUTSIDERS["delta"].update(tmp_path / "b", {"v": "v + 100"})
    with pytest.raises(lv.Conflict):
        tx.commit()
    assert ask(tx).state == "aborted"
    _expire(lake, clock, entries)
    assert ask(tx).state == ("aborted" if entries == 20 else "unknown")


@pytest.mark.parametrize("entries", [20, 80], ids=["told by HEAD", "not told any more"])
def test_committed_transaction_is_committed_until_nothing_tells(
    lake: lv.Lake, clock: Days, ask: Callable[[lv.Transaction], lv.Outcome], entries: int
) -> None:
    with lake.transaction() as tx:
        _transfer(tx)
    assert ask(tx).state == "committed"
    _expire(lake, clock, entries)
    assert ask(tx).state == ("committed" if entries == 20 else "unknown")


class Died(BaseException):
    """The client of the test is dead."""


def test_refused_attempt_of_a_transaction_that_may_be_redone_is_not_its_end(
    lake: lv.Lake, store: Hooked, tmp_path: Path, ask: Callable[[lv.Transaction], lv.Outcome]
) -> None:
    tx = lake.transaction(lv.R | lv.CT)
    _transfer(tx)
    OUTSIDERS["delta"].update(tmp_path / "b", {"v": "v + 100"})
    seen: list[str] = []
    states: list[str] = []

    def hook(kind: str, key: str) -> None:
        if kind == "create" and key.startswith(keys.GLOBAL_LOG):
            seen.append(key)
            if len(seen) == 2:
                # The first attempt was rolled back, and the next one is about to be decided.
                store.hook = None
                states.append(ask(tx).state)

    store.hook = hook
    tx.commit()
    assert states == ["undecided"]
    assert ask(tx).state == "committed"


def test_transaction_whose_next_attempt_became_void_is_not_committed(
    lake: lv.Lake, store: Hooked, tmp_path: Path, ask: Callable[[lv.Transaction], lv.Outcome]
) -> None:
    tx = lake.transaction(lv.R | lv.CT)
    _transfer(tx)
    OUTSIDERS["delta"].update(tmp_path / "b", {"v": "v + 100"})
    seen: list[str] = []

    def hook(kind: str, key: str) -> None:
        if kind == "create" and key.startswith(keys.GLOBAL_LOG):
            seen.append(key)
            if len(seen) == 2:
                raise Died

    store.hook = hook
    with pytest.raises(Died):
        tx.commit()
    store.hook = None
    found = ask(tx)
    assert found.state == "undecided"
    assert found.seq is not None


def test_transaction_on_one_table_whose_log_was_cleaned_up_is_unknown(
    lake: lv.Lake, tmp_path: Path, ask: Callable[[lv.Transaction], lv.Outcome]
) -> None:
    with lake.transaction(lv.R) as tx:
        tx.append("a", [{"id": 2, "v": 2}])
    assert ask(tx).state == "committed"
    for number in range(10):
        lake.append("a", [{"id": 10 + number, "v": 0}])
    log = tmp_path / "a" / "_delta_log"
    assert (log / f"{10:020d}.checkpoint.parquet").exists()
    for version in range(10):
        (log / f"{version:020d}.json").unlink()
    found = ask(tx)
    assert (found.state, "not known" in found.advice) == ("unknown", True)


@pytest.mark.parametrize("table_format", ["delta", "iceberg"], indirect=True)
def test_outcome_of_an_unknown_id_reads_nothing_twice(
    lake: lv.Lake, tmp_path: Path, clock: Days, store: Hooked, table_format: str
) -> None:
    for number in range(70):
        lake.append("a", [{"id": number, "v": 0}])
    other = lv.Lake(tmp_path, engine="local", store=store, environment=clock)
    asked: list[tuple[str, str]] = []
    store.hook = lambda kind, key: asked.append((kind, key))
    found = other.outcome(clock.new_id())
    store.hook = None
    assert found.state == "undecided"
    versions = [key for kind, key in asked if (kind == "get" and "/0" in key) or "metadata/v" in key]
    again = {key for key in versions if versions.count(key) > 3}
    assert len([kind for kind, _ in asked if kind == "get"]) < 110, len(asked)
    assert not again
    assert not [key for _, key in asked if key.endswith(".avro")], table_format
    assert len([key for _, key in asked if key.startswith(keys.GLOBAL_LOG)]) == 1


def test_outcome_that_the_global_log_tells_asks_no_table(
    lake: lv.Lake, tmp_path: Path, clock: Days, store: Hooked
) -> None:
    with lake.transaction() as tx:
        _transfer(tx)
    for number in range(70):
        lake.append("a", [{"id": number, "v": 0}])
    other = lv.Lake(tmp_path, engine="local", store=store, environment=clock)
    asked: list[tuple[str, str]] = []
    store.hook = lambda kind, key: asked.append((kind, key))
    assert other.outcome(tx.id).state == "committed"
    store.hook = None
    assert [key for _, key in asked if not key.startswith("_lakevilla/global/")] == []
    assert len(asked) < 10
