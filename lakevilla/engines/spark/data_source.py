"""A table as a Python data source of Spark: partitions are files, which tasks read by this package.

For programs that can only name a format. Spark's own reader, through `lake.read` or `lake.attach`, is faster:
it skips columns, and files by filters.
"""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import types as spark
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceWriter, InputPartition

from lakevilla.engines.port import Source
from lakevilla.engines.spark import types
from lakevilla.engines.spark.scan.file_urls import Access
from lakevilla.engines.spark.scan.foreign_files import PackedFile, ReadTask, packed
from lakevilla.errors import Unsupported
from lakevilla.files.reader import refuse_unreadable
from lakevilla.predicates import ANYTHING

_PARTITION_BYTES = 32 * 1024 * 1024
"""About so much of small files is one partition: to start a task takes longer than to read less."""


class Files(InputPartition):
    """Files that one task reads."""

    def __init__(self, files: tuple[PackedFile, ...]) -> None:
        self.files = files


class TableSource(DataSource):
    """One table of a lake. Spark makes the object in a Python process of its own."""

    @abstractmethod
    def opened(self) -> tuple[Source, Access]:
        """The table that the options name, and how tasks reach it."""

    def schema(self) -> spark.StructType:
        source, _ = self._known()
        return _schema(source)

    def reader(self, schema: spark.StructType) -> DataSourceReader:  # noqa: ARG002 - PySpark's signature
        source, access = self._known()
        return _Reader(source, access)

    def writer(self, schema: spark.StructType, overwrite: bool) -> DataSourceWriter:  # noqa: ARG002
        raise Unsupported("the format 'lakevilla' is for reading: write by lake.append(table, frame)")

    def _known(self) -> tuple[Source, Access]:
        """The table, looked for once: what Spark asks first and last must be the same version."""
        found: tuple[Source, Access] | None = self.__dict__.get("_found")
        if found is None:
            found = self.__dict__["_found"] = self.opened()
        return found

    def __getstate__(self) -> Mapping[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_found"}


class _Reader(DataSourceReader):
    """Reads the table at one version. It travels to tasks without its files."""

    def __init__(self, source: Source, access: Access) -> None:
        files = source.files(ANYTHING)
        for file in files:
            refuse_unreadable(file)
        known = [packed(source, access, number, file) for number, file in enumerate(files)]
        self._partitions = [Files(tuple(group)) for group in _groups(known)]
        self._task = ReadTask(
            schema=source.schema,
            partition_columns=source.partition_columns,
            result=types.arrow_schema(_schema(source)),
            files=(),
            extra=(False, False),
        )

    def partitions(self) -> Sequence[InputPartition]:
        partitions, self._partitions = self._partitions, []
        return partitions or [Files(())]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Files)
        for file in partition.files:
            yield from self._task.rows(file)


def _schema(source: Source) -> spark.StructType:
    return spark.StructType(
        [spark.StructField(field.name, types.logical(field.type)) for field in source.schema]
    )


def _groups(files: Sequence[PackedFile]) -> Iterator[list[PackedFile]]:
    group: list[PackedFile] = []
    size = 0
    for file in files:
        if group and size + file.file.size > _PARTITION_BYTES:
            yield group
            group, size = [], 0
        group.append(file)
        size += file.file.size
    if group:
        yield group
