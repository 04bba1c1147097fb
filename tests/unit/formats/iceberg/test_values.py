"""Single values in Iceberg's binary form: there and back, and as the spec spells them."""

from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    LongType,
    PrimitiveType,
    StringType,
    TimestampNanoType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from lakevilla.errors import InvalidInput
from lakevilla.formats.iceberg.values import from_bytes, to_bytes

VALUES: dict[PrimitiveType, st.SearchStrategy[Any]] = {
    BooleanType(): st.booleans(),
    IntegerType(): st.integers(-(2**31), 2**31 - 1),
    LongType(): st.integers(-(2**63), 2**63 - 1),
    FloatType(): st.floats(allow_nan=False, width=32),
    DoubleType(): st.floats(allow_nan=False),
    DateType(): st.dates(),
    TimeType(): st.times(),
    TimestampType(): st.datetimes(),
    TimestamptzType(): st.datetimes(timezones=st.just(UTC)),
    StringType(): st.text(),
    BinaryType(): st.binary(),
    FixedType(3): st.binary(min_size=3, max_size=3),
    UUIDType(): st.uuids(),
    DecimalType(38, 4): st.integers(-(10**38) + 1, 10**38 - 1).map(
        lambda n: Decimal((n < 0, tuple(map(int, str(abs(n)))), -4))
    ),
}


@given(st.sampled_from(list(VALUES)).flatmap(lambda kind: st.tuples(st.just(kind), VALUES[kind])))
def test_any_value_comes_back(case: tuple[PrimitiveType, Any]) -> None:
    kind, value = case
    assert from_bytes(kind, to_bytes(kind, value)) == value


@pytest.mark.parametrize(
    ("kind", "value", "data"),
    [
        (BooleanType(), True, "01"),
        (IntegerType(), 34, "22000000"),
        (LongType(), -2, "feffffffffffffff"),
        (DateType(), date(1970, 1, 2), "01000000"),
        (TimeType(), time(0, 0, 1), "40420f0000000000"),
        (TimestampType(), datetime(1970, 1, 1, 0, 0, 1), "40420f0000000000"),
        (TimestamptzType(), datetime(1969, 12, 31, 23, 59, 59, 999999, UTC), "ffffffffffffffff"),
        (StringType(), "é", "c3a9"),
        (UUIDType(), UUID(int=258), "00000000000000000000000000000102"),
        (DecimalType(9, 2), Decimal("1.27"), "7f"),
        (DecimalType(9, 2), Decimal("1.28"), "0080"),
        (DecimalType(9, 2), Decimal("-1.28"), "80"),
        (DecimalType(9, 2), Decimal("-1.29"), "ff7f"),
        (DecimalType(9, 2), Decimal("5"), "01f4"),
    ],
)
def test_value_is_spelt_as_in_the_spec(kind: PrimitiveType, value: Any, data: str) -> None:
    assert to_bytes(kind, value) == bytes.fromhex(data)


def test_date_counted_in_days_is_accepted() -> None:
    assert to_bytes(DateType(), 3) == to_bytes(DateType(), date(1970, 1, 4))


@pytest.mark.parametrize(
    ("written", "value", "kind", "wanted"),
    [
        (IntegerType(), -7, LongType(), -7),
        (FloatType(), 1.5, DoubleType(), 1.5),
        (DecimalType(4, 2), Decimal("12.34"), DecimalType(12, 2), Decimal("12.34")),
        (DateType(), date(1960, 2, 29), TimestampType(), datetime(1960, 2, 29)),
    ],
)
def test_bound_from_before_a_promotion_is_understood(
    written: PrimitiveType, value: Any, kind: PrimitiveType, wanted: Any
) -> None:
    assert from_bytes(kind, to_bytes(written, value)) == wanted


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        (LongType(), b"\x01"),
        (StringType(), b"\xc3"),
        (UUIDType(), b"short"),
        (DateType(), to_bytes(IntegerType(), 2**31 - 1)),
        (TimestampType(), to_bytes(LongType(), 2**63 - 1)),
        (TimestampNanoType(), to_bytes(LongType(), 1)),
    ],
)
def test_bytes_without_a_python_value_are_no_bound(kind: PrimitiveType, data: bytes) -> None:
    assert from_bytes(kind, data) is None


@pytest.mark.parametrize("text", ["1.234", "12345678.90", "NaN"])
def test_decimal_that_does_not_fit_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        to_bytes(DecimalType(9, 2), Decimal(text))
