"""Deletion vectors as we write them: those of one statement in one Puffin file (Iceberg's spec, "Deletion
Vectors", and the Puffin spec). Manifests say where in the file each vector is, so readers need no footer."""

import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any

from lakevilla.files.bitmaps import Positions, encode_bitmap, framed
from lakevilla.formats.iceberg.manifests.entries import POSITION_DELETES, Entry

_MAGIC = b"PFA1"
_NO_FLAGS = bytes(4)
_ROW_POSITION = 2147483645
"""The reserved id of the column of row positions."""
_INHERITED = -1
"""Of a blob's snapshot: the vector is written before there is one."""


def encode_vectors(
    files: Sequence[Entry], bitmaps: Sequence[Positions]
) -> tuple[bytes, list[tuple[int, int]]]:
    """The bytes of a file with the deleted rows of each of these data files, sorted, and the place of each
    vector in it: offset and length."""
    parts, places, offset = [_MAGIC], [], len(_MAGIC)
    for rows in bitmaps:
        parts.append(framed(encode_bitmap(rows)))
        places.append((offset, len(parts[-1])))
        offset += len(parts[-1])
    blobs = [_blob(file, rows, place) for file, rows, place in zip(files, bitmaps, places, strict=True)]
    footer = json.dumps({"blobs": blobs, "properties": {"created-by": "LakeVilla"}}).encode()
    parts += [_MAGIC, footer, struct.pack("<i", len(footer)), _NO_FLAGS, _MAGIC]
    return b"".join(parts), places


def _blob(data: Entry, rows: Positions, place: tuple[int, int]) -> dict[str, Any]:
    return {
        "type": "deletion-vector-v1",
        "fields": [_ROW_POSITION],
        "snapshot-id": _INHERITED,
        "sequence-number": _INHERITED,
        "offset": place[0],
        "length": place[1],
        "properties": {"referenced-data-file": data.path, "cardinality": str(len(rows))},
    }


def describe_vector(
    data: Entry, rows: Positions, place: tuple[int, int], path: str, size: int
) -> Mapping[str, Any]:
    """The record of a vector for a manifest; `size` is that of the whole file."""
    return {
        "content": POSITION_DELETES,
        "file_path": path,
        "file_format": "PUFFIN",
        "record_count": len(rows),
        "file_size_in_bytes": size,
        "referenced_data_file": data.path,
        "content_offset": place[0],
        "content_size_in_bytes": place[1],
    }
