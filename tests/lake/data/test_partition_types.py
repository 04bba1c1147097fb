"""Partition columns of every type, with values at the edge: written, changed and read again."""

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

import lakevilla as lv
from lakevilla.files.partitioning import plain_values

DAY_MICROS = 86_400_000_000


def uuids(*values: UUID | None) -> pa.Array:
    stored = [None if value is None else value.bytes for value in values]
    return pa.ExtensionArray.from_storage(pa.uuid(), pa.array(stored, pa.binary(16)))


def far(data_type: pa.DataType) -> pa.Array:
    """The years -9999 and 10000, which Python's calendar does not have."""
    days = pa.array([-4_371_223, None, 2_932_897], pa.int32())
    if pa.types.is_date(data_type):
        return days.cast(data_type)
    counts = [None if day is None else day * DAY_MICROS - 1 for day in days.to_pylist()]
    return pa.array(counts, pa.int64()).cast(data_type)


VALUES = {
    "time": pa.array([datetime.time(1, 2, 3), None, datetime.time(23, 59, 59, 999999)], pa.time64("us")),
    "uuid": uuids(UUID(int=5), None, UUID(int=2**127)),
    "fixed": pa.array([b"abcd", None, b"\xff\x00\xff\xff"], pa.binary(4)),
    "binary": pa.array([b"\xfe", None, b"\xff\x00"]),
    "text as binary": pa.array([b"a/b", None, "é".encode()]),
    "bool": pa.array([True, None, False]),
    "date": pa.array([datetime.date(1, 1, 1), None, datetime.date(9999, 12, 31)]),
    "far date": far(pa.date32()),
    "timestamp": pa.array([datetime.datetime(1, 1, 1), None, datetime.datetime.max], pa.timestamp("us")),
    "far timestamp": far(pa.timestamp("us")),
    "far timestamp with zone": far(pa.timestamp("us", "UTC")),
    "float": pa.array([0.1, None, -3.4e38], pa.float32()),
    "infinity": pa.array([float("inf"), None, float("-inf")]),
    "decimal": pa.array([Decimal("-1.50"), None, Decimal("9" * 36 + ".99")], pa.decimal128(38, 2)),
    "text": pa.array(["a/b=c %é", None, "\u200bz\"'\\:"]),
    "long": pa.array([2**63 - 1, None, -(2**63)]),
}
"""In each of three rows another value, one of them null."""

NOT_IN_DELTA = {"time", "uuid", "fixed", "binary"}


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
def test_partition_values_of_every_type_survive_changes(tmp_path: Path, table_format: str, name: str) -> None:
    rows = pa.table({"p": VALUES[name], "n": pa.array([1, 2, 3])})
    lake = lv.Lake(tmp_path, engine="local", storage_options={"fsync": "false"})
    if table_format == "delta" and name in NOT_IN_DELTA:
        with pytest.raises(lv.InvalidInput):
            _make(lake, table_format, rows)
        return
    _make(lake, table_format, rows)

    other = lv.Lake(tmp_path, engine="local", storage_options={"fsync": "false"})
    with other.transaction() as tx:
        tx.sql("UPDATE t SET n = n + 10 WHERE n <> 3")
        tx.sql("DELETE FROM t WHERE n = 12")

    found = lake.read("t").toArrow()
    assert _raw(found) == _raw(pa.table({"p": rows["p"], "n": pa.array([11, None, 3])}))
    kept = lake.sql("SELECT n FROM t WHERE p IS NOT NULL ORDER BY n").collect()
    assert [row.n for row in kept] == [3, 11]


def _make(lake: lv.Lake, table_format: str, rows: pa.Table) -> None:
    lake.create("t", rows.schema, format=table_format, partition_by=["p"])
    lake.append("t", rows)


def _raw(table: pa.Table) -> list[tuple[Any, str]]:
    """The rows that have a number, with values as the project has them."""
    values = plain_values(table["p"].combine_chunks())
    found = zip(table["n"].to_pylist(), map(repr, values), strict=True)
    return sorted(row for row in found if row[0] is not None)


def test_value_that_python_does_not_have_is_refused_by_collect_alone(tmp_path: Path) -> None:
    lake = lv.Lake(tmp_path, engine="local", storage_options={"fsync": "false"})
    _make(lake, "delta", pa.table({"p": VALUES["far date"], "n": pa.array([1, 2, 3])}))
    assert lake.sql("SELECT n FROM t WHERE p < DATE'2000-01-01'").collect() == [(1,)]
    with pytest.raises(lv.Unsupported) as caught:
        lake.read("t").collect()
    assert caught.value.column == "p"
