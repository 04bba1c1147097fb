"""Deletion vectors: rows of a data file that are deleted (PROTOCOL.md, "Deletion Vector Format").

A vector is a set of row positions as a 64-bit roaring bitmap (see `files.bitmaps`), in the log itself (Z85)
or in a file with length and checksum, which several vectors share.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from lakevilla.errors import Corrupt
from lakevilla.files.bitmaps import (
    FRAME_BYTES,
    Positions,
    decode_bitmap,
    encode_bitmap,
    framed,
    unframed,
)
from lakevilla.formats.delta.log.entry import dv_id
from lakevilla.formats.delta.log.paths import data_key
from lakevilla.formats.uuids import dashed
from lakevilla.model import Deletes
from lakevilla.store.port import Store

Locate = Callable[[str], tuple[Store, str]]
"""From a key (relative to the table's root, or a URL) to the store that holds it."""

_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_FILE_VERSION = b"\x01"

INLINE_BYTES = 128
"""Up to so many bytes a vector stands in the log. The text is also part of the file's name for conflicts."""
_Z85_DIGITS = {character: digit for digit, character in enumerate(_Z85)}


def deletes_of(vector: Mapping[str, Any], root: str, locate: Locate) -> Deletes:
    """The deletes of a deletion vector descriptor; read when they are needed."""
    try:
        cardinality, size = int(vector["cardinality"]), int(vector["sizeInBytes"])
    except (KeyError, TypeError, ValueError) as error:
        raise Corrupt(f"the log describes a deletion vector without size or cardinality: {vector}") from error

    def rows() -> pa.Int64Array:
        positions = decode_bitmap(_read(vector, size, root, locate))
        if len(positions) != cardinality:
            raise Corrupt(f"a deletion vector holds {len(positions)} rows, the log says {cardinality}")
        return pa.array(positions, pa.int64())

    key = vector_key(vector, root)
    return Deletes(dv_id(vector) or "", cardinality, rows, () if key is None else (key,))


def vector_key(vector: Mapping[str, Any], root: str) -> str | None:
    """The key of the file that holds a vector; None if it is in the log itself."""
    text = vector["pathOrInlineDv"]
    match vector["storageType"]:
        case "i":
            return None
        case "p":
            return data_key(text, root)
        case "u" if len(text) >= 20:
            return _relative_key(text[:-20], decode_z85(text[-20:]).hex())
        case other:
            raise Corrupt(f"a deletion vector has the storage type {other!r} and the path {text!r}")


def _relative_key(folder: str, digits: str) -> str:
    name = f"deletion_vector_{dashed(digits)}.bin"
    return f"{folder}/{name}" if folder else name


@dataclass(frozen=True, slots=True)
class StoredVectors:
    """Vectors as the log describes them, in the order in which they were given, and the file that holds those
    that are not in the log itself; None if all are."""

    vectors: tuple[dict[str, Any], ...]
    file: tuple[str, bytes] | None


def store_vectors(bitmaps: Sequence[Positions], folder: str, digits: str) -> StoredVectors:
    """How these sets of rows are stored: small vectors in the log, where they cost their readers no request,
    the others together in one file of this folder. `digits` are the 32 of the UUID in its name."""
    vectors, pieces, offset = [], [_FILE_VERSION], len(_FILE_VERSION)
    for rows in bitmaps:
        data = encode_bitmap(rows)
        vector = {"sizeInBytes": len(data), "cardinality": len(rows)}
        if len(data) <= INLINE_BYTES:
            vectors.append({"storageType": "i", "pathOrInlineDv": encode_z85(data), **vector})
            continue
        text = folder + encode_z85(bytes.fromhex(digits))
        vectors.append({"storageType": "u", "pathOrInlineDv": text, "offset": offset, **vector})
        pieces.append(framed(data))
        offset += len(pieces[-1])
    file = (_relative_key(folder, digits), b"".join(pieces)) if len(pieces) > 1 else None
    return StoredVectors(tuple(vectors), file)


def inline_vectors(bitmaps: Sequence[Positions]) -> StoredVectors:
    """The same all in the log, for actions that are never published."""
    found = []
    for rows in bitmaps:
        data = encode_bitmap(rows)
        text = {"storageType": "i", "pathOrInlineDv": encode_z85(data)}
        found.append({**text, "sizeInBytes": len(data), "cardinality": len(rows)})
    return StoredVectors(tuple(found), None)


def encode_z85(data: bytes) -> str:
    """Bytes as Z85, filled up with zeros to whole groups of four."""
    words = np.frombuffer(data + b"\0" * (-len(data) % 4), ">u4").astype(np.int64)
    digits = words[:, None] // np.array([85**4, 85**3, 85**2, 85, 1]) % 85
    return "".join(_Z85[digit] for digit in digits.ravel().tolist())


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
    framed = store.get_range(place, offset, size + FRAME_BYTES)
    if framed is None:
        raise Corrupt(f"the deletion vector {key} is missing")
    data = unframed(framed, f"at byte {offset} of {key}")
    if len(data) != size:
        raise Corrupt(f"the deletion vector at byte {offset} of {key} is cut off")
    return data
