"""Faults that stay: in the middle of transfers between tables, one of the tables is lost for good.

Its folder is deleted, the next entry of its log is damaged, or the store denies requests on it to every
client from then on. The clients go on, with the usual faults that pass. Judged is what must hold for the
tables that are left: every transaction is whole there or absent, as its client was told, all are in one
serial order, and when the faults that pass have ended the tables can be written again. For a store that
denies requests an operator gives the table up, as the documentation says.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from random import Random

from lakevilla.errors import Unavailable
from lakevilla.model import Features
from lakevilla.store.keys import GLOBAL_LOG
from sim.actors.session import Session
from sim.checkers.history import History
from sim.checkers.isolation.cycles import Append, Read
from sim.checkers.isolation.looks import Deed, Look
from sim.checkers.tables.cataloged import judged
from sim.checkers.tables.torn import Torn
from sim.suites import tables
from sim.suites.base import Report, weather
from sim.suites.tables import STRANGER, TABLES, items, transact
from sim.world.bucket import Bucket
from sim.world.client import World
from sim.world.faults import Calm, Denial
from sim.world.formats import DELTA, PLAIN, Formats
from sim.world.lakes import EngineOf, open_lake
from sim.world.row_engine import rows_engine
from sim.world.scheduler import Stuck

ALL = Features.R | Features.CT | Features.I
CHOICES = (tables.BOTH, tables.BOTH, ALL, ALL, Features.CT, Features.R)
KINDS = ("deleted", "damaged", "denied")
LATEST_SECONDS = 5.0
"""When the table is lost at the latest."""
DENIED = [frozenset(kinds) for kinds in (["create"], ["create", "put", "replace"], ["create", "get", "list"])]
"""The requests on the lost table that the store denies, in one of these ways."""


def play(seed: int, *, engine: EngineOf = rows_engine, formats: Formats = PLAIN) -> Report:
    """Run one seed."""
    lost = Random(seed).choice(TABLES)

    def start(world: World, history: History, random: Random) -> int:
        count = random.randint(4, 5)
        for number in range(count):
            left = [5 + random.randrange(2)]
            tables.start_client(world, history, f"c{number}", left, engine, TABLES, _transact)
        _lose_after_a_slot(world, lost, random)
        return count

    def audit(world: World, history: History) -> list[str]:
        final = audit_left(world, history, engine, [table for table in TABLES if table != lost])
        return judge_left(history, final, lost, judged(world))

    def published(bucket: Bucket, history: History) -> list[str]:  # noqa: ARG001
        return []

    return weather(seed, (20, 40, 80), image(engine, formats), start, audit, published, formats)


def images(engine: EngineOf, formats: Formats) -> None:
    """Make the store from which seeds begin."""
    image(engine, formats)


@cache
def image(engine: EngineOf, formats: Formats = PLAIN) -> Bucket:
    """The store of a lake whose instant has the first rows of all tables."""
    with World(1, Calm, formats=formats) as world:
        world.bucket.load(tables.image(engine, formats))
        client = world.client("maker")

        def sync() -> None:
            open_lake(client, engine).sync()

        world.start(client, sync)
        world.run()
        return world.bucket


def _lose_after_a_slot(world: World, table: str, random: Random) -> None:
    """The table is lost right after one of the first commits was decided: some of it is published by then."""
    begun, kind = len(world.bucket.writes), random.choice(KINDS)
    slots, delay = random.randint(1, 4), random.choice((0.0, 0.05, 0.3))

    def watch() -> None:
        decided = sum(write.key.startswith(GLOBAL_LOG) for write in world.bucket.writes[begun:])
        if decided >= slots or world.scheduler.now > LATEST_SECONDS:
            world.scheduler.at(delay, lambda: lose(world, table, kind, random.choice(DENIED)))
        else:
            world.scheduler.at(0.01, watch)

    watch()


def lose(world: World, table: str, kind: str, denied: frozenset[str] = DENIED[0]) -> None:
    """What happens to a table, at one moment, for all clients."""
    bucket, now = world.bucket, world.scheduler.now
    below = [key for key in bucket.contents() if key.startswith(f"{table}/")]
    world.scheduler.note("vandal", kind, table)
    match kind:
        case "deleted":
            for key in below:
                bucket.delete(now, "vandal", key)
        case "damaged":
            folder = "_delta_log/" if world.formats.of(table) == DELTA else "metadata/"
            numbers = [number for key in below if (number := _number(key, f"{table}/{folder}")) is not None]
            number = max(numbers, default=0) + 1
            name = f"{number:020d}.json" if folder[0] == "_" else f"v{number}.metadata.json"
            bucket.create(now, "vandal", f"{table}/{folder}{name}", b'{"commitInfo":{}}\n{"add":{"pa')
        case "denied":
            world.deny(Denial(f"{table}/", denied))


def _number(key: str, folder: str) -> int | None:
    """The version that an object of the table's log makes."""
    name = key.removeprefix(folder)
    digits = name.removesuffix(".metadata.json").removesuffix(".json").removeprefix("v")
    return int(digits) if name != key and digits.isdecimal() else None


def _transact(session: Session, world: World, known: Sequence[str]) -> None:
    session.may_meet_damage = True
    transact(session, world.random, known, choices=CHOICES)


def audit_left(
    world: World, history: History, engine: EngineOf, left: Sequence[str]
) -> dict[str, tuple[int, ...]]:
    """An operator recovers the lake; then transfers between the tables that are left succeed, and all lists
    are read."""
    client = world.client("auditor")
    final: dict[str, tuple[int, ...]] = {}
    failures: list[str] = []

    def body() -> None:
        session = Session(client, open_lake(client, engine), history)
        (lost,) = set(TABLES) - set(left)
        try:
            session.lake.recover()
        except Unavailable:
            session.lake.recover(give_up=lost)
        for _ in range(2):
            op = transact(session, world.random, left, must_succeed=True, reading_from=left)
            if op.outcome != "ok":
                failures.append(f"the auditor's transaction {op.outcome}: {op.error}")
        for table in left:
            for row in session.lake.read(table).collect():
                if row[0] != STRANGER:
                    final[f"{table}/{row[0]}"] = items(row[1])

    world.start(client, body)
    world.run()
    if failures:
        raise Stuck(f"without faults that pass, on tables that are left, {failures[0]}")
    return final


def judge_left(history: History, final: dict[str, tuple[int, ...]], lost: str, bucket: Bucket) -> list[str]:
    """Violations on the tables that are left."""
    torn = Torn([write for write in bucket.writes if not write.key.startswith(f"{lost}/")])
    seen = History()
    for op in history.of("lists"):
        steps = [step for step in op.result or [] if not step.key.startswith(f"{lost}/")]
        if any(isinstance(step, Append) for step in steps):
            seen.operations.append(replace(op, result=steps))
    # The lost table counts there: a transaction that changed it too is ordered by the global log.
    deeds = {op.number: _deed(op.key, op.result or []) for op in history.of("lists", "multi") if op.key}
    return tables.judge(seen, final, torn, deeds)


def _deed(features: Features, steps: Sequence[Append | Read]) -> Deed:
    """The tables of a transaction, and whether it has I.

    All its tables count as named in its first statement: it adopts what it finds on each, and it commits only
    if what it has read is still so.
    """
    isolated, across = bool(features & Features.I), bool(features & Features.CT)
    did = [step if isinstance(step, Append) else Look(_table(step), ()) for step in steps]
    return Deed(isolated, False, across, did, frozenset(map(_table, steps)))


def _table(step: Append | Read) -> str:
    return step.key.split("/")[0]
