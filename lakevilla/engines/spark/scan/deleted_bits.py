"""Deleted rows of a file as bits, in a binary column that has one value for all rows of the file.

Two forms: one that `LivingRows.java` tests in the code that Spark generates, and one that plain SQL can test,
for Spark Connect.
"""

import base64
from typing import Any

import numpy as np

from lakevilla.model import Deletes

_WORD_BITS = 16

_BYTE_BITS = 7
"""In plain SQL, seven bits are a byte, so that every byte is a character that Spark's `ascii` reads."""


def words(deletes: Deletes | None) -> str | None:
    """The bits as numbers of two bytes, the first bit of each the lowest, in base 64; None for no rows."""
    flags = _flags(deletes, _WORD_BITS)
    if flags is None:
        return None
    return _text(np.packbits(flags, bitorder="little").view("<u2").astype(">u2"))


def characters(deletes: Deletes | None) -> str | None:
    """The bits as bytes that are characters, in base 64; None for no rows."""
    flags = _flags(deletes, _BYTE_BITS)
    if flags is None:
        return None
    weights = np.left_shift(np.uint8(1), np.arange(_BYTE_BITS, dtype=np.uint8))
    return _text((flags.reshape(-1, _BYTE_BITS) * weights).sum(axis=1).astype(np.uint8))


def is_living(deleted: str, row: str) -> str:
    """The condition for rows that are not among the deleted `characters`, as SQL."""
    byte = f"ascii(CAST(substring({deleted}, CAST({row} DIV {_BYTE_BITS} AS INT) + 1, 1) AS STRING))"
    return f"{deleted} IS NULL OR ({byte} & shiftleft(1, CAST({row} % {_BYTE_BITS} AS INT))) = 0"


def _flags(deletes: Deletes | None, multiple: int) -> Any:
    """A flag for each row up to the last deleted one, and on to a multiple."""
    if deletes is None or deletes.count == 0:
        return None
    rows = deletes.rows().to_numpy(zero_copy_only=False)
    if not len(rows):
        return None
    flags = np.zeros((int(rows[-1]) // multiple + 1) * multiple, dtype=np.uint8)
    flags[rows] = 1
    return flags


def _text(numbers: Any) -> str:
    return base64.b64encode(numbers.tobytes()).decode()
