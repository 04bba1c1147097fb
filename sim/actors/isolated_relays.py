"""Transactions of the isolation suite that one client begins and others resume (see `relays`)."""

from collections.abc import Sequence
from random import Random
from typing import Any

from lakevilla.answers import Receipt
from lakevilla.model import Features
from lakevilla.transaction.transaction import Transaction
from sim.actors import relays
from sim.actors.isolated import ALL, CT, KEYS, I, R, Wish, Wishes
from sim.actors.relays import Baton, Statement
from sim.actors.session import Session
from sim.checkers.history import Operation
from sim.checkers.isolation.cycles import Append
from sim.checkers.isolation.looks import INSERTED, Look

PICKS: tuple[Features, ...] = (ALL, ALL, R | I, R | CT)


def pass_on(
    session: Session, random: Random, tables: Sequence[str], wishes: Wishes, batons: list[Baton]
) -> None:
    """Begin a transaction that other clients may resume, or resume one that another client began."""
    begun = [baton for baton in batons if baton.txn is not None]
    if begun and random.random() < 0.5:
        relays.go_on(session, random.choice(begun[-3:]), random)
        return
    wish = Wish(random.choice(PICKS), wishes.isolation, again=False, slack=wishes.slack)
    value = relays.VALUES + len(batons)
    baton = _baton(random, tables, wish, value)
    batons.append(baton)
    start = relays.race if random.random() < 0.5 else relays.begin
    start(session, baton, random, lambda: _transaction(session, wish))


def _transaction(session: Session, wish: Wish) -> Transaction:
    return session.lake.transaction(wish.features, isolation=wish.isolation, slack=wish.slack)


def _baton(random: Random, tables: Sequence[str], wish: Wish, value: int) -> Baton:
    chosen = random.sample(tables, random.randint(1, min(3, len(tables))))
    # What is looked at is left alone: a look shows what others wrote, and nothing else.
    looked = [table for table in tables if table not in chosen and random.random() < 0.3]
    drawn = [(table, _look(table)) for table in looked]
    drawn += [(table, _append(table, random.randrange(KEYS), value)) for table in chosen]
    if len(drawn) < 2 or random.random() < 0.4:
        filled = random.choice(chosen)
        drawn.append((filled, _insert(filled, value)))
    random.shuffle(drawn)
    first, plan = drawn[0][0], [statement for _, statement in drawn]
    planned = {step.key for statement in plan for step in statement.appends}
    free = [(t, k) for t in tables for k in range(KEYS) if t not in looked and f"{t}/{k}" not in planned]

    def tell(op: Operation, steps: list[Any], receipt: Receipt | None) -> None:
        deed = wish.deed()
        deed.steps, deed.first = list(steps), frozenset({first})
        deed.seq = None if receipt is None else receipt.seq
        op.result = deed

    return Baton(plan, [_append(table, key, value) for table, key in free], tell, value)


def _look(table: str) -> Statement:
    def run(tx: Transaction) -> list[Any]:
        rows = tuple((row[0], row[1], row[2]) for row in tx.read(table).collect())
        return [Look(table, rows)]

    return Statement(run)


def _append(table: str, key: int, value: int) -> Statement:
    def run(tx: Transaction) -> list[Any]:
        tx.sql(f"UPDATE {table} SET items = concat(items, ',{value}') WHERE k = {key}")
        return []

    return Statement(run, (Append(f"{table}/{key}", value),))


def _insert(table: str, value: int) -> Statement:
    def run(tx: Transaction) -> list[Any]:
        tx.append(table, [{"k": INSERTED + value, "v": 0, "items": f",{value}"}])
        return []

    return Statement(run, (Append(f"{table}/{INSERTED + value}", value),))
