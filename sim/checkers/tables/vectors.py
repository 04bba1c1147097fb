"""Deletion vectors of Delta tables, read by slow code of its own: roaring bitmaps, in Z85 or in files."""

import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


@dataclass(frozen=True, slots=True)
class Vector:
    """A vector, as an `add` tells it. `key` is that of the file which holds it; None if the log does."""

    key: str | None
    told: tuple[tuple[str, Any], ...]

    @staticmethod
    def of(root: str, told: Mapping[str, Any]) -> "Vector":
        known = {name: value for name, value in told.items() if value is not None}
        key = None if told["storageType"] == "i" else _key(root, told["pathOrInlineDv"])
        return Vector(key, tuple(sorted(known.items())))

    def rows(self, objects: Mapping[str, bytes]) -> set[int]:
        """The positions of the rows that are deleted."""
        told = dict(self.told)
        size = told["sizeInBytes"]
        if self.key is None:
            data = _from_z85(told["pathOrInlineDv"])[:size]
        else:
            file, offset = objects[self.key], told["offset"]
            data = file[offset + 4 : offset + 4 + size]
            ends = (offset, offset + 4 + size)
            stated, checksum = (struct.unpack_from(">I", file, at)[0] for at in ends)
            assert (stated, checksum) == (size, zlib.crc32(data)), f"{self.key} holds another vector"
        found = set(_positions(data))
        assert len(found) == told["cardinality"], f"{found} are the rows of a vector that is {told}"
        return found


def name_of(action: Mapping[str, Any]) -> str:
    """By what a log tells files: one path may come again with another vector."""
    vector = action.get("deletionVector")
    if vector is None:
        return str(action["path"])
    return f"{action['path']} {vector['storageType']}{vector['pathOrInlineDv']} {vector.get('offset')}"


def _key(root: str, text: str) -> str:
    digits = _from_z85(text[-20:]).hex()
    uuid = "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
    parts = [root, text[:-20], f"deletion_vector_{uuid}.bin"]
    return "/".join(part for part in parts if part)


def _from_z85(text: str) -> bytes:
    words = []
    for start in range(0, len(text), 5):
        word = 0
        for character in text[start : start + 5]:
            word = word * 85 + _Z85.index(character)
        words.append(struct.pack(">I", word))
    return b"".join(words)


def _positions(data: bytes) -> Iterator[int]:
    magic, buckets = struct.unpack_from("<IQ", data)
    assert magic == 1681511377, "a vector begins with another number"
    at = 12
    for _ in range(buckets):
        (high,) = struct.unpack_from("<I", data, at)
        values, at = _bucket(data, at + 4)
        yield from ((high << 32) + value for value in values)


def _bucket(data: bytes, at: int) -> tuple[list[int], int]:
    (cookie,) = struct.unpack_from("<I", data, at)
    at += 4
    if cookie & 0xFFFF == 12347:
        count = (cookie >> 16) + 1
        flags = data[at : at + (count + 7) // 8]
        at += len(flags)
    else:
        assert cookie == 12346, "a bitmap begins with another number"
        (count,) = struct.unpack_from("<I", data, at)
        flags = bytes((count + 7) // 8)
        at += 4
    heads = [struct.unpack_from("<HH", data, at + 4 * number) for number in range(count)]
    at += 4 * count
    if cookie == 12346 or count >= 4:
        at += 4 * count
    values: list[int] = []
    for number, (key, less) in enumerate(heads):
        found, at = _container(data, at, less + 1, bool(flags[number // 8] >> number % 8 & 1))
        values += [(key << 16) + value for value in found]
    return values, at


def _container(data: bytes, at: int, count: int, is_run: bool) -> tuple[list[int], int]:
    if is_run:
        (runs,) = struct.unpack_from("<H", data, at)
        pairs = [struct.unpack_from("<HH", data, at + 2 + 4 * number) for number in range(runs)]
        return [v for first, more in pairs for v in range(first, first + more + 1)], at + 2 + 4 * runs
    if count > 4096:
        return [v for v in range(1 << 16) if data[at + v // 8] >> v % 8 & 1], at + 8192
    return list(struct.unpack_from(f"<{count}H", data, at)), at + 2 * count
