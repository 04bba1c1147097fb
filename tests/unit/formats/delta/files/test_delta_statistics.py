"""Delta's spelling of statistics: bounds are rounded outwards, never inwards."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakevilla.errors import InvalidInput
from lakevilla.files.column_mapping import PHYSICAL_NAME
from lakevilla.formats.delta.definition.properties import column_list
from lakevilla.formats.delta.files.statistics import (
    indexed_columns,
    statistics_text,
    text_of_parsed,
    wide_statistics,
)
from lakevilla.model import ColumnStatistics


def bounds(minimum: Any, maximum: Any) -> tuple[Any, Any]:
    text = statistics_text(1, {("c",): ColumnStatistics(minimum, maximum, 0)}, {("c",): ("c",)})
    parsed = json.loads(text, parse_float=str)
    return parsed["minValues"].get("c"), parsed["maxValues"].get("c")


@settings(deadline=None)
@given(st.text())
def test_cut_strings_still_enclose_the_value(value: str) -> None:
    low, high = bounds(value, value)
    assert len(low) <= 32
    assert low <= value
    assert high is None or (len(high) <= 65 and high >= value)


def test_a_long_ascii_string_is_cut_to_ascii() -> None:
    assert bounds("a" * 40, "b" * 40) == ("a" * 32, "b" * 32 + "\x7f")


def test_a_string_that_nothing_exceeds_has_no_upper_bound() -> None:
    assert bounds("\U0010ffff" * 80, "\U0010ffff" * 80)[1] is None
    assert bounds("x", "a" * 32 + "é")[1] == "a" * 32 + "\U0010ffff"


@pytest.mark.parametrize(
    ("value", "low", "high"),
    [
        (datetime(2026, 1, 2, 3, 4, 5, 678901, UTC), "2026-01-02T03:04:05.678Z", "2026-01-02T03:04:05.679Z"),
        (datetime(2026, 1, 2, 3, 4, 5, 678000, UTC), "2026-01-02T03:04:05.678Z", "2026-01-02T03:04:05.678Z"),
        (datetime(2026, 1, 2, 3, 4, 5, 1), "2026-01-02T03:04:05.000", "2026-01-02T03:04:05.001"),
        (datetime(1969, 12, 31, 23, 59, 59, 999999), "1969-12-31T23:59:59.999", "1970-01-01T00:00:00.000"),
        (datetime(9999, 12, 31, 23, 59, 59, 999999), "9999-12-31T23:59:59.999", None),
        (date(2026, 1, 2), "2026-01-02", "2026-01-02"),
        (Decimal("1.50"), "1.50", "1.50"),
        (1.5, "1.5", "1.5"),
        (float("inf"), None, None),
        (True, None, None),
        (b"x", None, None),
    ],
)
def test_bounds_are_spelled_as_readers_expect(value: Any, low: Any, high: Any) -> None:
    assert bounds(value, value) == (low, high)


def test_a_column_without_bounds_still_has_its_null_count() -> None:
    text = statistics_text(3, {("a", "b"): ColumnStatistics(None, None, 2)}, {("a", "b"): ("x", "y")})
    assert json.loads(text) == {
        "numRecords": 3,
        "minValues": {},
        "maxValues": {},
        "nullCount": {"x": {"y": 2}},
    }


SCHEMA = pa.schema(
    [
        pa.field("p", pa.string()),
        pa.field(
            "s", pa.struct([pa.field("x", pa.int64(), metadata={PHYSICAL_NAME: "col-x"}), ("y", pa.int64())])
        ),
        pa.field("l", pa.list_(pa.int64())),
        *(pa.field(f"c{n}", pa.int64()) for n in range(40)),
    ]
)


def test_the_first_32_leaves_are_indexed_without_partition_columns() -> None:
    indexed = indexed_columns(SCHEMA, ("p",), {})
    assert list(indexed) == [("s", "x"), ("s", "y"), ("l",), *((f"c{n}",) for n in range(29))]
    assert indexed[("s", "x")] == ("s", "col-x")


def test_the_number_of_indexed_columns_is_a_property() -> None:
    assert list(indexed_columns(SCHEMA, ("p",), {"delta.dataSkippingNumIndexedCols": "1"})) == [("s", "x")]
    assert len(indexed_columns(SCHEMA, ("p",), {"delta.dataSkippingNumIndexedCols": "-1"})) == 43
    assert indexed_columns(SCHEMA, ("p",), {"delta.dataSkippingNumIndexedCols": "0"}) == {}
    assert len(indexed_columns(SCHEMA, ("p",), {"delta.dataSkippingNumIndexedCols": "many"})) == 32


def test_named_columns_are_indexed_with_all_below_them() -> None:
    assert list(indexed_columns(SCHEMA, ("p",), {"delta.dataSkippingStatsColumns": "s, c39"})) == [
        ("s", "x"),
        ("s", "y"),
        ("c39",),
    ]


def test_column_lists_know_backticks() -> None:
    assert column_list("a, b.c,`x.y,z`.w") == [("a",), ("b", "c"), ("x.y,z", "w")]
    with pytest.raises(InvalidInput, match="backtick"):
        column_list("`a")


PRECISE = '{"numRecords":10,"minValues":{"c":0.1000000000000000055511151231257827}}'


def test_wide_statistics_keep_the_numbers_as_they_are_spelled() -> None:
    assert wide_statistics(PRECISE, 10) == PRECISE[:-1] + ',"tightBounds":false}'
    # Those of a file that had deleted rows before stay as they are.
    assert wide_statistics(wide_statistics(PRECISE, 10), 10) == PRECISE[:-1] + ',"tightBounds":false}'


def test_wide_statistics_of_a_tight_file_say_that_they_are_wide() -> None:
    tight = PRECISE[:-1] + ',"tightBounds":true}'
    assert wide_statistics(tight, 10) == PRECISE[:-1] + ',"tightBounds":false}'


@pytest.mark.parametrize("text", [None, "null", "{", "[]", "{}", '{"numRecords":9,"minValues":{"c":1}}'])
def test_statistics_without_the_right_number_of_rows_are_not_carried_over(text: str | None) -> None:
    assert wide_statistics(text, 10) == '{"numRecords":10,"tightBounds":false}'


def test_statistics_of_a_struct_are_spelled_as_in_a_log() -> None:
    low, high = datetime(2024, 1, 2, 3, 4, 5, 123456, UTC), datetime(2024, 1, 2, 3, 4, 5, 123456)
    row = {
        "numRecords": 3,
        "minValues": {"at": low, "day": date(2024, 1, 2), "price": Decimal("1.50"), "s": {"x": 1, "y": None}},
        "maxValues": {"local": high, "text": "b"},
        "nullCount": {"at": 0, "s": {"x": None}},
        "tightBounds": None,
    }
    assert json.loads(text_of_parsed(row), parse_float=str) == {
        "numRecords": 3,
        "minValues": {
            "at": "2024-01-02T03:04:05.123Z",
            "day": "2024-01-02",
            "price": "1.50",
            "s": {"x": 1},
        },
        "maxValues": {"local": "2024-01-02T03:04:05.124", "text": "b"},
        "nullCount": {"at": 0, "s": {}},
    }
