"""One seed from begin to verdict: a lake, some clients, faults, an audit without faults, the judges.

Contract: `play` is a function of its arguments alone. At least 4 clients run at least 20 transactions
between them; a crashed client's work is taken over by a new one. When the clients are done the faults
end, and everything must drain: an auditor reads and changes every table, which must succeed.
"""

import traceback
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from random import Random
from typing import Any

from sim.actors import one_table, recovery
from sim.actors.audit import audit_recovery, audit_tables
from sim.actors.session import Session
from sim.checkers.history import History
from sim.checkers.tables.cataloged import judged
from sim.checkers.tables.feeds import check_feeds
from sim.legacy.client import LegacyReader, LegacyWriter, start_administrator
from sim.legacy.store import Encode, encode_json, encode_parquet
from sim.suites.verdict import judge
from sim.world.bucket import Bucket
from sim.world.client import World
from sim.world.faults import Storm
from sim.world.formats import DELTA, PLAIN, Formats
from sim.world.lakes import EngineOf, first_image, open_lake
from sim.world.row_engine import rows_engine
from sim.world.scheduler import Stuck, digest

TRANSACTIONS = 4
"""How many transactions a client runs at least."""


@dataclass(frozen=True)
class Suite:
    """What clients are up to, kind by kind; about how many requests lie between two faults, and how many
    seconds between a client's transactions; the audit."""

    mixes: Mapping[str, tuple[one_table.Actor, ...]]
    gaps: tuple[int, ...]
    pauses: tuple[float, ...]
    audit: Callable[[World, History, EngineOf], None]


SUITES = {
    "base": Suite(one_table.MIXES, (10, 20, 40), (0.05,), audit_tables),
    "recovery": Suite(recovery.MIXES, (20, 40, 80), (0.05, 0.5), audit_recovery),
}
"""`base`: single statements, changes of the registry. `recovery`: transactions of several statements too."""


@dataclass
class Report:
    """What one seed did and whether anything was wrong."""

    seed: int
    violations: list[str] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    clients: int = 0
    trace: list[tuple[Any, ...]] = field(default_factory=list)
    history: History = field(default_factory=History)

    @cached_property
    def trace_hash(self) -> str:
        """A digest of the trace. Computed when asked for: it costs more than many a judge."""
        return digest(self.trace)

    @property
    def transactions(self) -> int:
        return sum(self.outcomes.values())


def play(
    seed: int,
    suite: str = "base",
    *,
    engine: EngineOf = rows_engine,
    transactions: int = TRANSACTIONS,
    formats: Formats = PLAIN,
) -> Report:
    """Run one seed of a suite."""
    chosen = SUITES[suite]

    def start(world: World, history: History, random: Random) -> int:
        return _start_clients(world, history, random, engine, transactions, chosen)

    def audit(world: World, history: History) -> list[str]:
        chosen.audit(world, history, engine)
        return []

    return weather(seed, chosen.gaps, first_image(engine, formats), start, audit, judge, formats)


def weather(
    seed: int,
    gaps: tuple[int, ...],
    image: Bucket,
    start: Callable[[World, History, Random], int],
    audit: Callable[[World, History], list[str]],
    judge_all: Callable[[Bucket, History], list[str]],
    formats: Formats = PLAIN,
    storm_of: Callable[..., Storm] = Storm,
) -> Report:
    """One seed from begin to verdict: clients in a storm, an audit when it is over, then the judges.

    `start` starts the clients and says how many; `audit` gives what it finds wrong, or raises `Stuck`.
    """
    random, report = Random(seed), Report(seed)
    storm: list[Storm] = []

    def plan(draw: Random) -> Storm:
        storm.append(storm_of(draw, mean_gap=random.choice(gaps), crashes=random.randint(0, 3)))
        return storm[0]

    etags, page = random.random() < 0.5, random.choice((3, 1000))
    with World(seed, plan, content_etags=etags, page=page, formats=formats) as world:
        world.bucket.load(image)
        try:
            report.clients = start(world, report.history, random)
            world.run()
            storm[0].calm = True
            report.violations.extend(audit(world, report.history))
        except Stuck as stuck:
            report.violations.append(f"liveness: {stuck}")
        except Exception as error:  # noqa: BLE001 - whatever escapes a client is a finding
            report.violations.append(f"unexpected {type(error).__name__}: {error}\n{traceback.format_exc()}")
        report.trace = list(world.scheduler.trace)
        report.violations.extend(judge_all(judged(world), report.history))
        if formats.has_feeds:
            report.violations.extend(check_feeds(judged(world).writes))
    report.faults.update(storm[0].counts)
    report.outcomes.update(op.outcome for op in report.history.operations)
    return report


def _start_clients(
    world: World, history: History, random: Random, engine: EngineOf, transactions: int, suite: Suite
) -> int:
    count = random.randint(4, 5)
    kinds = random.sample(sorted(suite.mixes), random.randint(1, 3))
    for number in range(count):
        mix = [actor for kind in kinds for actor in suite.mixes[kind]]
        pause = suite.pauses[number % len(suite.pauses)]
        duty = Duty(mix, transactions + random.randrange(3), pause)
        _start_client(world, history, f"c{number}", duty, engine)
    _start_legacy(world, history, random, encode_json if engine is rows_engine else encode_parquet)
    start_administrator(world, history, sorted(one_table.SCHEMAS))
    return count


@dataclass
class Duty:
    """What a client, or its successor, still has to do, and how long it waits in between."""

    mix: list[one_table.Actor]
    left: int
    pause: float


def _start_client(world: World, history: History, name: str, duty: Duty, engine: EngineOf) -> None:
    """A client that runs so many transactions; when it dies a new one continues with the rest.

    Some clients have two threads that share one lake.
    """
    client = world.client(name)
    session = Session(client, open_lake(client, engine), history)

    def body() -> None:
        while duty.left > 0:
            duty.left -= 1
            world.random.choice(duty.mix)(session, world.random)
            client.environment.sleep(world.random.expovariate(1 / duty.pause))

    def restart() -> None:
        if duty.left > 0:
            _start_client(world, history, f"{name}'", duty, engine)

    client.process.on_death = lambda: world.scheduler.at(world.random.random() * 5, restart)
    for _ in range(2 if world.random.random() < 0.3 else 1):
        world.start(client, body)


def _start_legacy(world: World, history: History, random: Random, encode: Encode) -> None:
    """A reader of all tables, and in half of the seeds a writer to the table of blind appends, which also
    deletes rows where a file of an Iceberg table can say so."""
    client = world.client("legacy-reader")
    reader = LegacyReader(client, history)

    def read() -> None:
        for _ in range(4):
            table = world.random.choice(sorted(one_table.SCHEMAS))
            reader.read(table, table)
            client.environment.sleep(world.random.random())

    world.start(client, read)
    if random.random() < 0.5:
        other = world.client("legacy-writer")
        writer = LegacyWriter(other, history, encode)
        deletes = world.formats.of("blind") != DELTA

        def write() -> None:
            for _ in range(6 if deletes else 3):
                part = world.random.randrange(one_table.PARTS)
                if deletes and world.random.random() < 0.5:
                    writer.delete("blind", "blind", "part", part)
                else:
                    rows = [{"op": len(history.operations) * 10, "part": part}]
                    writer.append("blind", "blind", rows, statistics=world.random.random() < 0.5)
                other.environment.sleep(world.random.random())

        world.start(other, write)
