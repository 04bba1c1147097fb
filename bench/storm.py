"""Storms of deadlocks, and contention: `python -m bench.storm`.

- `sim`: 8 clients that touch four tables in random orders, in the simulator, 500 transactions each.
- `seaweedfs`: the same on a real store, 8 processes, 50 transactions each.
- `pair`: 8 processes that all transfer between the same two rows of the same two tables.

All have to finish, no transaction may give up, the final state adds up, and no ticket is left in a queue.
Told are commits per second, statements redone, shifts, requests, and how long a commit takes.
"""

import argparse
import logging
import multiprocessing
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any

import numpy as np

import lakevilla as lv
from bench.stores.places import SEAWEEDFS, SLOW, Place, running_places
from sim.suites import storm
from sim.suites.storm import BOTH, CLIENTS, RETRIES, TABLES, Tally

SIMULATED = 500
REAL = 50


@dataclass
class Share:
    """What one client did, and the seconds of each of its transactions."""

    tally: Tally = field(default_factory=Tally)
    seconds: list[float] = field(default_factory=list)


Transact = Callable[[lv.Lake, Random, Tally], None]


def transfer(lake: lv.Lake, random: Random, tally: Tally) -> None:
    """Between the same two rows of two tables, without a read."""
    amount = random.randint(1, 9)

    def work(tx: lv.Transaction) -> None:
        tx.update(TABLES[0], {"v": f"v - {amount}", "n": "n + 1"}, where="k = 0")
        tx.update(TABLES[1], {"v": f"v + {amount}", "n": "n + 1"}, where="k = 0")

    receipt = lake.run(work, RETRIES, BOTH)
    tally.acknowledge(receipt, TABLES[:2])


WORK: dict[str, Transact] = {"storm": storm.transact, "pair": transfer}


def run(place: Place, work: str, transactions: int, clients: int = CLIENTS) -> tuple[float, list[Share]]:
    """Clients in processes of their own, which start together; the seconds until the last has ended."""
    storm.fill(_open(place))
    context = multiprocessing.get_context("spawn")
    barrier, answers = context.Barrier(clients + 1), context.Queue()
    processes = [
        context.Process(target=_client, args=(place, work, seed, transactions, barrier, answers), daemon=True)
        for seed in range(clients)
    ]
    for process in processes:
        process.start()
    barrier.wait()
    start = time.perf_counter()
    shares = [answers.get(timeout=600) for _ in processes]
    seconds = time.perf_counter() - start
    for process in processes:
        process.join()
    return seconds, shares


def _client(place: Place, work: str, seed: int, transactions: int, barrier: Any, answers: Any) -> None:
    logging.disable(logging.WARNING)
    lake, random, share = _open(place), Random(seed), Share()
    for table in TABLES:
        lake.read(table).count()
    barrier.wait()
    for _ in range(transactions):
        start = time.perf_counter()
        WORK[work](lake, random, share.tally)
        share.seconds.append(time.perf_counter() - start)
    lake.close()
    answers.put(share)


def judge(place: Place, tally: Tally) -> list[str]:
    """What is wrong when all have ended."""
    lake = _open(place)
    wrong = storm.check({table: lake.read(table).collect() for table in TABLES}, tally)
    return wrong + [f"live ticket {ticket}" for ticket in lake.status().tickets]


def real(place: Place, work: str, transactions: int, clients: int = CLIENTS) -> tuple[str, list[str]]:
    """One storm on a real store: its report, and what was wrong."""
    seconds, shares = run(place, work, transactions, clients)
    total, times = Tally(), [one for share in shares for one in share.seconds]
    for share in shares:
        total.add(share.tally)
    p50, p95, longest = 1000 * np.percentile(times, [50, 95, 100])
    told = (
        f"{place.name}, {work}, {clients} clients: {total.commits / seconds:.1f} commits/s; {total}; "
        f"p50 {p50:.0f} ms, p95 {p95:.0f} ms, longest {longest:.0f} ms"
    )
    return told, judge(place, total)


def simulated(seed: int, transactions: int) -> tuple[str, list[str]]:
    start = time.perf_counter()
    played = storm.play(seed, transactions)
    took = time.perf_counter() - start
    each = played.seconds / max(played.tally.commits, 1)
    return f"simulator, seed {seed}: {played.tally}; {each:.1f} simulated s a commit, {took:.0f} s in all", (
        played.violations
    )


def _open(place: Place) -> lv.Lake:
    return lv.Lake(place.root, storage_options=dict(place.storage_options), engine="local", features=lv.R)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser("python -m bench.storm", description=__doc__)
    parser.add_argument("--only", default="sim,seaweedfs,pair", help="some of sim, seaweedfs and pair")
    parser.add_argument("--simulated", type=int, default=SIMULATED, help="transactions of each client there")
    parser.add_argument("--real", type=int, default=REAL, help="transactions of each client on SeaweedFS")
    parser.add_argument("--clients", type=int, default=CLIENTS, help="on SeaweedFS (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the simulator")
    parser.add_argument("--slow", action="store_true", help="20 ms more for each request to SeaweedFS")
    chosen = parser.parse_args(arguments)
    logging.disable(logging.WARNING)
    parts: dict[str, Callable[[], tuple[str, list[str]]]] = {
        "sim": partial(simulated, chosen.seed, chosen.simulated),
        "seaweedfs": partial(_on_seaweedfs, "storm", chosen),
        "pair": partial(_on_seaweedfs, "pair", chosen),
    }
    failed = False
    for name in chosen.only.split(","):
        told, wrong = parts[name]()
        print(told, flush=True)
        for one in wrong:
            print(f"  WRONG: {one}", flush=True)
        failed = failed or bool(wrong)
    sys.exit(1 if failed else 0)


def _on_seaweedfs(work: str, chosen: argparse.Namespace) -> tuple[str, list[str]]:
    with running_places([SLOW if chosen.slow else SEAWEEDFS]) as places:
        return real(places[0], work, chosen.real, chosen.clients)


if __name__ == "__main__":
    main()
