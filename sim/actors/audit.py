"""What must succeed when the faults are over: nothing that a storm left may stop those who come after.

An auditor alone reads and changes every table. With recovery, several rivals first fight for the same rows,
and none of them may give up; and after all leases have expired and a client has run recover, no ticket is
live.
"""

from collections.abc import Callable
from functools import partial

from sim.actors import one_table, recovery
from sim.actors.journal import run_again, transact
from sim.actors.session import Session
from sim.checkers.history import History
from sim.checkers.tables.cataloged import judged
from sim.checkers.tables.markers import live_tickets
from sim.checkers.tables.versions import table_versions
from sim.world.client import World
from sim.world.formats import DELTA
from sim.world.lakes import EngineOf, open_lake
from sim.world.scheduler import Stuck

RIVALS = 3
ASKED, ASKED_OF_COPIES = 1, 4
"""How many outcomes are asked for; of tables in which others copy what we say of ourselves, more."""


def audit_tables(world: World, history: History, engine: EngineOf) -> None:
    """A new client reads and changes every table."""

    def body(session: Session) -> None:
        for actor in (
            one_table.append_to_list,
            one_table.increment,
            one_table.insert_count,
            one_table.append_blindly,
        ):
            actor(session, world.random)
        for table in one_table.SCHEMAS:
            one_table.audit_table(session, table)
        one_table.list_tables(session, world.random)

    _all_succeed(world, history, engine, {"auditor": body})


def audit_recovery(world: World, history: History, engine: EngineOf) -> None:
    """Rivals for the same rows, of whom nobody gives up; then an auditor; then no ticket is live."""

    def rival(session: Session) -> None:
        run_again(session, "registers", recovery.write_back(world.random))
        run_again(session, "registers", recovery.write_back(world.random))
        transact(session, "counts", recovery.insert_count(world.random))

    _all_succeed(world, history, engine, {f"rival{number}": rival for number in range(RIVALS)})
    audit_tables(world, history, engine)
    _ask_outcomes(world, history, engine)
    problems = recover(world, engine)
    if problems:
        raise Stuck("; ".join(problems))


def _ask_outcomes(world: World, history: History, engine: EngineOf) -> None:
    """`lake.outcome` knows which transactions are committed, also of dead clients."""
    client = world.client("asker")
    begun = [op for op in history.operations if op.txn is not None]
    asked = world.random.sample(begun, min(ASKED, len(begun)))
    if world.formats.of("blind") != DELTA:
        copied = [op for op in begun if op.table == "blind"]
        asked += world.random.sample(copied, min(ASKED_OF_COPIES, len(copied)))
    wrong: list[str] = []

    def body() -> None:
        lake = open_lake(client, engine)
        for op in asked:
            assert op.txn is not None
            found = lake.outcome(op.txn)
            published = {v: k for k, v in _published(world, op.table).items()}.get(op.txn)
            if (found.state == "committed", found.version) != (published is not None, published):
                wrong.append(f"{op.txn} is version {published} of {op.table}, and its outcome {found}")

    world.start(client, body)
    world.run()
    if wrong:
        raise Stuck("; ".join(wrong))


def _published(world: World, table: str) -> dict[int, str | None]:
    return {number: v.txn for number, v in enumerate(table_versions(judged(world).writes, table))}


def _all_succeed(
    world: World, history: History, engine: EngineOf, bodies: dict[str, Callable[[Session], None]]
) -> None:
    first = len(history.operations)
    for name, body in bodies.items():
        client = world.client(name)
        session = Session(client, open_lake(client, engine), history)
        world.start(client, partial(body, session))
    world.run()
    for op in history.operations[first:]:
        if op.outcome != "ok" and op.error != "run again":
            raise Stuck(f"without faults {op.client}'s {op.action} on {op.table} {op.outcome}: {op.error}")


def recover(world: World, engine: EngineOf) -> list[str]:
    """All clients have ended. A new one runs recover twice: no ticket is live, and the second run changes
    nothing."""
    client = world.client("recoverer")
    problems: list[str] = []

    def body() -> None:
        lake = open_lake(client, engine)
        lake.recover()
        if live := live_tickets(world.bucket.writes):
            problems.append(f"after the recovery there are live tickets: {live}")
        written = len(world.bucket.writes)
        lake.recover()
        changed = [write.key for write in world.bucket.writes[written:]]
        if changed:
            problems.append(f"a second recovery changes {changed}")

    world.start(client, body)
    world.run()
    return problems
