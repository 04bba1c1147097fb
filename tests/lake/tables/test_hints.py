"""The hint of an Iceberg table that is kept by files: other clients go by it alone, so it must not stay
behind the newest version for good."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import lakevilla as lv
from lakevilla.errors import Unavailable
from lakevilla.store.open import open_store
from tests.support.hooked import Hooked

pytestmark = pytest.mark.formats("iceberg")

HINT = "t/metadata/version-hint.text"
WRITES = ("put", "create", "replace")
REPAIRS = [lambda lake: lake.recover(), lambda lake: lake.sync(), lambda lake: lake.recover("t")]
repairs = pytest.mark.parametrize("repair", REPAIRS, ids=["recover", "sync", "recover one table"])

Repair = Callable[[lv.Lake], object]


def client(place: Path) -> tuple[lv.Lake, Hooked]:
    store = Hooked(open_store(str(place), {"fsync": "false"}))
    return lv.Lake(place, engine="local", store=store), store


@pytest.fixture
def hint(tmp_path: Path) -> Path:
    """The hint of a table of four versions."""
    lake, _ = client(tmp_path)
    lake.create("t", "id BIGINT")
    for number in range(3):
        lake.append("t", [{"id": number}])
    return tmp_path / HINT


@repairs
def test_hint_that_a_client_which_slept_set_back_is_renewed(
    hint: Path, tmp_path: Path, repair: Repair
) -> None:
    sleeper, store = client(tmp_path)
    other, _ = client(tmp_path)

    def step(kind: str, key: str) -> None:
        if kind == "put" and key == HINT:
            store.hook = None
            other.append("t", [{"id": 10}])
            other.append("t", [{"id": 11}])
            assert hint.read_text() == "7"

    store.hook = step
    sleeper.append("t", [{"id": 9}])
    assert hint.read_text() == "5"
    repair(client(tmp_path)[0])
    assert hint.read_text() == "7"


@repairs
def test_missing_or_damaged_hint_is_renewed(hint: Path, tmp_path: Path, repair: Repair) -> None:
    for text in ("99", "nonsense", ""):
        hint.write_text(text)
        repair(client(tmp_path)[0])
        assert hint.read_text() == "4", text
    hint.unlink()
    repair(client(tmp_path)[0])
    assert hint.read_text() == "4"


@repairs
def test_right_hint_is_left_alone(hint: Path, tmp_path: Path, repair: Repair) -> None:
    hint.write_text(" 4\n")
    lake, store = client(tmp_path)
    requests: list[tuple[str, str]] = []
    store.hook = lambda kind, key: requests.append((kind, key))
    lake.read("t").collect()
    requests.clear()
    repair(lake)
    assert [kind for kind, key in requests if key == HINT] == ["get"]
    assert hint.read_text() == " 4\n"


@repairs
def test_client_that_may_not_write_the_hint_goes_on(hint: Path, tmp_path: Path, repair: Repair) -> None:
    hint.write_text("2")
    lake, store = client(tmp_path)

    def step(kind: str, key: str) -> None:
        if kind in WRITES and key == HINT:
            raise Unavailable(f"access denied: {key}")

    store.hook = step
    repair(lake)
    assert hint.read_text() == "2"
    assert len(lake.read("t").collect()) == 3


@repairs
def test_hint_of_a_commit_that_comes_meanwhile_is_not_set_back(
    hint: Path, tmp_path: Path, repair: Repair
) -> None:
    hint.write_text("2")
    lake, store = client(tmp_path)
    other, _ = client(tmp_path)

    def step(kind: str, key: str) -> None:
        if kind in WRITES and key == HINT:
            store.hook = None
            other.append("t", [{"id": 10}])

    store.hook = step
    repair(lake)
    assert store.hook is None
    assert hint.read_text() == "5"


@repairs
def test_copied_table_that_is_only_read_keeps_its_hint(hint: Path, tmp_path: Path, repair: Repair) -> None:
    copied = tmp_path / "copies"
    shutil.copytree(tmp_path / "t", copied / "t")
    (copied / HINT).write_text("2")
    repair(client(copied)[0])
    assert (copied / HINT).read_text() == "2"
    assert hint.read_text() == "4"
