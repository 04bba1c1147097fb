"""A table without a log: data files in a memory store, pruned by their statistics, as an engine sees it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np
import pyarrow as pa

from lakevilla.engines.local.engine import LocalEngine
from lakevilla.engines.port import Rewritten, Source, Target
from lakevilla.environment import SystemEnvironment
from lakevilla.files.writer import write_files
from lakevilla.model import DataFile, Partitioning, WrittenFile
from lakevilla.predicates import Column, Predicate
from lakevilla.pruning import Bounds, may_match
from lakevilla.sql import statements as sql
from lakevilla.sql.parser import parse, parse_expression
from lakevilla.store.open import open_store
from lakevilla.store.port import Store

NOW_MS = 1_700_000_000_000
_numbers = count()


@dataclass
class Table:
    """`asked` are the predicates by which files were chosen, `opened` the files that were read."""

    name: str
    schema: pa.Schema
    partition_columns: tuple[str, ...] = ()
    checks: Mapping[str, str] = field(default_factory=dict)
    store: Store = field(default_factory=lambda: open_store("memory://"))
    files: dict[str, tuple[DataFile, WrittenFile]] = field(default_factory=dict)
    asked: list[Predicate] = field(default_factory=list)
    opened: list[str] = field(default_factory=list)

    @property
    def source(self) -> Source:
        return Source(self.name, self.schema, self.partition_columns, self._files, self._open)

    @property
    def target(self) -> Target:
        checks = {name: parse_expression(text) for name, text in self.checks.items()}
        by = Partitioning.by_columns(self.partition_columns)
        return Target(self.name, self.schema, by, self.store, _new_key, lambda: NOW_MS, checks)

    def add(self, rows: pa.Table | list[dict[str, Any]]) -> "Table":
        """One more file (one per partition) with these rows."""
        table = rows if isinstance(rows, pa.Table) else pa.Table.from_pylist(rows, schema=self.schema)
        self._take(
            write_files(
                [table],
                schema=self.schema,
                partitioning=Partitioning.by_columns(self.partition_columns),
                store=self.store,
                new_key=_new_key,
                now_ms=lambda: NOW_MS,
            )
        )
        return self

    def apply(self, done: Rewritten) -> Rewritten:
        """What a commit would do."""
        for file in done.removed:
            del self.files[file.identity]
        self._take(done.added)
        return done

    def _take(self, written: Sequence[WrittenFile]) -> None:
        for one in written:
            file = DataFile(one.key, one.key, one.size, one.rows, one.partition)
            self.files[one.key] = (file, one)

    def _open(self, file: DataFile) -> tuple[Store, str]:
        self.opened.append(file.identity)
        return self.store, file.key

    def _files(self, predicate: Predicate) -> list[DataFile]:
        self.asked.append(predicate)
        entries = list(self.files.values())
        keep = may_match(predicate, lambda column: self._bounds(column, entries), len(entries))
        return [entry[0] for entry, kept in zip(entries, np.asarray(keep), strict=True) if kept]

    def _bounds(self, column: Column, entries: list[tuple[DataFile, WrittenFile]]) -> Bounds | None:
        rows = pa.array([written.rows for _, written in entries], pa.int64())
        if column[0] in self.partition_columns:
            values = [file.partition[column[0]] for file, _ in entries]
            typed = pa.array(values, self.schema.field(column[0]).type)
            nulls = [w.rows if v is None else 0 for v, (_, w) in zip(values, entries, strict=True)]
            return Bounds(typed, typed, pa.array(nulls, pa.int64()), rows)
        found = [written.statistics.get(column) for _, written in entries]
        if not found or any(one is None for one in found):
            return None
        data_type = self.schema.field(column[0]).type
        for name in column[1:]:
            data_type = data_type.field(name).type
        return Bounds(
            pa.array([one.minimum if one else None for one in found], data_type),
            pa.array([one.maximum if one else None for one in found], data_type),
            pa.array([one.nulls if one else None for one in found], pa.int64()),
            rows,
        )


class Database:
    """Tables and an engine: runs statements given as Spark SQL, and applies what they did."""

    def __init__(self, *tables: Table) -> None:
        self.engine = LocalEngine(SystemEnvironment())
        self.tables = {table.name: table for table in tables}

    def run(self, text: str, **parameters: Any) -> Any:
        """The result of a query, or what a change did (applied to its table)."""
        statement = parse(text, parameters)
        assert not isinstance(statement, sql.CreateTable | sql.DropTable | sql.AlterTable | sql.ShowTables)
        assert not isinstance(statement, sql.Describe | sql.DescribeHistory)
        sources = {name.key: self.tables[name.name].source for name in statement.tables}
        if isinstance(statement, sql.Query):
            return self.engine.query(statement.tree, sources, NOW_MS)
        table = self.tables[statement.table]
        target, source = table.target, table.source
        match statement:
            case sql.Insert():
                done = self.engine.insert(target, statement.query, statement.columns, sources, NOW_MS)
            case sql.Update():
                done = self.engine.update(target, source, statement.set, statement.where, sources, NOW_MS)
            case sql.Delete():
                done = self.engine.delete(target, source, statement.where, sources, NOW_MS)
            case sql.Merge():
                done = self.engine.merge(target, source, statement.using, statement.clauses, sources, NOW_MS)
        return table.apply(done)

    def rows(self, text: str, **parameters: Any) -> list[tuple[Any, ...]]:
        """The rows of a query as tuples."""
        return [tuple(row) for row in self.run(text, **parameters).collect()]


def schema(**columns: pa.DataType) -> pa.Schema:
    return pa.schema(list(columns.items()))


def _new_key() -> str:
    return f"part-{next(_numbers):06d}.parquet"


def shown(value: Any) -> str:
    """Text that tells 1 from 1.0 and from True, -0.0 from 0.0, and finds NaN equal to itself."""
    return repr(value).replace("zoneinfo.ZoneInfo(key='UTC')", "datetime.timezone.utc")


# Expression, value, type.
