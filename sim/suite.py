"""One seed from begin to verdict: a lake, some clients, faults, an audit without faults, the judges.

Contract: `play` is a function of its arguments alone. At least 4 clients run at least 20 transactions
between them; a crashed client's work is taken over by a new one. When the clients are done the faults
end, and everything must drain: an auditor reads and changes every table, which must succeed.
"""

import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from random import Random
from typing import Any

from lakevilla.engines.port import Engine
from lakevilla.environment import Environment
from lakevilla.lake import Lake
from lakevilla.store.retrying import Retrying
from sim import actors
from sim.bucket import Bucket
from sim.checkers.cycles import Append, Read, Txn, find_anomalies
from sim.checkers.history import History, Operation
from sim.checkers.published import check_published
from sim.checkers.registry import check_registry, read_registry
from sim.checkers.replay import check_replay, table_versions
from sim.faults import Calm, Storm
from sim.legacy import LegacyReader, LegacyWriter, Row, encode_json, encode_parquet
from sim.rows import rows_engine
from sim.scheduler import Stuck
from sim.session import Session
from sim.world import Client, World

TRANSACTIONS = 4
"""How many transactions a client runs at least."""


@dataclass
class Report:
    """What one seed did and whether anything was wrong."""

    seed: int
    violations: list[str] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    clients: int = 0
    trace: list[tuple[Any, ...]] = field(default_factory=list)
    trace_hash: str = ""
    history: History = field(default_factory=History)

    @property
    def transactions(self) -> int:
        return sum(self.outcomes.values())


EngineOf = Callable[[Environment], Engine]
"""Makes the engine of one client."""


def play(seed: int, *, engine: EngineOf = rows_engine, transactions: int = TRANSACTIONS) -> Report:
    """Run one seed of the base suite: single-table transactions, registry changes, legacy clients."""
    random = Random(seed)
    report = Report(seed)
    storm: list[Storm] = []

    def plan(draw: Random) -> Storm:
        storm.append(Storm(draw, mean_gap=random.choice((10, 20, 40)), crashes=random.randint(0, 3)))
        return storm[0]

    etags, page = random.random() < 0.5, random.choice((3, 1000))
    with World(seed, plan, content_etags=etags, page=page) as world:
        world.bucket.load(first_image(engine))
        try:
            report.clients = _start_clients(world, report.history, random, engine, transactions)
            world.run()
            storm[0].calm = True
            _audit(world, report.history, engine)
        except Stuck as stuck:
            report.violations.append(f"liveness: {stuck}")
        except Exception as error:  # noqa: BLE001 - whatever escapes a client is a finding
            report.violations.append(f"unexpected {type(error).__name__}: {error}\n{traceback.format_exc()}")
        report.trace, report.trace_hash = world.scheduler.trace, world.scheduler.trace_hash()
        report.violations.extend(judge(world.bucket, report.history))
    report.faults.update(storm[0].counts)
    report.outcomes.update(op.outcome for op in report.history.operations)
    return report


@cache
def first_image(engine: EngineOf) -> Bucket:
    """The store of a lake with its tables and first rows, made without faults; alike for every seed."""
    with World(0, Calm) as world:
        client = world.client("maker")

        def make() -> None:
            lake = open_lake(client, engine)
            for name, schema in actors.SCHEMAS.items():
                lake.create(name, schema)
                if rows := actors.FIRST_ROWS.get(name):
                    lake.append(name, rows)

        world.start(client, make)
        world.run()
        return world.bucket


def open_lake(client: Client, engine: EngineOf) -> Lake:
    """A lake of this client's own, on the store as production code sees it: behind retries."""
    store = Retrying(client.store, client.environment)
    return Lake(
        "sim://bucket", engine=engine(client.environment), environment=client.environment, store=store
    )


def _start_clients(
    world: World, history: History, random: Random, engine: EngineOf, transactions: int
) -> int:
    count = random.randint(4, 5)
    kinds = random.sample(sorted(actors.MIXES), random.randint(1, 3))
    for number in range(count):
        mix = [actor for kind in kinds for actor in actors.MIXES[kind]]
        _start_client(world, history, f"c{number}", mix, transactions + random.randrange(3), engine)
    _start_legacy(world, history, random, encode_json if engine is rows_engine else encode_parquet)
    return count


