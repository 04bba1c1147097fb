"""What runs in Spark's tasks: rows become Parquet files at their final keys, and a report goes back.

There is no rename and no committer: a file counts only if the transaction's commit names it. A task that is
tried again or runs twice leaves files under names of its own, which no client names and vacuum finds by the
transaction's id.

Rows that are refused end the task with a report and not with an exception: Spark would try again, and bury
the sentence in a stack trace.
"""

import gc
import pickle
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import chain, count
from typing import Any
from zipimport import zipimporter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyspark
from pyspark import TaskContext, cloudpickle

from lakevilla.engines.row_feed import FeedPlace, RowFeed, feed_schema, feed_writer
from lakevilla.engines.spark.names import Names
from lakevilla.engines.spark.scan.file_urls import Access
from lakevilla.environment import SystemEnvironment
from lakevilla.errors import InvalidInput
from lakevilla.files.bitmaps import Positions, encode_bitmap
from lakevilla.files.writer import write_files
from lakevilla.model import Partitioning, WrittenFile
from lakevilla.store.port import Store

KEPT, INSERTED, UPDATED, DELETED = range(4)
"""What is done with a row, see `Names.kind`."""

REPORT = "report binary"
_BUFFER_BYTES = 64 * 1024 * 1024


@dataclass
class Report:
    """What one task did. `counts` go by kind, `changed` by file.

    `masked` are the rows that were changed, by file, as bitmaps: of statements that write only new rows.
    `doubtful` are files that hold all rows of a part of a source file, of which another task must say
    whether a row changed; they count only if one did.
    """

    written: tuple[WrittenFile, ...] = ()
    counts: list[int] = field(default_factory=lambda: [0, 0, 0, 0])
    changed: dict[int, int] = field(default_factory=dict)
    masked: dict[int, bytes] = field(default_factory=dict)
    doubtful: list[tuple[int, tuple[WrittenFile, ...]]] = field(default_factory=list)
    refused: InvalidInput | None = None
    feed: tuple[WrittenFile, ...] = ()


@dataclass(frozen=True)
class WriteTask:
    """All that a task needs to know. It travels to executors, so it holds how to open a store
    (`packed_place`), not the store.

    `whole_rows` has the number of rows of each source file, where known: only a task that sees all of them
    may leave a file alone. None if every source file given is known to change. `columns` are the names of the
    columns that the task gets, where these come under other names. `feed_stem` is what the names of the files
    begin with that get the rows that change; empty if there are none.
    """

    place: bytes = field(repr=False)
    schema: pa.Schema
    partitioning: Partitioning
    stem: str
    file_bytes: int
    file_rows: int
    refusals: tuple[InvalidInput, ...] = ()
    whole_rows: Mapping[int, int | None] | None = None
    names: Names = field(default_factory=Names)
    columns: tuple[str, ...] = ()
    feed_stem: str = ""

    def function(self) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
        """The task as `mapInArrow` wants it."""
        packed = pickle.dumps(self)

        def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            task, context = _unpacked(packed), TaskContext.get()
            attempt = 0 if context is None else context.taskAttemptId()
            report = _Running(task, opened(task.place), attempt).run(batches)
            _ready_for_the_next_task()
            yield pa.record_batch([pa.array([pickle.dumps(report)], pa.binary())], names=["report"])

        return run

    def run_here(self, batches: Iterable[pa.RecordBatch], store: Store) -> Report:
        """The same in the driver, as the only task of its job."""
        return _Running(self, store, 0).run(batches)


def packed_place(url: str, access: Access) -> bytes:
    """A store's URL and how to open it, also with a function that gives credentials."""
    dumps: Callable[..., bytes] = cloudpickle.dumps
    return dumps((url, access))


@lru_cache(maxsize=4)
def _unpacked(packed: bytes) -> WriteTask:
    task: WriteTask = pickle.loads(packed)
    return task


