"""What clients of the suite `world` do with tables: one transaction after the other, in every feature set."""

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

import pyarrow as pa

from lakevilla.errors import InvalidInput, LakeVillaError
from lakevilla.model import Features
from lakevilla.transaction.transaction import Transaction
from sim.checkers.history import Operation
from sim.checkers.tables.rows import KEYS, Change, Work, as_rows, first_rows
from sim.outside.session import FAR, LAKE, Obedient
from sim.world.formats import DELTA

R, CT, I, NONE = Features.R, Features.CT, Features.I, Features.NONE  # noqa: E741 - as the features are called
ALL = R | CT | I
SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.int64()), ("items", pa.string())])

INSIDE = ("left", "right", "up")
NAMES = (*INSIDE, "down", FAR)
"""Tables: `up` is called `down` at times."""
SHARED = "left"
"""The table that both lakes know."""

Nap = Callable[[], None]
"""Sleeps until the next season."""


def apply(tx: Transaction, table: str, change: Change) -> None:
    if change.action == "insert":
        tx.append(table, [change.row])
    else:
        tx.update(table, set={"items": f"concat(items, ',{change.value}')"}, where=f"k = {change.key}")


def draw_work(session: Obedient, random: Random, tables: list[str]) -> Work:
    """One change or two of each table, with values of their own."""
    value, work = 100 * (len(session.history.operations) + 1), Work()
    for table in tables:
        for _ in range(random.choice((1, 1, 2))):
            value += 1
            action = random.choice(("insert", "append"))
            work.setdefault(table, []).append(Change(action, random.randrange(KEYS), value))
    return work


def transact(session: Obedient, work: Work, features: Features, pause: Nap, again: bool) -> Operation:
    """One transaction, with a pause between its statements and its commit."""

    steps = [partial(apply, table=table, change=change) for table in work for change in work[table]]

    def run(op: Operation) -> None:
        def body(tx: Transaction) -> None:
            op.txn = tx.id
            for number, (table, changes) in enumerate(work.items()):
                if number == 1:
                    pause()
                for change in changes:
                    apply(tx, table, change)
            if len(work) == 1:
                pause()

        if again:
            session.lake.run(body, 5, features)
        else:
            with session.lake.transaction(features) as tx:
                body(tx)

    return session.perform("", "change", str(features), work, run, steps)


def change_one(session: Obedient, random: Random, names: tuple[str, ...], nap: Nap) -> None:
    """A transaction on one table; some stay open until another season."""
    features, pause = random.choice((R, R, NONE, ALL, R | CT)), _pause(session, random, nap)
    work = draw_work(session, random, [random.choice(names)])
    if features == NONE:
        work = {table: changes[:1] for table, changes in work.items()}
    transact(session, work, features, pause, random.random() < 0.3)


def change_many(session: Obedient, random: Random, names: tuple[str, ...], nap: Nap) -> None:
    """A transaction on two tables or three."""
    tables = _different(random.sample(names, random.choice((2, 2, 3))))
    pause = _pause(session, random, nap)
    features = random.choice((ALL, ALL, R | CT, CT, CT | I))
    transact(session, draw_work(session, random, tables), features, pause, random.random() < 0.3)


def _different(tables: list[str]) -> list[str]:
    """Not one table under both of its names: it may be renamed in the middle of the transaction."""
    return [table for table in tables if table != "down" or "up" not in tables]


def _pause(session: Obedient, random: Random, nap: Nap) -> Nap:
    """Mostly none; some transactions are open for a while, or until another season."""
    draw = random.random()
    if draw < 0.12:
        return nap
    return partial(session.client.environment.sleep, 1.5 if draw < 0.25 else 0.0)


def change_together(session: Obedient, random: Random, names: tuple[str, ...]) -> None:
    """Several threads with one transaction. What one of them is refused is not part of it."""
    tables = _different(random.sample(names, 2))
    wished = draw_work(session, random, [*tables, *tables])
    work: Work = {table: [] for table in wished}
    features = random.choice((ALL, R | CT))

    def run(op: Operation) -> None:
        with session.lake.transaction(features) as tx:
            op.txn = tx.id
            failures: list[LakeVillaError] = []
            steps = [(table, change) for table, changes in wished.items() for change in changes]
            joins = [
                session.client.environment.background(partial(_try, tx, *step, work, failures))
                for step in steps
            ]
            for join in joins:
                join()
            if failures:
                raise failures[0]
            for table in [table for table, done in work.items() if not done]:
                del work[table]

    session.perform("", "change", f"{features} threads", work, run)


def _try(tx: Transaction, table: str, change: Change, work: Work, failures: list[LakeVillaError]) -> None:
    try:
        apply(tx, table, change)
        work[table].append(change)
    except InvalidInput:
        # The table is not there, or another thread is at work.
        return
    except LakeVillaError as failure:
        failures.append(failure)


def look(session: Obedient, random: Random, names: tuple[str, ...]) -> None:
    """Read a table."""
    table, features = random.choice(names), random.choice((R, ALL, NONE))

    def run(op: Operation) -> None:
        with session.lake.transaction(features) as tx:
            rows = tx.sql(f"SELECT k, v, items FROM {table}").collect()
            op.result = tuple(sorted(tuple(row) for row in rows))

    session.perform(table, "read", str(features), None, run)


def define(session: Obedient, random: Random, names: tuple[str, ...]) -> None:
    """Change the definition of a table, or the name of one."""
    table, number = random.choice(names), len(session.history.operations)
    column = f"x{random.randrange(3)}"
    text = random.choice(
        (
            f"ALTER TABLE {table} ADD COLUMNS ({column} BIGINT)",
            f"ALTER TABLE {table} SET TBLPROPERTIES ('p' = '{number}')",
            f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
            f"ALTER TABLE {table} RENAME COLUMN {column} TO x{random.randrange(3)}",
            f"ALTER TABLE {table} DROP COLUMN {column}",
            "ALTER TABLE up RENAME TO down",
            "ALTER TABLE down RENAME TO up",
        )
    )
    features = random.choice((R, ALL, NONE, R | CT))
    work: Work = {} if "RENAME TO" in text else {table: []}

    def run(op: Operation) -> None:
        with session.lake.transaction(features) as tx:
            op.txn = tx.id
            tx.sql(text)

    session.perform(table, "define", f"{text} {features}", work, run)


def drop(session: Obedient, table: str) -> Operation:
    def run(op: Operation) -> None:
        with session.lake.transaction() as tx:
            op.txn = tx.id
            tx.drop(table)

    return session.perform(table, "drop", None, {}, run)


def make(session: Obedient, table: str, location: str | None) -> Operation:
    """A table with its first rows."""
    work: Work = {table: [Change("make", 0, 0)]}
    root, formats = location or f"{LAKE}/{table}", session.client.formats
    options = formats.making(root, session.notes.properties if formats.of(root) == DELTA else None)
    if location is not None:
        options["location"] = f"sim://bucket/{location}"

    def run(op: Operation) -> None:
        with session.lake.transaction() as tx:
            op.txn = tx.id
            tx.create(table, pa.Table.from_pylist(first_rows(), schema=SCHEMA), **options)

    return session.perform(table, "change", "make", work, run)


def read_rows(read: Any) -> Any:
    """All rows of a table, as the judges know them."""
    return as_rows(dict(zip(("k", "v", "items"), row, strict=False)) for row in read.collect())
