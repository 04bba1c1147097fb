"""The rows that a version of a table changed, from its change data feed or from the files that went and came.

Without a feed it is known which rows went and which came, and not which of them belong together: they are
deleted and inserted rows. Rows that a client copied from one file to another are neither.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from lakevilla.engines.port import Engine, Source
from lakevilla.engines.row_feed import CHANGE_TYPE, DELETE, INSERT, feed_schema
from lakevilla.engines.row_groups import Groups, groups_of
from lakevilla.model import DataFile, Deletes


class ChangedRows:
    """Reads the rows that versions of one table changed, with the columns of `source`."""

    def __init__(self, engine: Engine, source: Source) -> None:
        self._engine = engine
        self._source = source
        self.schema = pa.schema([field.remove_metadata().with_nullable(True) for field in source.schema])

    def of_feed(self, feed: Sequence[DataFile]) -> Iterator[pa.Table]:
        """The rows of a feed, with `CHANGE_TYPE`."""
        source = replace(self._source, schema=feed_schema(self._source.schema))
        yield from self._engine.file_rows(source, feed)

    def of_files(self, removed: Sequence[DataFile], added: Sequence[DataFile]) -> Iterator[pa.Table]:
        """The rows of these files that are not in both."""
        gone, came = _told_apart(removed, added)
        if gone and came:
            old, new = self._together(gone), self._together(came)
            old_stays, new_stays = _in_both(old, new)
            yield _typed(old.filter(pa.array(~old_stays)), DELETE)
            yield _typed(new.filter(pa.array(~new_stays)), INSERT)
            return
        for files, kind in ((gone, DELETE), (came, INSERT)):
            for rows in self._engine.file_rows(self._source, files):
                yield _typed(rows, kind)

    def _together(self, files: Sequence[DataFile]) -> pa.Table:
        pieces = [_plain(rows, self.schema) for rows in self._engine.file_rows(self._source, files)]
        return pa.concat_tables(pieces)


def _typed(rows: pa.Table, kind: str) -> pa.Table:
    return rows.append_column(CHANGE_TYPE, pa.repeat(pa.scalar(kind), rows.num_rows))


def _plain(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    fields = [field.with_type(column.type) for field, column in zip(schema, rows.columns, strict=True)]
    return pa.Table.from_arrays(rows.columns, schema=pa.schema(fields))


def _told_apart(
    removed: Sequence[DataFile], added: Sequence[DataFile]
) -> tuple[list[DataFile], list[DataFile]]:
    """The files with the rows that went, and with those that came. Of a file that stayed, with other rows
    deleted, just those are left."""
    before = {file.key: file for file in removed}
    stayed = {file.key: file for file in added if file.key in before and file.rows is not None}
    gone = [file for file in removed if file.key not in stayed]
    came = [file for file in added if file.key not in stayed]
    for key, file in stayed.items():
        old, new = _deleted(before[key]), _deleted(file)
        gone += _only(file, np.setdiff1d(new, old))
        came += _only(file, np.setdiff1d(old, new))
    return gone, came


def _deleted(file: DataFile) -> Groups:
    if file.deletes is None:
        return np.empty(0, dtype=np.int64)
    rows: Groups = file.deletes.rows().to_numpy(zero_copy_only=False)
    return rows


def _only(file: DataFile, rows: Groups) -> Iterable[DataFile]:
    """The file with these rows alone."""
    if not len(rows):
        return ()
    others = np.setdiff1d(np.arange(file.rows or 0, dtype=np.int64), rows)
    keys = () if file.deletes is None else file.deletes.keys
    alone = Deletes(f"{file.identity}#", len(others), lambda: pa.array(others, pa.int64()), keys)
    return (replace(file, deletes=alone),)


def _in_both(old: pa.Table, new: pa.Table) -> tuple[np.ndarray, np.ndarray]:
    """Which rows are in both tables; of equal rows as many as both have."""
    groups = groups_of(pa.concat_tables([old, new]))
    before, after = groups[: old.num_rows], groups[old.num_rows :]
    count = int(groups.max(initial=-1)) + 1
    olds, news = np.bincount(before, minlength=count), np.bincount(after, minlength=count)
    return _rank(before) < news[before], _rank(after) < olds[after]


def _rank(groups: Groups) -> Groups:
    """How many rows of its group come before each row."""
    order = np.argsort(groups, kind="stable")
    ordered = groups[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    sizes = np.diff([*starts, len(ordered)])
    ranks: Groups = np.empty(len(groups), dtype=np.int64)
    ranks[order] = np.arange(len(ordered)) - np.repeat(starts, sizes)
    return ranks