@lru_cache(maxsize=4)
def opened(packed: bytes) -> Store:
    """The store of such a place. A worker serves many tasks, and keeps its connections between them."""
    url, access = pickle.loads(packed)
    store: Store = access.open(url)
    return store


# To ask whether it is done would count all that is frozen.
_freeze_once = cache(gc.freeze)


def _ready_for_the_next_task() -> None:
    """Spare this worker what it does before and after every task, which takes longer than a small task.

    It collects garbage: not among the modules that it has imported, from now on. And every importer reads
    its archive again: PySpark has one for each of its packages, and its archive does not change. Code
    that imports more of it gets an importer anew.
    """
    _freeze_once()
    for path, importer in list(sys.path_importer_cache.items()):
        if isinstance(importer, zipimporter) and pyspark.__file__.startswith(importer.archive):
            del sys.path_importer_cache[path]


class _Running:
    """One run of a task."""

    def __init__(self, task: WriteTask, store: Store, attempt: int) -> None:
        self._task = task
        self._store = store
        self._report = Report()
        self._positions: dict[int, list[Positions]] = {}
        self._keys = (f"{task.stem}-{attempt}-{number}.parquet" for number in count())
        self._feed = _feed_of(task, store, attempt)

    def run(self, batches: Iterable[pa.RecordBatch]) -> Report:
        try:
            rows = (self._named(batch) for batch in batches if batch.num_rows)
            sure = map(self._taken, rows) if self._task.whole_rows is None else self._changed(rows)
            self._report.written = self._write(sure)
            self._report.feed = self._feed.finish()
            self._report.masked = {
                number: encode_bitmap(np.unique(np.concatenate(found)))
                for number, found in self._positions.items()
            }
        except InvalidInput as error:
            self._report.refused = error
        return self._report

    def _named(self, batch: pa.RecordBatch) -> pa.Table:
        table = pa.Table.from_batches([batch])
        return table.rename_columns(self._task.columns) if self._task.columns else table

    def _write(self, pieces: Iterable[pa.Table]) -> tuple[WrittenFile, ...]:
        task = self._task
        return write_files(
            pieces,
            schema=task.schema,
            partitioning=task.partitioning,
            store=self._store,
            new_key=lambda: next(self._keys),
            now_ms=SystemEnvironment().now_ms,
            file_bytes=task.file_bytes,
            file_rows=task.file_rows,
        )

    def _taken(self, piece: pa.Table) -> pa.Table:
        """Count a piece's rows, refuse what must be refused, and keep what is to be written."""
        ours = self._task.names
        if ours.refused in piece.schema.names:
            reasons = piece.column(ours.refused).drop_null()
            if len(reasons):
                raise self._task.refusals[reasons[0].as_py()]
        names = [field.name for field in self._task.schema]
        if ours.kind not in piece.schema.names:
            self._report.counts[INSERTED] += piece.num_rows
            self._feed.inserted(piece.select(names))
            return piece.select(names)
        kinds = piece.column(ours.kind).to_numpy()
        for kind, rows in enumerate(np.bincount(kinds, minlength=4)):
            self._report.counts[kind] += int(rows)
        if ours.row in piece.schema.names:
            self._note_positions(piece)
        if self._feed.is_wanted:
            self._keep(piece, kinds)
        gone = kinds == DELETED
        if gone.all():
            # They may have come without their values.
            return self._task.schema.empty_table()
        return piece.select(names).filter(pa.array(~gone)) if gone.any() else piece.select(names)

    def _keep(self, piece: pa.Table, kinds: np.ndarray) -> None:
        """Keep the rows of the piece that change for the feed."""
        names = [field.name for field in self._task.schema]

        def rows(kind: int, columns: list[str] = names) -> pa.Table:
            return piece.select(columns).filter(pa.array(kinds == kind)).rename_columns(names)

        if (kinds == UPDATED).any():
            before = [self._task.names.before(number) for number in range(len(names))]
            self._feed.updated(rows(UPDATED, before), rows(UPDATED))
        self._feed.deleted(rows(DELETED))
        self._feed.inserted(rows(INSERTED))

    def _note_positions(self, piece: pa.Table) -> None:
        """Note which rows of which files these come from; new rows come from none."""
        ours = self._task.names
        old = piece.select([ours.file, ours.row]).drop_null()
        for number, part in _runs(old, ours.file) if old.num_rows else ():
            positions = part.column(ours.row).to_numpy().astype(np.int64)
            self._positions.setdefault(number, []).append(positions)

    def _changed(self, rows: Iterator[pa.Table]) -> Iterator[pa.Table]:
        """The rows of files that surely change. Spark gives a file's rows one after another, but it may
        split a large file between tasks: see `Report.doubtful`."""
        assert self._task.whole_rows is not None
        for number, pieces in _by_file(rows, self._task.names.file):
            part = _Part(pieces, self._task.names.kind)
            waiting = part.until_change(_BUFFER_BYTES)
            if part.changed:
                yield from map(self._taken, chain(waiting, part))
            elif not part.ended or part.rows != self._task.whole_rows.get(number):
                written = self._write(map(self._taken, chain(waiting, part)))
                self._report.doubtful.append((number, written))
            if part.changed:
                self._report.changed[number] = self._report.changed.get(number, 0) + part.changed


