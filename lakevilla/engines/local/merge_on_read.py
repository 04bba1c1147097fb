"""UPDATE, DELETE and overwrite of tables that may delete rows of files that stay: merge on read.

The rows are found by the columns that the condition needs, and only in row groups that may hold some. Of a
file that stays, only the rows found are read whole, and only new rows are written. A file of which most rows
go is rewritten, see `is_worth_keeping`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa
from sqlglot import exp

from lakevilla.engines.arrow_writer import write
from lakevilla.engines.local import copy_on_write
from lakevilla.engines.local.arrow import inward
from lakevilla.engines.local.copy_on_write import FILE, ROW, Change, chunked, rows_of
from lakevilla.engines.local.rows import NewRows, checked
from lakevilla.engines.local.scan import projected
from lakevilla.engines.local.translation.queries.scope import Reference, Relation, Scope
from lakevilla.engines.port import Rewritten, Source
from lakevilla.environment import Environment
from lakevilla.files.bitmaps import Positions
from lakevilla.files.deleted_rows import DeletedRows, is_worth_keeping
from lakevilla.files.reader import OpenedFile, open_file
from lakevilla.model import Counts, DataFile
from lakevilla.predicates import Predicate
from lakevilla.sql.expressions.predicate_extraction import columns_in, predicate_of

Placed = tuple[DataFile, OpenedFile, pa.Table, Positions]

Numbers = np.ndarray[tuple[int], np.dtype[np.int64]]


@dataclass(frozen=True)
class Hits:
    """Rows of one file that a statement found: their positions, sorted and distinct."""

    file: DataFile
    opened: OpenedFile
    rows: Positions

    @property
    def keep_file(self) -> bool:
        return is_worth_keeping(len(self.rows), self.opened.deleted, self.opened.rows)

    @property
    def deleted_rows(self) -> DeletedRows:
        return DeletedRows(self.file, self.rows, self.opened.rows)


@dataclass(frozen=True)
class Portion:
    """Some columns of some files, as one table in which `ROW` numbers the rows."""

    files: Sequence[DataFile]
    opened: Sequence[OpenedFile]
    starts: Numbers
    positions: Positions
    table: pa.Table

    def hits(self, rows: Numbers) -> list[Hits]:
        """These rows, which are sorted and distinct, by the files that hold them, in the same order."""
        edges = np.searchsorted(rows, self.starts)
        return [
            Hits(file, opened, self.positions[rows[first:last]])
            for file, opened, first, last in zip(self.files, self.opened, edges[:-1], edges[1:], strict=True)
            if last > first
        ]


def narrowed(relation: Relation, schema: pa.Schema) -> tuple[Relation, Reference]:
    """The statement's table, and a note of which of its columns are used."""
    names = {output.name: output.sql for output in relation.outputs}
    reference = Reference("", relation.sql, schema, names)
    return replace(relation, reference=reference), reference


def portions(
    change: Change, reference: Reference, files: Sequence[DataFile], predicate: Predicate
) -> Iterator[Portion]:
    """The columns that were noted, of the rows that may satisfy the predicate, several files at a time."""
    wanted = projected(change.source.schema, reference.needed)
    names = [reference.columns[name] for name in reference.needed]
    for chunk in placed(change.environment, change.source, files, wanted, predicate):
        rows = inward(pa.concat_tables([table for _, _, table, _ in chunk]), names)
        yield Portion(
            [file for file, _, _, _ in chunk],
            [opened for _, opened, _, _ in chunk],
            np.cumsum([0, *(len(positions) for _, _, _, positions in chunk)]),
            np.concatenate([positions for _, _, _, positions in chunk]),
            rows.append_column(ROW, pa.array(np.arange(rows.num_rows, dtype=np.int64))),
        )


def placed(
    environment: Environment,
    source: Source,
    files: Sequence[DataFile],
    wanted: pa.Schema,
    predicate: Predicate,
) -> Iterator[list[Placed]]:
    """The files, opened, with these columns of the rows that may satisfy the predicate and the rows'
    positions; several files at a time."""

    def read(file: DataFile) -> Placed:
        opened = open_file(source.open, file, source.partition_columns)
        return file, opened, *opened.placed(wanted, predicate)

    for chunk in chunked(files):
        found = environment.fan_out([partial(read, file) for file in chunk])
        for file in chunk:
            source.was_read(file)
        yield found


