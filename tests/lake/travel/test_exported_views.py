"""Views in exports: their texts for programs, and queries over the exported tables for Spark."""

from pathlib import Path

import pytest

import lakevilla as lv

pytestmark = pytest.mark.formats("delta")


@pytest.fixture
def lake(tmp_path: Path) -> lv.Lake:
    lake = lv.Lake(tmp_path, engine="local", storage_options={"fsync": "false"})
    lake.create("sales.orders", "id BIGINT, amount INT")
    lake.create("c", "id BIGINT")
    lake.sql("CREATE VIEW sales.big AS SELECT sales.orders.id FROM sales.orders WHERE amount > 15")
    return lake


def spark_text(lake: lv.Lake, name: str) -> str:
    """The statement that makes a view on Spark, or the comment that names it."""
    (line,) = [line for line in lake.export().sql("spark").splitlines() if f"VIEW `{name}` " in line]
    return line


def test_views_are_told_with_their_columns(lake: lv.Lake) -> None:
    assert lake.export().as_dict()["views"] == [
        {
            "name": "sales.big",
            "sql": "SELECT sales.orders.id FROM sales.orders WHERE amount > 15",
            "columns": [{"name": "id", "type": "bigint"}],
        }
    ]


def test_view_of_an_instant_is_that_of_then(lake: lv.Lake) -> None:
    lake.tag("then")
    lake.sql("DROP VIEW sales.big")
    assert not lake.export().views
    assert [view.name for view in lake.export("then").views] == ["sales.big"]


def test_view_over_a_view_reads_the_temporary_views_of_tables(lake: lv.Lake) -> None:
    lake.sql(
        "CREATE VIEW j AS WITH c AS (SELECT id FROM sales.big) "
        "SELECT c.id FROM c JOIN Sales.Orders o ON c.id = o.id"
    )
    text = spark_text(lake, "j")
    assert text.count("`sales_orders`") == 2
    assert "WITH c AS" in text
    assert "FROM c JOIN" in text
    assert "`sales.orders`" not in text
    assert "orders.id AS `id`" in spark_text(lake, "sales_big")


def test_view_over_an_earlier_version_is_left_out(lake: lv.Lake) -> None:
    lake.sql("CREATE VIEW old AS SELECT * FROM c VERSION AS OF 0")
    text = lake.export().sql("spark")
    assert "-- The view 'old' is left out: it reads an earlier version of 'c'" in text
    assert "VIEW `old`" not in text
    assert "VIEW `sales_big`" in text


def test_view_over_what_is_not_exported_is_left_out(lake: lv.Lake) -> None:
    lake.sql("CREATE VIEW own AS SELECT table_name FROM information_schema.tables")
    text = lake.export().sql("spark")
    assert "'own' is left out: it reads 'information_schema.tables', which is not part of the export" in text


@pytest.mark.parametrize("engine", ["duckdb", "trino"])
def test_other_engines_get_a_comment(lake: lv.Lake, engine: str) -> None:
    text = lake.export().sql(engine)
    assert "-- The view 'sales.big' is left out: its query is Spark SQL" in text
    assert "amount > 15" not in text
