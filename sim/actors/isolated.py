"""What clients of the isolation suite do: transactions in every feature set, on the same tables.

Contract: an actor writes down in a `Deed` what its transaction does and is shown, anew with each attempt of
`lake.run`. Every value belongs to one operation, so a list shows which operation wrote it. A transfer also
moves an amount between the two tables of the bank, so that their sum shows whether a reader saw half of it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from lakevilla.answers import Receipt
from lakevilla.errors import InvalidInput
from lakevilla.model import Features
from lakevilla.transaction.transaction import Transaction
from sim.actors.session import Session
from sim.checkers.history import Operation
from sim.checkers.isolation.cycles import Append
from sim.checkers.isolation.looks import INSERTED, Deed, Look

R, CT, I = Features.R, Features.CT, Features.I  # noqa: E741 - as the features are called
ALL = R | CT | I
WITH_I = (ALL, ALL, ALL, R | I, CT | I, I)
WITHOUT_I = (R | CT, R | CT, CT)
KEYS = 3
BANK = ("left", "right")
TOTAL = 2 * KEYS * 100
"""The sum over the tables of the bank; no transfer changes it."""
AUDITOR = "auditor"
"""The client that looks at everything at the end, and accepts torn tables as they are."""
AGAIN = 500_000
"""What is added to a value that a transaction appends second to the same list."""
RETRIES = 30


@dataclass(frozen=True, slots=True)
class Wish:
    """What a transaction picks."""

    features: Features
    isolation: str
    again: bool
    """Whether it is called again when what it read has changed."""
    slack: int = 0

    @property
    def isolated(self) -> bool:
        return bool(self.features & I)

    def deed(self) -> Deed:
        return Deed(
            self.isolated,
            # With slack it may have read what others have changed since, as with snapshot isolation.
            self.isolated and (self.isolation == "snapshot" or self.slack > 0),
            bool(self.features & (I | CT)),
        )


class Doing:
    """One attempt: statements that are written down as they run."""

    def __init__(self, tx: Transaction, deed: Deed, value: int) -> None:
        self._tx = tx
        self._deed = deed
        self._value = value
        self._changed: set[str] = set()

    def read(self, table: str, key: int | None = None, inserted: bool = False) -> None:
        self._names(table)
        if key is None and not inserted:
            rows = self._tx.read(table).collect()
        else:
            where = f"k >= {INSERTED}" if inserted else f"k = {key}"
            rows = self._tx.sql(f"SELECT k, v, items FROM {table} WHERE {where}").collect()
        shown = tuple((row[0], row[1], row[2]) for row in rows)
        self._deed.steps.append(Look(table, shown, key, inserted, table in self._changed))

    def read_tags(self, name: str) -> None:
        """A table that may have been made or dropped meanwhile."""
        try:
            self._deed.tags[name] = {row[0] for row in self._tx.read(name).collect()}
        except InvalidInput:
            self._deed.tags[name] = set()

    def append(self, table: str, key: int, amount: int = 0, second: bool = False) -> None:
        """Append the value to a list; with an amount, add that to the row too."""
        self._names(table)
        value = self._value + (AGAIN if second else 0)
        self._deed.steps.append(Append(f"{table}/{key}", value))
        self._changed.add(table)
        values = {"items": f"concat(items, ',{value}')"}
        if amount:
            values["v"] = f"v + {amount}" if amount > 0 else f"v - {-amount}"
        self._tx.update(table, set=values, where=f"k = {key}")

    def insert(self, table: str) -> None:
        self._names(table)
        self._deed.steps.append(Append(f"{table}/{INSERTED + self._value}", self._value))
        self._changed.add(table)
        self._tx.append(table, [{"k": INSERTED + self._value, "v": 0, "items": f",{self._value}"}])

    def _names(self, table: str) -> None:
        if not self._deed.steps:
            self._deed.first = frozenset({table})


Plan = Callable[[Doing], None]


def transact(session: Session, wish: Wish, plan: Plan, action: str) -> Operation:
    """Run the plan as one transaction."""
    value = len(session.history.operations) + 1

    def run(op: Operation) -> None:
        def work(tx: Transaction) -> None:
            op.result, op.txn = wish.deed(), tx.id
            plan(Doing(tx, op.result, value))

        receipt: Receipt | None
        if wish.again:
            receipt = session.lake.run(
                work, RETRIES, wish.features, isolation=wish.isolation, slack=wish.slack
            )
        else:
            with session.lake.transaction(wish.features, isolation=wish.isolation, slack=wish.slack) as tx:
                work(tx)
            receipt = tx.receipt
        op.result.seq = None if receipt is None else receipt.seq

    return session.perform("lists", action, str(wish.features), value, run)


@dataclass(frozen=True, slots=True)
class Wishes:
    """What transactions with isolation pick at this moment."""

    isolation: str
    slack: int


def draw_wish(random: Random, wishes: Wishes, *, must_isolate: bool = False) -> Wish:
    isolates = must_isolate or random.random() < 0.7
    features = random.choice(WITH_I if isolates else WITHOUT_I)
    return Wish(features, wishes.isolation, random.random() < 0.6, wishes.slack)


def write_many(random: Random, tables: Sequence[str]) -> Plan:
    """Append to lists of one table or several, after looks at some, also at tables that it leaves alone."""
    chosen = random.sample(tables, random.randint(1, min(3, len(tables))))
    steps = [(table, random.randrange(KEYS), random.random()) for table in chosen]
    others = random.sample(tables, random.randint(0, 2))

    def plan(doing: Doing) -> None:
        for table in others:
            doing.read(table)
        for table, key, how in steps:
            if how < 0.5:
                doing.read(table, key if how < 0.25 else None)
            doing.append(table, key)
            if how > 0.9:
                doing.read(table)
                doing.append(table, key, second=True)

    return plan


def skew(random: Random, tables: Sequence[str]) -> Plan:
    """Look at one row of each of two tables, and change one of them: two of these are a write skew."""
    one, other = random.sample(tables, 2)
    key = random.randrange(2)

    def plan(doing: Doing) -> None:
        doing.read(one, key)
        doing.read(other, key)
        doing.append(random.choice((one, other)), key)

    return plan


def insert_after_count(random: Random, tables: Sequence[str]) -> Plan:
    """Look for rows that others inserted, and insert one."""
    one, other = random.sample(tables, 2)

    def plan(doing: Doing) -> None:
        doing.read(one, inserted=True)
        doing.read(other, inserted=True)
        doing.insert(random.choice((one, other)))

    return plan


def insert_blindly(random: Random, tables: Sequence[str]) -> Plan:
    chosen = random.sample(tables, random.randint(1, 2))

    def plan(doing: Doing) -> None:
        for table in chosen:
            doing.insert(table)

    return plan


def transfer(random: Random, _: Sequence[str]) -> Plan:
    """Move an amount from one table of the bank to the other; some look at both first."""
    giver, taker = random.sample(BANK, 2)
    amount, looks = random.randint(1, 9), random.random() < 0.4
    keys = random.randrange(KEYS), random.randrange(KEYS)

    def plan(doing: Doing) -> None:
        if looks:
            doing.read(giver)
            doing.read(taker)
        doing.append(giver, keys[0], -amount)
        doing.append(taker, keys[1], amount)

    return plan


def read_all(random: Random, tables: Sequence[str]) -> Plan:
    """Look at several tables, always at both of the bank; some look twice."""
    order = [*BANK, *random.sample([t for t in tables if t not in BANK], random.randint(0, len(tables) - 2))]
    random.shuffle(order)
    order += random.sample(order, random.randint(0, 2))

    def plan(doing: Doing) -> None:
        for table in order:
            doing.read(table)

    return plan


def change_one(session: Session, random: Random, tables: Sequence[str]) -> None:
    """A transaction on one table alone that the global log does not know: with R, or plain."""
    table, key, how = random.choice(tables), random.randrange(KEYS), random.random()
    wish = Wish(random.choice((R, R, Features.NONE)), "serializable", random.random() < 0.5)

    def plan(doing: Doing) -> None:
        if how < 0.5 and wish.features:
            doing.read(table)
        if how < 0.7:
            doing.append(table, key)
        else:
            doing.insert(table)

    transact(session, wish, plan, "alone")


def sync(session: Session) -> None:
    """Make what others wrote part of the lake's instant."""

    def run(op: Operation) -> None:
        op.result = session.lake.sync()

    session.perform("", "sync", None, None, run)


PLANS = (write_many, write_many, write_many, skew, insert_after_count, insert_blindly, transfer, transfer)


def act(session: Session, random: Random, tables: Sequence[str], free: Sequence[str], wishes: Wishes) -> None:
    """One transaction, or a call of `sync`, as the seed has it. `free` are tables that every client may
    change."""
    chance = random.random()
    if chance < 0.2:
        readers = draw_wish(random, wishes, must_isolate=random.random() < 0.8)
        transact(session, readers, read_all(random, tables), "reader")
    elif chance < 0.35 and free:
        change_one(session, random, free)
    elif chance < 0.4:
        sync(session)
    else:
        wish = draw_wish(random, wishes)
        transact(session, wish, random.choice(PLANS)(random, tables), "writer")
