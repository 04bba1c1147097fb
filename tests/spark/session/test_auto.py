"""The engine that chooses, with a real Spark behind it: results of both engines in one transaction."""

from pathlib import Path
from typing import Any

import pytest

import lakevilla as lv
from lakevilla.engines.auto import AutoEngine


@pytest.fixture
def lake(quick: Any, tmp_path: Path) -> lv.Lake:
    lake = lv.Lake(tmp_path, engine="auto", spark=quick, storage_options={"fsync": "false"})
    lake.create("t", [{"id": 1, "v": 10}, {"id": 255, "v": 20}])
    return lake


def test_statement_that_local_refuses_runs_on_spark(lake: lv.Lake) -> None:
    assert lake.engine == "auto"
    assert [row[0] for row in lake.sql("SELECT v FROM t ORDER BY id").collect()] == [10, 20]
    assert [row[0] for row in lake.sql("SELECT hex(id) FROM t ORDER BY id").collect()] == ["1", "FF"]


def test_both_engines_change_tables_in_one_transaction(lake: lv.Lake) -> None:
    with lake.transaction() as tx:
        tx.sql("CREATE TABLE hexed AS SELECT id, hex(id) AS h FROM t")
        tx.sql("CREATE TABLE plain AS SELECT id FROM t WHERE v = 10")
        tx.sql("UPDATE t SET v = length(hex(id))")
        tx.sql("UPDATE t SET v = v + 1")
        tx.sql("INSERT OVERWRITE hexed SELECT id + 1, hex(id + 1) FROM t")
        tx.sql(
            "MERGE INTO t USING hexed h ON t.id = h.id - 1 "
            "WHEN MATCHED AND hex(h.id) = '2' THEN UPDATE SET v = 100"
        )
        tx.sql("DELETE FROM t WHERE hex(id) = 'FF'")
    assert [tuple(row) for row in lake.read("t").collect()] == [(1, 100)]
    assert sorted(tuple(row) for row in lake.read("hexed").collect()) == [(2, "2"), (256, "100")]
    assert [tuple(row) for row in lake.read("plain").collect()] == [(1,)]


def test_large_tables_are_read_by_spark(lake: lv.Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = lake._engine
    assert isinstance(engine, AutoEngine)
    monkeypatch.setattr(engine, "_large_bytes", 10)
    assert type(lake.sql("SELECT v FROM t")).__module__.startswith("pyspark")
    assert type(lake.sql("SELECT 1")).__module__.startswith("lakevilla")


def test_auto_without_spark_is_local(tmp_path: Path) -> None:
    lake = lv.Lake("memory://", engine="auto")
    assert lake.sql("SELECT 1 AS a").collect()[0].a == 1
    with pytest.raises(lv.Unsupported, match="hex"):
        lake.sql("SELECT hex(1)")


def test_mistake_is_not_sent_to_spark(lake: lv.Lake) -> None:
    with pytest.raises(lv.InvalidInput, match="unknown function 'lenght'"):
        lake.sql("SELECT lenght('a')")
    engine = lake._engine
    assert isinstance(engine, AutoEngine)
    assert engine._spark is None
