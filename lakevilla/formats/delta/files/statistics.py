"""A data file's statistics as Delta writes them: the `stats` text of an `add` action.

Every bound may be rounded outwards, never inwards: strings are cut to a prefix, instants to milliseconds. A
bound that has no safe spelling is left out, which readers take as unknown.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from lakevilla.files.column_mapping import physical_name
from lakevilla.formats.delta.definition.properties import column_list, whole_number
from lakevilla.model import ColumnStatistics

Path = tuple[str, ...]

_ENCODER = json.JSONEncoder(ensure_ascii=False)
_DECODER = json.JSONDecoder(parse_float=Decimal)
_INDEXED = 32
_PREFIX = 32
_LAST_ASCII = "\x7f"
_LAST_CHARACTER = "\U0010ffff"


def indexed_columns(
    schema: pa.Schema, partition_columns: tuple[str, ...], properties: Mapping[str, str]
) -> dict[Path, Path]:
    """The leaves that get statistics, by logical path, with their physical paths.

    `delta.dataSkippingStatsColumns` names them, else they are the first
    `delta.dataSkippingNumIndexedCols`; a list or a map counts as one and has none.
    """
    stored = [field for field in schema if field.name not in partition_columns]
    every = [found for field in stored for found in _leaves(field, (), ())]
    named = properties.get("delta.dataSkippingStatsColumns")
    if named is not None:
        wanted = column_list(named)
        return {path: stored for path, stored in every if any(path[: len(name)] == name for name in wanted)}
    count = whole_number(properties, "delta.dataSkippingNumIndexedCols", _INDEXED)
    return dict(every if count < 0 else every[:count])


def statistics_text(
    rows: int, statistics: Mapping[Path, ColumnStatistics], indexed: Mapping[Path, Path]
) -> str:
    """The JSON text of a file's statistics, by physical names."""
    lows: dict[str, Any] = {}
    highs: dict[str, Any] = {}
    nulls: dict[str, Any] = {}
    for path, stored in indexed.items():
        column = statistics.get(path)
        if column is not None:
            _set(lows, stored, _lower(column.minimum))
            _set(highs, stored, _upper(column.maximum))
            _set(nulls, stored, column.nulls)
    return _json({"numRecords": rows, "minValues": lows, "maxValues": highs, "nullCount": nulls})


def wide_statistics(text: str | None, file_rows: int) -> str:
    """The statistics of a file of which rows were deleted: counts and bounds are of all its rows, as before.

    `text` are those of before. Readers need the number of rows, and must know that bounds may be wide.
    """
    known = _parsed(text)
    if known.get("numRecords") != file_rows:
        # Without that number, or with a wrong one, nothing else there is worth to be relied on.
        return _json({"numRecords": file_rows, "tightBounds": False})
    if "tightBounds" not in known and text is not None:
        # The numbers stay as they are spelled.
        return f'{text.rstrip()[:-1]},"tightBounds":false}}'
    return _json({**known, "tightBounds": False})


def text_of_parsed(row: Mapping[str, Any]) -> str:
    """Statistics that a checkpoint has as a struct, as text."""
    bounds = {"minValues": _lower, "maxValues": _upper}
    known = {name: _spelled(value, bounds.get(name, _plain)) for name, value in row.items()}
    return _json({name: value for name, value in known.items() if value is not None})


def _parsed(text: str | None) -> dict[str, Any]:
    """The members of a text, numbers exactly as they are; empty if it is not an object."""
    try:
        found = _DECODER.decode(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _spelled(value: Any, spell: Callable[[Any], Any]) -> Any:
    """A tree of statistics with its leaves as JSON has them, without what is not known."""
    if not isinstance(value, Mapping):
        return spell(value)
    members = {name: _spelled(member, spell) for name, member in value.items()}
    return {name: member for name, member in members.items() if member is not None}


def _leaves(field: pa.Field, path: Path, stored: Path) -> Iterator[tuple[Path, Path]]:
    path, stored = (*path, field.name), (*stored, physical_name(field))
    if pa.types.is_struct(field.type):
        for child in field.type:
            yield from _leaves(child, path, stored)
    else:
        yield path, stored


def _set(tree: dict[str, Any], path: Path, value: Any) -> None:
    if value is None:
        return
    for name in path[:-1]:
        tree = tree.setdefault(name, {})
    tree[path[-1]] = value


def _lower(value: Any) -> Any:
    match value:
        case bool() | bytes():
            return None
        case str():
            return value[:_PREFIX]
        case datetime():
            return _instant_text(value.replace(microsecond=value.microsecond // 1000 * 1000))
        case _:
            return _plain(value)


def _upper(value: Any) -> Any:
    match value:
        case bool() | bytes():
            return None
        case str():
            return _cut_above(value)
        case datetime():
            excess = value.microsecond % 1000
            try:
                return _instant_text(value + timedelta(microseconds=1000 - excess) if excess else value)
            except OverflowError:
                return None
        case _:
            return _plain(value)


def _plain(value: Any) -> Any:
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return None  # JSON has no number for it.
    return value.isoformat() if isinstance(value, date) else value


def _cut_above(value: str) -> str | None:
    """A short string that no value with this prefix exceeds, compared by code points.

    The character after the prefix is replaced by one that is larger; text in ASCII stays ASCII.
    """
    if len(value) <= _PREFIX:
        return value
    for end in range(_PREFIX, min(len(value), 2 * _PREFIX)):
        if value[end] < _LAST_ASCII:
            return value[:end] + _LAST_ASCII
        if value[end] < _LAST_CHARACTER:
            return value[:end] + _LAST_CHARACTER
    return None


def _instant_text(value: datetime) -> str:
    if value.tzinfo is None:
        return value.isoformat(timespec="milliseconds")
    return value.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def _json(value: Any) -> str:
    """JSON with decimals as exact numbers, which the standard encoder does not have."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{_ENCODER.encode(key)}:{_json(v)}" for key, v in value.items()) + "}"
    return format(value, "f") if isinstance(value, Decimal) else _ENCODER.encode(value)
