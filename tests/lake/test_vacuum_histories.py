"""Vacuum in random histories: every version within the retention stays readable, and no garbage stays."""

import random
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.lake.clocks import DAY_MS, Days, date_files
from tests.lake.vacuuming import abort, open_lake, parquet

Rows = list[tuple[int, int]]


@pytest.fixture
def clock() -> Days:
    return Days()


@pytest.mark.parametrize("seed", range(6))
def test_versions_within_the_retention_are_readable_after_any_history(
    tmp_path: Path, clock: Days, seed: int
) -> None:
    dice = random.Random(seed)
    history = _History(tmp_path, clock)
    for _ in range(40):
        history.step(dice)
        clock.pass_days(dice.choice([0.0, 0.1, 0.5, 2.0]))
        if dice.random() < 0.2:
            history.vacuum()
    history.vacuum()
    clock.pass_days(8)
    history.vacuum()
    live = {Path(path).name for path in DeltaTable(tmp_path / "t").file_uris()}
    assert {name for name in parquet(tmp_path) if len(name) > 60} == live


class _History:
    """A table that our clients and deltalake change, with the rows of every version and when it came."""

    def __init__(self, root: Path, clock: Days) -> None:
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
                write_deltalake(self._folder, pa.table({"id": [key], "v": [7]}), mode="append")
            case _:
                DeltaTable(self._folder).update(updates={"v": "v + 10"}, predicate=f"id = {some}")
        date_files(self._folder, known, self._clock.now_ms())
        self._remember()

    def vacuum(self) -> None:
        self._lake.vacuum(dry_run=False)
        now_ms, newest = self._clock.now_ms(), max(self._known)
        for version, (_, rows) in self._known.items():
            replaced_ms = now_ms if version == newest else self._known[version + 1][0]
            if replaced_ms >= now_ms - 7 * DAY_MS:
                assert self._rows(version) == rows
                mine = self._lake.sql(f"SELECT id, v FROM t VERSION AS OF {version}").collect()
                assert sorted(map(tuple, mine)) == rows

    def _remember(self) -> None:
        newest = DeltaTable(self._folder).version()
        for version in range(max(self._known, default=-1) + 1, newest + 1):
            self._known[version] = (self._clock.now_ms(), self._rows(version))

    def _rows(self, version: int) -> Rows:
        table = DeltaTable(self._folder, version=version).to_pyarrow_table()
        return sorted(zip(*(table.column(name).to_pylist() for name in ("id", "v")), strict=True))
