"""UPDATE, DELETE and overwrite: copy on write.

Candidate files are those that the condition's predicate cannot exclude. They are read in chunks of bounded
size; a file without a matching row stays as it is, the others are rewritten, and the rows of several may end
in one new file. Files whose rows all go are not read at all where the predicate's counterpart proves it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from sqlglot import exp

from lakevilla.engines.arrow_writer import write
from lakevilla.engines.local.arrow import inward, outward
from lakevilla.engines.local.connections import Connections
from lakevilla.engines.local.rows import NewRows, checked, new_rows, nothing_but, qualifiers
from lakevilla.engines.local.scan import Scan, load
from lakevilla.engines.local.translation.expressions import Expressions
from lakevilla.engines.local.translation.queries.queries import Queries
from lakevilla.engines.local.translation.queries.scope import Relation, Scope
from lakevilla.engines.local.translation.types.casts import assign
from lakevilla.engines.local.translation.types.typed import Typed
from lakevilla.engines.port import Rewritten, Source, Target
from lakevilla.engines.row_feed import RowFeed, feed_writer
from lakevilla.environment import Environment
from lakevilla.errors import InvalidInput
from lakevilla.files.deleted_rows import DeletedRows
from lakevilla.model import Counts, DataFile
from lakevilla.predicates import ANYTHING, conjunction
from lakevilla.sql.expressions.predicate_extraction import columns_in, predicate_of, predicate_unless

CHUNK_BYTES = 64 * 1024 * 1024
FILE = "lv_file"
HIT = "lv_hit"
ROW = "lv_row"


@dataclass
class Change:
    """One changing statement: its translation, the tables of its subqueries, and what it has done."""

    environment: Environment
    connections: Connections
    target: Target
    source: Source
    sources: Mapping[str, Source]
    now_ms: int
    removed: list[DataFile] = field(default_factory=list)
    masked: list[DeletedRows] = field(default_factory=list)
    touched: int = 0

    def __post_init__(self) -> None:
        self.feed = RowFeed(self.target.feed, feed_writer(self.target.store, self.target.now_ms))
        schemas = {key: source.schema for key, source in self.sources.items()}
        self.queries = Queries(schemas, self.now_ms)
        columns = [(column.name, column.type) for column in self.source.schema]
        self.relation = Relation(
            self.queries.fresh("t"), qualifiers(self.source.name), self.queries.outputs(columns)
        )
        self.scope = Scope([self.relation])
        self._loaded: dict[str, Any] | None = None

    def expressions(self) -> Expressions:
        return Expressions(self.queries, self.scope)

    def condition(self, where: exp.Expr | None, scope: Scope | None = None) -> str:
        """The condition of the statement, never NULL."""
        if where is None:
            return "TRUE"
        translated = Expressions(self.queries, scope or self.scope).condition(where)
        if translated.aggregate:
            raise InvalidInput("the condition of an UPDATE, DELETE or MERGE cannot have an aggregate")
        return f"(({translated.sql}) IS TRUE)"

    def old(self) -> dict[str, Typed]:
        """The row as it is, by the target's columns."""
        return {output.name: self.relation.column(output) for output in self.relation.outputs}

    def chunks(self, files: Sequence[DataFile]) -> Iterator[tuple[list[DataFile], pa.Table]]:
        """The files' rows, several files at a time, each row with the number of its file."""
        for chunk in chunked(files):
            scan = Scan(self.environment, self.source, chunk, self.source.schema)
            tables = list(scan.tables())
            numbers = np.repeat(np.arange(len(tables), dtype=np.int32), [t.num_rows for t in tables])
            names = [output.sql for output in self.relation.outputs]
            rows = inward(pa.concat_tables(tables), names).append_column(FILE, pa.array(numbers))
            yield chunk, rows.append_column(ROW, pa.array(np.arange(rows.num_rows, dtype=np.int64)))

    def as_they_were(self, rows: pa.Table, numbers: pa.Array) -> pa.Table:
        """Those of the rows of a chunk that have these numbers, as the table has them."""
        outputs = self.relation.outputs
        return outward(rows.select(range(len(outputs))).take(numbers), outputs)

    def run(self, sql: str, rows: Mapping[str, pa.Table]) -> pa.Table:
        """The text over these rows, by the names of their relations, and the tables of subqueries."""
        if self._loaded is None:
            self._loaded = load(self.environment, self.queries.references, self.sources)
        tables = {**rows, **self._loaded}
        return self.connections.run(self.queries.finished(sql), tables, self.queries.names)


def rows_of(relation: Relation) -> str:
    """Registered rows in a FROM clause; the OFFSET keeps filters away from Arrow (see `Reference`)."""
    return f"(SELECT * FROM {relation.sql} OFFSET 0) AS {relation.sql}"


def chunked(files: Sequence[DataFile]) -> Iterator[list[DataFile]]:
    """The files in groups of a bounded number of bytes."""
    chunk: list[DataFile] = []
    size = 0
    for file in files:
        if chunk and size + file.size > CHUNK_BYTES:
            yield chunk
            chunk, size = [], 0
        chunk.append(file)
        size += file.size
    if chunk:
        yield chunk


def update(change: Change, assigned: Mapping[str, exp.Expr], where: exp.Expr | None) -> Rewritten:
    """UPDATE: rows that match get new values, the other rows of their files are copied."""
    rows = updated(change, assigned, change.condition(where))
    added = write(change.target, rewritten(change, candidates(change, where), rows, keep_hits=True))
    counts = Counts(updated=change.touched)
    return Rewritten(added, tuple(change.removed), counts, feed=change.feed.finish())


