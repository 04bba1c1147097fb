"""Transactions that make and drop tables together with a change of a list.

A table holds one row with its tag, from the number of the operation that made it, so what is there in the
end tells who made it. Some names are everybody's, and an outside client puts tables of its own there. The
value in the list says whether a transaction is committed: then the tables that it made are there, unless
another committed transaction dropped them, and those that it dropped are not; else nothing of it is. To
replace a table, by one with other columns, is to drop what it was and to make what it is. Views are made,
replaced and dropped like tables: the query of a view gives its tag.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random

import pyarrow as pa

from lakevilla.errors import InvalidInput
from lakevilla.lake import Lake
from lakevilla.model import Features
from lakevilla.transaction.transaction import Transaction
from sim.actors.session import Session
from sim.checkers.atomicity import standing
from sim.checkers.history import History, Operation
from sim.checkers.isolation.cycles import Append
from sim.checkers.tables.torn import Torn
from sim.legacy.client import place_table
from sim.world.client import Client
from sim.world.formats import Formats

SHARED = ("s0", "s1")
"""Names that all clients use, the outside client too."""
VIEWS = ("v0", "v1")
"""Names of views, which all clients use too."""
OWN = "n"
"""How names begin that one transaction alone gives."""
SCHEMA = pa.schema([("tag", pa.int64())])
COLUMNS = (("tag", "long"),)


@dataclass
class Made:
    """What the last attempt of a transaction did: the tags of tables that it made and of those dropped."""

    made: set[int] = field(default_factory=set)
    dropped: set[int] = field(default_factory=set)
    names: list[str] = field(default_factory=list)
    """The names that it gave, in the order of its tags."""

    def tags_of(self, name: str) -> set[int]:
        """The tags that it gave to tables of this name."""
        return {tag for tag, given in zip(sorted(self.made), self.names, strict=True) if given == name}


Plan = Callable[[Transaction, Made, int, Formats], None]


def make(*names: str) -> Plan:
    """Make these tables, with a row in each; a name with a `*` is this transaction's alone."""

    def plan(tx: Transaction, done: Made, value: int, formats: Formats) -> None:
        for number, name in enumerate(names):
            tag = 10 * value + number
            own = name.replace("*", str(value))
            tx.create(own, SCHEMA, format=formats.of(own))
            tx.append(own, [{"tag": tag}])
            done.made.add(tag)
            done.names.append(own)

    return plan


def drop(name: str, again: bool = False) -> Plan:
    """Drop a table, and make another one of the same name if wished for."""

    def plan(tx: Transaction, done: Made, value: int, formats: Formats) -> None:
        done.dropped |= {row[0] for row in tx.read(name).collect()}
        tx.drop(name)
        if again:
            make(name)(tx, done, value, formats)

    return plan


def replace(name: str) -> Plan:
    """Another table in the place of one, in the same log, with one more column of another name."""

    def plan(tx: Transaction, done: Made, value: int, formats: Formats) -> None:
        done.dropped |= {row[0] for row in tx.read(name).collect()}
        schema = pa.schema([("tag", pa.int64()), (f"other{value % 3}", pa.int64())])
        tx.create(name, schema, format=formats.of(name), replace=True)
        tx.append(name, [{"tag": 10 * value}])
        done.made.add(10 * value)
        done.names.append(name)

    return plan


def set_view(name: str, exists: bool) -> Plan:
    """Make a view, or replace one that was read before."""

    def plan(tx: Transaction, done: Made, value: int, formats: Formats) -> None:  # noqa: ARG001
        if exists:
            done.dropped |= {row[0] for row in tx.read(name).collect()}
        words = "CREATE OR REPLACE VIEW" if exists else "CREATE VIEW"
        tx.sql(f"{words} {name} AS SELECT {10 * value} AS tag")
        done.made.add(10 * value)
        done.names.append(name)

    return plan


