"""The lakes of simulated clients: real ones on a simulated store, with the row engine or the real one."""

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import pyarrow as pa

from lakevilla.engines.port import Engine
from lakevilla.environment import Environment
from lakevilla.lake import Lake
from lakevilla.model import Features
from lakevilla.store.port import Store
from lakevilla.store.prefixed import Prefixed
from lakevilla.store.retry import Retrying
from lakevilla.transaction.transaction import Transaction
from sim.actors import one_table
from sim.legacy.iceberg import IcebergDialect
from sim.legacy.store import encode_json
from sim.world.bucket import Bucket
from sim.world.catalogs import URL, catalog_of, folder_of, key_of, options_of
from sim.world.client import Client, World
from sim.world.faults import Calm
from sim.world.formats import GATHERED_OFTEN, PLAIN, Formats
from sim.world.row_engine import RowsEngine

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
            for name, schema in one_table.SCHEMAS.items():
                make_table(lake, client, name, schema)
                if rows := one_table.FIRST_ROWS.get(name):
                    lake.append(name, rows)

        world.start(client, make)
        world.run()
        return world.bucket


def make_table(lake: Lake, client: Client, name: str, schema: pa.Schema) -> None:
    """A table without rows; one that a catalog keeps is made there, and then gets its name in the lake."""
    catalog = client.formats.catalog_of(name)
    if catalog is None:
        lake.create(name, schema, **client.formats.making(name))
        return
    columns = [(field.name, "long" if field.type == pa.int64() else "string") for field in schema]
    raw = json.loads(IcebergDialect(client, encode_json).first_entry(folder_of(name), columns, []))
    catalog_of(client, name).create(name, {**raw, "properties": GATHERED_OFTEN})
    lake.register(name, catalog=catalog, table=name)


def ignore(_: str) -> None:
    """The default of `begins`: the id of the transaction is not needed."""


class SimLake(Lake):
    """Whatever it opens lies in the one store that there is. `begins` is told the id of each transaction that
    begins, also of those that methods of the lake run."""

    everything: Store
    begins: Callable[[str], None]

    def transaction(self, *given: Any, **more: Any) -> Transaction:
        tx = super().transaction(*given, **more)
        self.begins(tx.id)
        return tx

    def _open(self, url: str) -> Store:
        return Prefixed(self.everything, key_of(url))


def open_lake(client: Client, engine: EngineOf, root: str = "", features: Features = Features.R) -> SimLake:
    """A lake of this client's own, on the store as production code sees it: behind retries. Its root is the
    whole store, or a folder of it."""
    everything = Retrying(client.store, client.environment)
    lake = SimLake(
        f"{URL}/{root}" if root else URL,
        engine=_engine_of(client, engine),
        environment=client.environment,
        store=Prefixed(everything, root) if root else everything,
        features=features,
        merge_on_read=client.formats.merge_on_read,
        lease_seconds=LEASE_SECONDS,
        catalogs=options_of(client) if client.formats.has_catalogs else None,
    )
    lake.everything = everything
    lake.begins = ignore
    return lake


def _engine_of(client: Client, make: EngineOf) -> Engine:
    engine = make(client.environment)
    if client.formats.merge_on_read and isinstance(engine, RowsEngine):
        engine.write_larger_files()
    return engine
