"""Programs that are killed again and again, and started again until they end: `python -m bench.kills`.

Runs `examples/stream.py` on a folder of files, kills it and its JVM at random moments shortly after a batch
began, and starts it again. At the end every row must be in each of its two tables exactly once.
"""

import argparse
import os
import queue
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import lakevilla as lv
from bench.stores.seaweed import die_with_parent

ROOT = Path(__file__).parents[1]
WAIT_SECONDS = 600.0


@dataclass
class Run:
    """How often a program was started and killed, and how many batches began."""

    starts: int = 0
    kills: int = 0
    begun: int = 0


def until_it_ends(command: list[str], kills: int, chance: random.Random, within: float) -> Run:
    """Start the command again after each kill, until it ends normally.

    It is killed at most so many times, up to `within` seconds after it said that a batch begins.
    """
    done = Run()
    while True:
        done.starts += 1
        killed = _once(command, done, kills, chance, within)
        if not killed:
            return done


def _once(command: list[str], done: Run, kills: int, chance: random.Random, within: float) -> bool:
    """One life of the program: whether it was killed."""
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=die_with_parent,
    )
    assert process.stdout is not None
    lines: queue.Queue[str | None] = queue.Queue()

    def read(stream: "object" = process.stdout) -> None:
        for line in stream:  # type: ignore[attr-defined]
            lines.put(line)
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    doomed = chance.randint(1, 3) if done.kills < kills else 0
    seen = 0
    while (line := lines.get(timeout=WAIT_SECONDS)) is not None:
        if not line.startswith("batch "):
            continue
        seen += 1
        done.begun += 1
        if seen == doomed:
            time.sleep(chance.random() * within)
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            done.kills += 1
            return True
    code = process.wait()
    if code != 0:
        raise SystemExit(f"{command} ended with {code}")
    return False


def write_files(folder: Path, files: int, rows: int) -> None:
    """Parquet files with the columns `id`, which is unique, and `v`."""
    folder.mkdir(parents=True)
    for number in range(files):
        ids = range(number * rows, (number + 1) * rows)
        table = pa.table({"id": pa.array(ids, pa.int64()), "v": pa.array([1] * rows, pa.int64())})
        pq.write_table(table, folder / f"{number:04}.parquet")


def faults(root: Path, rows: int) -> list[str]:
    """What is wrong with the two tables: every id must be in each of them once."""
    lake = lv.Lake(root, engine="local")
    found = []
    for table, value in (("events", 1), ("totals", 10)):
        counts = Counter((row.id, row.v) for row in lake.read(table).collect())
        missing = [number for number in range(rows) if (number, value) not in counts]
        twice = [row for row, count in counts.items() if count > 1]
        if missing or twice or len(counts) != rows:
            found.append(f"{table}: {len(missing)} rows missing, {len(twice)} more than once")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--files", type=int, default=40)
    parser.add_argument("--rows", type=int, default=50, help="in each file")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        write_files(root / "in", options.files, options.rows)
        command = [sys.executable, "examples/stream.py"]
        command += [str(root / name) for name in ("lake", "in", "checkpoint")]
        start = time.monotonic()
        done = until_it_ends(command, options.kills, random.Random(options.seed), within=1.5)
        wrong = faults(root / "lake", options.files * options.rows)
        entries = lv.Lake(root / "lake", engine="local").history()
    print(
        f"{done.kills} kills, {done.starts} starts, {done.begun} batches begun for {options.files} files, "
        f"{len(entries)} entries of the global log, {time.monotonic() - start:.0f} s"
    )
    print("\n".join(wrong) or f"every one of {options.files * options.rows} rows is in both tables once")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
