"""A pinned table as a DataFrame: physical columns from the files, logical columns for its users.

The relation has the columns of the data files by their physical names, and as partition columns what is
known of each file: the table's partition values, and if asked for the file's number and its deleted rows.
Over that lie a filter for deleted rows and a projection to the table's own columns, through which Spark's
filters and column pruning pass.
"""

import base64
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import types as spark

from lakevilla.engines.port import Source
from lakevilla.engines.spark import types
from lakevilla.engines.spark.names import Names, beside, metadata_beside, names_in
from lakevilla.engines.spark.scan import deleted_bits, file_index, foreign_files, path_relation
from lakevilla.engines.spark.scan.file_urls import Access, hadoop_path
from lakevilla.engines.spark.scan.filters import predicate_of
from lakevilla.engines.spark.scan.foreign_files import Numbered
from lakevilla.engines.spark.session.jvm import driver_side
from lakevilla.engines.spark.types import quoted
from lakevilla.environment import Environment
from lakevilla.errors import Unsupported
from lakevilla.files.column_mapping import by_id, physical_name
from lakevilla.files.partitioning import partition_text
from lakevilla.model import DataFile, Deletes
from lakevilla.predicates import ANYTHING
from lakevilla.store.port import Store

_ROW = "_tmp_metadata_row_index"
"""The column in which Spark's Parquet reader counts the rows of a file. `_metadata.row_index` is made of it,
in a struct for each row."""

_SMALLEST_BYTES = 64
"""Two magic numbers, the footer's length, and a footer with a schema take more."""

_CASE_SENSITIVE = "spark.sql.caseSensitive"
_OPTIONS = {
    # Values as they are in the file, also those of a calendar before 1582.
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
}
# A file without any id makes Spark fail: its columns would all be null.
_BY_ID = {"spark.sql.parquet.fieldId.read.enabled": "true"}
# Parquet looks for the 0.0 of a filter in the dictionary of a row group, where -0.0 is another value.
_WITH_FLOATS = {"parquet.filter.dictionary.enabled": "false"}
# Spark gives Parquet dates and timestamps by a calendar that skips 5 to 14 October 1582, and loses rows of
# those days where a filter names one. A change must not miss a row, and has its files chosen already.
_WITH_MOMENTS = {
    f"parquet.filter.{kind}.enabled": "false" for kind in ("stats", "columnindex", "dictionary", "bloom")
}


@dataclass(frozen=True)
class Reader:
    """Makes DataFrames of sources in one session."""

    session: Any
    access: Access
    environment: Environment

    def table(self, source: Source) -> Any:
        """The whole table, lazily: files are chosen when Spark plans a query, by its filters.

        Of a table with files that Spark cannot read itself, all files are chosen at once.
        """
        self._refuse_ambiguous(source)
        if foreign_files.may_be_foreign(source):
            return self._divided(source, list(enumerate(source.files(ANYTHING))), None)
        return self._by_kind(source, None, None)

    def planned(self, source: Source, mark: str) -> Any:
        """The table for a plan that is looked at and never runs; the mark finds it there."""
        self._refuse_ambiguous(source)
        return self._frame(source, frozenset(), [], None, mark)

    def files(self, source: Source, files: Sequence[DataFile], names: Names) -> Any:
        """These files of the table, with two columns more: a file's position here, and a row's in its
        file."""
        self._refuse_ambiguous(source)
        if foreign_files.may_be_foreign(source):
            return self._divided(source, list(enumerate(files)), names)
        return self._by_kind(source, list(enumerate(files)), names)

    def _refuse_ambiguous(self, source: Source) -> None:
        """Names that differ in case alone are one name to Spark, unless its session tells them apart. And
        its reader has one name of its own."""
        if types.is_ambiguous(source.schema) and self.session.conf.get(_CASE_SENSITIVE) != "true":
            raise Unsupported(
                f"table {source.name!r} has columns whose names differ only in case: set "
                f"{_CASE_SENSITIVE}=true in the Spark session, so that Spark distinguishes them",
                table=source.name,
            )
        if any(physical_name(field) == _ROW for field in source.schema):
            raise Unsupported(
                f"table {source.name!r} has the column {_ROW!r}, in whose place Spark's reader of Parquet "
                "counts rows; use engine='local'",
                table=source.name,
                column=_ROW,
            )

    def _divided(self, source: Source, files: Sequence[Numbered], names: Names | None) -> Any:
        ours, others = foreign_files.divided(source, files, self.environment)
        frames = [self._by_kind(source, ours, names)] if ours or not others else []
        if others:
            wanted = [None, None] if names is None else [names.file, names.row]
            frames.append(foreign_files.relation(self.session, self.access, source, others, *wanted))
        return frames[0] if len(frames) == 1 else frames[0].union(frames[1])

    def _by_kind(self, source: Source, files: Sequence[Numbered] | None, names: Names | None) -> Any:
        """One relation for each kind of file: what is a partition column of one may be stored in another."""
        kinds = source.unstored()
        if len(kinds) > 1 and files is not None:
            sometimes = frozenset[str]().union(*kinds)
            present = {sometimes.intersection(file.partition) for _, file in files}
            kinds = frozenset(present) or frozenset({frozenset[str]()})
        frames = [self._frame(source, kind, files, names) for kind in sorted(kinds, key=sorted)]
        return reduce(lambda one, other: one.union(other), frames)

    def _frame(
        self,
        source: Source,
        kind: frozenset[str],
        files: Sequence[Numbered] | None,
        names: Names | None,
        mark: str | None = None,
    ) -> Any:
        """The files of this kind: those of which the log has the values of these columns, too."""
        own_names = names or beside(names_in(source.schema))
        ids = by_id(source.schema)
        own = [field for field in source.schema if field.name in {*source.partition_columns, *kind}]
        data = [
            types.stored(field, ids)
            for field in source.schema
            if field not in own and not pa.types.is_null(field.type)
        ]
        partition = [spark.StructField(physical_name(f), types.logical(f.type)) for f in own]
        if names is not None:
            partition.append(spark.StructField(names.file, spark.IntegerType()))
        deletes = source.has_deletes if files is None else any(file.deletes for _, file in files)
        if deletes:
            partition.append(spark.StructField(own_names.deleted, spark.BinaryType()))
        side = driver_side(self.session) is not None
        if side and (deletes or names is not None):
            data.append(spark.StructField(_ROW, spark.LongType()))
        told = {physical_name(field): field for field in own}
        columns = tuple(field.name for field in partition)
        bits = deleted_bits.words if side else deleted_bits.characters
        listing = _Listing(source, kind, files, columns, told, own_names, bits, self.environment)
        leaves = [leaf for field in source.schema for leaf in _leaves(field.type)]
        floats, moments = any(map(pa.types.is_floating, leaves)), any(map(pa.types.is_temporal, leaves))
        options = {
            **_OPTIONS,
            **(_BY_ID if ids else {}),
            **(_WITH_FLOATS if floats else {}),
            **(_WITH_MOMENTS if moments and names is not None else {}),
            **self.access.hadoop_options(),
        }
        structs = spark.StructType(partition), spark.StructType(data)
        metadata = metadata_beside(field.name for struct in structs for field in struct.fields)
        row = _ROW if side else f"{metadata}.row_index"
        selected = [_column(field, field not in own) for field in source.schema]
        if names is not None:
            selected += [names.file, f"{row} AS {names.row}"]
        deleted = own_names.deleted if deletes else None
        if side:
            chosen = sum(file.size for _, file in files or ())
            size = source.about_bytes() // len(source.unstored()) if files is None else chosen
            return file_index.relation(
                self.session, listing.answer, *structs, options, size, (deleted, row), selected, mark
            )
        frame = path_relation.relation(self.session, listing.files(ANYTHING), *structs, options, metadata)
        living = frame if deleted is None else frame.where(deleted_bits.is_living(deleted, row))
        return living.selectExpr(*selected)


