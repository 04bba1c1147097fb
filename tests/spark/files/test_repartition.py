"""Rows that Spark's tasks write into partitions by transforms: exact values, and few files."""

from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakevilla.engines.port import Target
from lakevilla.engines.spark.engine import SparkEngine
from lakevilla.environment import SystemEnvironment
from lakevilla.model import PartitionField, Partitioning, WrittenFile
from lakevilla.store.open import open_store

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("at", pa.timestamp("us", "UTC")),
        ("name", pa.string()),
        ("price", pa.decimal128(9, 2)),
        ("s", pa.struct([("x", pa.int64())])),
    ]
)
ROWS = 30_000


def written(spark: Any, folder: Path, source: str, transform: str) -> tuple[WrittenFile, ...]:
    """What a DataFrame of `ROWS` rows is written as, by one partition field `f`."""
    numbers = count()
    target = Target(
        "t",
        SCHEMA,
        Partitioning((PartitionField("f", tuple(source.split(".")), transform),), stored=True),
        open_store(str(folder)),
        lambda: f"data/part-{next(numbers)}.parquet",
        lambda: 0,
    )
    rows = spark.range(0, ROWS, 1, 8).selectExpr(
        "id",
        "timestamp_seconds(19727 * 86400 + id % 3 * 86400 + id % 86400) AS at",
        "concat('n', id % 3, '-', id) AS name",
        "CAST(id / 100 AS DECIMAL(9, 2)) AS price",
        "named_struct('x', id % 3) AS s",
    )
    return SparkEngine(SystemEnvironment(), spark).append(target, rows).added


@pytest.mark.parametrize(
    ("source", "transform", "values"),
    [
        ("id", "bucket[3]", {0, 1, 2}),
        ("price", "truncate[10000]", {0, 100, 200}),
        ("name", "truncate[2]", {"n0", "n1", "n2"}),
        ("at", "day", {19727, 19728, 19729}),
        ("s.x", "identity", {0, 1, 2}),
    ],
)
def test_partition_by_a_transform_has_one_file(
    spark: Any, tmp_path: Path, source: str, transform: str, values: set[Any]
) -> None:
    files = written(spark, tmp_path, source, transform)
    assert sum(file.rows for file in files) == ROWS
    assert {file.partition["f"] for file in files} == values
    assert len(files) == len(values)
    assert all(file.key.startswith("data/f=") for file in files)
