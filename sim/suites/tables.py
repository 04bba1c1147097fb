"""Transactions on several tables, with clients that die and writers that know nothing of us.

Two or three tables of lists. A transfer appends one value to a list of several, so that half of a commit
shows; some transactions read lists first, change one table alone, have no recovery, or turn to other tables
when they start again, with places that they hold out of order, and some are resumed by others (see `relays`).
Outside writers add rows without saying what they read, which is a conflict for every update on its way: what
was published has to be rolled back. From Iceberg tables they delete these rows again, by files that name
them. Some even build on what was published: then a table may be torn (see `checkers.tables.torn`). Some
transactions make and drop tables (see `making`). Judged: every committed transaction is whole and in one
serial order with all others, a failed one is nowhere, and published entries of the tables never change.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from random import Random
from typing import Any

import pyarrow as pa

from lakevilla.answers import Receipt
from lakevilla.errors import Unavailable
from lakevilla.model import Features
from lakevilla.transaction.transaction import Transaction
from sim.actors import relays, table_changes
from sim.actors.optimizer import start_optimizer
from sim.actors.relays import Baton, Statement
from sim.actors.session import Session
from sim.checkers.atomicity import standing
from sim.checkers.history import History, Operation
from sim.checkers.isolation.cycles import Anomaly, Append, Read, Txn, find_anomalies
from sim.checkers.isolation.looks import Deed, is_ordered
from sim.checkers.lake.published import check_published
from sim.checkers.relays import judge_relays
from sim.checkers.tables.cataloged import judged
from sim.checkers.tables.torn import Torn
from sim.legacy.client import LegacyWriter, start_administrator
from sim.legacy.store import encode_json
from sim.suites.base import Report, weather
from sim.world.bucket import Bucket
from sim.world.client import Client, World
from sim.world.faults import Calm
from sim.world.formats import DELTA, PLAIN, Formats
from sim.world.lakes import EngineOf, make_table, open_lake
from sim.world.row_engine import rows_engine
from sim.world.scheduler import Stuck

TABLES = ("left", "right", "up")
KEYS = 3
STRANGER = 99
"""The key of rows that outside writers add."""

BOTH = Features.R | Features.CT
Work = Callable[[Transaction], None]
Act = Callable[[Session, World, Sequence[str]], None]
"""One transaction of a client, on some of these tables."""


def play(
    seed: int,
    *,
    engine: EngineOf = rows_engine,
    compacting: float = 0.2,
    formats: Formats = PLAIN,
    optimizing: bool = False,
) -> Report:
    """Run one seed; so many of the outside writers compact. With `optimizing` a client of ours does too."""

    def start(world: World, history: History, random: Random) -> int:
        count = _start(world, history, random, engine, compacting)
        if optimizing:
            start_optimizer(world, history, engine, TABLES)
        return count

    def audit(world: World, history: History) -> list[str]:
        lists, tags = _audit(world, history, engine)
        torn = Torn(judged(world).writes)
        return judge(history, lists, torn) + table_changes.judge(history, lists, tags, torn)

    def published(bucket: Bucket, history: History) -> list[str]:
        ended = [op for op in history.operations if op.outcome == "torn"]
        return check_published(bucket.writes) + Torn(bucket.writes).check(ended)

    return weather(seed, (20, 40, 80), image(engine, formats), start, audit, published, formats)


def images(engine: EngineOf, formats: Formats) -> None:
    """Make the store from which seeds begin."""
    image(engine, formats)


@cache
def image(engine: EngineOf, formats: Formats = PLAIN) -> Bucket:
    """The store of a lake with all tables, made without faults."""
    with World(0, Calm, formats=formats) as world:
        client = world.client("maker")

        def make() -> None:
            lake = open_lake(client, engine)
            for table in TABLES:
                schema = pa.schema([("k", pa.int64()), ("items", pa.string())])
                make_table(lake, client, table, schema)
                lake.append(table, [{"k": key, "items": ""} for key in range(KEYS)])

        world.start(client, make)
        world.run()
        return world.bucket


def _start(world: World, history: History, random: Random, engine: EngineOf, compacting: float) -> int:
    count = random.randint(4, 5)
    tables = TABLES[: random.choice((2, 3))]
    batons: list[Baton] = []
    for number in range(count):
        left = [5 + random.randrange(2)]
        start_client(world, history, f"c{number}", left, engine, tables, partial(_act, batons))
    if random.random() < 0.6:
        client = world.client("outsider")
        writer = LegacyWriter(client, history, encode_json)
        compacts = random.random() < compacting

        def write() -> None:
            for _ in range(4):
                table = world.random.choice(tables)
                if compacts:
                    writer.compact(table)
                rows = [{"k": STRANGER, "items": ""}]
                writer.append(table, table, rows, statistics=world.random.random() < 0.3)
                if world.formats.of(table) != DELTA and world.random.random() < 0.3:
                    writer.delete(table, table, "k", STRANGER)
                client.environment.sleep(world.random.random())

        world.start(client, write)
    start_administrator(world, history, tables)
    return count


def start_client(
    world: World,
    history: History,
    name: str,
    left: list[int],
    engine: EngineOf,
    tables: Sequence[str],
    act: Act,
) -> None:
    """A client that acts so many times; when it dies a new one continues with the rest."""
    client = world.client(name)
    session = Session(client, open_lake(client, engine), history)

    def body() -> None:
        while left[0] > 0:
            left[0] -= 1
            act(session, world, tables)
            client.environment.sleep(world.random.expovariate(1 / 0.1))

    def restart() -> None:
        if left[0] > 0:
            start_client(world, history, f"{name}'", left, engine, tables, act)

    client.process.on_death = lambda: world.scheduler.at(world.random.random() * 5, restart)
    world.start(client, body)


def _act(batons: list[Baton], session: Session, world: World, tables: Sequence[str]) -> None:
    chance = world.random.random()
    if chance < 0.2:
        make_or_drop(session, world, tables)
    elif chance < 0.35:
        pass_on(session, world.random, tables, batons)
    else:
        transact(session, world.random, tables)


def pass_on(session: Session, random: Random, tables: Sequence[str], batons: list[Baton]) -> None:
    """Begin a transaction that other clients may resume, or resume one that another client began."""
    begun = [baton for baton in batons if baton.txn is not None]
    if begun and random.random() < 0.5:
        relays.go_on(session, random.choice(begun[-3:]), random)
        return
    value = relays.VALUES + len(batons)
    several = random.sample(tables, random.randint(1, len(tables)))
    plan: list[Statement] = []
    for table in several:
        plan += [_look(table)] if random.random() < 0.3 else []
        plan += [_append(table, key, value) for key in random.sample(range(KEYS), random.choice((1, 2)))]
    planned = {step.key for statement in plan for step in statement.appends}
    free = [(t, key) for t in tables for key in range(KEYS) if f"{t}/{key}" not in planned]
    baton = Baton(plan, [_append(table, key, value) for table, key in free], _tell, value)
    batons.append(baton)
    start = relays.race if random.random() < 0.5 else relays.begin
    start(session, baton, random, lambda: session.lake.transaction(BOTH))


def _tell(op: Operation, steps: list[Any], receipt: Receipt | None) -> None:  # noqa: ARG001
    op.result = list(steps)


def _append(table: str, key: int, value: int) -> Statement:
    def run(tx: Transaction) -> list[Any]:
        tx.sql(f"UPDATE {table} SET items = concat(items, ',{value}') WHERE k = {key}")
        return []

    return Statement(run, (Append(f"{table}/{key}", value),))


def _look(table: str) -> Statement:
    def run(tx: Transaction) -> list[Any]:
        rows = tx.read(table).collect()
        return [Read(f"{table}/{row[0]}", items(row[1])) for row in rows if row[0] != STRANGER]

    return Statement(run)


def make_or_drop(session: Session, world: World, tables: Sequence[str]) -> None:
    """One transaction that makes or drops tables and changes a list. Before it commits an outside client may
    put a table of its own where one of ours is to be."""
    random = world.random

    def meanwhile(names: list[str]) -> None:
        for name in [name for name in names if name in table_changes.SHARED]:
            if random.random() < 0.3:
                squatter = world.client(f"squatter{len(session.history.operations)}")
                world.start(squatter, partial(_squat, squatter, name))
        session.client.environment.sleep(random.random() * 0.3)

    try:
        plan = table_changes.draw(random, table_changes.names_of(session.lake))
    except Unavailable:
        return
    features = random.choice((BOTH, BOTH, Features.CT))
    again = bool(features & Features.R) and random.random() < 0.6
    table, key = random.choice(tables), random.randrange(KEYS)
    table_changes.transact(session, plan, table, key, features, again, meanwhile)


def _squat(client: Client, name: str) -> None:
    table_changes.place_foreign_table(client, name)


def transact(
    session: Session,
    random: Random,
    tables: Sequence[str] = TABLES,
    must_succeed: bool = False,
    *,
    choices: Sequence[Features] = (*[BOTH] * 4, Features.CT, Features.R),
    reading_from: Sequence[str] = TABLES,
) -> Operation:
    """One transaction: appends to one or more of these tables, with reads before some of them."""
    chosen = BOTH if must_succeed else random.choice(choices)
    many = bool(chosen & Features.CT) and random.random() < 0.7
    value = len(session.history.operations) + 1
    again = bool(chosen & Features.R) and (must_succeed or random.random() < 0.6)
    # One whose reads change holds places when it starts again.
    fickle = again and random.random() < 0.5
    reading = 0.8 if fickle else 0.3 if many else 0.7

    def draw() -> list[tuple[str, int, bool]]:
        sample = random.sample(tables, random.randint(2, len(tables)) if many else 1)
        return [(table, random.randrange(KEYS), random.random() < reading) for table in sample]

    plan = draw()

    def run(op: Operation) -> None:
        def work(tx: Transaction) -> None:
            _work(op, value, draw() if fickle else plan, chosen, tx, reading_from)

        if again:
            session.lake.run(work, 50, chosen)
        else:
            with session.lake.transaction(chosen) as tx:
                work(tx)

    return session.perform("lists", "multi", chosen, value, run)


def _work(
    op: Operation,
    value: int,
    plan: list[tuple[str, int, bool]],
    features: Features,
    tx: Transaction,
    reading_from: Sequence[str] = TABLES,
) -> None:
    """The transaction's statements; what it does and sees is written down in `op.result`, anew each time."""
    steps: list[Append | Read] = []
    op.result, op.txn = steps, tx.id
    for table, key, reads in plan:
        # Without CT a second table may be read, but nothing is promised about it.
        for seen in reading_from if reads and features & Features.CT else [table] if reads else []:
            for row in tx.read(seen).collect():
                if row[0] != STRANGER:
                    steps.append(Read(f"{seen}/{row[0]}", items(row[1])))
        steps.append(Append(f"{table}/{key}", value))
        tx.update(table, set={"items": f"concat(items, ',{value}')"}, where=f"k = {key}")


