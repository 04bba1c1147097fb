"""Rows divided by partition fields, and the folders of their files."""

import math
from datetime import UTC, date, datetime
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

from lakevilla.errors import InvalidInput
from lakevilla.files.partitioning import Division
from lakevilla.model import PartitionField, Partitioning

A_UUID = UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")


def division(rows: pa.Table, *fields: tuple[str, str, str]) -> Division:
    """Fields as (name, dotted source, transform) of a table whose files hold all columns."""
    by = tuple(PartitionField(name, tuple(source.split(".")), how) for name, source, how in fields)
    return Division(rows.schema, Partitioning(by, stored=True))


def test_rows_are_divided_by_transforms_and_keep_their_sources() -> None:
    days = [date(1969, 12, 31), date(2024, 1, 5), date(2024, 1, 6), None]
    rows = pa.table({"id": [1, 2, 3, 4], "day": days, "name": ["abcd", "abce", "b", None]})
    by = division(rows, ("day_month", "day", "month"), ("name_trunc", "name", "truncate[3]"))
    parts = list(by.split(rows))
    assert {tuple(values.items()): part["id"].to_pylist() for values, part in parts} == {
        (("day_month", -1), ("name_trunc", "abc")): [1],
        (("day_month", 648), ("name_trunc", "abc")): [2],
        (("day_month", 648), ("name_trunc", "b")): [3],
        (("day_month", None), ("name_trunc", None)): [4],
    }
    assert {tuple(part.column_names) for _, part in parts} == {("id", "day", "name")}
    assert by.stored == rows.schema


@pytest.mark.parametrize(
    ("transform", "value", "partition", "folder"),
    [
        ("year", datetime(2024, 1, 5, 10), 54, "c_f=2024/"),
        ("year", date(1969, 1, 5), -1, "c_f=1969/"),
        ("month", datetime(2024, 1, 5, 10), 648, "c_f=2024-01/"),
        ("day", datetime(2024, 1, 5, 10), 19727, "c_f=2024-01-05/"),
        ("day", datetime(2024, 1, 5, 10, tzinfo=UTC), 19727, "c_f=2024-01-05/"),
        ("hour", datetime(2024, 1, 5, 10), 473458, "c_f=2024-01-05-10/"),
        ("day", None, None, "c_f=null/"),
        ("bucket[16]", 34, 3, "c_f=3/"),
        ("truncate[10]", -1, -10, "c_f=-10/"),
        ("identity", "a/b ü", "a/b ü", "c_f=a%2Fb+%C3%BC/"),
        ("identity", "", "", "c_f=/"),
        ("identity", "null", "null", "c_f=null/"),
        ("identity", b"\xff\x00", b"\xff\x00", "c_f=%2FwA%3D/"),
        ("identity", True, True, "c_f=true/"),
        ("identity", A_UUID, A_UUID, f"c_f={A_UUID}/"),
        ("void", "a", None, "c_f=null/"),
    ],
    ids=str,
)
def test_folders_are_spelled_as_iceberg_does(transform: str, value: Any, partition: Any, folder: str) -> None:
    data_type = pa.uuid() if value == A_UUID else pa.timestamp("us") if value is None else None
    rows = pa.table({"c": pa.array([value], data_type)})
    by = division(rows, ("c_f", "c", transform))
    ((values, _),) = by.split(rows)
    assert values == {"c_f": partition}
    assert by.folder(values) == folder


def test_values_that_python_confuses_are_told_apart() -> None:
    rows = pa.table({"c": [None, 0.0, -0.0, math.nan]})
    by = division(rows, ("c", "c", "identity"))
    assert {by.texts(values) for values, _ in by.split(rows)} == {(None,), ("0.0",), ("-0.0",), ("NaN",)}
    words = pa.table({"c": ["null", None, "null"]})
    by = division(words, ("c", "c", "identity"))
    assert {by.texts(values): part.num_rows for values, part in by.split(words)} == {("null",): 2, (None,): 1}


def test_rows_are_divided_by_a_field_of_a_struct() -> None:
    rows = pa.table({"s": [{"x": 1}, None, {"x": 5}, {"x": None}, {"x": 1}], "n": range(5)})
    by = division(rows, ("s.x", "s.x", "identity"))
    assert {values["s.x"]: part["n"].to_pylist() for values, part in by.split(rows)} == {
        1: [0, 4],
        None: [1, 3],
        5: [2],
    }


def test_value_without_a_partition_is_refused_with_the_name_of_the_field() -> None:
    rows = pa.table({"c": pa.array([1, -(2**63)])})
    with pytest.raises(InvalidInput, match="partition field 'c_trunc': a value is too close to the smallest"):
        list(division(rows, ("c_trunc", "c", "truncate[7]")).split(rows))


def test_no_rows_are_no_partition() -> None:
    rows = pa.table({"c": pa.array([], pa.int64())})
    assert list(division(rows, ("c", "c", "identity")).split(rows)) == []
