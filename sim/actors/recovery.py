"""What clients with recovery do: transactions of several statements on one of the actors' tables.

Each actor draws a program, some steps on one table, before it begins, so that `lake.run` runs the same
program again. What is in between (savepoints, rollbacks, pauses) is the same for every table.
"""

from collections.abc import Callable, Sequence
from random import Random

from sim.actors import one_table
from sim.actors.journal import FORGOTTEN, Journal, Work, give_up, resume, run_again, transact, walk_away
from sim.actors.one_table import KEYS, PARTS, Actor
from sim.actors.session import Session
from sim.world.lakes import LEASE_SECONDS

Draw = Callable[[Random], Work]

PAUSES = (0.1, 1.1, 1.1, 1.1, 2.5 * LEASE_SECONDS, 7 * LEASE_SECONDS)
"""Nothing, longer than a transaction stays open without a ticket, than a lease, than one idles with one."""


def pause(random: Random) -> Work:
    seconds = random.choice(PAUSES)
    return lambda journal: journal.pause(seconds)


def append_item(random: Random) -> Work:
    key = random.randrange(KEYS)

    def work(journal: Journal) -> None:
        value = journal.fresh()
        assigned = {"items": f"concat(items, ',{value}')"}
        journal.change(
            "list-append", key, value, lambda tx: tx.update("lists", set=assigned, where=f"k = {key}")
        )

    return work


def read_key(random: Random) -> Work:
    key = random.randrange(KEYS)
    return lambda journal: _drop(journal.read(("k", key)))


def read_part(random: Random) -> Work:
    part = random.randrange(PARTS)
    return lambda journal: _drop(journal.read(("part", part)))


def read_all(random: Random) -> Work:  # noqa: ARG001
    return lambda journal: _drop(journal.read())


def be_stubborn(journal: Journal) -> None:
    journal.stubborn = True


def peek(journal: Journal) -> None:
    """What was read stays known, also when the transaction goes back to a savepoint before it."""
    journal.savepoint()
    journal.read()
    journal.roll_back()


def add(random: Random) -> Work:
    key = random.randrange(KEYS)
    action, operator = random.choice((("increment", "="), ("increment-from", ">=")))

    def work(journal: Journal) -> None:
        value = journal.fresh()
        where = f"k {operator} {key}"
        if journal.by_rows and (action, key) == ("increment-from", KEYS - 1):
            # The registers that others have changed by then.
            _increase(journal, "increment-high", 1, value, "v >= 1")
        else:
            _increase(journal, action, key, value, where)

    return work


def _increase(journal: Journal, action: str, key: int, value: int, where: str) -> None:
    journal.change(
        action, key, value, lambda tx: tx.update("registers", set={"v": f"v + {value}"}, where=where)
    )


def write_back(random: Random) -> Work:
    """Read a register and write what was read, and one more: a lost update would show."""
    key = random.randrange(KEYS)

    def work(journal: Journal) -> None:
        value = journal.read(("k", key))[0]["v"] + 1
        journal.change(
            "set", key, value, lambda tx: tx.update("registers", set={"v": value}, where=f"k = {key}")
        )

    return work


def insert_count(random: Random) -> Work:  # noqa: ARG001
    def work(journal: Journal) -> None:
        value = journal.fresh()
        text = f"INSERT INTO counts SELECT count(*) AS n, {value} AS op FROM counts"
        journal.change("count-insert", None, value, lambda tx: tx.sql(text))

    return work


def append_count(random: Random) -> Work:  # noqa: ARG001
    """The number of rows goes through the client, and comes back as data."""

    def work(journal: Journal) -> None:
        rows = [{"n": journal.count(), "op": journal.fresh()}]
        journal.change("append", None, rows, lambda tx: tx.append("counts", rows))

    return work


def append_rows(random: Random) -> Work:
    parts = [random.randrange(PARTS) for _ in range(random.randint(1, 3))]

    def work(journal: Journal) -> None:
        rows = [{"op": journal.fresh(), "part": part} for part in parts]
        journal.change("append", None, rows, lambda tx: tx.append("blind", rows))

    return work


def delete_part(random: Random) -> Work:
    """Or, where rows of one file do not conflict, change them: what others delete must not come back."""
    part = random.randrange(PARTS)

    def work(journal: Journal) -> None:
        if journal.by_rows and part == 0:
            value, where = 1_000_000 * journal.fresh(), f"part = {part}"
            assigned = {"op": f"op + {value}"}
            journal.change("renumber", part, value, lambda tx: tx.update("blind", assigned, where=where))
        else:
            journal.change("delete", part, None, lambda tx: tx.delete("blind", where=f"part = {part}"))

    return work