def items(text: str) -> tuple[int, ...]:
    return tuple(int(item) for item in text.split(",") if item)


def _audit(
    world: World, history: History, engine: EngineOf
) -> tuple[dict[str, tuple[int, ...]], dict[int, str]]:
    """Without faults a transfer succeeds, and settles what others left; all lists as they are then, and the
    tags of tables that were made."""
    client = world.client("auditor")
    final: dict[str, tuple[int, ...]] = {}
    tags: dict[int, str] = {}
    found: list[Operation] = []

    def body() -> None:
        session = Session(client, open_lake(client, engine), history)
        session.lake.sync(accept_torn=True)
        for _ in range(2):
            # By `run`: a dead client's commit that is decided, and settled now, may change what was read.
            found.append(transact(session, world.random, must_succeed=True))
        for table in TABLES:
            for row in session.lake.read(table).collect():
                if row[0] != STRANGER:
                    final[f"{table}/{row[0]}"] = items(row[1])
        tags.update(table_changes.visible(session.lake))

    world.start(client, body)
    world.run()
    for op in found:
        if op.outcome != "ok":
            raise Stuck(f"without faults and rivals the auditor's transaction {op.outcome}: {op.error}")
    return final, tags


def _appends_of(op: Operation) -> list[Append]:
    return [step for step in op.result or () if isinstance(step, Append)]


