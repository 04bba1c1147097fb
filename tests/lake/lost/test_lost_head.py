"""HEAD or an entry is lost or damaged, or an operator restores an old copy, while clients go on."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import write_deltalake
from pyarrow import table

import lakevilla as lv
from lakevilla.environment import SystemEnvironment
from lakevilla.store.open import open_store
from tests.support.hooked import Hooked
from tests.support.outsiders import OUTSIDERS

_OPTIONS = {"fsync": "false"}
_LOG = "_lakevilla/global/log/"
_HEAD = "_lakevilla/global/HEAD.json"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "lake"


@pytest.fixture
def store(root: Path) -> Hooked:
    return Hooked(open_store(str(root), _OPTIONS, environment=SystemEnvironment()))


@pytest.fixture
def outside(tmp_path: Path) -> list[Path]:
    """Two tables that no lake owns."""
    places = [tmp_path / "outside" / name for name in ("x", "y")]
    for place in places:
        write_deltalake(str(place), table({"id": [1]}))
    return places


def _fresh(root: Path) -> lv.Lake:
    return lv.Lake(root, engine="local", storage_options=_OPTIONS)


def _fill(lake: lv.Lake, outside: list[Path]) -> None:
    for place in outside:
        lake.register(place.name, f"file://{place}")


def _append(lake: lv.Lake, number: int) -> lv.Transaction:
    with lake.transaction() as tx:
        tx.append("x", [{"id": number}])
        tx.append("y", [{"id": number}])
    return tx


def _once(store: Hooked, kind: str, prefix: str, do: Callable[[], None]) -> None:
    """Right before the first request of this kind on such a key."""

    def hook(at: str, key: str) -> None:
        if at == kind and key.startswith(prefix):
            store.hook = None
            do()

    store.hook = hook


def _write(place: Path, data: bytes) -> None:
    place.write_bytes(data)


def _rows(place: Path) -> list[int]:
    return sorted(row["id"] for row in OUTSIDERS["delta"].rows(place))


def test_head_that_was_set_back_while_an_entry_is_settled_stays_readable(
    root: Path, store: Hooked, outside: list[Path]
) -> None:
    lake = lv.Lake(root, engine="local", store=store, environment=SystemEnvironment())
    _fill(lake, outside)
    backup = (root / _HEAD).read_bytes()
    for number in range(10, 13):
        _append(lake, number)
    tx = lake.transaction()
    tx.append("x", [{"id": 50}])
    tx.append("y", [{"id": 50}])
    _once(store, "replace", _HEAD, lambda: _write(root / _HEAD, backup))
    with pytest.raises(lv.CommitUnknown, match="set back to entry 2"):
        tx.commit()
    _append(_fresh(root), 100)
    assert _fresh(root).outcome(tx.id).state == "committed"
    assert _rows(outside[0]) == _rows(outside[1]) == [1, 10, 11, 12, 50, 100]


def test_lost_head_is_made_again_from_a_log_that_is_whole(root: Path, outside: list[Path]) -> None:
    _fill(_fresh(root), outside)
    tx = _append(_fresh(root), 10)
    (root / _HEAD).unlink()
    _fresh(root).recover()
    assert _fresh(root).tables() == ["x", "y"]
    _append(_fresh(root), 11)
    assert _fresh(root).outcome(tx.id).state == "committed"
    assert _rows(outside[0]) == [1, 10, 11]


def test_lost_head_of_a_log_that_was_cleaned_up_is_not_replaced_by_an_empty_one(
    root: Path, outside: list[Path]
) -> None:
    _fill(_fresh(root), outside)
    _append(_fresh(root), 10)
    _append(_fresh(root), 11)
    (root / _HEAD).unlink()
    (root / _LOG / f"{1:020d}.json").unlink()
    with pytest.raises(
        lv.Corrupt, match=r"HEAD\.json is missing, and the entries before 2 were cleaned away"
    ):
        _fresh(root).create("z", "id BIGINT")
    shutil.rmtree(root / _LOG)
    _fresh(root).create("z", "id BIGINT")
    assert _fresh(root).tables() == ["z"]


@pytest.mark.parametrize("data", [b"", b'{"format":1,"se'], ids=["empty", "cut"])
def test_damaged_entry_after_head_is_named_and_can_be_deleted(
    root: Path, outside: list[Path], data: bytes
) -> None:
    _fill(_fresh(root), outside)
    tx = _append(_fresh(root), 10)
    assert tx.receipt is not None
    assert tx.receipt.seq is not None
    damaged = root / _LOG / f"{tx.receipt.seq + 1:020d}.json"
    damaged.write_bytes(data)
    for attempt in (lambda: _append(_fresh(root), 11), lambda: _fresh(root).recover()):
        with pytest.raises(lv.Corrupt, match=rf"{damaged.name} is not JSON.*If there is none, delete it"):
            attempt()
    assert _fresh(root).read("x").count() == 2
    damaged.unlink()
    _append(_fresh(root), 12)
    assert _rows(outside[0]) == _rows(outside[1]) == [1, 10, 12]
