"""Pipelines that commit batches once (`once=`), run by several clients at a time that die and start over.

Each app has batches 0, 1, 2, ... Each batch appends its value to a list in two tables, in one transaction.
Two clients work on every app: both try each batch until they are told that it is committed, and a client that
dies is followed by one that begins a few batches earlier, as a stream does that lost its checkpoint. Outside
writers are in the way of some commits, which are then rolled back and redone or tried again. Judged (see
`checkers.batches`): at the end every batch is in both lists once, in order, and at most one client was told
that it committed a batch, every other that it was a replay.
"""

from random import Random

from lakevilla.model import Features
from lakevilla.transaction.transaction import Transaction
from sim.actors.session import Session
from sim.checkers.batches import App, check_batches
from sim.checkers.history import History, Operation
from sim.checkers.lake.published import check_published
from sim.legacy.client import LegacyWriter, start_administrator
from sim.legacy.store import encode_json
from sim.suites import tables
from sim.suites.base import Report, weather
from sim.world.bucket import Bucket
from sim.world.client import World
from sim.world.formats import PLAIN, Formats
from sim.world.lakes import EngineOf, open_lake
from sim.world.row_engine import rows_engine
from sim.world.scheduler import Stuck

ALL = Features.R | Features.CT | Features.I
CHOICES = (ALL, ALL, Features.R | Features.CT, Features.CT, Features.CT | Features.I)
PAIR = ("left", "right")
BATCHES = 5
APPS = [App("pipe-0", 0), App("pipe-1", 1)]
TRIES = 200
"""A batch that is tried so often without success is a finding."""


def play(seed: int, *, engine: EngineOf = rows_engine, formats: Formats = PLAIN) -> Report:
    """Run one seed."""
    final: dict[str, tuple[int, ...]] = {}

    def start(world: World, history: History, random: Random) -> int:
        for app in APPS:
            for number in range(2):
                _start_worker(world, history, f"{app.name}-{number}", app, [0], engine)
        if random.random() < 0.6:
            _start_outsider(world, history)
        start_administrator(world, history, PAIR)
        return 2 * len(APPS)

    def audit(world: World, history: History) -> list[str]:
        final.update(_audit(world, history, engine))
        return check_batches(history, final, APPS, BATCHES, PAIR)

    def published(bucket: Bucket, history: History) -> list[str]:  # noqa: ARG001
        return check_published(bucket.writes)

    image = tables.image(engine, formats)
    return weather(seed, (20, 40, 80), image, start, audit, published, formats)


def images(engine: EngineOf, formats: Formats) -> None:
    """Make the store from which seeds begin."""
    tables.image(engine, formats)


def _start_worker(
    world: World, history: History, name: str, app: App, following: list[int], engine: EngineOf
) -> None:
    """A client that runs the app's batches in order; when it dies another one begins a little earlier."""
    client = world.client(name)
    session = Session(client, open_lake(client, engine), history)

    def body() -> None:
        while following[0] < BATCHES:
            for _ in range(TRIES):
                if commit(session, world.random, app, following[0]).outcome == "ok":
                    break
                client.environment.sleep(world.random.random() * 0.2)
            else:
                raise Stuck(f"batch {following[0]} of {app.name} was tried {TRIES} times")
            following[0] += 1
            client.environment.sleep(world.random.expovariate(1 / 0.1))

    def restart() -> None:
        following[0] = max(0, following[0] - world.random.randrange(3))
        _start_worker(world, history, f"{name}'", app, following, engine)

    client.process.on_death = lambda: world.scheduler.at(world.random.random() * 5, restart)
    world.start(client, body)


def commit(
    session: Session, random: Random, app: App, batch: int, features: Features | None = None
) -> Operation:
    """One try of a batch. The result of the operation says whether it was a replay."""
    chosen = random.choice(CHOICES) if features is None else features
    by_run, pause = random.random() < 0.5, random.random() * 0.3
    value, once = app.value(batch), (app.name, batch)

    def work(tx: Transaction) -> None:
        for table in PAIR:
            tx.update(table, set={"items": f"concat(items, ',{value}')"}, where=f"k = {app.key}")
            session.client.environment.sleep(pause)

    def run(op: Operation) -> None:
        if by_run:
            op.result = session.lake.run(work, 20, chosen, once=once).replayed
            return
        with session.lake.transaction(chosen, once=once) as tx:
            op.txn = tx.id
            work(tx)
        op.result = tx.replayed

    return session.perform("batches", "once", app.name, batch, run)


def _start_outsider(world: World, history: History) -> None:
    client = world.client("outsider")
    writer = LegacyWriter(client, history, encode_json)

    def write() -> None:
        for _ in range(4):
            table = world.random.choice(PAIR)
            rows = [{"k": tables.STRANGER, "items": ""}]
            writer.append(table, table, rows, statistics=world.random.random() < 0.3)
            client.environment.sleep(world.random.random())

    world.start(client, write)


def _audit(world: World, history: History, engine: EngineOf) -> dict[str, tuple[int, ...]]:
    """Without faults every batch runs once more; all lists as they are then."""
    client = world.client("auditor")
    final: dict[str, tuple[int, ...]] = {}
    failed: list[str] = []

    def body() -> None:
        session = Session(client, open_lake(client, engine), history)
        for app in APPS:
            for batch in range(BATCHES):
                op = commit(session, world.random, app, batch, ALL)
                if op.outcome != "ok":
                    failed.append(f"batch {batch} of {app.name} {op.outcome}: {op.error}")
        for table in PAIR:
            for row in session.lake.read(table).collect():
                if row[0] != tables.STRANGER:
                    final[f"{table}/{row[0]}"] = tables.items(row[1])

    world.start(client, body)
    world.run()
    if failed:
        raise Stuck(f"without faults and rivals {failed[0]}")
    return final
