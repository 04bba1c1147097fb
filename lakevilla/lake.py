"""The lake: the one place that wires stores, tables, engines and transactions together."""

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath
from typing import Any

import pyarrow as pa

from lakevilla.engines.port import Engine, Result
from lakevilla.environment import Environment, SystemEnvironment
from lakevilla.errors import InvalidInput, Unsupported
from lakevilla.model import Counts, Features, HistoryEntry, Receipt
from lakevilla.store.metered import Meter
from lakevilla.store.opening import open_store
from lakevilla.store.port import Store
from lakevilla.transaction.catalog import Catalog
from lakevilla.transaction.retrying import run
from lakevilla.transaction.transaction import Transaction

logger = logging.getLogger("lakevilla.lake")


class Lake:
    """Tables below one root, on a local directory or an object store.

        lake = lv.Lake("./lake")
        lake.create("accounts", "id BIGINT, balance DECIMAL(12, 2)")
        lake.sql("INSERT INTO accounts VALUES (1, 100.00)")
        lake.sql("SELECT * FROM accounts").show()

    Opening a lake sends no request and writes nothing. A `Lake` may be used from many threads; after a
    fork the child opens connections of its own.

    `storage_options` are the options of the store (`AWS_ENDPOINT_URL` and its kin); `credentials` is a
    callable that gives fresh credentials whenever the store needs them. `store` and `environment` are for
    tests, which bring their own world.
    """

    def __init__(
        self,
        root: str | PurePath,
        *,
        engine: str | Engine = "local",
        storage_options: Mapping[str, str] | None = None,
        credentials: Callable[..., Any] | None = None,
        environment: Environment | None = None,
        store: Store | None = None,
    ) -> None:
        self._environment = environment or SystemEnvironment()
        self._options = dict(storage_options or {})
        self._credentials = credentials
        self._store = store or self._open(str(root))
        self._engine = self._choose(engine)
        self._catalog = Catalog(self._store, self._environment, self._open)

    def __repr__(self) -> str:
        return f"Lake({self.url!r}, engine={self._engine.name!r})"

    @property
    def url(self) -> str:
        """Where the lake lies, without secrets."""
        return self._store.url

    def transaction(self, features: Features = Features.NONE) -> Transaction:
        """Start a transaction; use it in a `with` block."""
        return Transaction(self._catalog, self._engine, self._environment, features)

    def run(self, work: Callable[[Transaction], Any], retries: int = 10) -> Receipt:
        """Call `work(tx)` in a transaction and commit it; again on Conflict, up to `retries` times more."""
        return run(self.transaction, work, retries)

    def sql(self, text: str, /, **parameters: Any) -> Any:
        """Run one statement of Spark SQL as a transaction of its own."""
        with self.transaction() as tx:
            return tx.sql(text, **parameters)

    def read(self, name: str, *, version: int | None = None, at: Any = None) -> Result:
        """A table as it is now, or as it was at a version or a time."""
        with self.transaction() as tx:
            return tx.read(name, version=version, at=at)

    def append(self, name: str, data: object) -> Counts:
        """Add rows: an Arrow table or reader, a pandas frame, or a list of dicts."""
        with self.transaction() as tx:
            return tx.append(name, data)

    def overwrite(self, name: str, data: object, where: str | None = None) -> Counts:
        """Replace the rows for which `where` is true, or all rows, by the data."""
        with self.transaction() as tx:
            return tx.overwrite(name, data, where)

    def update(self, name: str, set: Mapping[str, Any], where: str | None = None) -> Counts:
        """Change columns of the rows for which `where` is true; see `Transaction.update`."""
        with self.transaction() as tx:
            return tx.update(name, set, where)

    def delete(self, name: str, where: str | None = None) -> Counts:
        """Remove the rows for which `where` is true, or all rows."""
        with self.transaction() as tx:
            return tx.delete(name, where)

    def merge(
        self,
        name: str,
        source: object,
        on: str,
        matched: object = None,
        not_matched: object = None,
        not_matched_by_source: object = None,
    ) -> Counts:
        """Bring a source into a table; see `Transaction.merge`."""
        with self.transaction() as tx:
            return tx.merge(name, source, on, matched, not_matched, not_matched_by_source)

    def create(
        self,
        name: str,
        schema_or_data: object,
        *,
        format: str = "delta",
        partition_by: Sequence[str] = (),
        location: str | None = None,
        properties: Mapping[str, str] | None = None,
        comment: str | None = None,
    ) -> Counts:
        """Make a table from an Arrow schema, columns as text (`"id BIGINT, day DATE"`), or data."""
        with self.transaction() as tx:
            return tx.create(
                name,
                schema_or_data,
                format=format,
                partition_by=partition_by,
                location=location,
                properties=properties,
                comment=comment,
            )

    def register(self, name: str, location: str) -> None:
        """Give an existing table, anywhere, a name in this lake; its format is detected."""
        with self.transaction() as tx:
            tx.register(name, location)

    def rename(self, name: str, to: str) -> None:
        """Give a table another name; it stays where it is."""
        with self.transaction() as tx:
            tx.rename(name, to)

    def drop(self, name: str) -> None:
        """Remove a table from the lake. A table outside the lake's root is forgotten, not touched."""
        with self.transaction() as tx:
            tx.drop(name)

    def add_column(self, name: str, column: str, type: str | pa.DataType) -> None:
        """Add a nullable column; existing rows have NULL in it."""
        with self.transaction() as tx:
            tx.add_column(name, column, type)

    def tables(self) -> list[str]:
        """The names of all tables: registered ones, and those that lie in the lake's root."""
        return self._catalog.names(Meter())

    def history(self, name: str, limit: int | None = None) -> list[HistoryEntry]:
        """The versions of a table, newest first."""
        return list(self._catalog.pin(name, Meter()).table.history(limit))

    def _open(self, url: str) -> Store:
        return open_store(url, self._options, environment=self._environment, credentials=self._credentials)

    def _choose(self, engine: str | Engine) -> Engine:
        if not isinstance(engine, str):
            return engine
        if engine == "local":
            # Imported when it is wanted: a client that brings its own engine needs no DuckDB.
            from lakevilla.engines.local.engine import LocalEngine

            return LocalEngine(self._environment)
        if engine == "spark":
            raise Unsupported("the Spark engine is not in this release: use engine='local'")
        raise InvalidInput(f"there is no engine {engine!r}: use engine='local'")
