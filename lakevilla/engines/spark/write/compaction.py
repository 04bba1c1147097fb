"""Groups of files rewritten by Spark's tasks, one task for each group: no row passes through Spark itself.

What a task does with its group is what the local engine does (`engines.compaction`). A few small files are
rewritten in this process, because a job with Python workers costs more than they do.
"""

import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from typing import Any

import pyarrow as pa
from pyspark import TaskContext

from lakevilla.engines.compaction import rewrite_files
from lakevilla.engines.port import Source, Target
from lakevilla.engines.spark.failures import explained
from lakevilla.engines.spark.scan.file_urls import Access, refuse_memory
from lakevilla.engines.spark.session.session import Session
from lakevilla.engines.spark.write.tasks import opened, packed_place
from lakevilla.environment import Environment, SystemEnvironment
from lakevilla.errors import LakeVillaError
from lakevilla.model import DataFile, Partitioning, WrittenFile

_HERE_BYTES = 32 * 1024 * 1024
"""So many bytes of files are rewritten in this process. Judged, not measured."""
_ANSWER = "number long, answer binary"

Written = tuple[WrittenFile, ...]


@dataclass(frozen=True)
class _Place:
    """A file as a task finds it: its store, and its key there."""

    store: bytes = field(repr=False)
    key: str
    file: DataFile


@dataclass(frozen=True)
class _Task:
    """All that tasks need to know of a table and of the groups. It travels to executors."""

    store: bytes = field(repr=False)
    name: str
    schema: pa.Schema
    partition_columns: tuple[str, ...]
    partitioning: Partitioning
    stem: str
    file_bytes: int
    file_rows: int
    order: tuple[str, ...]
    groups: tuple[tuple[_Place, ...], ...]

    def function(self) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
        """The task as `mapInArrow` wants it: from numbers of groups to what was written for them."""
        packed = pickle.dumps(self)

        def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            task: _Task = pickle.loads(packed)
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    answer = pa.array([pickle.dumps(task.answer(number))], pa.binary())
                    yield pa.record_batch([pa.array([number]), answer], names=["number", "answer"])

        return run

    def answer(self, number: int) -> "Written | LakeVillaError":
        """What was written for a group, or why it cannot be: Spark would bury an exception."""
        places = {place.file.identity: place for place in self.groups[number]}
        context = TaskContext.get()
        attempt = 0 if context is None else context.taskAttemptId()
        keys = (f"{self.stem}-{attempt}-{number}-{part}.parquet" for part in count())
        environment = SystemEnvironment()
        source = Source(
            self.name,
            self.schema,
            self.partition_columns,
            lambda _: (),
            lambda file: (opened(places[file.identity].store), places[file.identity].key),
        )
        target = Target(
            self.name,
            self.schema,
            self.partitioning,
            opened(self.store),
            lambda: next(keys),
            environment.now_ms,
            file_bytes=self.file_bytes,
            file_rows=self.file_rows,
        )
        try:
            files = [place.file for place in places.values()]
            return rewrite_files(environment, target, source, files, self.order)
        except LakeVillaError as error:
            return error


@dataclass(frozen=True)
class GroupWriter:
    """Rewrites groups of files, by a job or here."""

    environment: Environment
    session: Session
    access: Access

    def rewrite(
        self, target: Target, source: Source, groups: Sequence[Sequence[DataFile]], order: Sequence[str]
    ) -> Sequence[Written]:
        """What was written for each group."""
        refuse_memory(target.store)
        if sum(file.size for group in groups for file in group) <= _HERE_BYTES:
            return [rewrite_files(self.environment, target, source, group, order) for group in groups]
        task = _Task(
            packed_place(target.store.url, self.access),
            target.name,
            target.schema,
            source.partition_columns,
            target.partitioning,
            # The key names the transaction, so every file of the job does.
            target.new_key().removesuffix(".parquet"),
            target.file_bytes,
            target.file_rows,
            tuple(order),
            tuple(tuple(self._place(source, file) for file in group) for group in groups),
        )
        numbers = self.session().range(0, len(groups), 1, len(groups))
        answers = numbers.mapInArrow(task.function(), _ANSWER)
        with explained():
            found: dict[int, Any] = {
                row[0]: pickle.loads(row[1]) for row in self.session.run(answers.collect)
            }
        for answer in found.values():
            if isinstance(answer, LakeVillaError):
                raise answer
        return [found[number] for number in range(len(groups))]

    def _place(self, source: Source, file: DataFile) -> _Place:
        """What a task needs of a file. Its deleted rows are read here, because only its table's format
        can."""
        store, key = source.open(file)
        deletes = file.deletes
        if deletes is not None:
            deletes = replace(deletes, rows=partial(_same, deletes.rows()))
        packed = packed_place(store.url, self.access)
        return _Place(packed, key, replace(file, deletes=deletes, partition=dict(file.partition), entry=None))


def _same(rows: pa.Int64Array) -> pa.Int64Array:
    return rows
