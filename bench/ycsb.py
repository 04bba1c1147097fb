"""YCSB for lakehouses: many clients on one table or several, and what each feature set makes of it.

`usertable` has a key, ten fields of 100 bytes and a count of the updates of its row, so that every update
that was acknowledged can be found again, key by key. Keys are drawn by Zipf's law (0.99). The clients take
1,000 operations from one pool; a client is a thread, and eight threads share a process. With several tables
each operation is on one of them, drawn at random.

- A: half reads, half updates of one field.
- F: half reads, half read-modify-writes: the client reads a row, and writes back what it made of it.
"""

import argparse
import multiprocessing
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from multiprocessing.sharedctypes import Synchronized
from multiprocessing.synchronize import Barrier
from typing import Any

import numpy as np
import pyarrow as pa

import lakevilla as lv
from bench.stores.places import DIRECTORY, SEAWEEDFS, Place, running_places
from lakevilla.store.metered import KINDS

RECORDS = 1000
OPERATIONS = 1000
FIELDS = 10
FIELD_BYTES = 100
ZIPF = 0.99
THREADS_OF_A_PROCESS = 8
RETRIES_WITHOUT_RECOVERY = 10
"""As the paper lets the plain format try."""

FEATURES = {
    "NONE": lv.NONE,
    "R": lv.R,
    "R|CT": lv.R | lv.CT,
    "I": lv.I,
    "R|CT|I": lv.R | lv.CT | lv.I,
}
GIVES_UP = ("NONE",)
"""Feature sets that try as often as the paper lets the plain format try."""


Row = tuple[str, int]
"""A table's name and a key."""


@dataclass
class Tally:
    """What one client, or all of them, did."""

    operations: int = 0
    gave_up: int = 0
    executions: int = 0
    redone: int = 0
    requests: int = 0
    """Of transactions that committed a change, data included."""
    acknowledged: Counter[Row] = field(default_factory=Counter)
    seconds: dict[str, list[float]] = field(default_factory=dict)

    def add(self, other: "Tally") -> None:
        self.operations += other.operations
        self.gave_up += other.gave_up
        self.executions += other.executions
        self.redone += other.redone
        self.requests += other.requests
        self.acknowledged.update(other.acknowledged)
        for kind, times in other.seconds.items():
            self.seconds.setdefault(kind, []).extend(times)


@dataclass(frozen=True)
class Job:
    """One run: which workload, how many clients, with which features, on which engine and place."""

    workload: str
    clients: int
    features: str
    engine: str
    place: Place
    tables: tuple[str, ...]
    operations: int = OPERATIONS


@dataclass(frozen=True)
class Outcome:
    """A run and its result. `shares` says how many operations each client did."""

    job: Job
    seconds: float
    tally: Tally
    shares: Sequence[int]
    lost: int

    @property
    def slowest_share(self) -> float:
        """The part of an equal share that the client had which got the least."""
        return min(self.shares) * len(self.shares) / max(sum(self.shares), 1)

    def line(self) -> str:
        writes = self.tally.seconds.get("update", []) + self.tally.seconds.get("rmw", [])
        commits = sum(self.tally.acknowledged.values()) / self.seconds
        reads = self.tally.seconds.get("read", [])
        changed = sum(self.tally.acknowledged.values())
        again = self.tally.executions - changed - self.tally.gave_up + self.tally.redone
        return (
            f"| {self.job.workload} | {self.job.engine} | {self.job.clients} | {self.job.features} "
            f"| {self.tally.operations / self.seconds:.1f} | {commits:.1f} | {_percentiles(reads)} "
            f"| {_percentiles(writes)} "
            f"| {self.tally.gave_up} | {again} | {changed} | {self.lost} | {self.slowest_share:.2f} "
            f"| {self.tally.requests / max(changed, 1):.1f} |"
        )


HEADER = (
    "| workload | engine | clients | features | operations/s | commits/s | read p50 / p95 / p99 ms "
    "| write p50 / p95 / p99 ms "
    "| gave up | re-executed | acknowledged updates | of these lost | slowest client's share "
    "| requests per commit |\n"
    "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|"
)


