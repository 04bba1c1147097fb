"""What must succeed when the faults are over: nothing that a storm left may stop those who come after.

An auditor alone reads and changes every table. With recovery, several rivals fight first for the same rows,
of whom nobody may give up; and when leases have run out and somebody has recovered, no ticket is live.
"""

from collections.abc import Callable
from functools import partial

from lakevilla.environment import Environment
from lakevilla.markers.lease import Leases
from lakevilla.markers.survey import Seen, free_stale, survey
from lakevilla.store.port import Store
from lakevilla.store.prefixed import Prefixed
from lakevilla.store.retrying import Retrying
from sim import actors, recovery
from sim.checkers.history import History
from sim.journal import run_again, transact
from sim.lakes import LEASE_SECONDS, EngineOf, open_lake
from sim.scheduler import Stuck
from sim.session import Session
from sim.world import Client, World

RIVALS = 3


def audit_tables(world: World, history: History, engine: EngineOf) -> None:
    """A new client reads and changes every table."""

    def body(session: Session) -> None:
        for actor in (actors.append_to_list, actors.increment, actors.insert_count, actors.append_blindly):
            actor(session, world.random)
        for table in actors.SCHEMAS:
            actors.audit_table(session, table)
        actors.list_tables(session, world.random)

    _all_succeed(world, history, engine, {"auditor": body})


def audit_recovery(world: World, history: History, engine: EngineOf) -> None:
    """Rivals for the same rows, of whom nobody gives up; then an auditor; then no ticket is live."""

    def rival(session: Session) -> None:
        run_again(session, "registers", recovery.write_back(world.random))
        run_again(session, "registers", recovery.write_back(world.random))
        transact(session, "counts", recovery.insert_count(world.random))

    _all_succeed(world, history, engine, {f"rival{number}": rival for number in range(RIVALS)})
    audit_tables(world, history, engine)
    _recover(world)


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


def _recover(world: World) -> None:
    """Everybody is gone: their tickets are freed, all of them, and a second look finds none."""
    client = world.client("recoverer")
    left: list[list[Seen]] = []

    def body() -> None:
        for _ in range(2):
            left.append(_free(client))

    world.start(client, body)
    world.run()
    live = [seen.ticket for seen in left[1]]
    if live:
        raise Stuck(f"after the recovery the tickets {live} are live")


def _free(client: Client) -> list[Seen]:
    """Free what is stale in all tables; what was live before."""
    store: Store = Retrying(client.store, client.environment)
    environment: Environment = client.environment
    leases = Leases(store, environment, LEASE_SECONDS)
    found = [
        (table, seen)
        for table in (Prefixed(store, name) for name in actors.SCHEMAS)
        for seen in survey(table, environment)
    ]
    free_stale(found, leases, environment)
    return [seen for _, seen in found if seen.marker.live]
