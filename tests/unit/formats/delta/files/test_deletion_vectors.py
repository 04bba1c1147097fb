"""Deletion vectors: every container of the roaring format, and everything that can be wrong with them."""

import struct
import zlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakevilla.errors import Corrupt
from lakevilla.files.bitmaps import decode_bitmap
from lakevilla.formats.delta.files.deletion_vectors import (
    INLINE_BYTES,
    decode_z85,
    deletes_of,
    encode_z85,
    store_vectors,
    vector_key,
)
from tests.unit.files.raw_bitmaps import encode, framed
from tests.unit.formats.delta.raw_log import PROTOCOL, memory, metadata, table, write_entry


def inline(data: bytes, cardinality: int) -> dict[str, Any]:
    return {
        "storageType": "i",
        "pathOrInlineDv": encode_z85(data),
        "sizeInBytes": len(data),
        "cardinality": cardinality,
    }


def nowhere(key: str) -> Any:
    raise AssertionError(key)


@given(
    st.sets(st.integers(0, 200_000) | st.integers(0, 1 << 34), max_size=50),
    st.sets(st.tuples(st.integers(0, 300_000), st.integers(1, 70_000)), max_size=2),
    st.booleans(),
)
def test_any_set_of_positions_survives_the_round_trip(
    single: set[int], ranges: set[tuple[int, int]], runs: bool
) -> None:
    positions = single.union(*(range(start, start + length) for start, length in ranges))
    assert decode_bitmap(encode(positions, runs)).tolist() == sorted(positions)


def test_inline_vector_gives_its_rows() -> None:
    deletes = deletes_of(inline(encode({3, 4, 7}), 3), "memory://x", nowhere)
    assert deletes.count == 3
    assert deletes.rows().to_pylist() == [3, 4, 7]


def test_inline_vector_with_short_last_group_gives_its_rows() -> None:
    # As Rust's z85 writes it: `#` for each byte that the last group lacks.
    vector = {
        "storageType": "i",
        "pathOrInlineDv": "^Bg9^0rr910000000000iXQKl0rr91000005c8Xg##093",
        "sizeInBytes": 34,
        "cardinality": 1,
    }
    assert deletes_of(vector, "", nowhere).rows().to_pylist() == [3]


def test_vector_in_a_file_is_read_at_its_offset() -> None:
    store = memory()
    first, second = encode({1}), encode({2, 70_000})
    frames = [framed(first), framed(second)]
    store.put("d.bin", b"\x01" + frames[0] + frames[1])
    vector = {
        "storageType": "p",
        "pathOrInlineDv": f"{store.url}/d.bin",
        "offset": 1 + len(frames[0]),
        "sizeInBytes": len(second),
        "cardinality": 2,
    }
    deletes = deletes_of(vector, store.url, lambda key: (store, key))
    assert deletes.rows().to_pylist() == [2, 70_000]


def test_relative_vector_is_named_by_its_uuid_below_its_prefix() -> None:
    vector = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^"}
    assert vector_key(vector, "") == "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
    assert decode_z85("HelloWorld").hex() == "864fd26fb559f75b"


@pytest.mark.parametrize("damage", ["checksum", "size", "missing", "cut"])
def test_damaged_vector_file_is_corrupt(damage: str) -> None:
    store, data = memory(), encode({1, 2})
    stated = len(data) + (damage == "size")
    crc = zlib.crc32(data) ^ (damage == "checksum")
    framed = b"\x01" + struct.pack(">I", stated) + data + struct.pack(">I", crc)
    if damage != "missing":
        store.put("d.bin", framed[:-1] if damage == "cut" else framed)
    vector = {
        "storageType": "p",
        "pathOrInlineDv": f"{store.url}/d.bin",
        "offset": 1,
        "sizeInBytes": len(data),
    }
    deletes = deletes_of(vector | {"cardinality": 2}, store.url, lambda key: (store, key))
    with pytest.raises(Corrupt):
        deletes.rows()


@pytest.mark.parametrize("data", [b"", b"\0" * 12, encode({5})[:-1], encode(set(range(9)), True)[:-2]])
def test_malformed_bitmap_is_corrupt(data: bytes) -> None:
    with pytest.raises(Corrupt):
        decode_bitmap(data)


def test_vector_with_another_number_of_rows_than_the_log_says_is_corrupt() -> None:
    with pytest.raises(Corrupt):
        deletes_of(inline(encode({3, 4}), 3), "", nowhere).rows()


def test_small_vectors_are_stored_in_the_log_and_the_others_in_one_file() -> None:
    store = memory()
    rows = [np.arange(0, count * 3, 3) for count in (1, 500, 2, 70_000)]
    stored = store_vectors(rows, "vectors-a", "0" * 30 + "12")
    assert [vector["storageType"] for vector in stored.vectors] == ["i", "u", "i", "u"]
    assert stored.file is not None
    key, data = stored.file
    assert key == "vectors-a/deletion_vector_00000000-0000-0000-0000-000000000012.bin"
    assert data[0] == 1
    store.put(key, data)
    for vector, wanted in zip(stored.vectors, rows, strict=True):
        assert vector["storageType"] == "u" or vector["sizeInBytes"] <= INLINE_BYTES
        deletes = deletes_of(vector, store.url, lambda found: (store, found))
        assert deletes.rows().to_numpy().tolist() == wanted.tolist()
        assert deletes.keys == ((key,) if vector["storageType"] == "u" else ())


def test_small_vectors_alone_need_no_file() -> None:
    assert store_vectors([np.array([7])], "vectors-a", "0" * 32).file is None


@given(st.binary(max_size=40))
def test_z85_survives_the_round_trip(data: bytes) -> None:
    assert decode_z85(encode_z85(data)) == data + b"\0" * (-len(data) % 4)
    assert encode_z85(bytes.fromhex("864fd26fb559f75b")) == "HelloWorld"


@pytest.mark.parametrize("listed", [True, False])
def test_table_whose_protocol_does_not_list_vectors_gets_none(listed: bool) -> None:
    store = memory()
    features = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
    protocol = (
        {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}} if listed else PROTOCOL
    )
    write_entry(store, 0, protocol, metadata(("id", "long"), **{"delta.enableDeletionVectors": "true"}))
    opened = table(store)
    snapshot = opened.latest()
    assert snapshot is not None
    assert (opened.masks(snapshot, "UPDATE") is not None) is listed
