"""Partition values as the log spells them."""

import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lakevilla.errors import Corrupt
from lakevilla.files.partitioning import partition_text, plain_values
from lakevilla.formats.delta.files.partition_values import parse_values

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


@pytest.mark.parametrize("zone", [None, "UTC"])
@pytest.mark.parametrize(
    "text",
    [
        "-9999-12-31 23:59:59.999999",
        "-0001-01-01 00:00:00.000000",
        "0000-01-01 00:00:00.000000",
        "+10000-01-01 00:00:00.000000",
    ],
)
def test_moment_beyond_pythons_calendar_is_read_and_spelled_as_it_was(text: str, zone: str | None) -> None:
    data_type = pa.timestamp("us", zone)
    values = parse_values(pa.array([text, "2024-01-01 00:00:00", ""]), data_type)

    spelled = [partition_text(value, data_type) for value in plain_values(values)]

    assert spelled[0] == (text if zone is None else text.replace(" ", "T") + "Z")
    assert spelled[2] is None
    assert parse_values(pa.array(spelled), data_type) == values


@pytest.mark.parametrize("text", ["-9999-12-31", "-0001-01-01", "0000-02-29", "+10000-01-01"])
def test_day_beyond_pythons_calendar_is_read_and_spelled_as_it_was(text: str) -> None:
    values = parse_values(pa.array([text, "2024-01-01"]), pa.date32())
    assert [partition_text(value, pa.date32()) for value in plain_values(values)] == [text, "2024-01-01"]


@pytest.mark.parametrize(
    "text", ["-9999-13-01", "+10000-02-30", "-9999-12-31 25:00:00", "300000-01-01", "99999999-01-01"]
)
def test_day_that_no_calendar_has_is_corrupt(text: str) -> None:
    with pytest.raises(Corrupt):
        parse_values(pa.array([text]), pa.timestamp("us"))
