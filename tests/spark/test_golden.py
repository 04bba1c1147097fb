"""Delta tables that other engines wrote, read on Spark: the known rows, with and without a file index."""

from typing import Any

import pytest

from lakevilla.engines.port import Source
from lakevilla.engines.spark import reading
from lakevilla.engines.spark.engine import SparkEngine
from lakevilla.environment import SystemEnvironment
from tests.golden.canonical import checksum
from tests.golden.tables import Golden, needed, tables

pytestmark = needed


def rows_on_spark(spark: Any, golden: Golden) -> Any:
    snapshot = golden.latest
    source = Source(
        "golden",
        snapshot.schema,
        snapshot.partition_columns,
        snapshot.files,
        golden.open,
        snapshot.about_bytes,
        snapshot.has_deletes,
    )
    return SparkEngine(SystemEnvironment(), spark).read(source).toArrow()


NARROW = "kernel-data/type-widening"
"""Has bytes that became decimal(4,1): Spark's Parquet reader wants room for ten digits, because Parquet
stores a byte as any other 32-bit integer."""


@pytest.mark.parametrize("entry", tables("read", formats=("delta",)))
def test_golden_table_on_spark_has_the_known_rows(quick: Any, entry: dict[str, Any]) -> None:
    if entry["id"] == NARROW:
        pytest.skip("Spark cannot read a byte as decimal(4,1)")
    assert checksum(rows_on_spark(quick, Golden(entry))) == entry["expected"]["sha256"]


@pytest.mark.parametrize(
    "entry", [e for e in tables("read", formats=("delta",)) if "partition" in e.id or "dv" in e.id]
)
def test_golden_table_without_a_file_index_has_the_known_rows(
    quick: Any, entry: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "driver_side", lambda session: None)
    assert checksum(rows_on_spark(quick, Golden(entry))) == entry["expected"]["sha256"]
