"""What clients do: each actor runs one transaction on one table, drawn from the seed.

Contract: an actor writes down what it asks before it asks (through `Session.perform`), and every change that
it makes can be told from every other by its number. `checkers.tables.effects` says what the changes mean.
"""

from collections.abc import Callable
from random import Random
from typing import Any

import pyarrow as pa

from lakevilla.model import Features
from lakevilla.transaction.transaction import Transaction
from sim.actors.session import Session
from sim.checkers.history import Operation

Actor = Callable[[Session, Random], None]

KEYS = 4
PARTS = 3

SCHEMAS: dict[str, pa.Schema] = {
    "lists": pa.schema([("k", pa.int64()), ("items", pa.string())]),
    "registers": pa.schema([("k", pa.int64()), ("v", pa.int64())]),
    "counts": pa.schema([("n", pa.int64()), ("op", pa.int64())]),
    "blind": pa.schema([("op", pa.int64()), ("part", pa.int64())]),
}
"""The tables that data actors share; they are never dropped."""

FIRST_ROWS: dict[str, list[dict[str, Any]]] = {
    "lists": [{"k": k, "items": ""} for k in range(KEYS)],
    "registers": [{"k": k, "v": 0} for k in range(KEYS)],
    "blind": [{"op": -1 - n, "part": n % PARTS} for n in range(2 * PARTS)],
}

NAMES = ("x", "x", "x", "y")
"""The names over which registry actors fight, one of them more than the other."""


def append_to_list(session: Session, random: Random) -> None:
    """Read-modify-write of a list: its order tells the order of the writers."""
    key, value = random.randrange(KEYS), _next(session)
    change(
        session,
        "lists",
        "list-append",
        key,
        value,
        lambda tx: tx.update("lists", set={"items": f"concat(items, ',{value}')"}, where=f"k = {key}"),
    )


def increment(session: Session, random: Random) -> None:
    """Add to one register, or to all from some key on; where rows of one file do not conflict, also to those
    from some value on, which others bring there."""
    key, value = random.randrange(KEYS), 3 + _next(session)
    action, operator = random.choice((("increment", "="), ("increment-from", ">=")))
    if session.client.formats.merge_on_read and random.random() < 0.5:
        _increment_high(session, random.randrange(3 * value), value)
        return
    change(
        session,
        "registers",
        action,
        key,
        value,
        lambda tx: tx.update("registers", set={"v": f"v + {value}"}, where=f"k {operator} {key}"),
    )


def _increment_high(session: Session, least: int, value: int) -> None:
    where = f"v >= {least}"
    change(
        session,
        "registers",
        "increment-high",
        least,
        value,
        lambda tx: tx.update("registers", set={"v": f"v + {value}"}, where=where),
    )


def insert_count(session: Session, random: Random) -> None:  # noqa: ARG001
    """Insert the number of rows: no two may find the same number."""
    value = _next(session)
    text = f"INSERT INTO counts SELECT count(*) AS n, {value} AS op FROM counts"
    change(session, "counts", "count-insert", None, value, lambda tx: tx.sql(text))


def append_blindly(session: Session, random: Random) -> None:
    """Blind appends never fail for a rival's sake."""
    value = _next(session)
    rows = [{"op": value * 10 + n, "part": random.randrange(PARTS)} for n in range(random.randint(1, 3))]
    change(session, "blind", "append", None, rows, lambda tx: tx.append("blind", rows))


def delete_part(session: Session, random: Random) -> None:
    """Delete the rows of a part; where rows of one file do not conflict, or change them: a row that others
    delete meanwhile must not come back."""
    part = random.randrange(PARTS)
    if session.client.formats.merge_on_read and random.random() < 0.5:
        _renumber_part(session, part, 10_000 * (1 + _next(session)))
        return
    change(
        session,
        "blind",
        "delete",
        part,
        _next(session),
        lambda tx: tx.delete("blind", where=f"part = {part}"),
    )


def _renumber_part(session: Session, part: int, value: int) -> None:
    change(
        session,
        "blind",
        "renumber",
        part,
        value,
        lambda tx: tx.update("blind", set={"op": f"op + {value}"}, where=f"part = {part}"),
    )


def overwrite_part(session: Session, random: Random) -> None:
    part = random.randrange(PARTS)
    rows = [{"op": _next(session) * 10, "part": part}]
    change(
        session,
        "blind",
        "overwrite",
        part,
        rows,
        lambda tx: tx.overwrite("blind", rows, where=f"part = {part}"),
    )


def read_table(session: Session, random: Random) -> None:
    table = random.choice(sorted(SCHEMAS))
    audit_table(session, table)


def audit_table(session: Session, table: str) -> None:
    """A read of the whole table."""

    def run(op: Operation) -> None:
        result = session.lake.read(table)
        op.result = [dict(zip(result.columns, row, strict=True)) for row in result.collect()]

    session.perform(table, "read", None, None, run)


def create_table(session: Session, random: Random) -> None:
    name, tag = random.choice(NAMES), _next(session)
    schema = pa.schema([(f"tag_{tag}", pa.int64()), ("v", pa.int64())])
    change(
        session,
        "",
        "create",
        name,
        tag,
        lambda tx: tx.create(name, schema, format=session.client.formats.of(name)),
    )


def append_to_named(session: Session, random: Random) -> None:
    """Rows for a table that others drop and rename meanwhile."""
    name, value = random.choice(NAMES), _next(session)
    change(session, "named", "append", name, value, lambda tx: tx.append(name, [{"v": value}] * 4))


def drop_table(session: Session, random: Random) -> None:
    name = random.choice(NAMES)
    change(session, "", "drop", name, None, lambda tx: tx.drop(name))


def rename_table(session: Session, random: Random) -> None:
    """To a name of its own, so that it can be told from every other."""
    name, to = random.choice(NAMES), f"r{_next(session)}"
    change(session, "", "rename", name, to, lambda tx: tx.rename(name, to))


def list_tables(session: Session, random: Random) -> None:  # noqa: ARG001
    def run(op: Operation) -> None:
        op.result = [str(name) for name in session.lake.tables()]

    session.perform("", "tables", "", None, run)


def change(
    session: Session, table: str, action: str, key: Any, value: Any, statement: Callable[[Transaction], Any]
) -> None:
    """One statement as a transaction of its own, with its receipt written down."""

    def run(op: Operation) -> None:
        with session.lake.transaction(Features.NONE) as tx:
            op.txn = tx.id
            statement(tx)
        if tx.receipt is not None:
            op.version = tx.receipt.versions.get(table)

    session.perform(table, action, key, value, run)


def _next(session: Session) -> int:
    return len(session.history.operations)


MIXES: dict[str, tuple[Actor, ...]] = {
    "lists": (append_to_list, append_to_list, read_table),
    "registers": (increment, increment, read_table),
    "counts": (insert_count, insert_count, read_table),
    "blind": (append_blindly, append_blindly, delete_part, delete_part, overwrite_part, read_table),
    "registry": (
        *(create_table, create_table, drop_table, rename_table),
        *(append_to_named, append_to_named, append_to_named, list_tables),
    ),
}
"""What a client may be up to; a seed gives each client some of these."""
