"""Streams into several tables by `lv.streaming.sink`: restarted, and killed with their JVM."""

import random
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

import lakevilla as lv
from bench.kills import faults, until_it_ends, write_files
from examples import stream

FILES, ROWS = 3, 5


def test_stream_that_starts_again_writes_each_batch_once(quick: Any, tmp_path: Path) -> None:
    write_files(tmp_path / "in", FILES, ROWS)
    root, folder, checkpoint = (str(tmp_path / name) for name in ("lake", "in", "checkpoint"))
    stream.run(quick, root, folder, checkpoint)
    # As if the stream had been killed after its last commit: Spark runs that batch again.
    for log in (tmp_path / "checkpoint" / "commits").glob(f"*{FILES - 1}*"):
        log.unlink()
    stream.run(quick, root, folder, checkpoint)
    assert faults(tmp_path / "lake", FILES * ROWS) == []
    lake = lv.Lake(root, engine="local")
    assert len([entry for entry in lake.history() if entry.kind == "commit"]) == FILES + 1
    # Without its checkpoint it is another stream, which has done nothing yet.
    shutil.rmtree(checkpoint)
    stream.run(quick, root, folder, checkpoint)
    assert lake.read("events").count() == 2 * FILES * ROWS


def test_batch_outside_of_a_stream_needs_a_name(quick: Any, tmp_path: Path) -> None:
    lake = lv.Lake(tmp_path, spark=quick)
    lake.create("t", "id BIGINT")

    def work(tx: lv.Transaction, batch: Any, number: int) -> None:
        tx.append("t", batch.where(f"id >= {number}"))

    with pytest.raises(lv.InvalidInput, match="app="):
        lv.streaming.sink(lake, work)(quick.range(3), 0)
    write = lv.streaming.sink(lake, work, app="hand", persist=False)
    assert [write(quick.range(3), 1).replayed for _ in range(2)] == [False, True]
    assert lake.read("t").count() == 2


def test_work_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(lv.InvalidInput, match="work is a function"):
        lv.streaming.sink(lv.Lake(tmp_path, engine="local"), "work")  # type: ignore[arg-type]


@pytest.mark.long
def test_stream_that_is_killed_with_its_jvm_writes_every_row_once(tmp_path: Path) -> None:
    write_files(tmp_path / "in", 8, 20)
    command = [sys.executable, "examples/stream.py"]
    command += [str(tmp_path / name) for name in ("lake", "in", "checkpoint")]
    done = until_it_ends(command, kills=3, chance=random.Random(5), within=1.5)
    assert done.kills == 3
    assert faults(tmp_path / "lake", 8 * 20) == []
