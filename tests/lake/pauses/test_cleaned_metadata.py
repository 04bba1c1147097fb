"""A client that sleeps over the clean-up of an Iceberg table's earlier metadata files."""

from collections.abc import Callable
from pathlib import Path

import pytest

import lakevilla as lv
from lakevilla.store.open import open_store
from tests.lake.pauses.test_age_of_uploads import DAY, OPTIONS, Clock
from tests.lake.pauses.test_age_while_settling import SlowAnswers

ROWS = [{"id": 1}, {"id": 2}]


def _append(root: Path, clock: Clock, then: Callable[[], None]) -> None:
    """Commit version 2 of a table; others act before the answer to the create."""
    store = SlowAnswers(open_store(str(root), OPTIONS, environment=clock))
    lake = lv.Lake(root, engine="local", store=store, environment=clock, features=lv.R)
    lake.create("t", ROWS[:1], format="iceberg")

    def hook(kind: str, key: str) -> None:
        if kind == "create" and key == "t/metadata/v2.metadata.json":
            store.hook, store.then = None, then

    store.hook = hook
    lake.append("t", ROWS[1:])
    assert store.then is None


def test_answer_after_earlier_metadata_files_were_deleted_leaves_the_table(tmp_path: Path) -> None:
    clock = Clock()

    def clean() -> None:
        clock.ahead = 3 * DAY
        (tmp_path / "t/metadata/v1.metadata.json").unlink()

    _append(tmp_path, clock, clean)
    fresh = lv.Lake(tmp_path, engine="local", storage_options=OPTIONS, environment=clock)
    assert sorted(row["id"] for row in fresh.read("t").collect()) == [1, 2]
    txn = fresh.history("t")[0].txn
    assert txn is not None
    assert fresh.outcome(txn).state == "committed"


def test_answer_after_all_that_the_table_had_was_deleted_takes_the_version_back(tmp_path: Path) -> None:
    clock, left = Clock(), tmp_path / "t/metadata/v2.metadata.json"

    def delete() -> None:
        clock.ahead = 3 * DAY
        for path in (tmp_path / "t").rglob("*"):
            if path.is_file() and path != left:
                path.unlink()

    with pytest.raises((lv.Conflict, lv.CommitUnknown)):
        _append(tmp_path, clock, delete)
    assert not left.exists()
