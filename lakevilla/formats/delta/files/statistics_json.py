"""Statistics of files as JSON text, parsed in bulk with a schema of just what is asked for.

Arrow's JSON reader does the work, except for a few texts, for which setting it up takes longer than reading
them. It refuses a whole batch for one odd value (the string "NaN" among numbers, say); such a batch is parsed
text by text too, and what still makes no sense becomes null.

The reader sees one stream, not separate texts, and it crashes the process on a stream that starts with
`null`. So only texts that look like one object each go through it (`_is_plain`); the others are parsed one by
one.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from lakevilla.errors import Corrupt
from lakevilla.formats.delta.files.partition_values import parse_values

Path = tuple[str, ...]

# Up to this many texts, one by one is quicker.
_FEW = 8
_TEXT = pa.string()
_DECODER = json.JSONDecoder(parse_float=Decimal)
_NO_STATISTICS = "{}"
_OPEN, _CLOSE, _LINE_FEED, _RETURN = b"{}\n\r"
_PIECE = 1 << 20

_ORDERED = (
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_decimal,
    pa.types.is_string,
    pa.types.is_boolean,
    pa.types.is_date,
    pa.types.is_timestamp,
)


def has_bounds(data_type: pa.DataType) -> bool:
    """Whether statistics hold a minimum and a maximum for columns of this type."""
    return any(is_kind(data_type) for is_kind in _ORDERED)


def parse_texts(texts: pa.Array, types: Mapping[Path, pa.DataType]) -> pa.StructArray:
    """These paths of every text, as one struct for each text; absent values are null.

    Dates come as timestamps, and timestamps without zone, in UTC.
    """
    data_type = _nest({path: _readable(wanted) for path, wanted in types.items()})
    if len(texts) <= _FEW:
        return _parse_one_by_one(texts, data_type)
    filled = pc.fill_null(texts, _NO_STATISTICS)
    lines = _joined(filled)
    if _all_plain(lines, len(texts)):
        return _parse_objects(texts, lines, data_type)
    plain = _is_plain(filled)
    objects = pc.if_else(plain, filled, _NO_STATISTICS)
    odd = np.flatnonzero(~plain.to_numpy(zero_copy_only=False))
    places = np.arange(len(texts))
    places[odd] = len(texts) + np.arange(len(odd))
    parsed = _parse_objects(objects, _joined(objects), data_type)
    others = _parse_one_by_one(texts.take(pa.array(odd)), data_type)
    return pa.concat_arrays([parsed, others]).take(pa.array(places))


def _is_plain(texts: pa.Array) -> pa.Array:
    """Whether a text runs from `{` to `}` in one line.

    Between two such texts the reader sees `}`, a line break and `{`, which only occur outside of all objects.
    So each text makes at least one row, and if there are as many rows as texts, each row belongs to its own
    text.
    """
    ends = pc.and_(pc.starts_with(texts, "{"), pc.ends_with(texts, "}"))
    broken = pc.or_(pc.match_substring(texts, "\n"), pc.match_substring(texts, "\r"))
    return pc.and_not(ends, broken)


@dataclass(frozen=True, slots=True)
class _Lines:
    """Texts with a line break after each: all characters without a copy, and where each text starts."""

    content: pa.Buffer
    starts: "np.ndarray[Any, np.dtype[np.int32]]"
    longest: int


def _joined(texts: pa.Array) -> _Lines:
    lines = pc.binary_join_element_wise(texts, "", "\n")
    end = lines.offset + len(lines)
    offsets = np.frombuffer(lines.buffers()[1], np.int32)[lines.offset : end + 1]
    content = lines.buffers()[2].slice(int(offsets[0]), int(offsets[-1] - offsets[0]))
    return _Lines(content, offsets - offsets[0], int(np.diff(offsets).max()))


def _all_plain(lines: _Lines, count: int) -> bool:
    """Whether `_is_plain` holds for all texts, by a faster way."""
    characters = np.frombuffer(lines.content, np.uint8)
    first, last = characters[lines.starts[:-1]], characters[lines.starts[1:] - 2]
    if not ((first == _OPEN).all() and (last == _CLOSE).all()):
        return False
    pieces = [characters[at : at + _PIECE] for at in range(0, len(characters), _PIECE)]
    return sum(np.count_nonzero(piece == _LINE_FEED) for piece in pieces) == count and not any(
        (piece == _RETURN).any() for piece in pieces
    )


def _parse_objects(texts: pa.Array, lines: _Lines, data_type: pa.DataType) -> pa.StructArray:
    size = lines.content.size
    # The reader allocates a block however little there is to read, and a block must hold a whole text.
    block = max(2 * lines.longest, min(1 << 20, size))
    try:
        table = pj.read_json(
            pa.BufferReader(lines.content),
            read_options=pj.ReadOptions(use_threads=size > block, block_size=block),
            parse_options=pj.ParseOptions(
                explicit_schema=pa.schema(list(data_type)), unexpected_field_behavior="ignore"
            ),
        )
    except pa.ArrowException:
        return _parse_one_by_one(texts, data_type)
    if table.num_rows != len(texts):
        return _parse_one_by_one(texts, data_type)
    structs = table.select([field.name for field in data_type]).to_struct_array()
    return pa.concat_arrays(structs.chunks) if isinstance(structs, pa.ChunkedArray) else structs


def _readable(data_type: pa.DataType) -> pa.DataType:
    """The type by which Arrow's JSON reader understands what Delta writes for a column of this type."""
    if pa.types.is_date(data_type):
        return pa.timestamp("s")
    return pa.timestamp("us") if pa.types.is_timestamp(data_type) else data_type


def _nest(types: Mapping[Path, pa.DataType]) -> pa.DataType:
    members: dict[str, dict[Path, pa.DataType]] = {}
    for path, data_type in types.items():
        members.setdefault(path[0], {})[path[1:]] = data_type
    return pa.struct(
        [pa.field(name, below[()] if () in below else _nest(below)) for name, below in members.items()]
    )


def _parse_one_by_one(texts: pa.Array, data_type: pa.DataType) -> pa.StructArray:
    # As bytes: a checkpoint may hold strings that are not UTF-8.
    raw = texts.cast(pa.binary()).to_pylist()
    return pa.array([_lenient(_loaded(text), data_type) for text in raw], data_type)


def _loaded(text: bytes | None) -> Any:
    try:
        # As text: of bytes the reader would have to guess the encoding.
        return None if not text else _DECODER.decode(text.decode())
    except (ValueError, RecursionError):
        # Statistics are advice: a file with unreadable ones is merely never skipped.
        return None


def _lenient(value: Any, data_type: pa.DataType) -> Any:
    if pa.types.is_struct(data_type):
        if not isinstance(value, dict):
            return None
        return {field.name: _lenient(value.get(field.name), field.type) for field in data_type}
    if value is None or (isinstance(value, str) and data_type == _TEXT):
        return value
    try:
        if isinstance(value, str) and not pa.types.is_string(data_type):
            return parse_values(pa.array([value]), data_type)[0].as_py()
        if pa.types.is_floating(data_type) and isinstance(value, Decimal):
            value = float(value)
        return pa.scalar(value, data_type).as_py()
    except (pa.ArrowException, Corrupt, ValueError, TypeError, OverflowError):
        return None
