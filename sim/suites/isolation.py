"""One instant for the whole lake: every feature set and legacy clients on the same tables at once.

Lists in four tables, of which one was put there by somebody who knows nothing of us, and in some seeds all of
them, so that the first transaction makes the global log. Another table appears meanwhile. Clients die, pause
and resume; outside writers insert rows and compact. What clients do stands in `isolated`, how it is judged in
`judge_isolation`. A seed picks serializable or snapshot isolation for all, or lets each transaction pick. In
one seed of four the tables are exclusive but for the found one, in another one some transactions have slack.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial
from random import Random

import pyarrow as pa

from lakevilla.lake import Lake
from lakevilla.model import Features
from sim.actors import isolated, isolated_relays, isolated_table_changes, table_changes
from sim.actors.follower import check_followed
from sim.actors.optimizer import start_optimizer
from sim.actors.relays import Baton
from sim.actors.session import Session
from sim.checkers.history import History
from sim.checkers.isolation.looks import INSERTED
from sim.checkers.lake.published import check_published
from sim.checkers.tables.cataloged import judged
from sim.checkers.tables.torn import Torn
from sim.legacy.client import LegacyReader, LegacyWriter, place_table, start_administrator
from sim.legacy.store import Row, encode_json, encode_parquet
from sim.suites.base import Report, weather
from sim.suites.isolation_verdict import Final, judge
from sim.world.bucket import Bucket
from sim.world.client import Client, World
from sim.world.faults import Calm
from sim.world.formats import PLAIN, Formats
from sim.world.lakes import EngineOf, make_table, open_lake
from sim.world.row_engine import rows_engine
from sim.world.scheduler import Stuck

TABLES = ("left", "right", "up", "found")
LATE = "late"
"""A table that appears while clients work."""
COLUMNS = (("k", "long"), ("v", "long"), ("items", "string"))
SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.int64()), ("items", pa.string())])
TRANSACTIONS = 5
EXCLUSIVE = frozenset(("left", "right", "up"))
"""Those that only transactions with I or CT change, in seeds that have such tables."""


@dataclass(frozen=True)
class Setting:
    """What a seed gives to all its clients."""

    tables: list[str]
    isolation: str
    exclusive: bool
    slack: bool
    batons: list[Baton] = field(default_factory=list)
    """The transactions that clients have begun and others may resume."""

    @property
    def open(self) -> list[str]:
        """The tables that every client may change."""
        return [table for table in self.tables if not self.exclusive or table not in EXCLUSIVE]

    def wishes(self, random: Random) -> isolated.Wishes:
        """What a transaction may pick."""
        picked = self.isolation
        if picked == "any":
            picked = random.choice(("serializable", "snapshot"))
        return isolated.Wishes(picked, random.choice((0, 1, 3)) if self.slack else 0)


def play(
    seed: int,
    *,
    engine: EngineOf = rows_engine,
    transactions: int = TRANSACTIONS,
    formats: Formats = PLAIN,
    optimizing: bool = False,
) -> Report:
    """Run one seed; each client runs so many transactions, or one more. With `optimizing` one more client
    rewrites files."""

    exclusive, slack = seed % 4 == 2 and not formats.has_catalogs, seed % 4 == 1

    def start(world: World, history: History, random: Random) -> int:
        count = _start(world, history, random, engine, transactions, exclusive, slack)
        if optimizing:
            start_optimizer(world, history, engine, TABLES, EXCLUSIVE if exclusive else ())
        return count

    def audit(world: World, history: History) -> list[str]:
        final = _audit(world, history, engine)
        return judge(judged(world), history, final)

    def published(bucket: Bucket, history: History) -> list[str]:
        ended = [op for op in history.operations if op.outcome == "torn"]
        return check_published(bucket.writes) + Torn(bucket.writes).check(ended)

    # If LakeVilla was never used there, the lake knows no catalog.
    bare = not exclusive and not formats.has_catalogs and Random(seed).random() < 0.3
    first = image(engine, bare, formats, exclusive)
    return weather(seed, (20, 40, 80), first, start, audit, published, formats)


@cache
def image(engine: EngineOf, bare: bool, formats: Formats = PLAIN, exclusive: bool = False) -> Bucket:
    """The store of a lake with its tables, made without faults; `bare` if LakeVilla was never used there,
    `exclusive` if its own tables are."""
    with World(0, Calm, formats=formats) as world:
        client, outsider = world.client("maker"), world.client("outsider")

        def make() -> None:
            lake = open_lake(client, engine)
            for table in TABLES:
                if bare or table == "found":
                    place(outsider, engine, table)
                else:
                    _make(lake, client, table, exclusive)
            if not bare:
                # Else the first instant has some of the tables without their rows.
                lake.sync()

        world.start(client, make)
        world.run()
        return world.bucket


def _make(lake: Lake, client: Client, table: str, exclusive: bool) -> None:
    if exclusive:
        lake.create(table, SCHEMA, **client.formats.making(table, {"lakevilla.exclusive": "true"}))
    else:
        make_table(lake, client, table, SCHEMA)
    with lake.transaction(isolated.ALL if exclusive else Features.R) as tx:
        tx.append(table, first_rows())


def images(engine: EngineOf, formats: Formats) -> None:
    """Make the stores from which seeds begin."""
    kinds = ((False, False),) if formats.has_catalogs else ((False, False), (True, False), (False, True))
    for bare, exclusive in kinds:
        image(engine, bare, formats, exclusive)


def first_rows() -> list[Row]:
    return [{"k": key, "v": 100, "items": ""} for key in range(isolated.KEYS)]


def place(client: Client, engine: EngineOf, table: str) -> bool:
    """A table with its first rows, by a client that knows nothing of us; False if it may not be there."""
    return place_table(client, table, COLUMNS, first_rows(), encode=_encode(engine))


def _encode(engine: EngineOf) -> Callable[[list[Row]], bytes]:
    return encode_json if engine is rows_engine else encode_parquet


def _start(
    world: World,
    history: History,
    random: Random,
    engine: EngineOf,
    transactions: int,
    exclusive: bool,
    slack: bool,
) -> int:
    count = random.randint(4, 5)
    tables = list(TABLES[: random.choice((2, 3, 4, 4))])
    isolation = random.choice(("serializable", "serializable", "serializable", "snapshot", "any"))
    setting = Setting(tables, isolation, exclusive, slack)
    for number in range(count):
        left = [transactions + random.randrange(2)]
        _start_client(world, history, f"c{number}", left, engine, setting)
    if random.random() < 0.6 and setting.open:
        _start_outsider(world, history, random, engine, setting)
    if random.random() < 0.3:
        client = world.client("founder")

        def found() -> None:
            client.environment.sleep(world.random.random())
            if place(client, engine, LATE):
                tables.append(LATE)

        world.start(client, found)
    _start_reader(world, history, tables)
    start_administrator(world, history, tables)
    return count


def _start_client(
    world: World, history: History, name: str, left: list[int], engine: EngineOf, setting: Setting
) -> None:
    """A client that runs so many transactions; when it dies a new one continues with the rest."""
    client = world.client(name)
    session = Session(client, open_lake(client, engine), history)

    def body() -> None:
        while left[0] > 0:
            left[0] -= 1
            wishes = setting.wishes(world.random)
            chance = world.random.random()
            if chance < 0.12:
                isolated_table_changes.act(session, world)
            elif chance < 0.27:
                tables, batons = setting.tables, setting.batons
                isolated_relays.pass_on(session, world.random, tables, wishes, batons)
            else:
                isolated.act(session, world.random, setting.tables, setting.open, wishes)
            client.environment.sleep(world.random.expovariate(1 / 0.1))

    def restart() -> None:
        if left[0] > 0:
            _start_client(world, history, f"{name}'", left, engine, setting)

    client.process.on_death = lambda: world.scheduler.at(world.random.random() * 5, restart)
    world.start(client, body)


def _start_outsider(
    world: World, history: History, random: Random, engine: EngineOf, setting: Setting
) -> None:
    """Inserts rows, and in some seeds makes one file of all that it finds."""
    client = world.client("outsider")
    writer = LegacyWriter(client, history, _encode(engine))
    compacts = random.random() < 0.15

    def write() -> None:
        for _ in range(4):
            table, value = world.random.choice(setting.open), len(history.operations) + 1
            if compacts and world.random.random() < 0.5:
                writer.compact(table)
            else:
                rows = [{"k": INSERTED + value, "v": 0, "items": f",{value}"}]
                writer.append(table, table, rows, statistics=world.random.random() < 0.5)
            client.environment.sleep(world.random.random())

    world.start(client, write)


def _start_reader(world: World, history: History, tables: list[str]) -> None:
    client = world.client("legacy-reader")
    reader = LegacyReader(client, history)

    def read() -> None:
        for _ in range(3):
            table = world.random.choice(tables)
            reader.read(table, table)
            client.environment.sleep(world.random.random())

    world.start(client, read)


def _audit(world: World, history: History, engine: EngineOf) -> Final:
    """Without faults a transfer and a look at everything succeed; all tables as they are then."""
    client = world.client(isolated.AUDITOR)
    final = Final()
    sure = isolated.Wish(isolated.ALL, "serializable", again=True)

    def body() -> None:
        session = Session(client, open_lake(client, engine), history)
        lake = session.lake
        lake.sync(accept_torn=True)
        for plan in (isolated.transfer, isolated.skew):
            drawn = plan(world.random, TABLES)
            final.operations.append(isolated.transact(session, sure, drawn, "writer"))
        lake.sync()
        present = [table for table in (*TABLES, LATE) if table in lake.tables()]
        for features in (isolated.ALL, Features.R):
            for table in present:
                with lake.transaction(features) as tx:
                    final.see(table, tx.read(table).collect(), str(features))
        final.violations += check_followed(lake, present, world.random.random())
        final.tags.update(table_changes.visible(lake))
        final.operations.append(isolated.transact(session, sure, partial(_look_at_all, present), "reader"))

    world.start(client, body)
    world.run()
    for op in final.operations:
        if op.outcome != "ok":
            raise Stuck(f"without faults and rivals the auditor's {op.action} {op.outcome}: {op.error}")
    return final


def _look_at_all(tables: list[str], doing: isolated.Doing) -> None:
    for table in tables:
        doing.read(table)
