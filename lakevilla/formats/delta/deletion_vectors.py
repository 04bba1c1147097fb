"""Deletion vectors: rows of a data file that are deleted (PROTOCOL.md, "Deletion Vector Format").

A vector is a set of row positions as a 64-bit roaring bitmap, in the log itself (Z85) or in a file of its
own with length and checksum. Decoding is vectorised per container of 65,536 positions. Anything that does
not add up is Corrupt: a vector read wrongly would bring deleted rows back.
"""

import struct
import zlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from lakevilla.errors import Corrupt
from lakevilla.formats.delta.entry import dv_id
from lakevilla.formats.delta.paths import data_key
from lakevilla.model import Deletes
from lakevilla.store.port import Store

Positions = np.ndarray[Any, np.dtype[np.int64]]
Locate = Callable[[str], tuple[Store, str]]
"""From a key (relative to the table's root, or a URL) to the store that holds it."""

_MAGIC = 1681511377
_NO_RUNS, _RUNS = 12346, 12347
_NO_OFFSETS_BELOW = 4
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_Z85_DIGITS = {character: digit for digit, character in enumerate(_Z85)}


def deletes_of(vector: Mapping[str, Any], root: str, locate: Locate) -> Deletes:
    """The deletes that a deletion vector descriptor stands for; read when they are asked for."""
    try:
        cardinality, size = int(vector["cardinality"]), int(vector["sizeInBytes"])
    except (KeyError, TypeError, ValueError) as error:
        raise Corrupt(f"the log describes a deletion vector without size or cardinality: {vector}") from error

    def rows() -> pa.Int64Array:
        positions = decode_bitmap(_read(vector, size, root, locate))
        if len(positions) != cardinality:
            raise Corrupt(f"a deletion vector holds {len(positions)} rows, the log says {cardinality}")
        return pa.array(positions, pa.int64())

    return Deletes(dv_id(vector) or "", cardinality, rows)


def vector_key(vector: Mapping[str, Any], root: str) -> str | None:
    """The key of the file that holds a vector; None if it is in the log itself."""
    text = vector["pathOrInlineDv"]
    match vector["storageType"]:
        case "i":
            return None
        case "p":
            return data_key(text, root)
        case "u" if len(text) >= 20:
            prefix, name = text[:-20], _hyphenated(decode_z85(text[-20:]).hex())
            return f"{prefix}/deletion_vector_{name}.bin" if prefix else f"deletion_vector_{name}.bin"
        case other:
            raise Corrupt(f"a deletion vector has the storage type {other!r} and the path {text!r}")


def _hyphenated(digits: str) -> str:
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def decode_z85(text: str) -> bytes:
    """Bytes from Z85: five characters for four bytes.

    Some writers spell a last group of fewer bytes with a `#` for each missing one. No whole group starts
    with `#`, which would be above 32 bits.
    """
    try:
        digits = np.array([_Z85_DIGITS[character] for character in text], dtype=np.uint64).reshape(-1, 5)
    except (KeyError, ValueError) as error:
        raise Corrupt("a deletion vector in the log is not valid Z85") from error
    missing = len(text[-5:]) - len(text[-5:].lstrip("#"))
    if missing:
        digits[-1, :missing] = 0
    words = digits @ np.array([85**4, 85**3, 85**2, 85, 1], dtype=np.uint64)
    if len(words) and words.max() > 0xFFFFFFFF:
        raise Corrupt("a deletion vector in the log is not valid Z85")
    data = words.astype(">u4").tobytes()
    return data[: len(data) - 4] + data[len(data) - 4 + missing :]


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


def _read(vector: Mapping[str, Any], size: int, root: str, locate: Locate) -> bytes:
    key = vector_key(vector, root)
    if key is None:
        data = decode_z85(vector["pathOrInlineDv"])
        # Z85 pads to four bytes.
        if not size <= len(data) < size + 4:
            raise Corrupt(f"a deletion vector in the log has {len(data)} bytes, not {size}")
        return data[:size]
    store, place = locate(key)
    offset = int(vector.get("offset") or 0)
    framed = store.get_range(place, offset, size + 8)
    if framed is None:
        raise Corrupt(f"the deletion vector {key} is missing")
    if len(framed) == size + 8:
        stated, data, checksum = struct.unpack(f">I{size}sI", framed)
        if stated == size and zlib.crc32(data) == checksum:
            return bytes(data)
    raise Corrupt(f"the deletion vector at byte {offset} of {key} does not match its size or checksum")
