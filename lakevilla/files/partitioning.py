"""Rows divided by their partition values, and the folders that such files are put into.

Folders are for people and older tools: as Hive spells them where files leave their partition columns out
(Delta), else as Iceberg does. No reader of ours takes a value from a folder: the table's log holds them.
"""

from base64 import b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from urllib.parse import quote_plus

import numpy as np
import pyarrow as pa

from lakevilla.errors import InvalidInput
from lakevilla.files.column_mapping import physical_name
from lakevilla.files.leaves import member
from lakevilla.files.transforms import PERIODS, apply, result_type
from lakevilla.model import PartitionField, Partitioning
from lakevilla.predicates import Column

_NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"
_ESCAPED = frozenset("\"#%'*/:=?\\{[]^\x7f") | frozenset(map(chr, range(32)))
# File systems limit a name to 255 bytes, object stores a key to 1024: what is longer is left out.
_FOLDER_BYTES = 200
_FOLDERS_BYTES = 600

Values = Mapping[str, Any]
"""Partition values by the names of partition fields."""


@dataclass(frozen=True)
class Division:
    """How rows of a logical schema are divided between files."""

    schema: pa.Schema
    partitioning: Partitioning

    @property
    def stored(self) -> pa.Schema:
        """The columns that files hold. A column of type void has no values, and files leave it out."""
        left_out = self.partitioning.unstored
        return pa.schema([f for f in self.schema if f.name not in left_out and not pa.types.is_null(f.type)])

    def split(self, rows: pa.Table) -> Iterator[tuple[Values, pa.Table]]:
        """The rows of each combination of partition values, in their order, with the columns that are stored.

        InvalidInput for a value that cannot be a partition value.
        """
        stored = rows.select(self.stored.names)
        if not self.partitioning.fields:
            yield {}, stored
            return
        if not rows.num_rows:
            return
        values = {field.name: _values(rows, field) for field in self.partitioning.fields}
        codes = np.zeros(rows.num_rows, dtype=np.int64)
        for array in values.values():
            plain = array.storage if isinstance(array, pa.ExtensionArray) else array
            encoded = plain.dictionary_encode(null_encoding="encode")
            codes = codes * (len(encoded.dictionary) + 1) + encoded.indices.to_numpy()
            # Dense again, so that the next field cannot overflow.
            _, codes = np.unique(codes, return_inverse=True)
        order = np.argsort(codes, kind="stable")
        starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
        arranged = stored if len(starts) == 1 else stored.take(pa.array(order))
        for start, end in zip(starts, [*starts[1:], rows.num_rows], strict=True):
            row = int(order[start])
            found = {name: plain_values(array.slice(row, 1))[0] for name, array in values.items()}
            yield found, arranged.slice(start, end - start)

    def texts(self, values: Values) -> tuple[str | None, ...]:
        """The values as text. Text makes NaN equal to NaN and 0.0 different from -0.0, as a log does;
        Python's equality does not."""
        return tuple(self._text(values[field.name], field) for field in self.partitioning.fields)

    def folder(self, values: Values) -> str:
        """`field=value/` for each partition field."""
        if self.partitioning.stored:
            names = [quote_plus(field.name) for field in self.partitioning.fields]
            texts = ["null" if text is None else quote_plus(text) for text in self.texts(values)]
        else:
            columns = [self.schema.field(field.source[0]) for field in self.partitioning.fields]
            names = [_escape(physical_name(column)) for column in columns]
            texts = [_escape(text) if text else _NULL_FOLDER for text in self.texts(values)]
        both = (f"{name}={text}" for name, text in zip(names, texts, strict=True))
        folders = "".join(f"{one}/" for one in both if len(one.encode()) <= _FOLDER_BYTES)
        return folders if len(folders.encode()) <= _FOLDERS_BYTES else ""

    def _text(self, value: Any, field: PartitionField) -> str | None:
        if self.partitioning.stored and value is not None:
            if field.transform in PERIODS:
                return _period_text(value, PERIODS[field.transform])
            if isinstance(value, bytes):
                return b64encode(value).decode()
        source = type_of(self.schema, field.source)
        return partition_text(value, result_type(field.transform, source))


def type_of(schema: pa.Schema, column: Column) -> pa.DataType:
    """The type of a column, which may lie in structs."""
    data_type = schema.field(column[0]).type
    for name in column[1:]:
        data_type = data_type.field(name).type
    return data_type


def _values(rows: pa.Table, field: PartitionField) -> pa.Array:
    column = rows.column(field.source[0]).combine_chunks()
    for name in field.source[1:]:
        column = member(column, name)
    try:
        return apply(field.transform, column)
    except InvalidInput as error:
        raise InvalidInput(f"partition field {field.name!r}: {error}") from error


def plain_values(array: pa.Array) -> list[Any]:
    """The values as Python has them. A day or moment beyond the years 1 to 9999, which Python's calendar does
    not have, is the number that Arrow counts it as; Arrow takes such a number back."""
    try:
        values: list[Any] = array.to_pylist()
        return values
    except (ValueError, OverflowError):
        return [_plain(value) for value in array]


def _plain(value: pa.Scalar) -> Any:
    try:
        return value.as_py()
    except (ValueError, OverflowError):
        return value.value


def partition_text(value: Any, data_type: pa.DataType) -> str | None:
    """A partition value as text, as table logs and folders spell it; None for null.

    Instants are given in UTC with a `Z`, so that no reader applies its own time zone.
    """
    match value:
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case int() if pa.types.is_temporal(data_type):
            return _far_text(value, data_type)
        case float():
            return _float_text(value, data_type)
        case datetime():
            if value.tzinfo is None:
                return value.isoformat(sep=" ", timespec="microseconds")
            utc = value.astimezone(UTC).replace(tzinfo=None)
            return utc.isoformat(timespec="microseconds") + "Z"
        case Decimal():
            return format(value, "f")
        case bytes():
            return _binary_text(value)
        case _:
            return str(value)


def _far_text(count: int, data_type: pa.DataType) -> str:
    """A day or moment that Python's calendar does not have, see `plain_values`."""
    if pa.types.is_date(data_type):
        return _with_year(np.int64(count).astype("datetime64[D]"))
    moment = np.int64(count).astype(f"datetime64[{data_type.unit}]").astype("datetime64[us]")
    text = _with_year(moment)
    return text.replace("T", " ") if data_type.tz is None else f"{text}Z"


def _with_year(moment: np.datetime64) -> str:
    """The text with a year of at least four digits, and with a sign where it is not one of 0 to 9999."""
    year = int(moment.astype("datetime64[Y]").astype(np.int64)) + 1970
    rest = str(moment).rpartition("-")[0].rpartition("-")[2], str(moment).rpartition("-")[2]
    shown = f"{year:04}" if 0 <= year <= 9999 else f"{year:+05}"
    return "-".join((shown, *rest))


def _period_text(count: int, unit: str) -> str:
    """`2024`, `2024-01`, `2024-01-05` or `2024-01-05-10`, from so many of this unit since 1970."""
    return str(np.int64(count).astype(f"datetime64[{unit}]")).replace("T", "-")


def _escape(text: str) -> str:
    return "".join(f"%{ord(letter):02X}" if letter in _ESCAPED else letter for letter in text)


def _binary_text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{value!r} is not UTF-8, so it cannot be a partition value") from error


def _float_text(value: float, data_type: pa.DataType) -> str:
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    return str(np.float32(value)) if pa.types.is_float32(data_type) else repr(value)
