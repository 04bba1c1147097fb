"""The rows that a statement changes, written as files of a change data feed. All engines write them this way.

Such a file has the table's columns and `CHANGE_TYPE`. In one file the k-th row as it was before an update
belongs to the k-th row as it is after it. An update that moves rows to another partition writes two files,
whose names differ in `MOVED` alone. So the statements of a transaction can be put together to what they did
in all. The files of all partitions lie side by side: deltalake finds none whose path has to be decoded.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import pyarrow as pa

from lakevilla.engines.row_groups import groups_of
from lakevilla.files.row_checks import conform
from lakevilla.files.writer import write_files
from lakevilla.model import Partitioning, WrittenFile
from lakevilla.store.port import Store

CHANGE_TYPE = "_change_type"
INSERT, BEFORE, AFTER, DELETE = "insert", "update_preimage", "update_postimage", "delete"

_FILE_ROWS = 100_000
_FILE_BYTES = 32 * 1024 * 1024
"""A file holds about so much at most: less than what makes the writer of files begin another one."""
_UNBOUNDED = 1 << 40

_END, MOVED = ".parquet", "-moved.parquet"
"""How the names of files end: the rows that an update moved, as they are now, have the second one."""


@dataclass(frozen=True)
class FeedPlace:
    """Where the files of a feed go, and what they look like: the table's columns and `CHANGE_TYPE`."""

    schema: pa.Schema
    partitioning: Partitioning
    new_key: Callable[[], str]


Write = Callable[[FeedPlace, Iterable[pa.Table]], tuple[WrittenFile, ...]]


def together_by(key: str) -> str:
    """What files have in common whose rows belong together."""
    return key.removesuffix(MOVED).removesuffix(_END)


def feed_writer(store: Store, now_ms: Callable[[], int]) -> Write:
    """Writes files of a feed to a store. They are never divided by size: their rows belong together."""

    def write(place: FeedPlace, pieces: Iterable[pa.Table]) -> tuple[WrittenFile, ...]:
        return write_files(
            pieces,
            schema=place.schema,
            partitioning=place.partitioning,
            store=store,
            new_key=place.new_key,
            now_ms=now_ms,
            file_bytes=_UNBOUNDED,
            file_rows=_UNBOUNDED,
            folders=False,
        )

    return write


def feed_schema(schema: pa.Schema) -> pa.Schema:
    """The columns of the files of a table's feed."""
    return schema.append(pa.field(CHANGE_TYPE, pa.string()))


@dataclass
class RowFeed:
    """The feed of one statement. Without a place nothing is kept. With `alone`, these are all rows of the
    statement: if they are only inserted, the table's own files say all."""

    place: FeedPlace | None
    write: Write
    alone: bool = True
    _files: list[WrittenFile] = field(default_factory=list)
    _waiting: list[tuple[str, pa.Table]] = field(default_factory=list)
    _pairs: list[tuple[pa.Table, pa.Table]] = field(default_factory=list)
    _only_inserts: bool = True

    @property
    def is_wanted(self) -> bool:
        return self.place is not None

    def updated(self, old: pa.Table, new: pa.Table) -> None:
        """Rows as they were and as they are now, in the same order."""
        if self.place is not None and old.num_rows:
            old, new = self._conform(old), self._conform(new)
            rows = _piece_rows(old, new)
            self._pairs += list(zip(_pieces(old, rows), _pieces(new, rows), strict=True))
            self._flush(_FILE_ROWS)

    def deleted(self, old: pa.Table) -> None:
        self._add(DELETE, old)

    def inserted(self, new: pa.Table) -> None:
        self._add(INSERT, new)

    def watched(self, pieces: Iterable[pa.Table]) -> Iterator[pa.Table]:
        """The pieces, which are new rows."""
        for piece in pieces:
            self.inserted(piece)
            yield piece

    def finish(self) -> tuple[WrittenFile, ...]:
        """The files."""
        waiting = {kind for kind, _ in self._waiting}
        if self.alone and self._only_inserts and not self._pairs and DELETE not in waiting:
            return ()
        self._flush(1)
        return tuple(self._files)

    def _add(self, kind: str, rows: pa.Table) -> None:
        if self.place is not None and rows.num_rows:
            rows = self._conform(rows)
            self._waiting += [(kind, piece) for piece in _pieces(rows, _piece_rows(rows))]
            self._flush(_FILE_ROWS)

    def _conform(self, rows: pa.Table) -> pa.Table:
        assert self.place is not None, "checked by callers"
        return conform(rows, self.place.schema.remove(len(self.place.schema) - 1))

    def _flush(self, least_rows: int) -> None:
        """Write what waits, if it is so much."""
        rows = [piece for _, piece in self._waiting] + [piece for pair in self._pairs for piece in pair]
        waiting = sum(piece.num_rows for piece in rows)
        if not waiting or (waiting < least_rows and sum(piece.nbytes for piece in rows) < _FILE_BYTES):
            return
        assert self.place is not None, "checked by callers"
        self._only_inserts &= not self._pairs and all(kind == INSERT for kind, _ in self._waiting)
        together = list(self._waiting)
        if self._pairs:
            old, new = (pa.concat_tables([pair[i] for pair in self._pairs]) for i in (0, 1))
            staying, moved = self._divided(old, new)
            together += [(BEFORE, old.filter(staying)), (AFTER, new.filter(staying))]
            for chosen in moved:
                self._write_moved(old.take(chosen), new.take(chosen))
        self._waiting, self._pairs = [], []
        pieces = [_typed(kind, piece) for kind, piece in together if piece.num_rows]
        if pieces:
            self._files += self.write(self.place, [pa.concat_tables(pieces)])

    def _divided(self, old: pa.Table, new: pa.Table) -> tuple[pa.Array, list[pa.Array]]:
        """Which updates leave a row in its partition, and the others, by the two partitions."""
        assert self.place is not None, "checked by callers"
        columns = [one.source[0] for one in self.place.partitioning.fields]
        if not columns:
            return pa.repeat(True, old.num_rows), []
        groups = groups_of(pa.concat_tables([old.select(columns), new.select(columns)]))
        before, after = groups[: old.num_rows], groups[old.num_rows :]
        moves = np.unique(np.stack([before, after])[:, before != after], axis=1).T
        moved = [pa.array(np.flatnonzero((before == one) & (after == other))) for one, other in moves]
        return pa.array(before == after), moved

    def _write_moved(self, old: pa.Table, new: pa.Table) -> None:
        assert self.place is not None, "checked by callers"
        key = self.place.new_key()
        moved = key.removesuffix(_END) + MOVED
        for kind, rows, name in ((BEFORE, old, key), (AFTER, new, moved)):
            place = replace(self.place, new_key=partial(str, name))
            self._files += self.write(place, [_typed(kind, rows)])


def _typed(kind: str, rows: pa.Table) -> pa.Table:
    return rows.append_column(CHANGE_TYPE, pa.repeat(pa.scalar(kind), rows.num_rows))


def _piece_rows(*tables: pa.Table) -> int:
    """How many rows of these tables fit into one file, with some room left."""
    most = max(int(rows.nbytes) for rows in tables)
    fitting: int = tables[0].num_rows * _FILE_BYTES // max(1, most)
    return max(1, min(_FILE_ROWS, fitting) // 2)


def _pieces(rows: pa.Table, size: int) -> list[pa.Table]:
    return [rows.slice(start, size) for start in range(0, rows.num_rows, size)]
