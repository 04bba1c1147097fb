"""Partition values as the log spells them."""

import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lakevilla.errors import Corrupt
from lakevilla.formats.delta.partition_values import parse_values

UTC = datetime.UTC


@pytest.mark.parametrize(
    ("text", "data_type", "value"),
    [
        ("", pa.string(), None),
        ("", pa.int32(), None),
        (None, pa.date32(), None),
        ("a b/ü", pa.string(), "a b/ü"),
        ("-5", pa.int8(), -5),
        ("1.50", pa.decimal128(10, 2), Decimal("1.50")),
        ("1.5", pa.decimal128(10, 2), Decimal("1.50")),
        ("Infinity", pa.float64(), float("inf")),
        ("-0.0", pa.float32(), -0.0),
        ("true", pa.bool_(), True),
        ("False", pa.bool_(), False),
        ("2020-02-29", pa.date32(), datetime.date(2020, 2, 29)),
        (
            "2020-01-02 03:04:05",
            pa.timestamp("us", "UTC"),
            datetime.datetime(2020, 1, 2, 3, 4, 5, tzinfo=UTC),
        ),
        (
            "2020-01-02T03:04:05.123456Z",
            pa.timestamp("us", "UTC"),
            datetime.datetime(2020, 1, 2, 3, 4, 5, 123456, UTC),
        ),
        (
            "2020-01-02T03:04:05.1+01:00",
            pa.timestamp("us", "UTC"),
            datetime.datetime(2020, 1, 2, 2, 4, 5, 100000, UTC),
        ),
        ("2020-01-02 03:04:05.5", pa.timestamp("us"), datetime.datetime(2020, 1, 2, 3, 4, 5, 500000)),
        ("2020-01-02 03:04:05.123456789", pa.timestamp("us"), datetime.datetime(2020, 1, 2, 3, 4, 5, 123456)),
        ("\x01ü", pa.binary(), "\x01ü".encode()),
    ],
)
def test_value_is_typed(text: str | None, data_type: pa.DataType, value: Any) -> None:
    parsed = parse_values(pa.array([text, text], pa.string()), data_type)
    assert parsed.type == data_type
    assert parsed.to_pylist() == [value, value]


def test_odd_spelling_does_not_spoil_its_neighbours() -> None:
    texts = pa.array(["2020-01-01 00:00:00", None, "2020-01-01T01:00:00+01:00"])
    moment = datetime.datetime(2020, 1, 1, tzinfo=UTC)
    assert parse_values(texts, pa.timestamp("us", "UTC")).to_pylist() == [moment, None, moment]


@pytest.mark.parametrize(
    "data_type", [pa.int32(), pa.date32(), pa.bool_(), pa.timestamp("us"), pa.decimal128(4, 1)]
)
def test_value_that_is_not_of_the_type_is_corrupt(data_type: pa.DataType) -> None:
    with pytest.raises(Corrupt):
        parse_values(pa.array(["x"]), data_type)