def delete_and_look(random: Random) -> Work:
    part = random.randrange(PARTS)
    return lambda journal: journal.delete(part)


def overwrite_part(random: Random) -> Work:
    part = random.randrange(PARTS)

    def work(journal: Journal) -> None:
        rows = [{"op": journal.fresh(), "part": part}]
        where = f"part = {part}"
        journal.change("overwrite", part, rows, lambda tx: tx.overwrite("blind", rows, where=where))

    return work


CHANGES: dict[str, tuple[Draw, ...]] = {
    "lists": (append_item, append_item, append_item),
    "registers": (add, write_back, write_back),
    "counts": (insert_count, append_count),
    "blind": (append_rows, append_rows, delete_part, delete_and_look, overwrite_part),
}
READS: dict[str, tuple[Draw, ...]] = {
    "lists": (read_key, read_key, read_all),
    "registers": (read_key, read_all),
    "counts": (read_all,),
    "blind": (read_part, read_all),
}


def program(table: str, random: Random) -> Work:
    """Up to four steps on a table, with what may come between them."""
    steps: list[Work] = [be_stubborn] if random.random() < 0.2 else []
    for _ in range(random.choice((1, 2, 2, 3, 4))):
        between = random.random()
        if between < 0.12:
            steps.append(Journal.savepoint)
        elif between < 0.2:
            steps.append(pause(random))
        elif between < 0.23:
            steps.append(Journal.fail)
        kind = random.random()
        if kind < 0.05:
            steps.append(peek)
        else:
            steps.append(random.choice((READS if kind < 0.3 else CHANGES)[table])(random))
            if random.random() < 0.25:
                # The same rows again: it builds on what the step before it wrote.
                steps.append(steps[-1])
        if random.random() < 0.12:
            steps.append(Journal.roll_back)

    return in_turn(steps)


def in_turn(steps: Sequence[Work]) -> Work:
    def work(journal: Journal) -> None:
        for step in steps:
            step(journal)

    return work


def recovering(table: str) -> Actor:
    """A client that runs programs on this table, and ends them in every way."""

    def act(session: Session, random: Random) -> None:
        how = random.choice((transact, transact, transact, run_again, run_again, run_again, run_again))
        if random.random() < 0.1:
            how = random.choice((give_up, walk_away))
        how(session, table, program(table, random))

    return act


def resume_somebody(session: Session, random: Random) -> None:
    """Resume a transaction whose client is dead or slow, or one that was begun only for that."""
    begun = [op for op in session.history.operations if op.txn is not None and len(op.steps) > 1]
    open_ones = [op for op in begun if op.outcome == "unknown"]
    if not open_ones or random.random() < 0.5:
        table = random.choice(sorted(CHANGES))
        changes = [random.choice(CHANGES[table])(random) for _ in range(random.randint(2, 3))]
        walk_away(session, table, in_turn(changes))
        session.client.environment.sleep(random.random() * 3)
        open_ones = [op for op in session.history.operations if op.error == FORGOTTEN]
    if open_ones:
        op = random.choice(open_ones[-4:])
        more: Work = random.choice(CHANGES[op.table])(random) if random.random() < 0.7 else Journal.savepoint
        resume(session, op, more)


def race_for_a_transaction(session: Session, random: Random) -> None:
    """Resume a transaction whose owner lives and is about to commit it: one of the two is fenced."""
    table = random.choice(sorted(CHANGES))
    changes = [random.choice(CHANGES[table])(random) for _ in range(2)]
    more = random.choice(CHANGES[table])(random)
    first = len(session.history.operations)
    owner = in_turn([*changes, lambda journal: journal.pause(2.0)])
    join = session.client.environment.background(lambda: transact(session, table, owner))
    session.client.environment.sleep(0.5 + 2 * random.random())
    mine = [op for op in session.history.operations[first:] if op.client == session.client.name]
    if mine and mine[0].txn is not None and mine[0].table == table:
        resume(session, mine[0], more)
    join()


def _drop(_: object) -> None:
    """The client was shown it; nothing else is done with it."""


MIXES: dict[str, tuple[Actor, ...]] = {
    table: (*[recovering(table)] * 3, resume_somebody, race_for_a_transaction, *one_table.MIXES[table])
    for table in CHANGES
}
"""Clients with recovery, mixed with those that have none on the same tables."""
