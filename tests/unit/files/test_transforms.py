"""Partition transforms: the specification's own values, and PyIceberg's answers for many others."""

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg import types as iceberg
from pyiceberg.transforms import parse_transform

from lakevilla.errors import InvalidInput, Unsupported
from lakevilla.files.transforms import Transform, applies, apply, parsed, result_type

ALL_BUCKETS = 2**31 - 1
A_UUID = UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")
MICROS, UTC_MICROS = pa.timestamp("us"), pa.timestamp("us", "UTC")


@pytest.mark.parametrize(
    ("value", "data_type", "hashed"),
    [
        (34, pa.int32(), 2017239379),
        (34, pa.int64(), 2017239379),
        (Decimal("14.20"), pa.decimal128(9, 2), -500754589),
        (date(2017, 11, 16), pa.date32(), -653330422),
        (time(22, 31, 8), pa.time64("us"), -662762989),
        (datetime(2017, 11, 16, 22, 31, 8), MICROS, -2047944441),
        (datetime(2017, 11, 16, 22, 31, 8, 1), MICROS, -1207196810),
        (datetime(2017, 11, 16, 14, 31, 8, tzinfo=timezone(timedelta(hours=-8))), UTC_MICROS, -2047944441),
        (datetime(2017, 11, 16, 22, 31, 8, 1), pa.timestamp("ns"), -1207196810),
        ("iceberg", pa.string(), 1210000089),
        ("iceberg", pa.large_string(), 1210000089),
        (A_UUID.bytes, pa.binary(16), 1488055340),
        (A_UUID.bytes, pa.uuid(), 1488055340),
        (b"\x00\x01\x02\x03", pa.binary(4), -188683207),
        (b"\x00\x01\x02\x03", pa.binary(), -188683207),
    ],
    ids=str,
)
def test_buckets_are_those_of_the_specification(value: Any, data_type: pa.DataType, hashed: int) -> None:
    found = apply(f"bucket[{ALL_BUCKETS}]", pa.array([value, None], data_type))
    assert found.to_pylist() == [(hashed & ALL_BUCKETS) % ALL_BUCKETS, None]
    assert found.type == result_type("bucket[7]", data_type) == pa.int32()


@pytest.mark.parametrize(
    ("transform", "data_type", "pairs"),
    [
        ("truncate[10]", pa.int32(), [(1, 0), (-1, -10), (-10, -10), (19, 10)]),
        ("truncate[10]", pa.int64(), [(1, 0), (-1, -10), (2**63 - 1, 2**63 - 8)]),
        ("truncate[50]", pa.decimal128(9, 2), [(Decimal("10.65"), Decimal("10.50"))]),
        ("truncate[50]", pa.decimal128(9, 2), [(Decimal("-0.05"), Decimal("-0.50"))]),
        ("truncate[3]", pa.string(), [("iceberg", "ice"), ("ab", "ab"), ("💧🌍ü🎈", "💧🌍ü")]),
        ("truncate[3]", pa.binary(), [(b"\x01\x02\x03\x04\x05", b"\x01\x02\x03"), (b"\xff", b"\xff")]),
        ("year", pa.date32(), [(date(1969, 12, 31), -1), (date(1970, 1, 1), 0), (date(2017, 11, 16), 47)]),
        ("month", pa.date32(), [(date(1969, 12, 1), -1), (date(1969, 1, 1), -12), (date(2017, 11, 16), 574)]),
        ("day", pa.date32(), [(date(1969, 12, 31), -1), (date(2017, 11, 16), 17486)]),
        ("day", MICROS, [(datetime(1969, 12, 31, 23, 59, 59, 999999), -1), (datetime(1970, 1, 1), 0)]),
        ("hour", MICROS, [(datetime(1969, 12, 31, 23), -1), (datetime(2017, 11, 16, 22, 31, 8), 419686)]),
        ("hour", UTC_MICROS, [(datetime(1969, 12, 31, 22, 59, tzinfo=UTC), -2)]),
        ("day", pa.timestamp("us", "Europe/Berlin"), [(datetime(2024, 1, 5, 23, 30, tzinfo=UTC), 19727)]),
        ("day", pa.timestamp("ns"), [(datetime(1969, 12, 31, 23, 59, 59, 999999), -1)]),
        ("identity", pa.string(), [("a", "a"), ("", "")]),
        ("void", pa.string(), [("a", None), ("", None)]),
    ],
    ids=str,
)
def test_values_of_a_transform_are_those_of_the_specification(
    transform: str, data_type: pa.DataType, pairs: list[tuple[Any, Any]]
) -> None:
    given_values = pa.array([*(value for value, _ in pairs), None], data_type)
    found = apply(transform, given_values)
    assert found.to_pylist() == [*(wanted for _, wanted in pairs), None]
    assert found.type == result_type(transform, data_type)
    assert apply(transform, given_values.slice(1)).equals(found.slice(1))
    assert len(apply(transform, given_values.slice(0, 0))) == 0


