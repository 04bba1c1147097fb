"""Clients that know nothing of LakeVilla, one for each format, on tables in folders. For tests.

deltalake for Delta, PyIceberg for Iceberg. Where a client gives up because a commit of ours came between, it
starts over.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

import duckdb
import pyarrow as pa
from deltalake import DeltaTable, Field, QueryBuilder, write_deltalake
from deltalake.exceptions import CommitFailedError
from deltalake.schema import PrimitiveType
from pyiceberg.types import StringType

from tests.support.iceberg_files import FilesCatalog, LostRace

Rows = list[dict[str, Any]]
Where = Path | str


class Outsider(Protocol):
    """A client of tables in folders of one format."""

    @property
    def engine(self) -> str:
        """What a history calls the client."""
        ...

    @property
    def begin(self) -> int:
        """The number of the first version of a table, whichever client makes it."""
        ...

    def entry(self, version: int) -> str:
        """The key below the table's folder of what makes a version."""
        ...

    def create(self, folder: Where, rows: pa.Table) -> None: ...

    def append(self, folder: Where, rows: pa.Table) -> None: ...

    def overwrite(self, folder: Where, rows: pa.Table) -> None: ...

    def update(self, folder: Where, assigned: Mapping[str, str], where: str = "true") -> None: ...

    def delete(self, folder: Where, where: str) -> None: ...

    def add_text_column(self, folder: Where, name: str) -> None: ...

    def rows(self, folder: Where, version: int | None = None) -> Rows: ...

    def version(self, folder: Where) -> int: ...


class DeltaRs:
    """deltalake."""

    engine = "delta-rs"
    begin = 0

    def entry(self, version: int) -> str:
        return f"_delta_log/{version:020}.json"

    def create(self, folder: Where, rows: pa.Table) -> None:
        write_deltalake(str(folder), rows)

    def append(self, folder: Where, rows: pa.Table) -> None:
        _until_it_commits(lambda: write_deltalake(str(folder), rows, mode="append"))

    def overwrite(self, folder: Where, rows: pa.Table) -> None:
        _until_it_commits(lambda: write_deltalake(str(folder), rows, mode="overwrite"))

    def update(self, folder: Where, assigned: Mapping[str, str], where: str = "true") -> None:
        _until_it_commits(lambda: DeltaTable(str(folder)).update(dict(assigned), predicate=where))

    def delete(self, folder: Where, where: str) -> None:
        _until_it_commits(lambda: DeltaTable(str(folder)).delete(where))

    def add_text_column(self, folder: Where, name: str) -> None:
        DeltaTable(str(folder)).alter.add_columns([Field(name, PrimitiveType("string"))])

    def rows(self, folder: Where, version: int | None = None) -> Rows:
        rows: Rows = DeltaTable(str(folder), version=version).to_pyarrow_table().to_pylist()
        return rows

    def version(self, folder: Where) -> int:
        return DeltaTable(str(folder)).version()


class DeltaRsWithVectors(DeltaRs):
    """The same, reading tables with deletion vectors: its query engine does, PyArrow does not."""

    def rows(self, folder: Where, version: int | None = None) -> Rows:
        queries = QueryBuilder().register("t", DeltaTable(str(folder), version=version))
        rows: Rows = pa.table(queries.execute("SELECT * FROM t").read_all()).to_pylist()
        return rows


class PyIceberg:
    """PyIceberg, with a catalog of this module's own for tables that are kept by files."""

    engine = ""
    begin = 1

    def __init__(self) -> None:
        self._catalog = FilesCatalog()

    def entry(self, version: int) -> str:
        return f"metadata/v{version}.metadata.json"

    def create(self, folder: Where, rows: pa.Table) -> None:
        self._catalog.create(str(folder), rows.schema)
        self.append(folder, rows)

    def append(self, folder: Where, rows: pa.Table) -> None:
        _until_it_commits(lambda: self._open(folder).append(rows))

    def overwrite(self, folder: Where, rows: pa.Table) -> None:
        _until_it_commits(lambda: self._open(folder).overwrite(rows))

    def update(self, folder: Where, assigned: Mapping[str, str], where: str = "true") -> None:
        def attempt() -> None:
            table = self._open(folder)
            found = table.scan(row_filter=where).to_arrow()
            changes = ", ".join(f"{text} AS {name}" for name, text in assigned.items())
            changed = duckdb.sql(f"SELECT * REPLACE ({changes}) FROM found").to_arrow_table()
            table.overwrite(changed.cast(found.schema), overwrite_filter=where)

        _until_it_commits(attempt)

    def delete(self, folder: Where, where: str) -> None:
        _until_it_commits(lambda: self._open(folder).delete(where))

    def add_text_column(self, folder: Where, name: str) -> None:
        with self._open(folder).update_schema() as update:
            update.add_column(name, StringType())

    def rows(self, folder: Where, version: int | None = None) -> Rows:
        number = self.version(folder) if version is None else version
        rows: Rows = self._catalog.at(str(folder), number).scan().to_arrow().to_pylist()
        return rows

    def version(self, folder: Where) -> int:
        return self._catalog.newest(str(folder))

    def _open(self, folder: Where) -> Any:
        return self._catalog.load_table(str(folder))


OUTSIDERS: Mapping[str, Outsider] = {
    "delta": DeltaRs(),
    "vectors": DeltaRsWithVectors(),
    "iceberg": PyIceberg(),
    "deletes": PyIceberg(),
}
"""By the format of their tables; `vectors` are Delta tables with deletion vectors, `deletes` Iceberg tables
with position deletes."""


def _until_it_commits(write: Callable[[], object]) -> None:
    """A commit of ours may come while the client works, which then gives up, also with an append that reads
    nothing."""
    while True:
        try:
            write()
        except (CommitFailedError, LostRace):
            continue
        return
