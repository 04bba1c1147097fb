"""Legacy readers of each format, which say which version they see. For tests."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import duckdb
import duckdb_extension_delta
from deltalake import DeltaTable, QueryBuilder

from tests.legacy.clients.iceberg_readers import duck
from tests.support.iceberg_files import FilesCatalog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Rows = list[tuple[int, int]]


class Other(Protocol):
    """A client of another kind, at tables of columns `id` and `v`."""

    def look(self, path: str) -> tuple[int | None, Rows]:
        """A version, if it tells one, and the rows that it holds."""
        ...


class Cold:
    """deltalake, opening the table anew."""

    def look(self, path: str) -> tuple[int | None, Rows]:
        return _seen(DeltaTable(path))


class Warm:
    """deltalake, keeping the table and following its log."""

    def __init__(self) -> None:
        self._tables: dict[str, DeltaTable] = {}

    def look(self, path: str) -> tuple[int | None, Rows]:
        table = self._tables.setdefault(path, DeltaTable(path))
        table.update_incremental()
        return _seen(table)


class Duck:
    """DuckDB's delta extension."""

    def __init__(self) -> None:
        (extension,) = Path(duckdb_extension_delta.__file__).parent.rglob("*.duckdb_extension")
        self._connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
        self._connection.execute(f"LOAD '{extension}'")

    def look(self, path: str) -> tuple[int | None, Rows]:
        return None, _rows(self._connection, f"delta_scan('{path}')")


class Listed:
    """PyIceberg, at the metadata file with the greatest number."""

    def look(self, path: str) -> tuple[int | None, Rows]:
        catalog = FilesCatalog()
        version = catalog.newest(path)
        found = catalog.at(path, version).scan().to_arrow()
        return version, sorted(zip(found["id"].to_pylist(), found["v"].to_pylist(), strict=True))


class DuckIceberg:
    """DuckDB's iceberg extension, at the version that the hint leads to and those that follow it."""

    def __init__(self) -> None:
        self._connection = duck()

    def look(self, path: str) -> tuple[int | None, Rows]:
        version = FilesCatalog().hinted(path)
        return version, _rows(self._connection, f"iceberg_scan('{path}/metadata/v{version}.metadata.json')")


class DuckByHint:
    """DuckDB's iceberg extension, which goes by the hint alone: it sees what was there a moment ago."""

    def __init__(self) -> None:
        self._connection = duck()

    def look(self, path: str) -> tuple[int | None, Rows]:
        return None, _rows(self._connection, f"iceberg_scan('{path}')")


LOOKERS: Mapping[str, Sequence[Callable[[], Other]]] = {
    "delta": (Cold, Warm, Duck),
    "iceberg": (Listed, DuckIceberg, DuckByHint),
}
"""By the format of their tables."""


class Spark:
    """Spark + Delta or Spark + Iceberg. A look takes it seconds, so it looks again only when the folder of
    the table's log has changed."""

    def __init__(self, session: "SparkSession", table_format: str) -> None:
        self._session = session
        self._log = {"delta": "_delta_log", "iceberg": "metadata"}[table_format]
        self._read = {"delta": self._by_delta, "iceberg": self._by_iceberg}[table_format]
        self._known: dict[str, tuple[list[str], tuple[int | None, Rows]]] = {}

    def look(self, path: str) -> tuple[int | None, Rows]:
        names = sorted(entry.name for entry in Path(path, self._log).iterdir())
        known = self._known.get(path)
        if known is None or known[0] != names:
            known = names, self._read(path)
            self._known[path] = known
        return known[1]

    def _by_delta(self, path: str) -> tuple[int | None, Rows]:
        history = self._session.sql(f"DESCRIBE HISTORY delta.`{path}`")
        version = history.agg({"version": "max"}).collect()[0][0]
        frame = self._session.read.format("delta").option("versionAsOf", version).load(path)
        return int(version), sorted((row.id, row.v) for row in frame.collect())

    def _by_iceberg(self, path: str) -> tuple[int | None, Rows]:
        """Spark does not say which version it found: it is known if there was only one meanwhile."""
        before = FilesCatalog().hinted(path)
        rows = sorted((row.id, row.v) for row in self._session.read.format("iceberg").load(path).collect())
        return before if FilesCatalog().hinted(path) == before else None, rows


def _seen(table: DeltaTable) -> tuple[int, Rows]:
    found = QueryBuilder().register("t", table).execute("SELECT id, v FROM t").read_all()
    return table.version(), sorted(zip(found["id"].to_pylist(), found["v"].to_pylist(), strict=True))


def _rows(connection: duckdb.DuckDBPyConnection, scan: str) -> Rows:
    found = connection.sql(f"SELECT id, v FROM {scan}").fetchall()
    return sorted((int(key), int(value)) for key, value in found)
