"""PyIceberg as a system to compare with: its own SQL catalog on SQLite, as its documentation begins.

It has no UPDATE: a row is changed by reading it and overwriting what its key selects.
"""

import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog

from bench.stores.places import Place
from bench.systems.local import Client

_OPTIONS = {
    "AWS_ENDPOINT_URL": "s3.endpoint",
    "AWS_ACCESS_KEY_ID": "s3.access-key-id",
    "AWS_SECRET_ACCESS_KEY": "s3.secret-access-key",
    "AWS_REGION": "s3.region",
}


class PyIceberg:
    """PyIceberg; a client keeps its table, and looks for new versions before it reads."""

    name = "pyiceberg"

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="lakevilla-bench-")
        self._catalogs: dict[str, SqlCatalog] = {}

    def load(self) -> None:
        """Imported already."""

    def create(self, place: Place, table: str, rows: pa.Table) -> Client:
        catalog = self._catalog(place)
        catalog.create_table(f"bench.{table}", schema=rows.schema).append(rows)
        return self.open(place, table)

    def open(self, place: Place, table: str) -> "PyIcebergClient":
        return PyIcebergClient(self._catalog(place).load_table(f"bench.{table}"))

    def _catalog(self, place: Place) -> SqlCatalog:
        if place.name not in self._catalogs:
            database = Path(self._folder.name) / f"{place.name}.db"
            given = {_OPTIONS[key]: value for key, value in place.storage_options.items() if key in _OPTIONS}
            made = SqlCatalog("bench", uri=f"sqlite:///{database}", warehouse=place.url("pyiceberg"), **given)
            made.create_namespace("bench")
            self._catalogs[place.name] = made
        return self._catalogs[place.name]


class PyIcebergClient:
    """One table, kept."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def read_row(self, key: int) -> pa.Table:
        self._table.refresh()
        return self._table.scan(row_filter=f"id == {key}").to_arrow()

    def update_row(self, key: int, owner: str) -> None:
        row = self.read_row(key)
        position = row.schema.get_field_index("owner")
        changed = row.set_column(
            position, row.schema.field("owner"), pa.array([owner], row.schema.field("owner").type)
        )
        self._table.overwrite(changed, overwrite_filter=f"id == {key}")

    def append(self, rows: pa.Table) -> None:
        self._table.append(rows)

    def scan(self) -> pa.Table:
        self._table.refresh()
        return self._table.scan().to_arrow()


PYICEBERG = PyIceberg()
