"""Warehouses of Iceberg tables that a catalog keeps, and how a lake gets at them. For tests."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import CommitTableResponse, Table

import lakevilla as lv
from tests.support.rest_catalog import serving

KINDS = ("sql", "rest")
"""PyIceberg on SQLite, which judges commits itself, and a REST catalog, which judges their requirements."""

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.int64())])
ROWS = pa.table({"id": [1, 2, 3], "v": [10, 20, 30]}, SCHEMA)


@dataclass
class Warehouse:
    """A catalog with the namespace `sales`. `options` are what a lake opens it with."""

    options: Mapping[str, str]
    root: Path
    storage_options: Mapping[str, str] = field(default_factory=lambda: {"fsync": "false"})

    def __post_init__(self) -> None:
        self.catalog: Catalog = load_catalog("prod", **self.options)

    def table(self, name: str = "orders") -> Table:
        """The table as PyIceberg sees it now."""
        return self.catalog.load_table(f"sales.{name}")

    def rows(self, name: str = "orders") -> dict[int, int]:
        """What PyIceberg reads."""
        return {row["id"]: row["v"] for row in self.table(name).scan().to_arrow().to_pylist()}

    def version(self, name: str = "orders") -> int:
        return int(Path(self.table(name).metadata_location).name.partition("-")[0])

    def lake(self, **options: Any) -> lv.Lake:
        """A client of its own."""
        given: dict[str, Any] = {"catalogs": {"prod": self.options}, **options}
        return lv.Lake(
            self.root / "lake",
            engine="local",
            storage_options=dict(self.storage_options),
            lease_seconds=0.3,
            **given,
        )


@contextmanager
def warehouse(kind: str, root: Path, *tables: str) -> Iterator[Warehouse]:
    """A warehouse in a directory, with tables of three rows, in a catalog of one of `KINDS`."""
    options = {"type": "sql", "uri": f"sqlite:///{root}/catalog.db", "warehouse": f"file://{root}/warehouse"}
    sql = load_catalog("prod", **options)
    assert isinstance(sql, SqlCatalog)
    sql.create_namespace("sales")
    for name in tables:
        sql.create_table(f"sales.{name}", SCHEMA).append(ROWS)
    try:
        if kind == "sql":
            yield Warehouse(options, root)
        else:
            with serving(sql) as uri:
                yield Warehouse({"type": "rest", "uri": uri}, root)
    finally:
        sql.close()


Commit = Callable[[], CommitTableResponse]
"""The request to commit that a client is about to send."""


class Commits:
    """Stands between clients and the `commit_table` of catalogs: the next commits of a table go through the
    steps that are there for it."""

    def __init__(self) -> None:
        self.steps: dict[str, list[Callable[[Commit], CommitTableResponse]]] = {}

    def around(self, inner: Callable[..., CommitTableResponse]) -> Callable[..., CommitTableResponse]:
        def commit(catalog: Catalog, table: Table, *arguments: Any) -> CommitTableResponse:
            waiting = self.steps.get(table.name()[-1])
            send: Commit = lambda: inner(catalog, table, *arguments)  # noqa: E731
            return waiting.pop(0)(send) if waiting else send()

        return commit


def client_of(kind: str) -> type[Catalog]:
    return SqlCatalog if kind == "sql" else RestCatalog
