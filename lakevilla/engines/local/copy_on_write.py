"""UPDATE, DELETE and overwrite: copy on write.

Candidate files are those that the condition's predicate cannot exclude. Their rows that match are found by
the columns that the condition needs, in chunks of files of bounded size. A file without such a row stays as
it is. The others are read whole and written anew, and the rows of several may end in one new file: values
that do not change are copied as they were read. Files whose rows all go are not read at all where the
predicate's counterpart proves it.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from lakevilla.engines.arrow_writer import write
from lakevilla.engines.local.arrow import inward
from lakevilla.engines.local.change import FILE, ROW, Change, Hits, computed, found, names_of, rows_of
from lakevilla.engines.local.rows import NewRows, checked, new_rows, nothing_but
from lakevilla.engines.local.scan import Scan
from lakevilla.engines.local.translation.types.casts import assign
from lakevilla.engines.port import Rewritten
from lakevilla.errors import InvalidInput
from lakevilla.files.reader import Flags
from lakevilla.files.row_checks import optional
from lakevilla.model import Counts, DataFile
from lakevilla.predicates import ANYTHING, conjunction
from lakevilla.sql.expressions.predicate_extraction import columns_in, predicate_of, predicate_unless


def update(change: Change, assigned: Mapping[str, exp.Expr], where: exp.Expr | None) -> Rewritten:
    """UPDATE: rows that match get new values, the other rows of their files are copied."""
    change.condition(where)
    rows = updated(change, assigned)
    added = write(change.target, _updated_rows(change, rows, named(change, assigned), where))
    counts = Counts(updated=change.touched)
    return Rewritten(added, tuple(change.removed), counts, feed=change.feed.finish())


def _updated_rows(
    change: Change, rows: NewRows, names: Collection[str], where: exp.Expr | None
) -> Iterator[pa.Table]:
    files = candidates(change, where)
    if where is not None:
        for hits in found(change, files, where):
            yield from replaced(change, hits, rows, names)
        return
    for chunk, old in change.chunks(files):
        result = change.run(rows.sql, {change.relation.sql: old})
        per_file = np.bincount(old.column(FILE).to_numpy(), minlength=len(chunk))
        change.touched += old.num_rows
        change.removed += [file for file, count in zip(chunk, per_file, strict=True) if count]
        if old.num_rows:
            new = checked(result, rows, change.target)
            if change.feed.is_wanted:
                places = result.column(len(rows.outputs) + rows.extra.index(ROW)).combine_chunks()
                change.feed.updated(change.as_they_were(old, places), new)
            yield new


def named(change: Change, assigned: Mapping[str, exp.Expr]) -> frozenset[str]:
    """The columns that an UPDATE sets, by the table's spelling."""
    return frozenset(nothing_but(change.target.schema, assigned))


def updated(change: Change, assigned: Mapping[str, exp.Expr]) -> NewRows:
    """The query for the new rows of an UPDATE, from the rows that match."""
    assigned = nothing_but(change.target.schema, assigned)
    if not assigned:
        raise InvalidInput(f"UPDATE of table {change.target.name!r} sets no column")
    values = change.old()
    for name, node in assigned.items():
        values[name] = assign(change.expressions()(node), change.target.schema.field(name).type, name)
    extra = {name: f"{change.relation.sql}.{name}" for name in (FILE, ROW)}
    return new_rows(change.queries, change.target, values, rows_of(change.relation), extra)


def candidates(change: Change, where: exp.Expr | None) -> Sequence[DataFile]:
    """The files that may hold a row for which the condition is true."""
    return change.source.files(predicate_of(where, columns_in(change.source.schema, names_of(change.source))))


def surviving(change: Change, where: exp.Expr | None) -> Iterator[pa.Table]:
    """The rows that stay of files from which some go; `removed` and `touched` have the rest afterwards."""
    change.condition(where)
    files = partly_matching(change, where)
    for hits in found(change, files, where) if where is not None else ():
        yield from left(change, hits)


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


def replaced(
    change: Change, hits: Sequence[Hits], rows: NewRows, names: Collection[str]
) -> Iterator[pa.Table]:
    """The rows of these files, those found with new values in the columns of these names; the files go."""
    whole = _read_whole(change, hits)
    if not whole:
        return
    new = computed(change, rows, pa.concat_tables([old.filter(pa.array(flags)) for old, flags in whole]))
    start = 0
    for old, flags in whole:
        count = int(np.count_nonzero(flags))
        fresh, start = new.slice(start, count), start + count
        columns = [
            _replaced(column, flags, fresh.column(place)) if name in names else column
            for place, (name, column) in enumerate(zip(old.schema.names, old.columns, strict=True))
        ]
        yield pa.table(columns, names=old.schema.names)


def left(change: Change, hits: Sequence[Hits]) -> Iterator[pa.Table]:
    """The rows of these files that were not found; the files go."""
    for old, flags in _read_whole(change, hits):
        if change.feed.is_wanted:
            change.feed.deleted(old.filter(pa.array(flags)))
        if not flags.all():
            yield old.filter(pa.array(~flags))


def _read_whole(change: Change, hits: Sequence[Hits]) -> list[tuple[pa.Table, Flags]]:
    """All rows of these files, which are noted as removed, and flags for those found."""
    change.removed += [hit.file for hit in hits]
    change.touched += sum(len(hit.rows) for hit in hits)
    schema = change.source.schema
    tables = change.environment.fan_out([partial(hit.opened.living, schema) for hit in hits])
    return [(table, hit.opened.flags_of(hit.rows)) for table, hit in zip(tables, hits, strict=True)]


def _replaced(column: pa.ChunkedArray, flags: Flags, new: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column with the new values, in their order, where there is a flag."""
    # Inside of new values anything may be missing, as far as their types tell.
    data_type = optional(column.type)
    column, new = column.cast(data_type), new.cast(data_type)
    pieces, start, used = [], 0, 0
    for chunk in column.chunks:
        some = flags[start : start + len(chunk)]
        count = int(np.count_nonzero(some))
        fresh = new.slice(used, count)
        start, used = start + len(chunk), used + count
        if not count:
            pieces.append(chunk)
        elif _is_plain(data_type):
            pieces.append(pc.replace_with_mask(chunk, pa.array(some), fresh.combine_chunks()))
        else:
            order = np.arange(len(chunk))
            order[some] = len(chunk) + np.arange(count)
            pieces += pa.chunked_array([chunk, *fresh.chunks]).take(pa.array(order)).chunks
    return pa.chunked_array(pieces, data_type)


def _is_plain(data_type: pa.DataType) -> bool:
    """Whether Arrow replaces values of this type; it does not for those with values inside."""
    kinds = (pa.types.is_primitive, pa.types.is_string, pa.types.is_binary, pa.types.is_decimal)
    return any(is_kind(data_type) for is_kind in kinds)


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
