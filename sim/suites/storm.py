"""A storm of deadlocks: clients that touch some of four tables in a random order, all of them at once.

Each transaction changes one row in two to four tables, by amounts that add up to nothing. Some read first
what they change; a transaction that has to run again for that draws other tables and another order, and so
may hold tickets out of order. With R no transaction may give up, and the final state adds up: the values to
nothing, and the counts of changes of each table to those of the transactions that were acknowledged.

The same transactions run here, in simulated time, and in `bench.storm` on a real store.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from random import Random
from typing import Any

import pyarrow as pa

from lakevilla.answers import Receipt
from lakevilla.errors import Aborted
from lakevilla.lake import Lake
from lakevilla.model import Features
from lakevilla.transaction.transaction import Transaction
from sim.checkers.tables.markers import live_tickets
from sim.world.bucket import Bucket
from sim.world.client import World
from sim.world.faults import Calm
from sim.world.lakes import EngineOf, open_lake
from sim.world.row_engine import rows_engine

TABLES = ("north", "east", "south", "west")
KEYS = 4
CLIENTS = 8
READS = 0.3
"""How many of the changes follow a read of the row."""

BOTH = Features.R | Features.CT
RETRIES = 1000


@dataclass
class Tally:
    """What clients did. `touched` counts the acknowledged changes of each table."""

    commits: int = 0
    gave_up: int = 0
    attempts: int = 0
    redone: int = 0
    shifts: int = 0
    requests: int = 0
    touched: Counter[str] = field(default_factory=Counter)

    def acknowledge(self, receipt: Receipt, touched: Sequence[str]) -> None:
        """A transaction has committed, and changed these tables once each."""
        self.commits += 1
        self.attempts += receipt.attempts
        self.redone += receipt.redone
        self.shifts += receipt.shifts
        self.requests += sum(count for kind, count in receipt.requests.items() if "bytes" not in kind)
        self.touched.update(touched)

    def add(self, other: "Tally") -> None:
        for name in ("commits", "gave_up", "attempts", "redone", "shifts", "requests"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.touched.update(other.touched)

    def __str__(self) -> str:
        each = max(self.commits, 1)
        return (
            f"{self.commits} commits, {self.gave_up} gave up; {self.redone} statements redone "
            f"({self.redone / each:.2f} a commit), {self.attempts - self.commits} transactions run again, "
            f"{self.shifts} shifts, {self.requests / each:.1f} requests a commit"
        )


def fill(lake: Lake) -> None:
    """Make the four tables."""
    for table in TABLES:
        lake.create(table, pa.schema([("k", pa.int64()), ("v", pa.int64()), ("n", pa.int64())]))
        lake.append(table, [{"k": key, "v": 0, "n": 0} for key in range(KEYS)])


def transact(lake: Lake, random: Random, tally: Tally) -> None:
    """One transaction, whatever it takes."""
    touched: list[str] = []

    def work(tx: Transaction) -> None:
        touched[:] = random.sample(TABLES, random.randint(2, len(TABLES)))
        for table, amount in zip(touched, _amounts(random, len(touched)), strict=True):
            key = random.randrange(KEYS)
            new: Any = f"v + {amount}"
            if random.random() < READS:
                new = next(row[1] for row in tx.read(table).collect() if row[0] == key) + amount
            tx.update(table, set={"v": new, "n": "n + 1"}, where=f"k = {key}")

    try:
        receipt = lake.run(work, RETRIES, BOTH)
    except Aborted:
        tally.gave_up += 1
        return
    tally.acknowledge(receipt, touched)


def _amounts(random: Random, count: int) -> list[int]:
    """Numbers that add up to nothing."""
    some = [random.randint(-9, 9) for _ in range(count - 1)]
    return [*some, -sum(some)]


def check(rows: Mapping[str, list[Any]], tally: Tally) -> list[str]:
    """What is wrong with the tables after a storm; `rows` by table."""
    wrong = []
    total = sum(row[1] for table in TABLES for row in rows[table])
    if total != 0:
        wrong.append(f"the values add up to {total} and not to 0")
    for table in TABLES:
        keys = sorted(row[0] for row in rows[table])
        if keys != list(range(KEYS)):
            wrong.append(f"{table} holds the keys {keys}")
        changes = sum(row[2] for row in rows[table])
        if changes != tally.touched[table]:
            wrong.append(f"{table} was changed {changes} times, and {tally.touched[table]} were acknowledged")
    if tally.gave_up:
        wrong.append(f"{tally.gave_up} transactions gave up")
    return wrong


@dataclass(frozen=True)
class Storm:
    """A storm that is over: how long it was by its own clock, and what was wrong."""

    tally: Tally
    seconds: float
    violations: list[str]


@cache
def _image(engine: EngineOf) -> Bucket:
    with World(0, Calm) as world:
        client = world.client("maker")
        world.start(client, lambda: fill(open_lake(client, engine)))
        world.run()
        return world.bucket


def play(seed: int, transactions: int, *, clients: int = CLIENTS, engine: EngineOf = rows_engine) -> Storm:
    """So many transactions of each client. Raises `Stuck` if they do not end."""
    total = Tally()
    limit = 20_000 * clients * transactions
    with World(seed, Calm, event_limit=limit) as world:
        world.bucket.load(_image(engine))

        def body(lake: Lake) -> None:
            for _ in range(transactions):
                transact(lake, world.random, total)
                # A storm is long, and no checker needs its single events.
                world.scheduler.trace.clear()

        for number in range(clients):
            client = world.client(f"c{number}")
            world.start(client, partial(body, open_lake(client, engine)))
        world.run()
        seconds = world.scheduler.now
        violations = check(_read(world, engine), total)
        violations += [f"live ticket: {place}" for place in live_tickets(world.bucket.writes)]
    return Storm(total, seconds, violations)


def _read(world: World, engine: EngineOf) -> dict[str, list[Any]]:
    """The tables as they are."""
    found: dict[str, list[Any]] = {}
    client = world.client("reader")

    def body() -> None:
        lake = open_lake(client, engine)
        for table in TABLES:
            found[table] = lake.read(table).collect()

    world.start(client, body)
    world.run()
    return found
