"""Vacuum in random histories: every version within the retention stays readable, and no garbage stays."""

import random
from pathlib import Path

import pyarrow as pa
import pytest

from lakevilla.predicates import ANYTHING
from lakevilla.store.metered import Meter
from tests.lake.vacuum.vacuum_lake import abort, open_lake, parquet
from tests.support.clocks import DAY_MS, Days, date_files
from tests.support.outsiders import OUTSIDERS, Outsider

Rows = list[tuple[int, int]]


@pytest.fixture
def clock() -> Days:
    return Days()


SEEDS = [*(("delta", seed) for seed in range(2)), ("iceberg", 0), ("iceberg", 5)]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("table_format", "seed"), SEEDS, indirect=["table_format"])
def test_versions_within_the_retention_are_readable_after_any_history(
    tmp_path: Path, clock: Days, seed: int, table_format: str
) -> None:
    dice = random.Random(seed)
    history = _History(tmp_path, clock, OUTSIDERS[table_format])
    for _ in range(40):
        history.step(dice)
        clock.pass_days(dice.choice([0.0, 0.1, 0.5, 2.0]))
        if dice.random() < 0.2:
            history.vacuum()
    history.vacuum()
    clock.pass_days(8)
    history.vacuum()
    assert parquet(tmp_path) == history.live()


class _History:
    """A table that we and an outside client change, with the rows of every version and when it came."""

    def __init__(self, root: Path, clock: Days, outside: Outsider) -> None:
        self._outside = outside
        self._root = root
        self._folder = root / "t"
        self._clock = clock
        self._lake = open_lake(root, clock)
        self._lake.create("t", "id BIGINT, v BIGINT")
        self._known: dict[int, tuple[int, Rows]] = {}
        self._next = 0
        self._remember()

    def step(self, dice: random.Random) -> None:
        known = set(self._folder.rglob("*"))
        key, some = self._next, dice.randrange(self._next + 1)
        self._next += 1
        match dice.randrange(7):
            case 0 | 1:
                self._lake.append("t", [{"id": key, "v": 0}])
            case 2:
                self._lake.update("t", {"v": "v + 1"}, where=f"id <= {some}")
            case 3:
                self._lake.delete("t", where=f"id = {some}")
            case 4:
                abort(self._lake, key)
            case 5:
                self._outside.append(self._folder, pa.table({"id": [key], "v": [7]}))
            case _:
                self._outside.update(self._folder, {"v": "v + 10"}, f"id = {some}")
        date_files(self._folder, known, self._clock.now_ms())
        self._remember()

    def vacuum(self) -> None:
        self._lake.vacuum(dry_run=False)
        # An Iceberg table forgets snapshots by a version of its own.
        self._remember()
        now_ms, newest = self._clock.now_ms(), max(self._known)
        for version, (_, rows) in self._known.items():
            replaced_ms = now_ms if version == newest else self._known[version + 1][0]
            if replaced_ms >= now_ms - 7 * DAY_MS:
                assert self._rows(version) == rows
                mine = self._lake.sql(f"SELECT id, v FROM t VERSION AS OF {version}").collect()
                assert sorted(map(tuple, mine)) == rows

    def _remember(self) -> None:
        newest = self._outside.version(self._folder)
        for version in range(max(self._known, default=self._outside.begin - 1) + 1, newest + 1):
            self._known[version] = (self._clock.now_ms(), self._rows(version))

    def _rows(self, version: int) -> Rows:
        return sorted((row["id"], row["v"]) for row in self._outside.rows(self._folder, version))

    def live(self) -> set[str]:
        """The names of the files that the newest version names."""
        snapshot = self._lake._catalog.pin("t", Meter()).snapshot
        return {Path(file.key).name for file in snapshot.files(ANYTHING)}
