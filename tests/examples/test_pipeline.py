"""The pipeline of `examples/pipeline.py`, killed at random moments and run again: all tables agree."""

import json
import random
import sys
from collections import Counter
from pathlib import Path

import pytest

import lakevilla as lv
from bench.kills import until_it_ends
from examples import pipeline

ROWS = 6


def write_batches(folder: Path, count: int) -> None:
    folder.mkdir()
    for number in range(count):
        orders = [
            {
                "id": number * ROWS + at,
                "customer": f"c{at % 2}",
                "day": f"2026-11-{1 + number % 3:02}",
                "amount": None if at == 5 else 10 * number + at,
            }
            for at in range(ROWS)
        ]
        (folder / f"{number}.json").write_text("".join(json.dumps(order) + "\n" for order in orders))


def check(lake: lv.Lake, batches: int) -> None:
    """Every order is in `raw` and `cleaned` once, and the sums are those of `cleaned`."""
    raw = Counter(json.loads(row.text)["id"] for row in lake.read("raw").collect())
    assert raw == Counter(range(batches * ROWS))
    cleaned = lake.read("cleaned").collect()
    assert Counter(row.id for row in cleaned) == Counter(i for i in range(batches * ROWS) if i % ROWS != 5)
    for table, column in (("by_customer", "customer"), ("by_day", "day")):
        sums: dict[str, list[int]] = {}
        for row in cleaned:
            sums.setdefault(row[column], []).append(row.amount)
        wanted = {key: (len(amounts), sum(amounts)) for key, amounts in sums.items()}
        found = [(row[column], (row.orders, row.amount)) for row in lake.read(table).collect()]
        assert dict(found) == wanted
        assert len(found) == len(wanted)


def test_pipeline_that_runs_twice_loads_each_batch_once(tmp_path: Path) -> None:
    write_batches(tmp_path / "in", 3)
    lake = lv.Lake(tmp_path / "lake", engine="local")
    assert [pipeline.run(lake, tmp_path / "in") for _ in range(2)] == [3, 0]
    check(lake, 3)


@pytest.mark.long
def test_pipeline_that_is_killed_and_run_again_loads_each_batch_once(tmp_path: Path) -> None:
    write_batches(tmp_path / "in", 8)
    command = [sys.executable, "examples/pipeline.py", str(tmp_path / "lake"), str(tmp_path / "in")]
    done = until_it_ends(command, kills=10, chance=random.Random(3), within=0.3)
    assert done.kills >= 3
    check(lv.Lake(tmp_path / "lake", engine="local"), 8)
