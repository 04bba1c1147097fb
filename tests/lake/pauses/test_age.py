"""A client that slept for long: what it knew may have been cleaned away, and it must not build on it."""

import os
from pathlib import Path

import pytest

import lakevilla as lv
from lakevilla.environment import SystemEnvironment
from lakevilla.store.open import open_store
from tests.support.hooked import Hooked

KINDS = {
    "NONE": lv.NONE,
    "R": lv.R,
    "CT": lv.CT,
    "R,CT": lv.R | lv.CT,
    "R,I": lv.R | lv.I,
    "R,CT,I": lv.R | lv.CT | lv.I,
}


class Clock(SystemEnvironment):
    """The real world, whose clock can be moved on."""

    ahead = 0.0

    def elapsed(self) -> float:
        return super().elapsed() + self.ahead


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def sleeper(tmp_path: Path, clock: Clock) -> lv.Lake:
    """A client that knows version 1 of a table, and then sleeps."""
    lake = lv.Lake(tmp_path, environment=clock, engine="local", features=lv.R)
    lake.create("t", "id BIGINT")
    lake.append("t", [{"id": 1}])
    return lake


def _clean_log(tmp_path: Path, cleaned: int = 10) -> None:
    """Go on to a checkpoint, and remove so many entries below it, as log retention does."""
    _grow(tmp_path)
    _remove(tmp_path, cleaned)


def _grow(tmp_path: Path) -> None:
    awake = lv.Lake(tmp_path, engine="local", features=lv.R)
    for number in range(2, 12):
        awake.append("t", [{"id": number}])
    assert (tmp_path / "t" / "_delta_log" / f"{10:020d}.checkpoint.parquet").exists()


def _remove(tmp_path: Path, entries: int) -> None:
    for version in range(entries):
        (tmp_path / "t" / "_delta_log" / f"{version:020d}.json").unlink()


def test_statement_of_two_hours_commits_past_what_came_meanwhile(
    sleeper: lv.Lake, clock: Clock, tmp_path: Path
) -> None:
    statement = sleeper.transaction()
    statement.append("t", [{"id": 100}])
    lv.Lake(tmp_path, engine="local", features=lv.R).append("t", [{"id": 2}])
    clock.ahead = 7200
    statement.commit()
    assert sleeper.read("t").count() == 3


def test_statement_whose_next_versions_were_cleaned_away_conflicts(
    sleeper: lv.Lake, clock: Clock, tmp_path: Path
) -> None:
    statement = sleeper.transaction()
    statement.append("t", [{"id": 100}])
    _clean_log(tmp_path)
    clock.ahead = 7200
    with pytest.raises(lv.Conflict, match="cleaned up"):
        statement.commit()
    assert not (tmp_path / "t" / "_delta_log" / f"{2:020d}.json").exists()
    assert sleeper.read("t").count() == 11


def test_statement_whose_files_were_cleaned_away_conflicts(
    sleeper: lv.Lake, clock: Clock, tmp_path: Path
) -> None:
    statement = sleeper.transaction()
    statement.append("t", [{"id": 100}])
    statement._workspace.uploads.finish()
    [uploaded] = (tmp_path / "t").glob(f"part-{statement.id}-*.parquet")
    uploaded.unlink()
    clock.ahead = 7200
    with pytest.raises(lv.Conflict, match="cleaned up"):
        statement.commit()
    assert sleeper.read("t").count() == 1


@pytest.mark.parametrize("features", KINDS.values(), ids=KINDS)
def test_log_cleaned_between_the_look_and_the_commit_loses_no_commit(
    tmp_path: Path, clock: Clock, features: lv.Features
) -> None:
    statement = _open_until_the_log_is_cleaned(tmp_path, clock, features)
    statement.commit()
    found = lv.Lake(tmp_path, engine="local", features=lv.R).read("t").collect()
    assert sorted(row["id"] for row in found) == [*range(1, 12), 100]


