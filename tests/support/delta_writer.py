"""A Delta table driven without an engine: rows in, rows out, versions published. For tests."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from lakevilla.environment import Environment, SystemEnvironment
from lakevilla.files.reader import read_files
from lakevilla.files.writer import write_files
from lakevilla.formats.delta.snapshot import DeltaSnapshot
from lakevilla.formats.delta.table import DeltaTable
from lakevilla.formats.port import Published, Taken
from lakevilla.model import Author, Change, DataFile, Partitioning, ReadSet, WrittenFile
from lakevilla.predicates import ANYTHING, Predicate
from lakevilla.sql.statements import Action
from lakevilla.store.open import open_store
from lakevilla.store.port import Store


class Writer:
    """One client of the table at a store's root."""

    def __init__(self, store: Store, environment: Environment | None = None) -> None:
        self.store = store
        self.environment = environment or SystemEnvironment()
        self.table = DeltaTable(store, self.environment, lambda url: open_store(url))
        self._numbers = itertools.count()

    def create(
        self,
        schema: pa.Schema,
        by: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
        rows: pa.Table | None = None,
    ) -> DeltaSnapshot:
        fields = Partitioning.by_columns(by).fields
        first = self.table.first(schema, fields, properties or {}, None)
        if rows is not None:
            first = Change(
                "CREATE TABLE AS SELECT",
                added=self.write(self.table.describe(first), rows),
                metadata=first.metadata,
                protocol=first.protocol,
            )
        author = self.author()
        assert self.table.publish_first(self.table.encode_first(first, author), author.attempt)
        return self.latest()

    def latest(self) -> DeltaSnapshot:
        snapshot = self.table.latest()
        assert snapshot is not None
        return snapshot

    def author(self) -> Author:
        txn = self.environment.new_id()
        return Author(txn, txn, self.environment.new_id())

    def write(self, table: Any, rows: pa.Table) -> tuple[WrittenFile, ...]:
        txn = self.environment.new_id()
        return write_files(
            [rows],
            schema=table.schema,
            partitioning=table.partitioning,
            store=self.store,
            new_key=lambda: f"part-{txn}-{next(self._numbers)}.parquet",
            now_ms=self.environment.now_ms,
        )

    def append(self, rows: pa.Table, base: DeltaSnapshot | None = None) -> DeltaSnapshot:
        return self.commit(Change("WRITE", {"mode": "Append"}, self.write(base or self.latest(), rows)), base)

    def rewrite(
        self,
        rows: pa.Table,
        removed: Sequence[DataFile] | None = None,
        base: DeltaSnapshot | None = None,
        operation: str = "UPDATE",
    ) -> DeltaSnapshot:
        """These files (all if None) out, these rows in."""
        base = base or self.latest()
        files = tuple(base.files(ANYTHING) if removed is None else removed)
        read = ReadSet((ANYTHING,), frozenset(file.identity for file in files))
        added = self.write(base, rows) if rows.num_rows else ()
        return self.commit(Change(operation, {}, added, files, read=read), base)

    def alter(self, action: Action) -> DeltaSnapshot:
        base = self.latest()
        return self.commit(self.table.alter(base, action), base)

    def publish(self, change: Change, base: DeltaSnapshot | None = None) -> Published | Taken:
        return self.table.publish(base or self.latest(), change, self.author())

    def commit(self, change: Change, base: DeltaSnapshot | None = None) -> DeltaSnapshot:
        published = self.publish(change, base)
        assert isinstance(published, Published), published
        self.table.maintain(published.snapshot)
        assert isinstance(published.snapshot, DeltaSnapshot)
        return published.snapshot

    def rows(self, snapshot: DeltaSnapshot | None = None, predicate: Predicate = ANYTHING) -> pa.Table:
        snapshot = snapshot or self.latest()
        pieces = read_files(
            self.environment,
            self.table.open,
            snapshot.files(predicate),
            snapshot.schema,
            snapshot.partition_columns,
            predicate,
        )
        return pa.concat_tables([snapshot.schema.empty_table(), *pieces])
