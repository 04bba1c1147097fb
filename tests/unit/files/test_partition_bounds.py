"""What partition values say about their columns: bounds that hold every value, and buckets of equalities."""

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakevilla.files.partition_bounds import buckets, source_bounds
from lakevilla.files.transforms import applies, apply, result_type
from lakevilla.predicates import ANYTHING, NOTHING, And, Compare, IsNotNull, IsNull, Or, Predicate

MICROS, UTC_MICROS = pa.timestamp("us"), pa.timestamp("us", "UTC")
_TICK = timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("transform", "source", "value", "minimum", "maximum"),
    [
        ("identity", pa.string(), "a", "a", "a"),
        ("year", pa.date32(), 54, date(2024, 1, 1), date(2024, 12, 31)),
        ("month", pa.date32(), 649, date(2024, 2, 1), date(2024, 2, 29)),
        ("day", pa.date32(), 19727, date(2024, 1, 5), date(2024, 1, 5)),
        ("day", pa.date32(), -1, date(1969, 12, 31), date(1969, 12, 31)),
        ("day", MICROS, 19727, datetime(2024, 1, 5), datetime(2024, 1, 6) - _TICK),
        ("day", UTC_MICROS, 1, datetime(1970, 1, 2, tzinfo=UTC), datetime(1970, 1, 3, tzinfo=UTC) - _TICK),
        ("hour", MICROS, 473458, datetime(2024, 1, 5, 10), datetime(2024, 1, 5, 11) - _TICK),
        ("truncate[10]", pa.int32(), -10, -10, -1),
        ("truncate[10]", pa.int32(), 2147483630, 2147483630, 2147483639),
        ("truncate[10]", pa.int64(), 20, 20, 29),
        ("truncate[50]", pa.decimal128(4, 2), Decimal("10.50"), Decimal("10.50"), Decimal("10.99")),
        ("truncate[50]", pa.decimal128(4, 2), Decimal("-0.50"), Decimal("-0.50"), Decimal("-0.01")),
        ("truncate[60]", pa.decimal128(4, 2), Decimal("99.60"), Decimal("99.60"), None),
        ("truncate[3]", pa.string(), "abc", "abc", "abd"),
        ("truncate[3]", pa.string(), "ab", "ab", "ab"),
        ("truncate[2]", pa.string(), "a\U0010ffff", "a\U0010ffff", "b"),
        ("truncate[1]", pa.string(), "\U0010ffff", "\U0010ffff", None),
        ("truncate[1]", pa.string(), "\ud7ff", "\ud7ff", "\ue000"),
        ("truncate[2]", pa.binary(), b"a\xff", b"a\xff", b"b"),
        ("truncate[2]", pa.binary(), b"\xff\xff", b"\xff\xff", None),
        ("truncate[2]", pa.binary(), b"\xff", b"\xff", b"\xff"),
    ],
    ids=str,
)
def test_bounds_are_the_first_and_the_last_value_of_the_partition(
    transform: str, source: pa.DataType, value: Any, minimum: Any, maximum: Any
) -> None:
    bounds = source_bounds(transform, pa.array([value, None], result_type(transform, source)), source)
    assert bounds is not None
    assert [found.type for found in bounds] == [source, source]
    assert [found.to_pylist() for found in bounds] == [[minimum, None], [maximum, None]]


@pytest.mark.parametrize(
    ("transform", "source", "value"),
    [
        ("truncate[10]", pa.int32(), 2147483640),
        ("truncate[10]", pa.int32(), 2147483646),
        ("truncate[10]", pa.int64(), 2**63 - 8),
        ("year", MICROS, 2**31 - 1),
        ("year", pa.date32(), -(2**31)),
        ("day", pa.timestamp("ns"), 2**31 - 1),
    ],
    ids=str,
)
def test_partition_at_the_end_of_its_type_has_no_bounds(
    transform: str, source: pa.DataType, value: int
) -> None:
    bounds = source_bounds(transform, pa.array([value], result_type(transform, source)), source)
    assert bounds is not None
    assert [found.to_pylist() for found in bounds] == [[None], [None]]


@pytest.mark.parametrize("transform", ["bucket[4]", "void", "new_one[4]"])
def test_transform_without_order_tells_no_bounds(transform: str) -> None:
    assert source_bounds(transform, pa.array([1], pa.int32()), pa.int32()) is None


def test_periods_before_1970_may_hold_values_of_the_one_before() -> None:
    bounds = source_bounds("day", pa.array([1, 0, -1], pa.int32()), MICROS)
    assert bounds is not None
    assert bounds[0].to_pylist() == [datetime(1970, 1, 2), datetime(1969, 12, 31), datetime(1969, 12, 30)]
    assert bounds[1].cast(pa.date32()).to_pylist() == [date(1970, 1, 2), date(1970, 1, 1), date(1969, 12, 31)]


