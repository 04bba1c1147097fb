"""A Delta table that is opened while another client writes a checkpoint and cleans the log below it."""

from pathlib import Path

import pytest

import lakevilla as lv
from lakevilla.store.open import open_store
from tests.support.hooked import Hooked

ROWS = 10


def client(place: Path) -> tuple[lv.Lake, Hooked]:
    store = Hooked(open_store(str(place), {"fsync": "false"}))
    return lv.Lake(place, engine="local", features=lv.R, store=store), store


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """The log of a table that is about to get its next checkpoint."""
    lake, _ = client(tmp_path)
    lake.create("t", "id BIGINT", properties={"delta.checkpointInterval": "10"})
    for number in range(ROWS - 1):
        lake.append("t", [{"id": number}])
    return tmp_path / "t" / "_delta_log"


def go_on_and_clean(lake: lv.Lake, log: Path, until: int) -> None:
    """Commit up to this version, which has a checkpoint, and delete all that lies below it."""
    while True:
        with lake.transaction() as tx:
            tx.append("t", [{"id": 100}])
        if tx.receipt.versions["t"] == until:
            break
    lake.close()
    assert (log / f"{until:020}.checkpoint.parquet").exists()
    for path in log.glob("0*"):
        if int(path.name[:20]) < until:
            path.unlink()


@pytest.mark.parametrize("entry", [0, 5, 9])
def test_open_that_meets_a_cleanup_starts_again_from_a_fresh_list(
    log: Path, tmp_path: Path, entry: int
) -> None:
    other, _ = client(tmp_path)
    lake, store = client(tmp_path)

    def step(kind: str, key: str) -> None:
        if kind == "get" and key == f"t/_delta_log/{entry:020}.json":
            store.hook = None
            go_on_and_clean(other, log, 10)

    store.hook = step
    assert lake.read("t").count() == ROWS
    assert store.hook is None


@pytest.mark.parametrize("name", [f"{10:020}.checkpoint.parquet", f"{15:020}.json"])
def test_open_by_a_hint_that_meets_a_cleanup_starts_again_from_a_fresh_list(
    log: Path, tmp_path: Path, name: str
) -> None:
    other, _ = client(tmp_path)
    go_on_and_clean(other, log, 10)
    for _ in range(6):
        other.append("t", [{"id": 100}])
    lake, store = client(tmp_path)

    def step(kind: str, key: str) -> None:
        if key == f"t/_delta_log/{name}":
            store.hook = None
            go_on_and_clean(other, log, 20)

    store.hook = step
    assert lake.read("t").count() == ROWS + 10
    assert store.hook is None


def test_log_with_a_missing_entry_stays_corrupt(log: Path, tmp_path: Path) -> None:
    (log / f"{5:020}.json").unlink()
    with pytest.raises(lv.Corrupt):
        client(tmp_path)[0].read("t").count()
