"""Data in, from a file on this machine: Parquet and CSV, read in pieces.

A statement may have to run again. What it was given is the file as it was at first, so a file that has
changed since is refused.
"""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
import pyarrow.parquet as pq

from lakevilla.errors import InvalidInput
from lakevilla.sql.types import TIMESTAMP

SUFFIXES = (".parquet", ".csv")


def is_path(data: object) -> bool:
    """Whether this names a file: any path object, or text that ends like a file that we read."""
    return isinstance(data, PurePath) or (isinstance(data, str) and data.lower().endswith(SUFFIXES))


def is_file(data: object) -> bool:
    """Whether this names a file that is there. Text may mean something else too, such as a table."""
    return is_path(data) and ("://" in str(data) or _local(str(data)).is_file())


def _local(path: str | PurePath) -> Path:
    """The path of a file on this machine, from a path or a URL `file://`."""
    if isinstance(path, str) and "://" in path:
        url = urlsplit(path)
        if url.scheme.lower() != "file" or url.netloc not in ("", "localhost"):
            raise InvalidInput(
                f"cannot read rows from {path!r}: only files on this machine are read. Register it as a "
                "table, or give its rows as a DataFrame"
            )
        return Path(unquote(url.path))
    return Path(path).expanduser()


class RowFile:
    """The rows of one file. InvalidInput, with the file's name, for what cannot be read as a table."""

    def __init__(self, path: str | PurePath) -> None:
        self._path = _local(path)
        if self._path.suffix.lower() not in SUFFIXES:
            raise InvalidInput(f"cannot read rows from {str(path)!r}: a file ends in .parquet or .csv")
        self._seen = self._state()
        self._is_csv = self._path.suffix.lower() == ".csv"
        self.schema: pa.Schema = self._opened({}).schema

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows in pieces, of the types that the file has, or seems to have."""
        return self._batches({})

    def fitting(self, schema: pa.Schema) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        """The rows for a table of this schema: the text of a CSV file is read as the table's types."""
        if not self._is_csv:
            return self.schema, self.batches()
        known = {field.name.lower(): field.type for field in schema}
        wanted = {n: _csv_type(n, known[n.lower()]) for n in self.schema.names if n.lower() in known}
        moments = {n for n in wanted if known[n.lower()] == TIMESTAMP}
        pieces = (_with_moments(batch, moments) for batch in self._batches(wanted))
        fields = [
            field.with_type(TIMESTAMP if field.name in moments else wanted.get(field.name, field.type))
            for field in self.schema
        ]
        return pa.schema(fields), pieces

    def toArrow(self) -> pa.Table:
        """All rows."""
        return pa.Table.from_batches(list(self.batches()), self.schema)

    def _state(self) -> tuple[int, int]:
        try:
            found = os.stat(self._path)
        except OSError as error:
            raise InvalidInput(f"cannot read rows from {str(self._path)!r}: {error.strerror}") from error
        return found.st_size, found.st_mtime_ns

    def _batches(self, types: Mapping[str, pa.DataType]) -> Iterator[pa.RecordBatch]:
        if self._state() != self._seen:
            raise InvalidInput(
                f"the file {str(self._path)!r} has changed since the statement read it: run it again"
            )
        opened = self._opened(types)
        try:
            yield from opened
        except (pa.ArrowException, OSError) as error:
            raise self._refused(error) from error

    def _opened(self, types: Mapping[str, pa.DataType]) -> Any:
        try:
            if self._is_csv:
                # An empty cell is NULL, a quoted empty one is an empty text, and NA is a text like others.
                convert = csv.ConvertOptions(
                    column_types=dict(types),
                    null_values=[""],
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=False,
                )
                return csv.open_csv(self._path, convert_options=convert)
            return _Parquet(pq.ParquetFile(self._path))
        except (pa.ArrowException, OSError) as error:
            raise self._refused(error) from error

    def _refused(self, error: Exception) -> InvalidInput:
        found = re.match(r"In CSV column #(\d+)", str(error))
        column = self.schema.names[int(found[1])] if found else ""
        return InvalidInput(f"the file {str(self._path)!r} cannot be read as a table: {error}", column=column)


class _Parquet:
    """A Parquet file with the face of a CSV reader."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self.schema: pa.Schema = file.schema_arrow.remove_metadata()

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return iter(self._file.iter_batches())


def _csv_type(name: str, data_type: pa.DataType) -> pa.DataType:
    """The type as which the cells of a column are read."""
    if pa.types.is_nested(data_type):
        raise InvalidInput(f"column {name!r}: a CSV file cannot hold a {data_type}", column=name)
    return pa.string() if data_type == TIMESTAMP else data_type


def _with_moments(batch: pa.RecordBatch, names: set[str]) -> pa.RecordBatch:
    for place, name in enumerate(batch.schema.names):
        if name in names:
            batch = batch.set_column(place, name, _moments(name, batch.column(place)))
    return batch


def _moments(name: str, texts: pa.Array) -> pa.Array:
    """Texts as moments; without a zone they are in UTC."""
    zoned = pc.match_substring_regex(texts, r"([zZ]|[+-]\d\d:?(\d\d)?)$")
    try:
        if pc.all(zoned).as_py() is not False:
            return texts.cast(TIMESTAMP)
        return pc.assume_timezone(texts.cast(pa.timestamp("us")), "UTC")
    except pa.ArrowInvalid as error:
        raise InvalidInput(f"column {name!r}: {error}", column=name) from error