def drop_view(name: str) -> Plan:
    """Drop a view that was read before."""

    def plan(tx: Transaction, done: Made, value: int, formats: Formats) -> None:  # noqa: ARG001
        done.dropped |= {row[0] for row in tx.read(name).collect()}
        tx.sql(f"DROP VIEW {name}")

    return plan


def transact(
    session: Session,
    plan: Plan,
    table: str,
    key: int,
    features: Features,
    again: bool,
    meanwhile: Callable[[list[str]], None] = lambda _: None,
) -> None:
    """Run the plan and append the operation's value to a list, in one transaction.

    `meanwhile` is called before the commit with the names that the transaction gives.
    """
    value = len(session.history.operations) + 1

    def run(op: Operation) -> None:
        def work(tx: Transaction) -> None:
            op.key, op.result, op.txn = Made(), [Append(f"{table}/{key}", value)], tx.id
            plan(tx, op.key, value, session.client.formats)
            tx.update(table, set={"items": f"concat(items, ',{value}')"}, where=f"k = {key}")
            meanwhile(op.key.names)

        if again:
            session.lake.run(work, 20, features)
        else:
            with session.lake.transaction(features) as tx:
                work(tx)

    session.perform("lists", "making", Made(), value, run)


def draw(random: Random, tables: list[str]) -> Plan:
    """What to do in a lake that has these tables and views."""
    if random.random() < 0.3:
        name = random.choice(VIEWS)
        gone = name in tables and random.random() < 0.4
        return drop_view(name) if gone else set_view(name, name in tables)
    made = [name for name in tables if name in SHARED or name.startswith(OWN)]
    if made and random.random() < 0.3:
        return replace(random.choice(made))
    if made and random.random() < 0.5:
        return drop(random.choice(made), again=random.random() < 0.5)
    free = [name for name in SHARED if name not in tables]
    return make(f"{OWN}*", random.choice(free)) if free and random.random() < 0.7 else make(f"{OWN}*")


def place_foreign_table(client: Client, name: str) -> bool:
    """A table without rows by a client that knows nothing of us; False if it may not be there."""
    return place_table(client, name, COLUMNS)


def names_of(lake: Lake) -> list[str]:
    """The names of all tables and views."""
    return [*lake.tables(), *lake.views()]


def visible(lake: Lake) -> dict[int, str]:
    """The tags that can be read, and where."""
    found: dict[int, str] = {}
    for name in names_of(lake):
        if name in (*SHARED, *VIEWS) or name.startswith(OWN):
            try:
                found |= {row[0]: name for row in lake.read(name).collect()}
            except InvalidInput:
                # Dropped by an entry that was not settled when the names were listed.
                continue
    return found


def judge(
    history: History,
    lists: Mapping[str, tuple[int, ...]],
    found: Mapping[int, str],
    torn: Torn,
) -> list[str]:
    """Tables that are there and should not be, or the other way round."""
    there, gone = dict[int, Operation](), set[int]()
    for op in committed(history, lists, torn):
        there |= dict.fromkeys(op.key.made, op)
        gone |= op.key.dropped
    violations = [
        f"operation {op.number} ({op.outcome}) is committed, and its table {tag} is not there"
        for tag, op in there.items()
        if tag not in gone and tag not in found
    ]
    violations += [f"{name} shows {tag}, which was dropped" for tag, name in found.items() if tag in gone]
    return violations + [
        f"{name} shows {tag}, which nobody has committed" for tag, name in found.items() if tag not in there
    ]


def committed(history: History, lists: Mapping[str, tuple[int, ...]], torn: Torn) -> list[Operation]:
    """The transactions that made or dropped tables, and stand as a whole."""
    found = []
    for op in history.of("lists"):
        if op.action == "making":
            stands = standing(op, appends_of(op), lists, torn)
            if stands.committed and not stands.torn:
                found.append(op)
    return found


def appends_of(op: Operation) -> list[Append]:
    """What the transaction wrote into lists; nothing before it came so far."""
    return list(op.result or ())