def rows() -> pa.Table:
    """The table before the first operation."""
    chance = random.Random(1)
    columns: dict[str, Any] = {"YCSB_KEY": list(range(RECORDS))}
    for number in range(FIELDS):
        columns[f"FIELD{number}"] = [chance.randbytes(FIELD_BYTES // 2).hex() for _ in range(RECORDS)]
    return pa.table({**columns, "UPDATES": [0] * RECORDS})


def keys_by_zipf(seed: int) -> Callable[[], int]:
    """Draws keys, few of them often."""
    weights = 1 / np.arange(1, RECORDS + 1) ** ZIPF
    chance = np.random.default_rng(seed)
    order = np.random.default_rng(0).permutation(RECORDS)
    chances = weights / weights.sum()
    return lambda: int(order[chance.choice(RECORDS, p=chances)])


def open_lake(job: Job) -> lv.Lake:
    return lv.Lake(
        job.place.root,
        storage_options=dict(job.place.storage_options),
        engine=job.engine,
        features=FEATURES[job.features],
    )


def measure(job: Job) -> Outcome:
    """Run one job on a new table."""
    lake = open_lake(job)
    first = rows()
    for table in job.tables:
        lake.create(table, first)
    if job.engine == "local":
        seconds, tallies = _in_processes(job)
    else:
        seconds, tallies = _in_threads(job, lake)
    total = Tally()
    for tally in tallies:
        total.add(tally)
    found = {(table, row.YCSB_KEY): row.UPDATES for table in job.tables for row in lake.read(table).collect()}
    lost = sum(max(count - found[key], 0) for key, count in total.acknowledged.items())
    return Outcome(job, seconds, total, [tally.operations for tally in tallies], lost)


def _in_processes(job: Job) -> tuple[float, list[Tally]]:
    """Clients in processes of eight threads; they start together."""
    context = multiprocessing.get_context("spawn")
    pool = context.Value("i", job.operations)
    sizes = [
        min(THREADS_OF_A_PROCESS, job.clients - start)
        for start in range(0, job.clients, THREADS_OF_A_PROCESS)
    ]
    barrier, answers = context.Barrier(len(sizes) + 1), context.Queue()
    processes = [
        context.Process(target=_process, args=(job, number, size, pool, barrier, answers))
        for number, size in enumerate(sizes)
    ]
    for process in processes:
        process.start()
    barrier.wait()
    start = time.perf_counter()
    tallies = [tally for _ in processes for tally in answers.get()]
    seconds = time.perf_counter() - start
    for process in processes:
        process.join()
    return seconds, tallies


def _process(
    job: Job, number: int, size: int, pool: "Synchronized[int]", barrier: Barrier, answers: Any
) -> None:
    lake = open_lake(job)
    for table in job.tables:
        lake.read(table).count()
    barrier.wait()
    with ThreadPoolExecutor(size) as threads:
        seeds = [number * THREADS_OF_A_PROCESS + thread for thread in range(size)]
        answers.put(list(threads.map(lambda seed: _client(lake, job, seed, pool), seeds)))


def _in_threads(job: Job, lake: lv.Lake) -> tuple[float, list[Tally]]:
    """Clients as threads of one driver: a Spark session serves them all."""
    pool = multiprocessing.Value("i", job.operations)
    for table in job.tables:
        lake.read(table).count()
    start = time.perf_counter()
    with ThreadPoolExecutor(job.clients) as threads:
        tallies = list(threads.map(lambda seed: _client(lake, job, seed, pool), range(job.clients)))
    return time.perf_counter() - start, tallies


def _client(lake: lv.Lake, job: Job, seed: int, pool: "Synchronized[int]") -> Tally:
    tally, next_key, chance = Tally(), keys_by_zipf(seed), random.Random(seed)
    write = {"A": ("update", _update), "F": ("rmw", _read_modify_write)}[job.workload]
    while _take(pool):
        row = (chance.choice(job.tables), next_key())
        kind, work = ("read", _read) if chance.random() < 0.5 else write
        start = time.perf_counter()
        work(lake, job, row, chance, tally)
        tally.seconds.setdefault(kind, []).append(time.perf_counter() - start)
        tally.operations += 1
    return tally


def _take(pool: "Synchronized[int]") -> bool:
    with pool.get_lock():
        pool.value -= 1
        return pool.value >= 0


def _read(lake: lv.Lake, job: Job, row: Row, chance: random.Random, tally: Tally) -> None:  # noqa: ARG001
    table, key = row
    found = lake.sql(f"SELECT * FROM {table} WHERE YCSB_KEY = {key}").collect()
    if len(found) != 1:
        raise RuntimeError(f"key {key} has {len(found)} rows")


def _update(lake: lv.Lake, job: Job, row: Row, chance: random.Random, tally: Tally) -> None:
    column, value = chance.randrange(FIELDS), chance.randbytes(FIELD_BYTES // 2).hex()

    def work(tx: lv.Transaction) -> None:
        tally.executions += 1
        new = {f"FIELD{column}": f"'{value}'", "UPDATES": "UPDATES + 1"}
        tx.update(row[0], new, where=f"YCSB_KEY = {row[1]}")

    _run(lake, job, row, work, tally)


def _read_modify_write(lake: lv.Lake, job: Job, row: Row, chance: random.Random, tally: Tally) -> None:
    column, value = chance.randrange(FIELDS), chance.randbytes(FIELD_BYTES // 2).hex()
    query = f"SELECT UPDATES FROM {row[0]} WHERE YCSB_KEY = {row[1]}"

    def work(tx: lv.Transaction) -> None:
        tally.executions += 1
        # The plain format has no transaction of two statements: there the read is one of its own.
        reader = tx if job.features != "NONE" else lake
        before = reader.sql(query).collect()[0].UPDATES
        new = {f"FIELD{column}": f"'{value}'", "UPDATES": before + 1}
        tx.update(row[0], new, where=f"YCSB_KEY = {row[1]}")

    _run(lake, job, row, work, tally)


def _run(lake: lv.Lake, job: Job, row: Row, work: Callable[[lv.Transaction], None], tally: Tally) -> None:
    retries = RETRIES_WITHOUT_RECOVERY if job.features in GIVES_UP else 1000
    try:
        receipt = lake.run(work, retries)
    except lv.Aborted:
        tally.gave_up += 1
    else:
        tally.redone += receipt.redone
        tally.requests += sum(receipt.requests[kind] for kind in KINDS)
        tally.acknowledged[row] += 1


def _percentiles(values: list[float]) -> str:
    if not values:
        return "-"
    return " / ".join(f"{1000 * value:.0f}" for value in np.percentile(values, [50, 95, 99]))


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser("python -m bench.ycsb", description=__doc__)
    parser.add_argument("--workloads", default="A,F", help="of A and F (default: %(default)s)")
    parser.add_argument("--clients", default="8,64", help="numbers of clients (default: %(default)s)")
    parser.add_argument(
        "--features", default="NONE,R", help=f"of {', '.join(FEATURES)} (default: %(default)s)"
    )
    parser.add_argument("--tables", type=int, default=1, help="how many tables (default: %(default)s)")
    parser.add_argument("--engine", default="local", choices=["local", "spark"])
    parser.add_argument("--place", default=SEAWEEDFS, choices=[SEAWEEDFS, DIRECTORY])
    parser.add_argument("--operations", type=int, default=OPERATIONS, help="per run (default: %(default)s)")
    chosen = parser.parse_args(arguments)
    with running_places([chosen.place]) as places:
        print(HEADER, flush=True)
        for workload in chosen.workloads.split(","):
            for clients in map(int, chosen.clients.split(",")):
                for features in chosen.features.split(","):
                    run = f"usertable_{workload}_{clients}_{features.replace('|', '')}".lower()
                    tables = tuple(f"{run}_{number}" for number in range(chosen.tables))
                    place, operations = places[0], chosen.operations
                    job = Job(workload, clients, features, chosen.engine, place, tables, operations)
                    outcome = measure(job)
                    print(outcome.line(), flush=True)
                    if outcome.lost and features != "NONE":
                        sys.exit(f"{outcome.lost} acknowledged updates are lost")


if __name__ == "__main__":
    main()
