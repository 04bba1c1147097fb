"""Counts and bounds of a data file's columns in a manifest."""

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    DoubleType,
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
)

from lakevilla.formats.iceberg.manifests.metrics import Metrics, leaves, metrics
from lakevilla.model import ColumnStatistics

MEMBER = NestedField(4, "member", StringType())
SCHEMA = Schema(
    NestedField(1, "number", LongType(), required=True),
    NestedField(2, "text", StringType()),
    NestedField(3, "folder", StructType(MEMBER)),
    NestedField(5, "items", ListType(6, LongType(), False)),
    NestedField(7, "data", BinaryType()),
    NestedField(8, "fraction", DoubleType()),
)


def bounds_of(path: str, low: Any, high: Any, properties: dict[str, str] | None = None) -> Metrics:
    statistics = {tuple(path.split(".")): ColumnStatistics(low, high, 0)}
    return metrics(statistics, 9, leaves(SCHEMA), properties or {})


def test_leaves_of_structs_have_paths_and_those_of_lists_have_none() -> None:
    found = {path: column.field_id for path, column in leaves(SCHEMA).items()}
    assert found == {("number",): 1, ("text",): 2, ("folder", "member"): 4, ("data",): 7, ("fraction",): 8}


def test_counts_and_bounds_go_by_column_id() -> None:
    statistics = {
        ("number",): ColumnStatistics(-1, 3, 0),
        ("folder", "member"): ColumnStatistics("a", "b", 4),
        ("data",): ColumnStatistics(None, None, 9),
        ("gone",): ColumnStatistics(1, 2, 0),
    }
    found = metrics(statistics, 9, leaves(SCHEMA), {})
    assert found.values == {1: 9, 4: 9, 7: 9}
    assert found.nulls == {1: 0, 4: 4, 7: 9}
    assert found.lower == {1: struct.pack("<q", -1), 4: b"a"}
    assert found.upper == {1: struct.pack("<q", 3), 4: b"b"}


@given(st.text(max_size=40))
def test_cut_text_lies_between_its_bounds(text: str) -> None:
    found = bounds_of("text", text, text)
    assert found.lower[2] <= text.encode()
    assert len(found.lower[2].decode()) <= 16
    assert found.upper.get(2, b"\xff") >= text.encode()
    assert len(found.upper.get(2, b"").decode()) <= 16


@given(st.binary(max_size=40))
def test_cut_binary_lies_between_its_bounds(data: bytes) -> None:
    found = bounds_of("data", data, data)
    assert len(found.lower[7]) <= 16
    assert found.lower[7] <= data
    assert 7 not in found.upper or found.upper[7] >= data


@pytest.mark.parametrize(
    ("text", "upper"),
    [
        ("a" * 16, "a" * 16),
        ("a" * 17, "a" * 15 + "b"),
        ("a" * 15 + "\ud7ff" + "x", "a" * 15 + "\ue000"),
        ("a" * 14 + "\U0010ffff" * 3, "a" * 13 + "b"),
        ("\U0010ffff" * 17, None),
    ],
)
def test_upper_bound_of_long_text_is_above_all_that_begins_like_it(text: str, upper: str | None) -> None:
    found = bounds_of("text", text, text)
    assert found.upper.get(2) == (None if upper is None else upper.encode())


def test_binary_of_nothing_but_the_last_byte_has_no_upper_bound() -> None:
    assert 7 not in bounds_of("data", b"\xff" * 17, b"\xff" * 17).upper


def test_zero_is_bounded_by_both_zeros() -> None:
    found = bounds_of("fraction", 0.0, -0.0)
    assert (found.lower[8], found.upper[8]) == (struct.pack("<d", -0.0), struct.pack("<d", 0.0))


@pytest.mark.parametrize(
    ("wanted", "told", "lower"),
    [("none", 0, None), ("counts", 1, None), ("truncate(3)", 1, b"aaa"), ("FULL", 1, b"a" * 40)],
)
@pytest.mark.parametrize("key", ["default", "column.text"])
def test_properties_say_how_much_is_told(key: str, wanted: str, told: int, lower: bytes | None) -> None:
    found = bounds_of("text", "a" * 40, "b", {f"write.metadata.metrics.{key}": wanted})
    assert len(found.values) == len(found.nulls) == told
    assert found.lower.get(2) == lower


def test_column_property_counts_before_the_default() -> None:
    properties = {
        "write.metadata.metrics.default": "none",
        "write.metadata.metrics.column.folder.member": "full",
    }
    assert bounds_of("folder.member", "a", "b", properties).lower == {4: b"a"}
    assert bounds_of("text", "a", "b", properties) == Metrics()