def judge(
    history: History,
    final: dict[str, tuple[int, ...]],
    torn: Torn,
    deeds: Mapping[int, Deed] | None = None,
) -> list[str]:
    """Violations of atomicity, and of the serial order of all who committed.

    `deeds` are those of operations, by number, that real time orders in part (see `is_ordered`).
    """
    left_out, violations = judge_relays(history, _appends_of, final, torn)
    txns = []
    for op in [op for op in history.of("lists") if op.number not in left_out]:
        steps: list[Any] = op.result or []
        found = standing(op, _appends_of(op), final, torn)
        violations += found.violations
        if found.committed:
            # One that was not acknowledged may become visible at any time after it began.
            ended = op.completed if op.outcome == "ok" else float("inf")
            kept = found.appends if found.torn else steps
            txns.append(Txn(op.number, tuple(kept), "ok", op.invoked, ended))
    for key, values in final.items():
        if len(set(values)) != len(values):
            violations.append(f"{key} holds a value twice: {values}")
        txns.append(Txn(-1, (Read(key, values),), "ok", float("inf"), float("inf")))
    numbered = [replace(txn, id=number) for number, txn in enumerate(txns)]
    known = {number: deeds[txn.id] for number, txn in enumerate(txns) if deeds and txn.id in deeds}
    return violations + [f"{a.kind}: {a.detail}" for a in _anomalies(numbered, known, torn)]


def _anomalies(txns: Sequence[Txn], known: Mapping[int, Deed], torn: Torn) -> list[Anomaly]:
    """Anomalies of transactions with I and without.

    Only what one with I reads may be older than a writer without slots that ended before. So without these
    reads real time orders all.
    """

    def precedes(first: Txn, second: Txn) -> bool:
        one, other = known.get(first.id), known.get(second.id)
        return one is None or other is None or is_ordered(one, other, torn.flagged)

    found = find_anomalies(txns, precedes=precedes)
    if found or not known:
        return found
    isolated = {number for number, deed in known.items() if deed.isolated}
    return find_anomalies([_without_reads(txn) if txn.id in isolated else txn for txn in txns])


def _without_reads(txn: Txn) -> Txn:
    return replace(txn, steps=tuple(step for step in txn.steps if isinstance(step, Append)))
