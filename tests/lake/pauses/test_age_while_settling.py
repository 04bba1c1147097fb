"""A client that is suspended for weeks while it settles an entry: others settle it, go on, and clean up."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

import lakevilla as lv
from lakevilla.store.faulty import Fault, Faulty
from lakevilla.store.open import open_adapter, open_store
from lakevilla.store.port import Created, Exists
from lakevilla.store.retry import Retrying
from tests.lake.pauses.test_age_of_uploads import DAY, OPTIONS, Clock
from tests.support.hooked import Hooked
from tests.support.outsiders import OUTSIDERS

SLOT = "_lakevilla/global/log/"


class SlowAnswers(Hooked):
    """Calls `then` once, between a create and its answer."""

    then: Callable[[], None] | None = None

    def create(self, key: str, data: bytes) -> Created | Exists:
        answer = super().create(key, data)
        then, self.then = self.then, None
        if then is not None:
            then()
        return answer


class Sleeper:
    """A client that is suspended right before its n-th request after its slot was created, or before the
    answer to it if that is a create, while others act."""

    def __init__(self, root: Path, clock: Clock) -> None:
        self.store = SlowAnswers(open_store(str(root), OPTIONS, environment=clock))
        self.lake = lv.Lake(root, engine="local", store=self.store, environment=clock)
        self.requests: list[tuple[str, str]] = []

    def commit(
        self, tx: lv.Transaction, at: int | None, act: Callable[[], None], *, after: bool = False
    ) -> lv.LakeVillaError | None:
        decided: list[str] = []

        def hook(kind: str, key: str) -> None:
            if decided:
                self.requests.append((kind, key))
                if len(self.requests) == at:
                    if after and kind == "create":
                        self.store.then = act
                    else:
                        act()
            elif kind == "create" and key.startswith(SLOT):
                decided.append(key)

        self.store.hook = hook
        try:
            tx.commit()
        except lv.LakeVillaError as error:
            return error
        finally:
            self.store.hook = None
        return None


def _open(root: Path, clock: Clock) -> lv.Lake:
    return lv.Lake(root, engine="local", storage_options=OPTIONS, environment=clock)


def _rows(root: Path, clock: Clock, name: str) -> list[tuple[int, int]]:
    found = [(row["id"], row["v"]) for row in _open(root, clock).read(name).collect()]
    assert sorted((row["id"], row["v"]) for row in OUTSIDERS["delta"].rows(root / name)) == sorted(found)
    return sorted(found)


def _clean(root: Path, clock: Clock, names: str) -> None:
    """Others go on, and the log below their checkpoints is cleaned up."""
    for name in names:
        for number in range(3):
            OUTSIDERS["delta"].append(root / name, pa.table({"id": [10 + number], "v": [0]}))
        table = DeltaTable(str(root / name))
        table.create_checkpoint()
        for version in range(table.version()):
            (root / name / "_delta_log" / f"{version:020d}.json").unlink(missing_ok=True)
    clock.ahead += 40 * DAY


def _entries(root: Path, name: str) -> list[str]:
    return sorted(path.name for path in (root / name / "_delta_log").glob("*.json"))


OTHERS = [(10, 0), (11, 0), (12, 0)]


def _play(root: Path, at: int | None, refused: bool) -> int:
    """One commit on two tables, suspended at this request; the number of requests after its slot."""
    clock = Clock()
    sleeper = Sleeper(root, clock)
    for name in "ab":
        sleeper.lake.create(name, "id BIGINT, v BIGINT")
        sleeper.lake.append(name, [{"id": 1, "v": 1}])
    tx = sleeper.lake.transaction(lv.CT)
    for name in "ab":
        tx.update(name, {"v": "v + 1"})
    if refused:
        OUTSIDERS["delta"].update(root / "b", {"v": "v + 100"})

    def others() -> None:
        _open(root, clock).recover()
        _clean(root, clock, "ab")

    error = sleeper.commit(tx, at, others)
    assert isinstance(error, lv.Conflict) if refused else error is None
    if not refused:
        assert tx.receipt is not None
        assert tx.receipt.versions == {"a": 2, "b": 2}
    slept = at is not None and at <= len(sleeper.requests)
    rows = {"a": [(1, 1 if refused else 2)], "b": [(1, 101 if refused else 2)]}
    for name, expected in rows.items():
        assert _rows(root, clock, name) == expected + (OTHERS if slept else []), sleeper.requests
        if slept:
            assert len(_entries(root, name)) == 1, (at, sleeper.requests, _entries(root, name))
    return len(sleeper.requests)


@pytest.mark.parametrize("refused", [False, True], ids=["published", "refused"])
def test_owner_suspended_at_any_request_of_settling_leaves_nothing_behind(
    tmp_path: Path, refused: bool
) -> None:
    count = _play(tmp_path / "never", None, refused)
    for at in range(1, count + 1):
        _play(tmp_path / str(at), at, refused)


def test_helper_suspended_at_any_request_of_settling_leaves_nothing_behind(tmp_path: Path) -> None:
    def play(root: Path, at: int | None) -> int:
        clock = Clock()
        owner = Sleeper(root, clock)
        for name in "ab":
            owner.lake.create(name, "id BIGINT, v BIGINT")
            owner.lake.append(name, [{"id": 1, "v": 1}])
        tx = owner.lake.transaction(lv.CT)
        for name in "ab":
            tx.update(name, {"v": "v + 1"})
        asked: list[tuple[str, str]] = []

        def help_it() -> None:
            store = Hooked(open_store(str(root), OPTIONS, environment=clock))

            def hook(kind: str, key: str) -> None:
                asked.append((kind, key))
                if len(asked) == at:
                    _open(root, clock).recover()
                    _clean(root, clock, "ab")

            store.hook = hook
            lv.Lake(root, engine="local", store=store, environment=clock).recover()

        owner.commit(tx, 1, help_it)
        slept = at is not None and at <= len(asked)
        for name in "ab":
            assert _rows(root, clock, name) == [(1, 2)] + (OTHERS if slept else [])
            assert not slept or len(_entries(root, name)) == 1, (at, asked, _entries(root, name))
        return len(asked)

    count = play(tmp_path / "never", None)
    for at in range(1, count + 1, 3):
        play(tmp_path / str(at), at)


@pytest.mark.parametrize("statement", ["create", "drop"])
def test_owner_suspended_until_its_table_was_dropped_and_deleted_does_not_make_it_again(
    tmp_path: Path, statement: str
) -> None:
    def play(root: Path, at: int | None) -> int:
        clock = Clock()
        sleeper = Sleeper(root, clock)
        sleeper.lake.create("z", "id BIGINT")
        if statement == "drop":
            sleeper.lake.create("x", "id BIGINT")
        tx = sleeper.lake.transaction()
        tx.sql("CREATE TABLE x (id BIGINT)" if statement == "create" else "DROP TABLE x")

        def others() -> None:
            other = _open(root, clock)
            other.recover()
            if statement == "create":
                other.drop("x")
            clock.ahead += 40 * DAY
            other.append("z", [{"id": 1}])
            other.vacuum(dry_run=False, dropped=True)
            assert not list((root / "x").rglob("*.json"))

        error = sleeper.commit(tx, at, others)
        assert error is None
        if at is not None and at <= len(sleeper.requests):
            assert not list((root / "x" / "_delta_log").glob("*.json")), (at, sleeper.requests)
            assert _open(root, clock).tables() == ["z"]
        return len(sleeper.requests)

    count = play(tmp_path / "never", None)
    for at in range(1, count + 1):
        play(tmp_path / str(at), at)


@pytest.mark.parametrize("after", [False, True], ids=["before the request", "before its answer"])
@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
def test_owner_suspended_until_a_helper_dropped_its_table_keeps_the_notice(
    tmp_path: Path, table_format: str, after: bool
) -> None:
    def log(root: Path) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in (root / "x").rglob("*.json")}

    def play(root: Path, at: int | None) -> int:
        clock = Clock()
        sleeper = Sleeper(root, clock)
        sleeper.lake.sql(f"CREATE TABLE x (id BIGINT) USING {table_format}")
        tx = sleeper.lake.transaction()
        tx.sql("DROP TABLE x")
        left: dict[str, bytes] = {}

        def others() -> None:
            _open(root, clock).recover()
            left.update(log(root))
            clock.ahead += DAY / 12

        assert sleeper.commit(tx, at, others, after=after) is None
        if at is not None and at <= len(sleeper.requests):
            assert log(root) == left, (at, sleeper.requests)
        return len(sleeper.requests)

    count = play(tmp_path / "never", None)
    for at in range(1, count + 1):
        play(tmp_path / str(at), at)


class _Lost:
    """The first create of a slot applies and is not answered; before the next try the machine sleeps."""

    def __init__(self, sleep: Callable[[], None]) -> None:
        self._sleep = sleep
        self.on = False
        self.key = ""

    def __call__(self, kind: str, key: str, _: int) -> Fault | None:
        if not self.on or kind != "create" or not key.startswith(SLOT):
            return None
        if not self.key:
            self.key = key
            return Fault.LOST
        self.on = False
        self._sleep()
        return None


@pytest.mark.parametrize("tries", [1, 4], ids=["void entry", "another try"])
@pytest.mark.parametrize("told", [True, False], ids=["told by HEAD", "not told any more"])
def test_unanswered_slot_that_was_settled_and_deleted_meanwhile_is_not_decided_again(
    tmp_path: Path, tries: int, told: bool
) -> None:
    clock = Clock()
    slots = tmp_path / SLOT

    def sleep() -> None:
        other = _open(tmp_path, clock)
        other.recover()
        for number in range(20 if told else 80):
            other.append("c", [{"id": number, "v": 1}])
        for _ in range(2):
            clock.ahead += 10 * DAY
            other.append("c", [{"id": 99, "v": 1}])
            other.vacuum(dry_run=False, retention_hours=24)
        other.update("a", {"v": "v + 100"}, where="id = 2")
        assert not (tmp_path / plan.key).exists()
        assert any((tmp_path / "_lakevilla/global/heads").glob("*")) is not told

    plan = _Lost(sleep)
    store = Retrying(Faulty(open_adapter(str(tmp_path), OPTIONS, clock), plan), clock, tries=tries)
    lake = lv.Lake(tmp_path, engine="local", store=store, environment=clock)
    for name in "abc":
        lake.create(name, "id BIGINT, v BIGINT")
        lake.append(name, [{"id": 1, "v": 1}])
    tx = lake.transaction()
    for name in "ab":
        tx.append(name, [{"id": 2, "v": 2}])
    plan.on = True
    if told:
        receipt = tx.commit()
        assert f"{receipt.seq:020d}" in plan.key
    else:
        with pytest.raises(lv.CommitUnknown):
            tx.commit()
    assert _rows(tmp_path, clock, "a") == [(1, 1), (2, 102)]
    assert _rows(tmp_path, clock, "b") == [(1, 1), (2, 2)]
    assert not (tmp_path / plan.key).exists() or tries > 1
    assert sorted(slots.iterdir())