@pytest.mark.parametrize("features", [lv.I, lv.CT | lv.I], ids=["I", "CT,I"])
def test_log_cleaned_between_the_look_and_the_commit_is_met_as_moved_without_recovery(
    tmp_path: Path, clock: Clock, features: lv.Features
) -> None:
    statement = _open_until_the_log_is_cleaned(tmp_path, clock, features)
    with pytest.raises(lv.ValidationFailed, match="version 2 is taken, the newest is 11"):
        statement.commit()
    lake = lv.Lake(tmp_path, engine="local")
    lake.append("t", [{"id": 12}])
    assert sorted(row["id"] for row in lake.read("t").collect()) == list(range(1, 13))


def _open_until_the_log_is_cleaned(tmp_path: Path, clock: Clock, features: lv.Features) -> lv.Transaction:
    """A transaction that has appended, two hours ago; others did since, and the log is cleaned up right
    before the first entry is created there."""
    store = Hooked(open_store(str(tmp_path), {"fsync": "false"}, environment=clock))
    lake = lv.Lake(tmp_path, store=store, environment=clock, engine="local")
    lake.create("t", "id BIGINT")
    lake.append("t", [{"id": 1}])
    statement = lake.transaction(features)
    statement.append("t", [{"id": 100}])
    _grow(tmp_path)
    clock.ahead = 7200

    def clean(request: str, key: str) -> None:
        if request == "create" and key.startswith("t/_delta_log/"):
            store.hook = None
            _remove(tmp_path, 10)

    store.hook = clean
    return statement


@pytest.mark.parametrize("features", [lv.NONE, lv.R], ids=["NONE", "R"])
def test_late_commit_that_loses_races_looks_for_a_gap_in_its_log_once(
    tmp_path: Path, clock: Clock, features: lv.Features
) -> None:
    store = Hooked(open_store(str(tmp_path), {"fsync": "false"}, environment=clock))
    lake = lv.Lake(tmp_path, store=store, environment=clock, engine="local")
    awake = lv.Lake(tmp_path, engine="local", features=lv.R)
    lake.create("t", "id BIGINT")
    statement = lake.transaction(features)
    statement.append("t", [{"id": 100}])
    clock.ahead = 7200
    looks, rivals = [], iter(range(4))

    def overtake(request: str, key: str) -> None:
        if request == "list" and key.startswith("t/_delta_log"):
            looks.append(key)
        if request == "create" and key.startswith("t/_delta_log/") and (number := next(rivals, None)):
            awake.append("t", [{"id": number}])

    next(rivals)
    store.hook = overtake
    statement.commit()
    assert len(looks) == 1
    assert sorted(row["id"] for row in awake.read("t").collect()) == [1, 2, 3, 100]


def test_snapshot_known_for_hours_is_read_anew(sleeper: lv.Lake, clock: Clock, tmp_path: Path) -> None:
    _clean_log(tmp_path)
    clock.ahead = 7200
    assert sleeper.read("t").count() == 11
    sleeper.append("t", [{"id": 100}])
    assert lv.Lake(tmp_path, engine="local", features=lv.R).read("t").count() == 12


@pytest.mark.parametrize("cleaned", [3, 10])
def test_entry_that_arrives_under_a_number_that_was_cleaned_away_is_not_committed(
    sleeper: lv.Lake, tmp_path: Path, cleaned: int
) -> None:
    with sleeper.transaction() as tx:
        tx.append("t", [{"id": 100}])
    entry = tmp_path / "t" / "_delta_log" / f"{2:020d}.json"
    late = entry.read_bytes()
    # It was not sent yet: others make this version, and it is cleaned away.
    entry.unlink()
    _clean_log(tmp_path, cleaned)
    entry.write_bytes(late)
    later = entry.stat().st_mtime + 7200
    os.utime(entry, (later, later))
    asked = lv.Lake(tmp_path, engine="local", features=lv.R)
    assert sorted(row["id"] for row in asked.read("t").collect()) == list(range(1, 12))
    assert asked.outcome(tx.id).state == "unknown"