@dataclass(frozen=True)
class _Listing:
    """Answers the file index: which files, with which values of these partition columns. `told` are those
    that are columns of the table."""

    source: Source
    kind: frozenset[str]
    fixed: Sequence[Numbered] | None
    columns: tuple[str, ...]
    told: Mapping[str, pa.Field]
    names: Names
    bits: Callable[[Deletes | None], str | None]
    environment: Environment

    def answer(self, filters: str) -> str:
        return json.dumps(self.files(predicate_of(filters, self.source.schema)))

    def files(self, predicate: Any) -> list[dict[str, Any]]:
        # Files that a statement has chosen already are all given, under the same numbers each time.
        every = enumerate(self.source.files(predicate)) if self.fixed is None else self.fixed
        sometimes = frozenset[str]().union(*self.source.unstored())
        chosen = [(number, f) for number, f in every if sometimes.intersection(f.partition) == self.kind]
        if self.names.deleted not in self.columns:
            return [self._described(number, file) for number, file in chosen]
        # Deleted rows are read from the store.
        return self.environment.fan_out([partial(self._described, number, file) for number, file in chosen])

    def _described(self, number: int, file: DataFile) -> dict[str, Any]:
        store, key = self.source.open(file)
        values = []
        for column in self.columns:
            if column in self.told:
                values.append(_text(file.partition, self.told[column]))
            else:
                values.append(str(number) if column == self.names.file else self.bits(file.deletes))
        return {"path": hadoop_path(store, key), "size": _size(file, store, key), "values": values}


def _size(file: DataFile, store: Store, key: str) -> int:
    """The size by which Spark divides the file between tasks: what lies behind it is not read.

    Some writers put 0 or 1 into the log. No Parquet file is that small, so the store is asked.
    """
    if file.size >= _SMALLEST_BYTES:
        return file.size
    found = store.head(key)
    return file.size if found is None else found.size


def _column(field: pa.Field, is_stored: bool) -> str:
    """The table's column over the relation's; a cast gives the members of structs their names."""
    if pa.types.is_null(field.type):
        return f"NULL AS {quoted(field.name)}"
    found = quoted(physical_name(field))
    if is_stored and _renamed(field.type):
        found = f"CAST({found} AS {types.sql_type(field.type)})"
    return f"{found} AS {quoted(field.name)}"


def _renamed(data_type: pa.DataType) -> bool:
    if pa.types.is_struct(data_type):
        return any(physical_name(child) != child.name or _renamed(child.type) for child in data_type)
    return any(_renamed(data_type.field(i).type) for i in range(data_type.num_fields))


def _text(values: Mapping[str, Any], field: pa.Field) -> str | None:
    """A partition value as text that casts to it; bytes in base 64."""
    value = values.get(field.name)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return partition_text(value, field.type)


def _leaves(data_type: pa.DataType) -> Iterator[pa.DataType]:
    """The types inside a type that hold no others."""
    if data_type.num_fields == 0:
        yield data_type
    for position in range(data_type.num_fields):
        yield from _leaves(data_type.field(position).type)
