"""Sets of row positions as deletion vectors hold them: 64-bit roaring bitmaps, in Delta and Iceberg alike.

Both ways are vectorised per container of 65,536 positions. Anything that does not add up is Corrupt: a vector
read wrongly would bring deleted rows back. What is written is the portable serialisation, each container in
the smallest of its three forms.
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
_ARRAY_VALUES = 4096
_BITMAP_BYTES = 8192


def unframed(framed: bytes, name: str) -> bytes:
    """The serialised vector in a piece of a file; `name` is for errors."""
    size = len(framed) - FRAME_BYTES
    if size >= 0:
        stated, data, checksum = struct.unpack(f">I{size}sI", framed)
        if stated == size and zlib.crc32(data) == checksum:
            return bytes(data)
    raise Corrupt(f"the deletion vector {name} does not match its size or checksum")


def framed(data: bytes) -> bytes:
    """A serialised vector as it lies in a file."""
    return struct.pack(f">I{len(data)}sI", len(data), data, zlib.crc32(data))


def joined(before: Positions, more: Positions) -> Positions:
    """Both sets, each sorted and without a position of the other one: they are only merged."""
    return np.sort(np.concatenate([before, more]), kind="stable")


def encode_bitmap(positions: Positions) -> bytes:
    """The serialised vector of positions that are sorted and distinct."""
    highs = positions >> 32
    starts = np.flatnonzero(np.diff(highs, prepend=-1))
    parts = [struct.pack("<IQ", _MAGIC, len(starts))]
    for start, bucket in zip(starts.tolist(), np.split(positions, starts[1:]), strict=False):
        parts += [struct.pack("<I", int(highs[start])), *_encode_bucket(bucket & 0xFFFFFFFF)]
    return b"".join(parts)


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
        lengths = pairs[:, 1] + 1
        ends = np.cumsum(lengths)
        # Each run's start, less the values before it, plus the number of every value.
        values = np.repeat(pairs[:, 0] - (ends - lengths), lengths) + np.arange(lengths.sum())
        return values, position + 2 + count * 4
    if cardinality > _ARRAY_VALUES:
        bits = np.unpackbits(np.frombuffer(data, np.uint8, _BITMAP_BYTES, position), bitorder="little")
        return np.flatnonzero(bits).astype(np.int64), position + _BITMAP_BYTES
    values = np.frombuffer(data, "<u2", cardinality, position).astype(np.int64)
    return values, position + cardinality * 2


def _encode_bucket(values: Positions) -> list[bytes]:
    """One 32-bit roaring bitmap, in pieces."""
    keys = values >> 16
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    groups = [group & 0xFFFF for group in np.split(values, starts[1:])]
    # A run begins wherever a value does not follow the one before it, and with each container.
    begins = np.diff(values, prepend=-2) != 1
    begins[starts] = True
    run_counts = np.add.reduceat(begins, starts, dtype=np.int64).tolist()
    runs = [2 + 4 * count < _plain_bytes(group) for count, group in zip(run_counts, groups, strict=True)]
    containers = [
        _run_container(group) if run else _plain_container(group)
        for group, run in zip(groups, runs, strict=True)
    ]
    header = np.array(
        [(key, len(g) - 1) for key, g in zip(keys[starts].tolist(), groups, strict=True)], "<u2"
    )
    if any(runs):
        flags = np.packbits(np.array(runs), bitorder="little").tobytes()
        start = struct.pack("<I", _RUNS | (len(groups) - 1) << 16) + flags
    else:
        start = struct.pack("<II", _NO_RUNS, len(groups))
    parts = [start, header.tobytes()]
    if not any(runs) or len(groups) >= _NO_OFFSETS_BELOW:
        first = len(start) + 8 * len(groups)
        sizes = np.cumsum([first, *map(len, containers)])
        parts.append(sizes[:-1].astype("<u4").tobytes())
    return parts + containers


def _plain_bytes(values: Positions) -> int:
    return min(2 * len(values), _BITMAP_BYTES)


def _run_container(values: Positions) -> bytes:
    firsts = np.flatnonzero(np.diff(values, prepend=-2) != 1)
    lengths = np.diff(firsts, append=len(values)) - 1
    pairs = np.stack([values[firsts], lengths], axis=1)
    return struct.pack("<H", len(firsts)) + pairs.astype("<u2").tobytes()


def _plain_container(values: Positions) -> bytes:
    if len(values) <= _ARRAY_VALUES:
        return values.astype("<u2").tobytes()
    bits = np.zeros(1 << 16, dtype=np.bool_)
    bits[values] = True
    return np.packbits(bits, bitorder="little").tobytes()
