"""Clients that update different rows of one file: `python -m bench.one_file`.

The table has deletion vectors. Each client is a process and updates rows of its own, one with each
transaction, first one client alone and then all together, with R and with R,CT,I. Told are commits per
second, the ratio to one client alone, statements that ran again, attempts, clients that gave up, and
processor time.
"""

import argparse
import logging
import multiprocessing
import time
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa

import lakevilla as lv
from bench.stores.places import NAMES, SEAWEEDFS, Place, running_places

CLIENTS = 8
COMMITS = 40
ROWS = 10_000
FEATURES = {"R": lv.R, "R,CT,I": lv.R | lv.CT | lv.I}


@dataclass
class Share:
    """What one client, or all of them, did."""

    commits: int = 0
    redone: int = 0
    again: int = 0
    gave_up: int = 0
    processor_seconds: float = 0.0

    def add(self, other: "Share") -> None:
        self.commits += other.commits
        self.redone += other.redone
        self.again += other.again
        self.gave_up += other.gave_up
        self.processor_seconds += other.processor_seconds

    def __str__(self) -> str:
        return (
            f"{self.commits} commits, {self.redone} statements run again, {self.again} attempts more, "
            f"{self.gave_up} clients gave up; for each commit "
            f"{1000 * self.processor_seconds / self.commits:.0f} ms of processor time of clients"
        )


def _open(place: Place, features: str) -> lv.Lake:
    options = dict(place.storage_options)
    return lv.Lake(
        place.root, storage_options=options, engine="local", features=FEATURES[features], merge_on_read=True
    )


def run(place: Place, features: str, clients: int, commits: int) -> tuple[float, Share]:
    """The seconds until the last client has ended, and what all did; the table is checked."""
    rows = pa.table({"id": list(range(ROWS)), "v": [0] * ROWS})
    _open(place, features).create("t", rows)
    context = multiprocessing.get_context("spawn")
    barrier, answers = context.Barrier(clients + 1), context.Queue()
    processes = [
        context.Process(
            target=_client, args=(place, features, number, commits, barrier, answers), daemon=True
        )
        for number in range(clients)
    ]
    for process in processes:
        process.start()
    barrier.wait()
    start = time.perf_counter()
    total = Share()
    for _ in processes:
        total.add(answers.get(timeout=900))
    seconds = time.perf_counter() - start
    for process in processes:
        process.join()
    lake = _open(place, features)
    (found,) = lake.sql("SELECT count(*) AS n, sum(v) AS v FROM t").collect()
    assert (found.n, found.v) == (ROWS, total.commits), found
    return seconds, total


def _client(place: Place, features: str, number: int, commits: int, barrier: Any, answers: Any) -> None:
    logging.disable(logging.WARNING)
    lake, share = _open(place, features), Share()
    lake.sql("SELECT v FROM t WHERE id = 0").collect()
    barrier.wait()
    begin = time.process_time()
    for turn in range(commits):
        row = number + CLIENTS * turn
        try:
            receipt = lake.run(partial(_update, row))
        except lv.Aborted:
            share.gave_up += 1
            continue
        share.add(Share(1, receipt.redone, receipt.attempts - 1))
    share.processor_seconds = time.process_time() - begin
    lake.close()
    answers.put(share)


def _update(row: int, tx: lv.Transaction) -> None:
    tx.sql(f"UPDATE t SET v = v + 1 WHERE id = {row}")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser("python -m bench.one_file", description=__doc__)
    parser.add_argument("--place", choices=NAMES, default=SEAWEEDFS)
    parser.add_argument("--clients", type=int, default=CLIENTS)
    parser.add_argument("--commits", type=int, default=COMMITS, help="of each client")
    parser.add_argument("--features", choices=list(FEATURES), action="append")
    chosen = parser.parse_args(arguments)
    logging.disable(logging.WARNING)
    with running_places([chosen.place]) as (place,):
        for features in chosen.features or list(FEATURES):
            rates = []
            for clients in (1, chosen.clients):
                url = f"{place.root}/{features.replace(',', '-')}-{clients}"
                commits = chosen.commits * (chosen.clients // 2 if clients == 1 else 1)
                seconds, share = run(replace(place, root=url), features, clients, commits)
                rates.append(share.commits / seconds)
                print(
                    f"{place.name}, {features}, {clients} clients: {rates[-1]:.1f} commits/s; {share}",
                    flush=True,
                )
            print(f"{place.name}, {features}: {rates[1] / rates[0]:.2f} of one client alone", flush=True)


if __name__ == "__main__":
    main()
