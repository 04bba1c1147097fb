"""Row positions as bitmaps that we write: what we read back, and the bytes that other readers expect."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakevilla.errors import Corrupt
from lakevilla.files.bitmaps import Positions, decode_bitmap, encode_bitmap, framed, unframed
from tests.unit.files.raw_bitmaps import MAGIC

SINGLE = st.sets(st.integers(0, 200_000) | st.integers(0, 1 << 34), max_size=50)
RANGES = st.sets(st.tuples(st.integers(0, 300_000), st.integers(1, 70_000)), max_size=2)
STEPS = st.sets(st.tuples(st.integers(0, 300_000), st.integers(2, 9), st.integers(1, 30_000)), max_size=1)


def positions(values: set[int]) -> Positions:
    return np.array(sorted(values), dtype=np.int64)


@given(SINGLE, RANGES, STEPS)
def test_any_set_of_positions_survives_the_round_trip(
    single: set[int], ranges: set[tuple[int, int]], steps: set[tuple[int, int, int]]
) -> None:
    parts = [range(start, start + length) for start, length in ranges]
    parts += [range(start, start + step * count, step) for start, step, count in steps]
    wanted = positions(single.union(*parts))
    assert np.array_equal(decode_bitmap(encode_bitmap(wanted)), wanted)


@pytest.mark.parametrize(
    ("values", "cookie", "size"),
    [
        # One container each; its header has eight bytes, or with a run seven, before offsets of four.
        (set(range(0, 100, 2)), 12346, 8 + 4 + 4 + 2 * 50),
        (set(range(0, 20_000, 2)), 12346, 8 + 4 + 4 + 8192),
        (set(range(9, 60_000)), 12347, 5 + 4 + 2 + 4),
    ],
    ids=["array", "bitmap", "run"],
)
def test_each_container_is_written_in_its_smallest_form(values: set[int], cookie: int, size: int) -> None:
    data = encode_bitmap(positions(values))
    assert struct.unpack_from("<IQIH", data, 0) == (MAGIC, 1, 0, cookie)
    assert len(data) == 16 + size


def test_bytes_are_those_that_the_format_prescribes() -> None:
    lower = struct.pack("<II", 12346, 2) + struct.pack("<4H", 0, 0, 1, 1)
    # Offsets are where the values of each container begin in their bitmap.
    lower += struct.pack("<II", 24, 26) + struct.pack("<3H", 3, 4464, 4466)
    upper = struct.pack("<II", 12346, 1) + struct.pack("<HHI", 0, 0, 16) + struct.pack("<H", 0)
    wanted = struct.pack("<IQI", MAGIC, 2, 0) + lower + struct.pack("<I", 2) + upper
    assert encode_bitmap(positions({3, 70_000, 70_002, 1 << 33})) == wanted


@pytest.mark.parametrize("count", [3, 4])
def test_offsets_stand_beside_runs_from_four_containers_on(count: int) -> None:
    values = {start << 16 | low for start in range(count) for low in range(100)}
    data = encode_bitmap(positions(values))
    header = 4 + 1 + 4 * count
    if count == 4:
        offsets = struct.unpack_from("<4I", data, 16 + header)
        assert offsets == tuple(header + 16 + 6 * number for number in range(4))
    assert len(data) == 16 + header + (16 if count == 4 else 0) + 6 * count


def test_no_positions_are_a_bitmap_too() -> None:
    assert decode_bitmap(encode_bitmap(positions(set()))).tolist() == []


def test_frame_is_checked() -> None:
    data = encode_bitmap(positions({1, 2}))
    assert unframed(framed(data), "here") == data
    with pytest.raises(Corrupt):
        unframed(framed(data)[:-1] + b"\0", "here")
