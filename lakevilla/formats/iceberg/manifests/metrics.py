"""What a manifest records about the columns of a data file: counts and bounds, by column id.

The table's properties `write.metadata.metrics.*` say how much is recorded; by default strings and binaries
are cut to 16 characters.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyiceberg.schema import Schema
from pyiceberg.types import BinaryType, FixedType, NestedField, PrimitiveType, StringType, StructType

from lakevilla.formats.iceberg.values import to_bytes
from lakevilla.model import ColumnStatistics

_DEFAULT = "write.metadata.metrics.default"
_COLUMN = "write.metadata.metrics.column."
_TRUNCATE = re.compile(r"truncate\((\d+)\)")
_CUT = 16
_FULL = -1
_SURROGATES = range(0xD800, 0xE000)
_LAST_CHARACTER = 0x10FFFF

Path = tuple[str, ...]


@dataclass(frozen=True)
class Metrics:
    """Counts and bounds of one file's columns, by column id. `values` counts nulls too."""

    values: dict[int, int] = field(default_factory=dict)
    nulls: dict[int, int] = field(default_factory=dict)
    lower: dict[int, bytes] = field(default_factory=dict)
    upper: dict[int, bytes] = field(default_factory=dict)


def leaves(schema: Schema) -> dict[Path, NestedField]:
    """The leaf columns outside of lists and maps, by their path."""
    return dict(_leaves(schema.fields, ()))


def metrics(
    statistics: Mapping[Path, ColumnStatistics],
    rows: int,
    columns: Mapping[Path, NestedField],
    properties: Mapping[str, str],
) -> Metrics:
    """The metrics of a file with this many rows; `columns` are the `leaves` of the table's schema."""
    found = Metrics()
    for path, known in statistics.items():
        column = columns.get(path)
        length = _length(properties, path)
        if column is None or length is None:
            continue
        found.values[column.field_id] = rows
        found.nulls[column.field_id] = known.nulls
        if length:
            _add_bounds(found, column, known, length)
    return found


def _leaves(fields: Sequence[NestedField], above: Path) -> Iterator[tuple[Path, NestedField]]:
    for one in fields:
        path = (*above, one.name)
        if isinstance(one.field_type, StructType):
            yield from _leaves(one.field_type.fields, path)
        elif isinstance(one.field_type, PrimitiveType):
            yield path, one


def _length(properties: Mapping[str, str], path: Path) -> int | None:
    """To how many characters bounds are cut: None for no metrics at all, 0 for no bounds."""
    wanted = properties.get(_COLUMN + ".".join(path), properties.get(_DEFAULT, "")).lower()
    known = {"none": None, "counts": 0, "full": _FULL}
    if wanted in known:
        return known[wanted]
    cut = _TRUNCATE.fullmatch(wanted)
    # As Iceberg does with what it does not understand.
    return int(cut[1]) if cut else _CUT


def _add_bounds(found: Metrics, column: NestedField, known: ColumnStatistics, length: int) -> None:
    kind = column.field_type
    if known.minimum is None or known.maximum is None or not isinstance(kind, PrimitiveType):
        return
    found.lower[column.field_id] = to_bytes(kind, _lower(kind, known.minimum, length))
    upper = _upper(kind, known.maximum, length)
    if upper is not None:
        found.upper[column.field_id] = to_bytes(kind, upper)


def _lower(kind: PrimitiveType, value: Any, length: int) -> Any:
    if _is_cut(kind, value, length):
        return value[:length]
    # Both zeros are equal for the writer of the statistics, but not in Iceberg's order.
    return -0.0 if isinstance(value, float) and value == 0 else value


def _upper(kind: PrimitiveType, value: Any, length: int) -> Any:
    """None if no text of that length is above all texts that begin like the value."""
    if not _is_cut(kind, value, length):
        return 0.0 if isinstance(value, float) and value == 0 else value
    return _next_text(value[:length]) if isinstance(value, str) else _next_bytes(value[:length])


def _is_cut(kind: PrimitiveType, value: Any, length: int) -> bool:
    return isinstance(kind, StringType | BinaryType | FixedType) and length != _FULL and len(value) > length


def _next_text(text: str) -> str | None:
    kept = text.rstrip(chr(_LAST_CHARACTER))
    if not kept:
        return None
    following = ord(kept[-1]) + 1
    return kept[:-1] + chr(_SURROGATES.stop if following in _SURROGATES else following)


def _next_bytes(data: bytes) -> bytes | None:
    kept = data.rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else None
