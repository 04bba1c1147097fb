"""The tables of a lake as another program reads them by name, at one instant for each of its queries."""

import json
from collections import OrderedDict
from threading import Lock
from typing import Any

from lakevilla.engines.port import Engine, Source
from lakevilla.environment import Environment
from lakevilla.errors import InvalidInput
from lakevilla.model import Features
from lakevilla.sql.statements import TableName
from lakevilla.store.metered import Meter
from lakevilla.tables.catalog import Catalog
from lakevilla.tables.pinned import Pinned
from lakevilla.transaction.guarantees import Guarantees
from lakevilla.transaction.workspace import Workspace
from lakevilla.travel.past import PastLake

_QUERIES = 64
"""So many queries can be planned at a time, each at an instant of its own."""


class Attached:
    """Tables at the newest instant, or at that of `past`.

    Nothing is committed and no lease is held: a query that only reads is never refused.
    """

    def __init__(
        self, catalog: Catalog, engine: Engine, environment: Environment, past: PastLake | None
    ) -> None:
        self._catalog = catalog
        self._engine = engine
        self._environment = environment
        self._past = past
        self._lock = Lock()
        self._workspaces: OrderedDict[int, Workspace] = OrderedDict()

    def names(self) -> list[str]:
        """The names of all tables."""
        return self._catalog.names(Meter()) if self._past is None else self._past.tables()

    def read(
        self, name: str, query: int, version: str | None, microseconds: int | None
    ) -> tuple[Any, dict[str, Any]] | None:
        """A table as the engine gives it, and what is known of it (see `_facts`); None if there is none of
        this name. Queries have numbers: what has the same one is read at one instant."""
        found = self._find(name, query, version, microseconds)
        return None if found is None else (self._engine.read(found[0]), self._facts(found[1]))

    def source(self, name: str) -> Source | None:
        """The table with its files, for one query."""
        found = self._find(name, 0, None, None)
        return None if found is None else found[0]

    def _find(
        self, name: str, query: int, version: str | None, microseconds: int | None
    ) -> tuple[Source, Pinned] | None:
        number = _number(version)
        at_ms = None if microseconds is None else microseconds // 1000
        workspace = self._workspace(query)
        # A query may load its tables from several threads.
        with self._lock, workspace.statement(_changes_nothing):
            if workspace.find(name) is None:
                return None
            pinned = workspace.pin(TableName(name, number, at_ms))
            return workspace.source(pinned, keeps_files=True), pinned

    def _facts(self, pinned: Pinned) -> dict[str, Any]:
        """An `id` that no other version and no other table has, the columns with their comments, and the
        properties as Spark calls them."""
        snapshot = pinned.snapshot
        about = {"provider": pinned.ref.format, "location": pinned.ref.location}
        if snapshot.comment:
            about["comment"] = snapshot.comment
        return {
            "id": self._identity(pinned),
            "columns": snapshot.schema,
            "properties": {**snapshot.properties, **about},
        }

    def _identity(self, pinned: Pinned) -> str:
        """The place is part of it, because a copied table has the same id."""
        root, snapshot = self._catalog.root(Meter()).url, pinned.snapshot
        return json.dumps([root, pinned.ref.location, snapshot.table_id, snapshot.version])

    def _workspace(self, query: int) -> Workspace:
        if self._past is not None:
            return self._past.workspace()
        with self._lock:
            known = self._workspaces.pop(query, None)
            if known is None:
                txn = self._environment.new_id()
                guarantees = Guarantees(Features.I)
                known = Workspace(self._catalog, self._engine, self._environment, txn, guarantees)
            self._workspaces[query] = known
            while len(self._workspaces) > _QUERIES:
                self._workspaces.popitem(last=False)
            return known


def _number(version: str | None) -> int | None:
    if version is None or version.isdecimal():
        return None if version is None else int(version)
    raise InvalidInput(f"a version of a table is a number; found {version!r}")


def _changes_nothing(name: str, blind: bool) -> None:
    raise AssertionError(f"a query does not change {name!r}, {blind=}")