def _feed_of(task: WriteTask, store: Store, attempt: int) -> RowFeed:
    """Where a run of a task keeps the rows that change. Another task may have rows that were not inserted."""
    names = (f"{task.feed_stem}-{attempt}-{number}.parquet" for number in count())
    place = FeedPlace(feed_schema(task.schema), task.partitioning, lambda: next(names))
    write = feed_writer(store, SystemEnvironment().now_ms)
    return RowFeed(place if task.feed_stem else None, write, alone=False)


class _Part:
    """Consecutive rows of one source file, counted as they pass."""

    def __init__(self, pieces: Iterator[pa.Table], kind: str) -> None:
        self._pieces = pieces
        self._kind = kind
        self.rows = 0
        self.changed = 0
        self.ended = False

    def __iter__(self) -> "Iterator[pa.Table]":
        return self

    def __next__(self) -> pa.Table:
        piece = next(self._pieces, None)
        if piece is None:
            self.ended = True
            raise StopIteration
        self.rows += piece.num_rows
        self.changed += pc.sum(pc.not_equal(piece.column(self._kind), KEPT)).as_py() or 0
        return piece

    def until_change(self, limit_bytes: int) -> list[pa.Table]:
        """The pieces up to the first that has a changed row, or as many as may wait."""
        taken: list[pa.Table] = []
        waiting_bytes = 0
        while not self.changed and waiting_bytes < limit_bytes:
            piece = next(self, None)
            if piece is None:
                break
            taken.append(piece)
            waiting_bytes += piece.nbytes
        return taken


def _by_file(rows: Iterator[pa.Table], file: str) -> Iterator[tuple[int, Iterator[pa.Table]]]:
    """Runs of rows with one file number."""
    runs = (run for piece in rows for run in _runs(piece, file))
    first = next(runs, None)
    while first is not None:
        number = first[0]
        after: list[Any] = []

        def pieces(number: int = number, start: Any = first, after: list[Any] = after) -> Iterator[pa.Table]:
            yield start[1]
            for following in runs:
                if following[0] != number:
                    after.append(following)
                    return
                yield following[1]

        run = pieces()
        yield number, run
        for _ in run:
            # A consumer that stopped early has what it wanted.
            pass
        first = after[0] if after else None


def _runs(piece: pa.Table, file: str) -> Iterator[tuple[int, pa.Table]]:
    numbers = piece.column(file).to_numpy()
    starts = np.flatnonzero(np.diff(numbers, prepend=-1))
    for start, end in zip(starts, [*starts[1:], len(numbers)], strict=True):
        yield int(numbers[start]), piece.slice(start, end - start)
