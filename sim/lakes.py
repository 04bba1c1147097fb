"""The lakes of simulated clients: real ones on a simulated store, with the row engine or the real one."""

from collections.abc import Callable
from functools import cache

from lakevilla.engines.port import Engine
from lakevilla.environment import Environment
from lakevilla.lake import Lake
from lakevilla.model import Features
from lakevilla.store.retrying import Retrying
from sim import actors
from sim.bucket import Bucket
from sim.faults import Calm
from sim.formats import PLAIN, Formats
from sim.world import Client, World

EngineOf = Callable[[Environment], Engine]
"""Makes the engine of one client."""

LEASE_SECONDS = 1.0
"""The lease time of simulated lakes: short, so that those who wait for the dead wait less."""


@cache
def first_image(engine: EngineOf, formats: Formats = PLAIN) -> Bucket:
    """The store of a lake with its tables and first rows, made without faults; alike for every seed."""
    with World(0, Calm, formats=formats) as world:
        client = world.client("maker")

        def make() -> None:
            lake = open_lake(client, engine)
            for name, schema in actors.SCHEMAS.items():
                lake.create(name, schema, **formats.making(name))
                if rows := actors.FIRST_ROWS.get(name):
                    lake.append(name, rows)

        world.start(client, make)
        world.run()
        return world.bucket


def open_lake(client: Client, engine: EngineOf) -> Lake:
    """A lake of this client's own, on the store as production code sees it: behind retries."""
    return Lake(
        "sim://bucket",
        engine=engine(client.environment),
        environment=client.environment,
        store=Retrying(client.store, client.environment),
        features=Features.R,
        lease_seconds=LEASE_SECONDS,
    )
