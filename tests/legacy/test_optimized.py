"""Files that optimize wrote, read by others, and their compactions between ours."""

from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable

import lakevilla as lv
from tests.legacy.clients.iceberg_readers import by_duckdb, by_pyiceberg
from tests.legacy.clients.spark_delta import ours
from tests.legacy.test_delta_clients import by_deltalake
from tests.legacy.test_delta_clients import by_duckdb as by_duckdb_delta

COUNT = 40


def filled(root: Path, format: str) -> lv.Lake:
    """A table of small files, some of whose rows are deleted and changed by vectors or delete files."""
    lake = lv.Lake(root, engine="local", default_format=format, merge_on_read=True)
    lake.create("t", "id BIGINT, v STRING, p STRING", partition_by=["p"])
    for n in range(4):
        rows = {"id": list(range(n * 10, n * 10 + 10)), "v": [f"v{n}"] * 10, "p": ["a", "b"] * 5}
        lake.append("t", pa.table(rows))
    lake.sql("DELETE FROM t WHERE id IN (3, 4, 17)")
    lake.sql("UPDATE t SET v = 'new' WHERE id = 25")
    return lake


def test_delta_clients_read_what_optimize_left_and_compact_between(tmp_path: Path) -> None:
    lake, url = filled(tmp_path, "delta"), str(tmp_path / "t")
    expected = ours(lake, "t")
    for order in ((), ("id", "v")):
        assert lake.optimize("t", zorder_by=order).after.count == 2
        assert by_deltalake(url) == by_duckdb_delta(url)
        assert sorted(row["id"] for row in by_deltalake(url)) == sorted(row["id"] for row in expected)
        assert ours(lake, "t") == expected
    lake.append("t", [{"id": COUNT, "v": "late", "p": "a"}])
    DeltaTable(url).optimize.compact()
    assert lake.sql("UPDATE t SET v = 'later' WHERE id = 40").updated == 1
    assert lake.optimize("t", full=True).after.count == 2
    assert lake.read("t").count() == DeltaTable(url).count() == COUNT - 2


def test_iceberg_clients_read_what_optimize_left(tmp_path: Path) -> None:
    lake, url = filled(tmp_path, "iceberg"), str(tmp_path / "t")
    expected = ours(lake, "t")
    for order in ((), ("id", "v")):
        assert lake.optimize("t", zorder_by=order).after.count == 2
        assert ours(lake, "t") == by_pyiceberg(url) == by_duckdb(url) == expected