def whole_rows(change: Change, hits: Sequence[Hits]) -> pa.Table:
    """All columns of these rows, as the statement's relation has them."""
    tasks = [partial(hit.opened.at, change.source.schema, hit.rows) for hit in hits]
    return pa.concat_tables(change.environment.fan_out(tasks))


def update(change: Change, assigned: Mapping[str, exp.Expr], where: exp.Expr) -> Rewritten:
    """UPDATE: rows that match are deleted where they are, and written with their new values."""
    condition = change.condition(where)
    fresh, mixed = (copy_on_write.updated(change, assigned, text) for text in ("TRUE", condition))

    def pieces() -> Iterator[pa.Table]:
        for found in _found(change, copy_on_write.candidates(change, where), where):
            kept, mostly_gone = _divided(change, found)
            if kept:
                yield _computed(change, fresh, whole_rows(change, kept))
            yield from copy_on_write.rewritten(change, mostly_gone, mixed, keep_hits=True)

    added = write(change.target, pieces())
    counts, feed = Counts(updated=change.touched), change.feed.finish()
    return Rewritten(added, tuple(change.removed), counts, tuple(change.masked), feed)


def surviving(change: Change, where: exp.Expr | None) -> Iterator[pa.Table]:
    """The rows that stay of files that are rewritten, because most of their rows go; `removed`, `masked` and
    `touched` have the rest afterwards."""
    rows = copy_on_write.kept(change, change.condition(where))
    files = copy_on_write.partly_matching(change, where)
    for found in _found(change, files, where) if where is not None else ():
        gone = [hit for hit in found if len(hit.rows) + hit.opened.deleted == hit.opened.rows]
        change.removed += [hit.file for hit in gone]
        change.touched += sum(len(hit.rows) for hit in gone)
        kept, mostly_gone = _divided(change, [hit for hit in found if hit not in gone])
        if change.feed.is_wanted and (gone or kept):
            change.feed.deleted(whole_rows(change, [*gone, *kept]))
        yield from copy_on_write.rewritten(change, mostly_gone, rows, keep_hits=False)


def _found(change: Change, files: Sequence[DataFile], where: exp.Expr) -> Iterator[list[Hits]]:
    """The rows for which the condition is true, several files at a time."""
    relation, reference = narrowed(change.relation, change.source.schema)
    condition = change.condition(where, Scope([relation]))
    sql = f"SELECT {relation.sql}.{ROW} FROM {rows_of(relation)} WHERE {condition}"
    resolve = columns_in(change.source.schema, copy_on_write.names_of(change.source))
    for portion in portions(change, reference, files, predicate_of(where, resolve)):
        result = change.run(sql, {relation.sql: portion.table})
        yield portion.hits(np.sort(result.column(0).to_numpy()))


def _divided(change: Change, found: Sequence[Hits]) -> tuple[list[Hits], list[DataFile]]:
    """The files that stay, whose rows are deleted now, and those that are to be rewritten."""
    kept = [hit for hit in found if hit.keep_file]
    change.masked += [hit.deleted_rows for hit in kept]
    change.touched += sum(len(hit.rows) for hit in kept)
    return kept, [hit.file for hit in found if not hit.keep_file]


def _computed(change: Change, rows: NewRows, old: pa.Table) -> pa.Table:
    """The new rows for these old ones, checked."""
    names = [output.sql for output in change.relation.outputs]
    numbered = inward(old, names).append_column(FILE, pa.nulls(old.num_rows, pa.int32()))
    numbered = numbered.append_column(ROW, pa.array(np.arange(old.num_rows, dtype=np.int64)))
    result = change.run(rows.sql, {change.relation.sql: numbered})
    new = checked(result, rows, change.target)
    if change.feed.is_wanted:
        change.feed.updated(old.take(result.column(len(rows.outputs) + 2)), new)
    return new
