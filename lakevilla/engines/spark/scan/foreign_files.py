"""Data files that Spark's own Parquet reader does not read rightly, read by Python tasks instead.

They are those of another format, those without the field ids that their table goes by, those that lack a
value whose default Spark does not fill in (inside a column, or a binary one), those in which a column has
the name that another one has now, and those with UUIDs. Filters and the choice of columns do not reach into
such a read.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pickle import dumps, loads
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import types as spark

from lakevilla.engines.port import Source
from lakevilla.engines.spark import types
from lakevilla.engines.spark.scan.file_urls import Access, refuse_memory
from lakevilla.engines.spark.uuids import as_text
from lakevilla.engines.spark.write.tasks import opened, packed_place
from lakevilla.environment import Environment
from lakevilla.files.bitmaps import Positions
from lakevilla.files.column_mapping import DEFAULT, Match, by_id, has_ids, has_mapped_names, has_reused_names
from lakevilla.files.parquet import FOOTER_BYTES, ParquetObject
from lakevilla.files.projection import find
from lakevilla.files.reader import read_file, refuse_unreadable
from lakevilla.files.row_checks import relabel
from lakevilla.model import DataFile

Numbered = tuple[int, DataFile]
"""A file with its position among those of a statement."""

_PARQUET = frozenset({"parquet"})
_BATCH_ROWS = 64 * 1024
_TASK_BYTES = 16 * 1024 * 1024
"""About so much of small files is read by one task: to start a worker takes longer than to read less."""


def may_be_foreign(source: Source) -> bool:
    """Whether the table may have such files, as far as that is known without them."""
    schema = source.schema
    return _suspicious(schema) or _has_uuid(schema) or bool(source.formats() - _PARQUET)


def divided(
    source: Source, files: Sequence[Numbered], environment: Environment
) -> tuple[list[Numbered], list[Numbered]]:
    """The files that Spark reads rightly, and the others. Looks into their footers where it has to.

    Unsupported if there is one that no reader here reads.
    """
    for _, file in files:
        refuse_unreadable(file)
    if _has_uuid(source.schema):
        return [], list(files)
    parquet = [numbered for numbered in files if numbered[1].format == "parquet"]
    others = [numbered for numbered in files if numbered[1].format != "parquet"]
    if not _suspicious(source.schema):
        return parquet, others
    flags = environment.fan_out([_looking(source, file) for _, file in parquet])
    others += [numbered for numbered, known in zip(parquet, flags, strict=True) if not known]
    return [numbered for numbered, known in zip(parquet, flags, strict=True) if known], others


def relation(
    session: Any, access: Access, source: Source, files: Sequence[Numbered], file: str | None, row: str | None
) -> Any:
    """The living rows of these files; `file` and `row` name columns for a file's number and a row's in it."""
    named = [(name, kind) for name, kind in ((file, spark.IntegerType()), (row, spark.LongType())) if name]
    columns = [spark.StructField(column.name, types.logical(column.type)) for column in source.schema]
    schema = spark.StructType([*columns, *(spark.StructField(name, kind) for name, kind in named)])
    task = ReadTask(
        schema=source.schema,
        partition_columns=source.partition_columns,
        result=types.arrow_schema(schema),
        files=tuple(packed(source, access, *numbered) for numbered in files),
        extra=(file is not None, row is not None),
    )
    parts = min(len(files), sum(numbered[1].size for numbered in files) // _TASK_BYTES + 1)
    return session.range(0, len(files), 1, parts).mapInArrow(task.function(), schema)


def _suspicious(schema: pa.Schema) -> bool:
    named = has_mapped_names(schema) or has_reused_names(schema)
    return named or any(_defaults_beyond_spark(column, True) for column in schema)


def _has_uuid(schema: pa.Schema) -> bool:
    return any(types.has_uuid(column.type) for column in schema)


def _defaults_beyond_spark(column: pa.Field, top: bool) -> bool:
    """Whether the column or something inside it has a default of which Spark's reader does not know."""
    if DEFAULT in (column.metadata or {}) and not (top and _spark_fills(column.type)):
        return True
    return any(_defaults_beyond_spark(child, False) for child in _inside(column))


