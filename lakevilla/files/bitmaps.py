"""Sets of row positions as deletion vectors hold them: 64-bit roaring bitmaps, in Delta and Iceberg alike.

Decoding is vectorised per container of 65,536 positions. Anything that does not add up is Corrupt: a vector
read wrongly would bring deleted rows back.
"""

import struct
import zlib
from typing import Any

import numpy as np

from lakevilla.errors import Corrupt

Positions = np.ndarray[Any, np.dtype[np.int64]]

FRAME_BYTES = 8
"""What a vector in a file has around it: its length and its checksum."""

_MAGIC = 1681511377
_NO_RUNS, _RUNS = 12346, 12347
_NO_OFFSETS_BELOW = 4


def unframed(framed: bytes, name: str) -> bytes:
    """The serialised vector in a piece of a file; `name` is for errors."""
    size = len(framed) - FRAME_BYTES
    if size >= 0:
        stated, data, checksum = struct.unpack(f">I{size}sI", framed)
        if stated == size and zlib.crc32(data) == checksum:
            return bytes(data)
    raise Corrupt(f"the deletion vector {name} does not match its size or checksum")


def decode_bitmap(data: bytes) -> Positions:
    """The sorted positions of a serialised vector."""
    try:
        magic, buckets = struct.unpack_from("<IQ", data, 0)
        if magic != _MAGIC:
            raise Corrupt(f"a deletion vector starts with {magic}, not with {_MAGIC}")
        parts, position = [], 12
        for _ in range(buckets):
            (high,) = struct.unpack_from("<I", data, position)
            bucket, position = _decode_bucket(data, position + 4)
            parts.append(bucket + (high << 32))
    except (struct.error, ValueError) as error:
        raise Corrupt(f"a deletion vector is cut off: {error}") from error
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)


def _decode_bucket(data: bytes, start: int) -> tuple[Positions, int]:
    """One 32-bit roaring bitmap, and where it ends."""
    (cookie,) = struct.unpack_from("<I", data, start)
    position = start + 4
    if cookie & 0xFFFF == _RUNS:
        count = (cookie >> 16) + 1
        flags = np.frombuffer(data, np.uint8, (count + 7) // 8, position)
        runs = np.unpackbits(flags, bitorder="little")[:count].astype(bool)
        position += (count + 7) // 8
    elif cookie == _NO_RUNS:
        (count,) = struct.unpack_from("<I", data, position)
        runs = np.zeros(count, dtype=bool)
        position += 4
    else:
        raise Corrupt(f"a deletion vector holds a bitmap with the unknown cookie {cookie}")
    header = np.frombuffer(data, "<u2", count * 2, position).reshape(-1, 2).astype(np.int64)
    position += count * 4
    if cookie == _NO_RUNS or count >= _NO_OFFSETS_BELOW:
        position += count * 4
    parts = []
    for (key, cardinality), run in zip(header.tolist(), runs.tolist(), strict=True):
        values, position = _decode_container(data, position, cardinality + 1, run)
        parts.append(values + (key << 16))
    return (np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)), position


def _decode_container(data: bytes, position: int, cardinality: int, run: bool) -> tuple[Positions, int]:
    if run:
        (count,) = struct.unpack_from("<H", data, position)
        pairs = np.frombuffer(data, "<u2", count * 2, position + 2).reshape(-1, 2).astype(np.int64)
        ranges = [np.arange(start, start + length + 1) for start, length in pairs.tolist()]
        values = np.concatenate(ranges) if ranges else np.empty(0, dtype=np.int64)
        return values.astype(np.int64), position + 2 + count * 4
    if cardinality > 4096:
        bits = np.unpackbits(np.frombuffer(data, np.uint8, 8192, position), bitorder="little")
        return np.flatnonzero(bits).astype(np.int64), position + 8192
    values = np.frombuffer(data, "<u2", cardinality, position).astype(np.int64)
    return values, position + cardinality * 2