# From Hypothesis' values to an Arrow type and PyIceberg's.
_KINDS: list[tuple[st.SearchStrategy[Any], pa.DataType, iceberg.IcebergType]] = [
    (st.integers(-(2**31) + 1000, 2**31 - 1), pa.int32(), iceberg.IntegerType()),
    (st.integers(-(2**63) + 1000, 2**63 - 1), pa.int64(), iceberg.LongType()),
    (st.dates(), pa.date32(), iceberg.DateType()),
    (st.times(), pa.time64("us"), iceberg.TimeType()),
    (st.datetimes(), MICROS, iceberg.TimestampType()),
    (st.datetimes(timezones=st.just(UTC)), UTC_MICROS, iceberg.TimestamptzType()),
    (st.text(max_size=40), pa.string(), iceberg.StringType()),
    (st.binary(max_size=40), pa.binary(), iceberg.BinaryType()),
    (st.binary(min_size=7, max_size=7), pa.binary(7), iceberg.FixedType(7)),
    (st.uuids().map(lambda value: value.bytes), pa.binary(16), iceberg.UUIDType()),
    (
        st.integers(-(10**22), 10**22).map(lambda number: Decimal(number).scaleb(-5)),
        pa.decimal128(24, 5),
        iceberg.DecimalType(24, 5),
    ),
]
_TRANSFORMS = ["year", "month", "day", "hour", "bucket[1]", "bucket[16]", "bucket[997]"]
_TRANSFORMS += ["truncate[1]", "truncate[4]", "truncate[333]", "void", "identity"]


@pytest.mark.parametrize(("values", "data_type", "theirs"), _KINDS, ids=lambda value: str(value)[:20])
def test_transforms_agree_with_pyiceberg(
    values: st.SearchStrategy[Any], data_type: pa.DataType, theirs: iceberg.IcebergType
) -> None:
    transforms: dict[str, Callable[[Any], Any]] = {}
    for transform in _TRANSFORMS:
        reference = parse_transform(transform)
        assert applies(transform, data_type) == reference.can_transform(theirs), transform
        if applies(transform, data_type):
            transforms[transform] = reference.transform(theirs)

    @settings(max_examples=30)
    @given(st.lists(st.none() | values, max_size=30))
    def agree(given_values: list[Any]) -> None:
        array = pa.array(given_values, data_type)
        for transform, reference in transforms.items():
            assert apply(transform, array).to_pylist() == [reference(value) for value in given_values]

    agree()


@pytest.mark.parametrize(
    ("transform", "array"),
    [
        ("truncate[10]", pa.array([-(2**31)], pa.int32())),
        ("truncate[10]", pa.array([-(2**63)], pa.int64())),
        ("truncate[1000]", pa.array([Decimal("-99.9")], pa.decimal128(3, 1))),
        ("hour", pa.array([2**63 - 1], MICROS)),
    ],
    ids=str,
)
def test_partition_value_beyond_its_type_is_refused(transform: str, array: pa.Array) -> None:
    with pytest.raises(InvalidInput, match="a value"):
        apply(transform, array)


@pytest.mark.parametrize(
    "transform", ["bucket", "bucket[0]", "bucket[-1]", "truncate[]", "zorder", "DAY", ""]
)
def test_unknown_transform_is_refused(transform: str) -> None:
    with pytest.raises(Unsupported, match="unknown partition transform"):
        parsed(transform)


def test_transforms_are_taken_apart() -> None:
    assert parsed("bucket[16]") == Transform("bucket", 16)
    assert parsed("truncate[4]") == Transform("truncate", 4)
    assert parsed("day") == Transform("day")
    with pytest.raises(InvalidInput, match="above"):
        parsed("bucket[2147483648]")


@pytest.mark.parametrize(
    ("transform", "array"),
    [("day", pa.array([1])), ("bucket[4]", pa.array([1.5])), ("truncate[4]", pa.array([b"x"], pa.binary(1)))],
    ids=str,
)
def test_transform_that_a_type_does_not_have_is_refused(transform: str, array: pa.Array) -> None:
    with pytest.raises(InvalidInput, match="is not a partition transform of values"):
        apply(transform, array)


def test_long_texts_are_hashed_to_their_end() -> None:
    texts = ["x" * 5000, "x" * 4999 + "y", "x" * 4998]
    found = apply(f"bucket[{ALL_BUCKETS}]", pa.array(texts)).to_pylist()
    reference = parse_transform(f"bucket[{ALL_BUCKETS}]").transform(iceberg.StringType())
    assert found == [reference(text) for text in texts]