def _start_client(
    world: World, history: History, name: str, mix: list[actors.Actor], left: int, engine: EngineOf
) -> None:
    """A client that runs so many transactions; when it dies a new one goes on with the rest.

    Some clients have two threads that share one lake.
    """
    client = world.client(name)
    session = Session(client, open_lake(client, engine), history)

    def body() -> None:
        nonlocal left
        while left > 0:
            left -= 1
            world.random.choice(mix)(session, world.random)
            client.environment.sleep(world.random.expovariate(1 / 0.05))

    def restart() -> None:
        if left > 0:
            _start_client(world, history, f"{name}'", mix, left, engine)

    client.process.on_death = lambda: world.scheduler.at(world.random.random() * 5, restart)
    for _ in range(2 if world.random.random() < 0.3 else 1):
        world.start(client, body)


def _start_legacy(
    world: World, history: History, random: Random, encode: Callable[[list[Row]], bytes]
) -> None:
    """A reader of all tables, and in half of the seeds a writer to the table of blind appends."""
    client = world.client("legacy-reader")
    reader = LegacyReader(client, history)

    def read() -> None:
        for _ in range(4):
            table = world.random.choice(sorted(actors.SCHEMAS))
            reader.read(table, table)
            client.environment.sleep(world.random.random())

    world.start(client, read)
    if random.random() < 0.5:
        other = world.client("legacy-writer")
        writer = LegacyWriter(other, history, encode)

        def write() -> None:
            for _ in range(3):
                rows = [{"op": len(history.operations) * 10, "part": world.random.randrange(actors.PARTS)}]
                writer.append("blind", "blind", rows, statistics=world.random.random() < 0.5)
                other.environment.sleep(world.random.random())

        world.start(other, write)


def _audit(world: World, history: History, engine: EngineOf) -> None:
    """Faults are off: a new client reads and changes every table, and must succeed."""
    client = world.client("auditor")
    first = len(history.operations)

    def body() -> None:
        session = Session(client, open_lake(client, engine), history)
        for actor in (actors.append_to_list, actors.increment, actors.insert_count, actors.append_blindly):
            actor(session, world.random)
        for table in actors.SCHEMAS:
            actors.audit_table(session, table)
        actors.list_tables(session, world.random)

    world.start(client, body)
    world.run()
    for op in history.operations[first:]:
        if op.outcome != "ok":
            raise Stuck(f"without faults and rivals the auditor's {op.action} {op.outcome}: {op.error}")


def judge(bucket: Bucket, history: History) -> list[str]:
    """All violations that the judges find."""
    violations = check_published(bucket.writes)
    for table, rows in ((name, actors.FIRST_ROWS.get(name)) for name in actors.SCHEMAS):
        versions = table_versions(bucket.writes, table)
        made = Operation(-1, "maker", table, "append", None, rows, 0.0, 0.0, "ok")
        first = [made] if rows and versions else []
        violations.extend(check_replay(versions, first + history.of(table)))
    violations.extend(check_registry(read_registry(bucket.writes), history.of("")))
    for op in history.of("blind", "append"):
        if "Conflict" in op.error:
            violations.append(f"operation {op.number} is a blind append and got a {op.error}")
    violations.extend(f"{a.kind}: {a.detail}" for a in find_anomalies(_lists(history)))
    return violations


def _lists(history: History) -> list[Txn]:
    """The operations on the table of lists, as the cycle checker wants them."""
    txns = []
    for op in history.of("lists", "list-append", "read"):
        if op.action == "list-append":
            steps: tuple[Append | Read, ...] = (Append(str(op.key), op.value),)
        elif op.outcome == "ok":
            steps = tuple(Read(str(row["k"]), _items(row["items"])) for row in op.result)
        else:
            continue
        txns.append(Txn(op.number, steps, op.outcome, op.invoked, op.completed))
    return txns


def _items(text: str) -> tuple[int, ...]:
    return tuple(int(item) for item in text.split(",") if item)