_SOURCES: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.int32(), st.integers(-(2**31) + 1000, 2**31 - 1)),
    (pa.int64(), st.integers(-(2**63) + 1000, 2**63 - 1)),
    (pa.date32(), st.dates()),
    (MICROS, st.datetimes()),
    (pa.string(), st.text(max_size=8)),
    (pa.binary(), st.binary(max_size=8)),
    (pa.decimal128(9, 2), st.integers(-(10**8), 10**9 - 1).map(lambda n: Decimal(n).scaleb(-2))),
]


@pytest.mark.parametrize(("source", "values"), _SOURCES, ids=lambda value: str(value)[:20])
def test_every_value_lies_within_the_bounds_of_its_partition(
    source: pa.DataType, values: st.SearchStrategy[Any]
) -> None:
    transforms = ["identity", "year", "month", "day", "hour", "truncate[1]", "truncate[3]", "truncate[100]"]
    usable = [transform for transform in transforms if applies(transform, source)]

    @settings(max_examples=30)
    @given(st.lists(values, min_size=1, max_size=20))
    def within(some: list[Any]) -> None:
        array = pa.array(some, source)
        for transform in usable:
            bounds = source_bounds(transform, apply(transform, array), source)
            assert bounds is not None
            assert pc.all(pc.greater_equal(array, bounds[0])).as_py() is not False
            assert pc.all(pc.less_equal(array, bounds[1])).as_py() is not False

    within()


def _equal(value: Any, column: str = "c") -> Predicate:
    return Compare((column,), "=", value)


def _of(*values: Any, source: pa.DataType) -> frozenset[int]:
    return frozenset(apply("bucket[16]", pa.array(values, source)).to_pylist())


@pytest.mark.parametrize(
    ("source", "value"),
    [
        (pa.int32(), 34),
        (pa.int64(), -1),
        (pa.string(), "iceberg"),
        (pa.binary(), b"\x00\x01"),
        (pa.binary(2), b"\x00\x01"),
        (pa.decimal128(9, 2), Decimal("14.20")),
        (pa.decimal128(9, 2), Decimal("14.2")),
        (pa.decimal128(9, 2), 14),
        (pa.date32(), date(2017, 11, 16)),
        (pa.time64("us"), time(22, 31, 8)),
        (MICROS, datetime(2017, 11, 16, 22, 31, 8)),
        (UTC_MICROS, datetime(2017, 11, 16, 22, 31, 8, tzinfo=UTC)),
        (pa.uuid(), UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")),
    ],
    ids=str,
)
def test_equality_asks_for_one_bucket(source: pa.DataType, value: Any) -> None:
    plain = value.bytes if isinstance(value, UUID) else value
    assert buckets(_equal(value), ("c",), 16, source) == _of(plain, source=source)


@pytest.mark.parametrize(
    ("source", "value"),
    [
        (pa.int32(), 2**40),
        (pa.int32(), 1.0),
        (pa.int32(), True),
        (pa.int64(), "34"),
        (pa.string(), 34),
        (pa.binary(2), b"\x00\x01\x02"),
        (pa.decimal128(9, 2), Decimal("14.205")),
        (pa.date32(), datetime(2017, 11, 16)),
        (MICROS, datetime(2017, 11, 16, tzinfo=UTC)),
        (UTC_MICROS, datetime(2017, 11, 16)),
        (MICROS, date(2017, 11, 16)),
        (pa.uuid(), "f79c3e09-677c-4bbd-a479-3f349cb785e7"),
    ],
    ids=str,
)
def test_equality_with_a_value_of_another_type_may_be_in_any_bucket(source: pa.DataType, value: Any) -> None:
    assert buckets(_equal(value), ("c",), 16, source) is None


@pytest.mark.parametrize(
    ("predicate", "wanted"),
    [
        (ANYTHING, None),
        (NOTHING, ()),
        (Compare(("c",), "<", 1), None),
        (IsNull(("c",)), None),
        (IsNotNull(("c",)), None),
        (_equal(1, "d"), None),
        (Or((_equal(1), _equal(2))), (1, 2)),
        (Or((_equal(1), _equal(2, "d"))), None),
        (Or((_equal(1), IsNull(("c",)))), None),
        (And((_equal(1), _equal(2, "d"))), (1,)),
        (And((_equal(1), Compare(("c",), ">", 0))), (1,)),
        (And((Or((_equal(1), _equal(2))), Or((_equal(2), _equal(3))))), (2,)),
        (And((ANYTHING, IsNotNull(("c",)))), None),
        (Or((And((_equal(1), _equal(5, "d"))), And((_equal(2), _equal(6, "d"))))), (1, 2)),
    ],
    ids=str,
)
def test_buckets_of_a_predicate_hold_every_row_for_which_it_is_true(
    predicate: Predicate, wanted: tuple[int, ...] | None
) -> None:
    # Of 997 buckets no two of these values share one.
    found = buckets(predicate, ("c",), 997, pa.int64())
    if wanted is None:
        assert found is None
    else:
        assert found == frozenset(apply("bucket[997]", pa.array(wanted, pa.int64())).to_pylist())
