"""Transactions that slots decide, that one client begins and others resume, also while it lives.

Contract: all who work on one transaction follow the same plan from where its records end, so what it appends
is known before it runs; some who resume it append to one list more, or roll everything back and append to one
list instead. Each client has an operation of its own with what it did and was shown, and with what the client
before it was shown. At most one of them is committed (see `checkers.relays`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from lakevilla.answers import Receipt
from lakevilla.errors import InvalidInput
from lakevilla.transaction.transaction import Transaction
from sim.actors.session import Session
from sim.checkers.history import Operation
from sim.checkers.relays import RELAY

STORED_SECONDS = 1.1
"""Longer than a transaction is open before it stores anything."""
VALUES = 200_000
"""From here on values belong to these transactions: others take the numbers of their operations."""
START = "start"
"""The savepoint before the first statement."""


@dataclass(frozen=True)
class Statement:
    """`run` gives what it was shown; `appends` are known before."""

    run: Callable[[Transaction], list[Any]]
    appends: tuple[Any, ...] = ()


Tell = Callable[[Operation, list[Any], Receipt | None], None]
"""Writes down in an operation what its transaction did and was shown, and the receipt at the end."""


@dataclass
class Baton:
    """One transaction, as all who work on it know it."""

    plan: Sequence[Statement]
    others: Sequence[Statement]
    """Appends that are not part of the plan."""
    tell: Tell
    value: int
    txn: str | None = None
    invoked: float = 0.0
    shown: dict[int, list[Any]] = field(default_factory=dict)
    strayed: int | None = None
    """The operation of a client that left the plan: other clients cannot know what it stored, so none resumes
    it."""

    def steps(self, count: int) -> list[Any]:
        """What so many statements did, and what they showed."""
        found: list[Any] = []
        for number, statement in enumerate(self.plan[:count]):
            found += statement.appends or self.shown.get(number, [])
        return found


def begin(session: Session, baton: Baton, random: Random, open_tx: Callable[[], Transaction]) -> None:
    """Begin the transaction; then commit it, or walk away."""
    op = session.begin("lists", RELAY, "", baton.value)
    baton.invoked = op.invoked
    walks_away, sleep = random.random() < 0.4, session.client.environment.sleep

    def run() -> None:
        tx = open_tx()
        tx.savepoint(START)
        op.txn = tx.id
        for number, statement in enumerate(baton.plan):
            # A client that resumes the transaction may find the operation stored before this call returns.
            baton.tell(op, baton.steps(number + 1), None)
            baton.shown[number] = statement.run(tx)
            baton.tell(op, baton.steps(number + 1), None)
            baton.txn = tx.id
            sleep(STORED_SECONDS if number == 0 else random.random() * 0.3)
        if not walks_away:
            sleep(random.random() * 3)
            baton.tell(op, baton.steps(len(baton.plan)), tx.commit())

    session.conclude(run, lambda: op)
    if walks_away and op.outcome == "ok":
        # No client got an answer: a client that resumes it may commit it.
        session.end(op, "unknown", "forgotten")


def go_on(session: Session, baton: Baton, random: Random) -> None:
    """Resume a transaction that another client began; that client may be alive."""
    if baton.strayed is not None:
        return
    op = session.begin("lists", RELAY, "", baton.value)
    op.invoked = baton.invoked
    how = random.random()
    baton.strayed = op.number if how < 0.6 else None

    def run() -> None:
        assert baton.txn is not None
        op.txn = baton.txn
        with session.lake.resume(baton.txn) as tx:
            if baton.strayed not in (None, op.number):
                raise InvalidInput("left alone")
            steps, rest = baton.steps(tx.statements), list(baton.plan[tx.statements :])
            if how < 0.25:
                tx.rollback_to(START)
                shown = [baton.shown.get(n, []) for n in range(tx.statements) if not baton.plan[n].appends]
                steps, rest = [step for look in shown for step in look], [random.choice(baton.others)]
            elif how < 0.6:
                rest.append(random.choice(baton.others))
            baton.tell(op, steps, None)
            for statement in rest:
                steps += statement.appends
                baton.tell(op, steps, None)
                steps += statement.run(tx)
                baton.tell(op, steps, None)
            session.client.environment.sleep(random.random())
        baton.tell(op, steps, tx.receipt)

    session.conclude(run, lambda: op)


def race(session: Session, baton: Baton, random: Random, open_tx: Callable[[], Transaction]) -> None:
    """Resume a transaction whose owner lives and is about to commit it."""
    environment = session.client.environment
    join = environment.background(lambda: begin(session, baton, random, open_tx))
    environment.sleep(STORED_SECONDS + random.random() * 2)
    if baton.txn is not None:
        go_on(session, baton, random)
    join()