def updated(change: Change, assigned: Mapping[str, exp.Expr], condition: str) -> NewRows:
    """The query for rows after an UPDATE: those for which the condition is true get new values."""
    assigned = nothing_but(change.target.schema, assigned)
    if not assigned:
        raise InvalidInput(f"UPDATE of table {change.target.name!r} sets no column")
    values = change.old()
    for name, node in assigned.items():
        to = change.target.schema.field(name).type
        value = assign(change.expressions()(node), to, name)
        kept = values[name].sql
        # CASE, for the new value must not be computed where it does not apply.
        values[name] = (
            value
            if condition == "TRUE"
            else Typed(f"CASE WHEN {condition} THEN {value.sql} ELSE {kept} END", to)
        )
    extra = {FILE: f"{change.relation.sql}.{FILE}", HIT: condition, ROW: f"{change.relation.sql}.{ROW}"}
    return new_rows(change.queries, change.target, values, rows_of(change.relation), extra)


def candidates(change: Change, where: exp.Expr | None) -> Sequence[DataFile]:
    """The files that may hold a row for which the condition is true."""
    return change.source.files(predicate_of(where, columns_in(change.source.schema, names_of(change.source))))


def surviving(change: Change, where: exp.Expr | None) -> Iterator[pa.Table]:
    """The rows that stay of files from which some go; `removed` and `touched` have the rest afterwards."""
    rows = kept(change, change.condition(where))
    yield from rewritten(change, partly_matching(change, where), rows, keep_hits=False)


def kept(change: Change, condition: str) -> NewRows:
    """The query for rows as they are, with a flag for those for which the condition is true."""
    values = change.old()
    extra = {FILE: f"{change.relation.sql}.{FILE}", HIT: condition}
    listed = [
        f"{value.sql} AS {output.sql}"
        for value, output in zip(values.values(), change.relation.outputs, strict=True)
    ]
    listed += [f"{sql} AS {name}" for name, sql in extra.items()]
    sql = f"SELECT {', '.join(listed)} FROM {rows_of(change.relation)}"
    return NewRows(sql, change.relation.outputs, tuple(extra), ())


def partly_matching(change: Change, where: exp.Expr | None) -> list[DataFile]:
    """The candidates, without those whose rows all go as their bounds prove: these are removed now."""
    resolve = columns_in(change.source.schema, names_of(change.source))
    predicate = predicate_of(where, resolve)
    found = change.source.files(predicate)
    whole: set[str] = set()
    if where is None:
        whole = {file.identity for file in found}
    elif not change.feed.is_wanted:
        unless = predicate_unless(where, resolve)
        if unless != ANYTHING:
            partly = {f.identity for f in change.source.files(conjunction([predicate, unless]))}
            whole = {file.identity for file in found if file.identity not in partly}
    _remove_whole(change, [file for file in found if file.identity in whole])
    return [file for file in found if file.identity not in whole]


def _remove_whole(change: Change, files: list[DataFile]) -> None:
    """Files whose rows all go: their rows are counted, from the file only if their number is unknown."""
    for file in files:
        rows = file.living_rows
        if rows is None:
            first = pa.schema(list(change.source.schema)[:1], metadata=change.source.schema.metadata)
            rows = Scan(change.environment, change.source, [file], first).table().num_rows
        change.touched += rows
        change.removed.append(file)


def rewritten(
    change: Change, files: Sequence[DataFile], rows: NewRows, keep_hits: bool
) -> Iterator[pa.Table]:
    """The new rows of the files that have a hit."""
    for chunk, old in change.chunks(files):
        result = change.run(rows.sql, {change.relation.sql: old})
        width = len(rows.outputs)
        hits, numbers = result.column(width + 1), result.column(width).to_numpy()
        flags = hits.to_numpy().astype(np.bool_)
        per_file = np.bincount(numbers[flags], minlength=len(chunk))
        change.touched += int(per_file.sum())
        change.removed += [file for file, count in zip(chunk, per_file, strict=True) if count]
        written = per_file[numbers] > 0
        if not keep_hits:
            written &= ~flags
        new = checked(result, rows, change.target, hits)
        if change.feed.is_wanted and keep_hits:
            places = result.column(width + 2).filter(hits).combine_chunks()
            change.feed.updated(change.as_they_were(old, places), new.filter(hits))
        elif change.feed.is_wanted:
            change.feed.deleted(new.filter(hits))
        if not written.all():
            new = new.filter(pa.array(written))
        if new.num_rows:
            yield new


def names_of(source: Source) -> tuple[str, ...]:
    """By what a statement's expressions may call its table."""
    return (source.name, source.name.rpartition(".")[2])


def matching(change: Change, data: Iterator[pa.Table], where: exp.Expr) -> Iterator[pa.Table]:
    """The data, every row of which must satisfy the condition."""
    condition = change.condition(where)
    names = [output.sql for output in change.relation.outputs]
    for piece in data:
        rows = inward(piece, names).append_column(FILE, pa.nulls(piece.num_rows, pa.int32()))
        outside = f"SELECT CAST(count(*) AS BIGINT) FROM {rows_of(change.relation)} WHERE NOT {condition}"
        if change.run(outside, {change.relation.sql: rows}).column(0)[0].as_py():
            raise InvalidInput("a new row does not satisfy the condition of the overwrite")
        yield piece
