"""Deletion vectors written by hand, by the specification of roaring bitmaps, for tests of reading."""

import struct
import zlib

import numpy as np

MAGIC = 1681511377


def bitmap32(values: list[int], runs: bool) -> bytes:
    """A 32-bit roaring bitmap, by the format's own specification."""
    keys = sorted({value >> 16 for value in values})
    groups = [sorted({value & 0xFFFF for value in values if value >> 16 == key}) for key in keys]
    header = b"".join(
        struct.pack("<HH", key, len(group) - 1) for key, group in zip(keys, groups, strict=True)
    )
    if runs:
        flags = np.packbits(np.ones(len(keys), dtype=bool), bitorder="little").tobytes()
        start = struct.pack("<I", 12347 | (len(keys) - 1) << 16) + flags + header
        offsets = b"\0\0\0\0" * len(keys) if len(keys) >= 4 else b""
        return start + offsets + b"".join(run_container(group) for group in groups)
    start = struct.pack("<II", 12346, len(keys)) + header + b"\0\0\0\0" * len(keys)
    return start + b"".join(plain_container(group) for group in groups)


def run_container(group: list[int]) -> bytes:
    ranges: list[list[int]] = []
    for value in group:
        if ranges and value == ranges[-1][1] + 1:
            ranges[-1][1] = value
        else:
            ranges.append([value, value])
    pairs = b"".join(struct.pack("<HH", first, last - first) for first, last in ranges)
    return struct.pack("<H", len(ranges)) + pairs


def plain_container(group: list[int]) -> bytes:
    if len(group) <= 4096:
        return b"".join(struct.pack("<H", value) for value in group)
    bits = np.zeros(65536, dtype=bool)
    bits[group] = True
    return np.packbits(bits, bitorder="little").tobytes()


def encode(positions: set[int], runs: bool = False) -> bytes:
    highs = sorted({position >> 32 for position in positions})
    buckets = [
        struct.pack("<I", high)
        + bitmap32([position & 0xFFFFFFFF for position in positions if position >> 32 == high], runs)
        for high in highs
    ]
    return struct.pack("<IQ", MAGIC, len(highs)) + b"".join(buckets)


def framed(data: bytes) -> bytes:
    """A vector as it lies in a file."""
    return struct.pack(">I", len(data)) + data + struct.pack(">I", zlib.crc32(data))