def _spark_fills(data_type: pa.DataType) -> bool:
    """Whether Spark's reader fills in a default of this type, if it is that of a whole column."""
    binary = pa.types.is_binary(data_type) or pa.types.is_fixed_size_binary(data_type)
    return not binary and not pa.types.is_nested(data_type)


def _inside(column: pa.Field) -> list[pa.Field]:
    return [column.type.field(position) for position in range(column.type.num_fields)]


def _looking(source: Source, file: DataFile) -> Callable[[], bool]:
    """Whether Spark reads the file rightly."""

    def look() -> bool:
        store, key = source.open(file)
        stored = ParquetObject(store, key, file.size, FOOTER_BYTES).schema
        if by_id(source.schema) and not has_ids(stored):
            return False
        if has_reused_names(source.schema) and _is_misnamed(source.schema, stored):
            return False
        return not any(_lacks_default(column, stored, True) for column in source.schema)

    return look


def _is_misnamed(columns: Iterable[pa.Field], stored: Iterable[pa.Field]) -> bool:
    """Whether the file has a column under the name of another one: Spark finds it by its id, and takes the
    type of the other one."""
    known = list(columns)
    names = {column.name.lower() for column in known}
    for column in known:
        found = find(column, stored, Match.ID)
        if found is None:
            continue
        other = found.name.lower()
        if (other != column.name.lower() and other in names) or _is_misnamed(_inside(column), _inside(found)):
            return True
    return False


def _lacks_default(column: pa.Field, stored: Iterable[pa.Field], top: bool) -> bool:
    """Whether the file lacks something that has a default of which Spark's reader does not know."""
    found = find(column, stored, Match.ID)
    if found is None:
        return DEFAULT in (column.metadata or {}) and not (top and _spark_fills(column.type))
    return any(_lacks_default(child, _inside(found), False) for child in _inside(column))


@dataclass(frozen=True)
class PackedFile:
    """A file as it travels to a task: where it is, and which of its rows are deleted."""

    number: int
    place: bytes = field(repr=False)
    key: str
    file: DataFile
    deleted: Positions | None


def packed(source: Source, access: Access, number: int, file: DataFile) -> PackedFile:
    store, key = source.open(file)
    refuse_memory(store)
    deleted = None if file.deletes is None else file.deletes.rows().to_numpy(zero_copy_only=False)
    return PackedFile(
        number, packed_place(store.url, access), key, replace(file, deletes=None, entry=None), deleted
    )


@dataclass(frozen=True)
class ReadTask:
    """All that a task needs to know to read some of the files. It travels to executors."""

    schema: pa.Schema
    partition_columns: tuple[str, ...]
    result: pa.Schema
    files: tuple[PackedFile, ...]
    extra: tuple[bool, bool]

    def function(self) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
        """The task as `mapInArrow` wants it, over the positions of files here."""
        packed = dumps(self)

        def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            task: ReadTask = loads(packed)
            for batch in batches:
                for position in batch.column(0).to_pylist():
                    yield from task.rows(task.files[position])

        return run

    def rows(self, file: PackedFile) -> Iterator[pa.RecordBatch]:
        """The living rows of a file."""
        store = opened(file.place)
        found = read_file(store, file.key, file.file, self.schema, self.partition_columns)
        numbers = np.arange(found.num_rows, dtype=np.int64)
        if file.deleted is not None:
            numbers = np.delete(numbers, file.deleted)
            found = found.take(pa.array(numbers))
        arrays = [
            as_text(column, kind) for column, kind in zip(found.columns, self.result.types, strict=False)
        ]
        if self.extra[0]:
            arrays.append(pa.repeat(pa.scalar(file.number, pa.int32()), len(numbers)))
        if self.extra[1]:
            arrays.append(pa.array(numbers))
        whole = pa.table(arrays, names=self.result.names).combine_chunks()
        for batch in whole.to_batches(_BATCH_ROWS):
            yield relabel(batch, self.result)
