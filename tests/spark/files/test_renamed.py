"""Iceberg columns that took over each other's names, on Spark."""

from pathlib import Path
from typing import Any

import pyarrow as pa
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType

import lakevilla as lv
from tests.support.iceberg_files import FilesCatalog


def test_columns_that_swapped_their_names_keep_their_values(quick: Any, tmp_path: Path) -> None:
    place, catalog = str(tmp_path / "t"), FilesCatalog()
    schema = Schema(NestedField(1, "a", LongType()), NestedField(2, "b", StringType()))
    catalog.create(place, schema)
    catalog.load_table(place).append(pa.table({"a": [1, 2], "b": ["x", "y"]}, schema.as_arrow()))
    for old, new in (("a", "c"), ("b", "a"), ("c", "b")):
        with catalog.load_table(place).update_schema() as update:
            update.rename_column(old, new)
    lake, judge = lv.Lake(tmp_path, spark=quick), lv.Lake(tmp_path, engine="local")
    assert sorted((row.a, row.b) for row in lake.read("t").collect()) == [("x", 1), ("y", 2)]
    assert [row.b for row in lake.sql("SELECT b FROM t WHERE a = 'y'").collect()] == [2]
    assert lake.sql("UPDATE t SET b = 5 WHERE a = 'x'").updated == 1
    lake.append("t", [{"a": "z", "b": 9}])
    assert sorted((row.a, row.b) for row in lake.read("t").collect()) == [("x", 5), ("y", 2), ("z", 9)]
    assert sorted((row.a, row.b) for row in judge.read("t").collect()) == [("x", 5), ("y", 2), ("z", 9)]
