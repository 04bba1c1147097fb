"""The odd tables of others after an engine of ours changed copies of them.

Rows are known from the tables' own README; afterwards others read what was written.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

import lakevilla as lv
from tests.golden.relocated import writable_copy
from tests.golden.test_odd_tables import ODD
from tests.support.iceberg_files import FilesCatalog

COMPACTED = "kernel-data__compacted-log-files-table"
EVOLVED = "duckdb-iceberg__hive_partitioned_table"
NO_STATISTICS = "trino-delta__databricks73-pruning-no_stats"
EARLY_YEARS = "trino-delta__databricks131-timestamp_ntz_partition"
TIMES = "duckdb-iceberg__partition_time-default.db-partition_time"
CONTRADICTING = "impala-iceberg__iceberg_migrated_complex_test_orc"
CHANGED = {EVOLVED: ("user_id", 6), NO_STATISTICS: ("part_key", 9), EARLY_YEARS: ("id", 8)}
"""By table a column of numbers, and how many rows there are, for tables that both engines change."""
STATEMENTS = ("UPDATE t SET a = 1", "DELETE FROM t WHERE true", "INSERT INTO t SELECT * FROM t")

needed = pytest.mark.skipif(not ODD.exists(), reason=f"there are no such tables at {ODD}")
Open = Callable[[Path], lv.Lake]


def copied(name: str, root: Path, open_lake: Open) -> lv.Lake:
    """A lake on a copy of this table, called `t`."""
    writable_copy(ODD / name, root / "t")
    return open_lake(root)


def continue_feed(lake: lv.Lake) -> None:
    """Change a table with a feed of others, and read what changed."""
    lake.sync()
    since = lake.history()[0].seq
    first = lake.sql("SELECT min(id) AS n FROM t").collect()[0].n
    assert lake.sql(f"DELETE FROM t WHERE id = {first}").deleted == 1
    found = lake.changes("t", since).toArrow().to_pylist()
    assert [(row["id"], row["_change_type"]) for row in found] == [(first, "delete")]


def change_in_every_way(name: str, root: Path, open_lake: Open) -> None:
    """Update, append, merge and delete; every row that was not deleted keeps its values."""
    lake, (column, count) = copied(name, root, open_lake), CHANGED[name]
    before = _texts(lake.read("t").toArrow())
    assert len(before) == count
    assert lake.sql(f"UPDATE t SET {column} = {column} + 1").updated == count
    merge = f"MERGE INTO t USING (SELECT DISTINCT {column} AS k FROM t) s ON t.{column} = s.k "
    assert lake.sql(merge + f"WHEN MATCHED THEN UPDATE SET {column} = s.k - 1").updated == count
    assert _texts(lake.read("t").toArrow()) == before
    assert lake.append("t", lake.read("t")).inserted == count
    first = lake.sql(f"SELECT min({column}) AS n FROM t").collect()[0].n
    deleted = lake.sql(f"DELETE FROM t WHERE {column} = {first}").deleted
    assert deleted > 0
    after = _texts(lv.Lake(root, engine="local").read("t").toArrow())
    assert len(after) == 2 * count - deleted
    assert set(after) < set(before)
    assert all(after.count(row) == 2 * before.count(row) for row in set(after))
    assert others_count(root / "t") == len(after)


def others_count(place: Path) -> int:
    """How many rows other clients find."""
    if (place / "_delta_log").exists():
        query = QueryBuilder().register("t", DeltaTable(str(place)))
        found = pa.table(query.execute("SELECT count(*) AS n FROM t").read_all())
        return int(found["n"][0].as_py())
    return int(FilesCatalog().load_table(str(place)).scan().to_arrow().num_rows)


def refuse_every_change(lake: lv.Lake, column: str, error: type[Exception] = lv.Unsupported) -> None:
    """No statement changes the table."""
    version = lake.history("t")[0].version
    for text in STATEMENTS:
        with pytest.raises(error):
            lake.sql(text.replace("SET a", f"SET {column}"))
    assert lake.history("t")[0].version == version


def _texts(table: pa.Table) -> Sequence[str]:
    """Rows that can be compared: of years before Christ Python has no moments."""
    columns: list[list[Any]] = [
        [str(value) for value in (column.cast(pa.int64()) if _is_moment(column.type) else column)]
        for column in table.columns
    ]
    return sorted(map(repr, zip(*columns, strict=True)))


def _is_moment(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(data_type))
