"""Tables of others that bend the specifications: known rows, or an error of ours."""

from pathlib import Path
from typing import Any

import pytest

import lakevilla as lv
from lakevilla.files.partitioning import plain_values
from tests.golden.tables import GOLDEN, Golden

ODD = GOLDEN.parents[1] / "repro" / "tables"
pytestmark = pytest.mark.skipif(not ODD.exists(), reason=f"there are no such tables at {ODD}")


class Odd(Golden):
    """One of these tables, which no manifest describes."""

    def __init__(self, name: str) -> None:
        delta = (ODD / name / "_delta_log").exists()
        super().__init__({"format": "delta" if delta else "iceberg", "path": name})

    @property
    def root(self) -> Path:
        return ODD / str(self.entry["path"])


def rows(odd: Odd, version: int | None = None) -> list[dict[str, Any]]:
    snapshot = odd.latest if version is None else odd.table.at_version(version)
    return odd.rows(snapshot).to_pylist()


def test_compacted_files_that_are_not_reconciled_change_no_rows() -> None:
    odd = Odd("kernel-data__compacted-log-files-table")
    assert odd.latest.version == 25
    assert len(rows(odd)) == 5
    for version in range(25):
        by_entries = odd.table.latest(odd.table.at_version(version))
        assert by_entries is not None
        assert odd.rows(by_entries).num_rows == 5, version


def test_partition_column_that_some_specs_have_is_never_null() -> None:
    found = rows(Odd("duckdb-iceberg__hive_partitioned_table"))
    assert len(found) == 6
    assert all(row["event_type"] is not None for row in found)


def test_statistics_that_are_null_as_text_are_no_statistics() -> None:
    assert len(rows(Odd("trino-delta__databricks73-pruning-no_stats"))) == 9


def test_partition_values_of_years_before_christ_are_read() -> None:
    odd = Odd("trino-delta__databricks131-timestamp_ntz_partition")
    found = odd.rows(odd.latest)
    assert found.num_rows == 8
    assert sum(isinstance(value, int) for value in plain_values(found["part"].combine_chunks())) == 3


def test_time_partitions_are_read() -> None:
    assert len(rows(Odd("duckdb-iceberg__partition_time-default.db-partition_time"))) == 2


def test_name_mapping_that_contradicts_the_schema_is_an_error_of_ours() -> None:
    with pytest.raises(lv.LakeVillaError):
        rows(Odd("impala-iceberg__iceberg_migrated_complex_test_orc"))
