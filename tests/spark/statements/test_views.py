"""Views, information_schema and replaced tables on Spark, with the same answers as on the local engine."""

from pathlib import Path
from typing import Any

import pytest

import lakevilla as lv


@pytest.fixture(params=["delta", "iceberg"])
def lake(quick: Any, tmp_path: Path, request: pytest.FixtureRequest) -> lv.Lake:
    lake = lv.Lake(tmp_path, spark=quick, default_format=request.param)
    lake.sql("CREATE TABLE orders (id BIGINT, name STRING) PARTITIONED BY (name)")
    lake.sql("INSERT INTO orders VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    return lake


def rows(lake: Any, text: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in lake.sql(text).collect()), key=str)


def test_views_mean_the_same_on_spark(lake: lv.Lake) -> None:
    lake.sql("CREATE VIEW dear AS SELECT * FROM orders WHERE id > 1")
    lake.sql("CREATE VIEW s.top (i COMMENT 'c') AS SELECT max(id) FROM dear")
    local = lv.Lake(lake.url, engine="local")
    for text in (
        "SELECT * FROM dear",
        "WITH orders AS (SELECT 7 AS x) SELECT s.top.i, x FROM s.top, orders",
        "SELECT id FROM orders WHERE id = (SELECT i FROM s.top)",
        "DESCRIBE s.top",
        "SELECT column_name, data_type, comment FROM information_schema.columns",
        "SELECT o.id FROM orders o, information_schema.tables t WHERE t.table_name = 'top'",
    ):
        assert rows(lake, text) == rows(local, text)
    assert lake.sql("DELETE FROM orders WHERE id IN (SELECT id FROM dear WHERE name = 'b')").deleted == 1
    with lake.session() as session:
        session.sql("CREATE TEMP VIEW mine AS SELECT id FROM dear")
        session.sql("INSERT INTO orders SELECT id, 'm' FROM mine")
        assert rows(session, "SELECT * FROM mine") == [(3,), (3,)]


def test_view_of_the_lake_reads_no_view_of_spark(lake: lv.Lake, quick: Any) -> None:
    quick.range(3).createOrReplaceTempView("of_spark")
    with pytest.raises(lv.InvalidInput, match="not a table of the lake"):
        lake.sql("CREATE VIEW v AS SELECT * FROM of_spark")
    with lake.session() as session:
        session.sql("CREATE TEMP VIEW mine AS SELECT id + 1 AS id FROM of_spark")
        assert rows(session, "SELECT * FROM mine") == [(1,), (2,), (3,)]
    quick.catalog.dropTempView("of_spark")


def test_table_is_replaced_on_spark(lake: lv.Lake) -> None:
    lake.sql("CREATE OR REPLACE TABLE orders PARTITIONED BY (n) AS SELECT name AS id, id AS n FROM orders")
    assert rows(lake, "SELECT * FROM orders") == [("a", 1), ("b", 2), ("c", 3)]
    counts = lake.overwrite("orders", [{"n": 5, "w": 1.5}], schema="replace")
    assert (counts.inserted, counts.deleted) == (1, 3)
    assert rows(lv.Lake(lake.url, engine="local"), "SELECT * FROM orders") == [(5, 1.5)]
    version = lake.history("orders")[1].version
    assert len(lake.read("orders", version=version).collect()) == 3
