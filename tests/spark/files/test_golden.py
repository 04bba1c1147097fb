"""Tables that other engines wrote, read on Spark: the known rows, with and without a file index."""

from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from lakevilla.engines.port import Source
from lakevilla.engines.spark.engine import SparkEngine
from lakevilla.engines.spark.scan import relation
from lakevilla.environment import SystemEnvironment
from lakevilla.errors import LakeVillaError, Unsupported
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
        snapshot.formats,
    )
    return SparkEngine(SystemEnvironment(), spark).read(source).toArrow()


NARROW = "kernel-data/type-widening"
"""Has bytes that became decimal(4,1): Spark's Parquet reader wants room for ten digits, because Parquet
stores a byte as any other 32-bit integer."""

REFUSED = ("with_defaults_in_struct", "case_sensitive_names", "timestamptz_ns")
"""What Spark has no types or names for."""


@pytest.mark.sampled(4)
@pytest.mark.parametrize("entry", [e for e in tables("read") if e.values[0]["expected"]["rows"] < 50_000])
def test_golden_table_on_spark_has_the_known_rows(quick: Any, entry: dict[str, Any]) -> None:
    if entry["id"] == NARROW:
        pytest.skip("Spark cannot read a byte as decimal(4,1)")
    if any(name in entry["id"] for name in REFUSED):
        with pytest.raises(Unsupported):
            rows_on_spark(quick, Golden(entry))
        return
    assert checksum(rows_on_spark(quick, Golden(entry))) == entry["expected"]["sha256"]


@pytest.mark.parametrize("entry", tables("unsupported-by-all", formats=("iceberg",)))
def test_golden_table_that_nobody_reads_is_refused_on_spark(quick: Any, entry: dict[str, Any]) -> None:
    with pytest.raises((LakeVillaError, PySparkException, Py4JJavaError)):
        rows_on_spark(quick, Golden(entry))


def without_index() -> list[Any]:
    delta = [e for e in tables("read", formats=("delta",)) if "partition" in e.id or "dv" in e.id]
    names = ("v3_deletion_vectors", "default_part", "delete_equality_partitioned", "mixed_file_format")
    return delta + [e for e in tables("read", formats=("iceberg",)) if any(name in e.id for name in names)]


@pytest.mark.sampled(8)
@pytest.mark.parametrize("entry", without_index())
def test_golden_table_without_a_file_index_has_the_known_rows(
    quick: Any, entry: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relation, "driver_side", lambda session: None)
    assert checksum(rows_on_spark(quick, Golden(entry))) == entry["expected"]["sha256"]
