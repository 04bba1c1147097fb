"""Murmur3 (x86, 32 bits, seed 0) of many values at once, as Iceberg's bucket transform wants it.

Numbers and times are hashed as eight bytes, little endian; decimals as the shortest big endian two's
complement of their unscaled value; texts as UTF-8.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_C1 = np.uint32(0xCC9E2D51)
_C2 = np.uint32(0x1B873593)
_LAST_BYTES = np.array([0, 0xFF, 0xFFFF, 0xFFFFFF], np.uint32)

Words = npt.NDArray[np.uint32]


def hash_longs(values: npt.NDArray[np.int64]) -> Words:
    """The hashes of 64-bit numbers."""
    halves = values.astype("<i8").view("<u4").reshape(-1, 2)
    hashes = np.zeros(len(values), np.uint32)
    for half in range(2):
        hashes = _with_word(hashes, halves[:, half])
    return _finished(hashes, np.uint32(8))


def hash_bytes(values: pa.Array) -> Words:
    """The hashes of a string or binary array of any kind; those of nulls mean nothing."""
    array = values.cast(pa.large_binary()).fill_null(b"")
    _, offsets, data = array.buffers()
    bounds = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
    stored = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    # The array may be a small part of what is stored there.
    first, end = bounds[0], bounds[-1]
    return _hash_slices(stored[first:end], bounds[:-1] - first, np.diff(bounds))


def hash_decimals(values: pa.Decimal128Array) -> Words:
    """The hashes of decimals; those of nulls mean nothing."""
    stored = np.frombuffer(values.buffers()[1], np.uint8)[
        values.offset * 16 : (values.offset + len(values)) * 16
    ]
    digits = np.ascontiguousarray(stored.reshape(-1, 16)[:, ::-1])
    # A leading byte says nothing if it only repeats the sign of the byte after it.
    sign = np.where(digits[:, :1] >> 7, np.uint8(255), np.uint8(0))
    idle = np.zeros(digits.shape, np.bool_)
    idle[:, :-1] = (digits[:, :-1] == sign) & (digits[:, 1:] >> 7 == sign >> 7)
    skipped = np.argmin(idle, axis=1)
    return _hash_slices(digits.reshape(-1), np.arange(len(values)) * 16 + skipped, 16 - skipped)


def _hash_slices(
    data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]
) -> Words:
    # The word that begins at each byte, also where it is not aligned.
    padded = np.concatenate([data, np.zeros(4, np.uint8)])
    at = np.ndarray((len(data) + 1,), "<u4", padded, strides=(1,))
    hashes = np.zeros(len(starts), np.uint32)
    words = lengths // 4
    rows = np.flatnonzero(words)
    word = 0
    while len(rows):
        hashes[rows] = _with_word(hashes[rows], at[starts[rows] + 4 * word])
        word += 1
        rows = rows[words[rows] > word]
    rows = np.flatnonzero(lengths % 4)
    rest = at[starts[rows] + 4 * words[rows]] & _LAST_BYTES[lengths[rows] % 4]
    hashes[rows] ^= _mixed(rest)
    return _finished(hashes, lengths.astype(np.uint32))


def _with_word(hashes: Words, word: Words) -> Words:
    return _rotated(hashes ^ _mixed(word), 13) * np.uint32(5) + np.uint32(0xE6546B64)


def _mixed(word: Words) -> Words:
    return _rotated(word * _C1, 15) * _C2


def _rotated(words: Words, by: int) -> Words:
    return (words << np.uint32(by)) | (words >> np.uint32(32 - by))


def _finished(hashes: Words, lengths: Words | np.uint32) -> Words:
    hashes = hashes ^ lengths
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        hashes = (hashes ^ (hashes >> np.uint32(shift))) * np.uint32(factor)
    return hashes ^ (hashes >> np.uint32(16))
