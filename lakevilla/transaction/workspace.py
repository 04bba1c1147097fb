"""What a statement works with: the lake's tables pinned for it, and where its new files go.

One workspace serves one transaction. It remembers what was read of each table, because a commit may only be
rebased past commits that did not change it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from threading import Lock

from lakevilla.engines.port import Engine, Source, Target
from lakevilla.environment import Environment
from lakevilla.model import DataFile, ReadSet
from lakevilla.predicates import Predicate
from lakevilla.sql.parsing import parse_expression
from lakevilla.sql.statements import TableName
from lakevilla.store.metered import Meter
from lakevilla.transaction.catalog import Catalog, Pinned


class Workspace:
    """The transaction's view of the lake."""

    def __init__(self, catalog: Catalog, engine: Engine, environment: Environment, txn: str) -> None:
        self.catalog = catalog
        self.engine = engine
        self.environment = environment
        self.txn = txn
        self.meter = Meter()
        self.now_ms = environment.now_ms()
        """What now() means in every statement of this transaction."""
        self._lock = Lock()
        self._reads: dict[str, ReadSet] = {}

    def pin(self, table: TableName) -> Pinned:
        """The table as this statement sees it."""
        if table.version is None and table.timestamp_ms is None:
            return self.catalog.pin(table.name, self.meter)
        return self.catalog.pin_past(table.name, self.meter, table.version, table.timestamp_ms)

    def sources(self, tables: Iterable[TableName], known: Iterable[Pinned] = ()) -> Mapping[str, Source]:
        """The tables that a query reads, by the names under which it calls them.

        A table that the statement also writes is read as it was pinned for that: `known`.
        """
        wanted = list(dict.fromkeys(tables))
        by_name = {pinned.ref.name.casefold(): pinned for pinned in known}

        def pin(table: TableName) -> Pinned:
            current = by_name.get(table.name.casefold()) if table.key == table.name else None
            return current or self.pin(table)

        pins = self.environment.fan_out([partial(pin, table) for table in wanted])
        return {
            table.key: self.source(pinned, keeps_files=True)
            for table, pinned in zip(wanted, pins, strict=True)
        }

    def source(self, pinned: Pinned, keeps_files: bool) -> Source:
        """A pinned table for an engine, which notes what is read of it.

        Files are noted only for tables whose values flow into the result. In the table that an UPDATE,
        DELETE or MERGE rewrites, a file in which nothing matched is no dependency: if it goes, nothing
        would have matched either, and whatever comes in its place is caught by the predicate.
        """
        snapshot = pinned.snapshot

        def files(predicate: Predicate) -> Sequence[DataFile]:
            found = snapshot.files(predicate)
            seen = frozenset(file.identity for file in found) if keeps_files else frozenset[str]()
            with self._lock:
                before = self._reads.get(pinned.ref.location, ReadSet())
                self._reads[pinned.ref.location] = before.union(ReadSet((predicate,), seen))
            return found

        return Source(
            pinned.ref.name,
            snapshot.schema,
            snapshot.partition_columns,
            files,
            pinned.table.open,
            snapshot.about_bytes,
            snapshot.has_deletes,
        )

    def target(self, pinned: Pinned) -> Target:
        """Where a statement on this table writes; refuses tables that we must not write."""
        snapshot = pinned.snapshot
        snapshot.refuse_writes()
        return Target(
            name=pinned.ref.name,
            schema=snapshot.schema,
            partition_columns=snapshot.partition_columns,
            store=self.catalog.store_of(pinned.ref.location, self.meter),
            new_key=self.new_key,
            now_ms=self.environment.now_ms,
            checks={name: parse_expression(text) for name, text in snapshot.checks.items()},
        )

    @property
    def new_key(self) -> Callable[[], str]:
        """Names for data files: each holds the transaction's id, so that vacuum knows whose it was."""
        return lambda: f"part-{self.txn}-{self.environment.new_id()}.parquet"

    def read_of(self, pinned: Pinned) -> ReadSet:
        """What was read of this table so far."""
        with self._lock:
            return self._reads.get(pinned.ref.location, ReadSet())
