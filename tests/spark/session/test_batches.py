"""The batches in which rows reach Python workers."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from lakevilla.engines.spark.write.batches import bounded_by_rows

BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
FIXED = pa.schema([pa.field("id", pa.int64()), pa.field("price", pa.decimal128(12, 2))])
VARIABLE = FIXED.append(pa.field("note", pa.string()))


def sizes(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield pa.record_batch([pa.array([batch.num_rows for batch in batches], pa.int64())], names=["rows"])


def largest(spark: Any, schema: pa.Schema) -> int:
    with bounded_by_rows(spark, schema):
        found = spark.range(0, 70_000, 1, 1).mapInArrow(sizes, "rows bigint").collect()
    return int(max(row.rows for row in found))


def test_rows_of_fixed_size_come_in_large_batches(spark: Any) -> None:
    assert largest(spark, FIXED) == 65_536


def test_rows_that_may_be_large_come_in_smaller_batches(spark: Any) -> None:
    assert largest(spark, VARIABLE) == 8_192


def test_size_of_batches_that_the_user_has_set_is_kept(spark: Any) -> None:
    spark.conf.set(BYTES, "1000")
    try:
        assert largest(spark, FIXED) < 1000
    finally:
        spark.conf.unset(BYTES)


def test_job_of_the_user_afterwards_has_its_own_batches(spark: Any) -> None:
    largest(spark, FIXED)
    assert spark.sparkContext.getLocalProperty(BYTES) is None
