"""information_schema: what the lake has, as rows."""

from typing import Any

import pytest

import lakevilla as lv

pytestmark = pytest.mark.formats("delta", "iceberg")


@pytest.fixture
def lake() -> lv.Lake:
    lake = lv.Lake("memory://", engine="local")
    lake.sql(
        "CREATE TABLE sales.orders (id BIGINT NOT NULL, day DATE COMMENT 'of the sale') PARTITIONED BY (day) "
        "COMMENT 'all of them' TBLPROPERTIES ('team' = 'x')"
    )
    lake.sql("CREATE TABLE plain (s STRUCT<a: INT>)")
    lake.sql("CREATE VIEW v (k COMMENT 'the key') AS SELECT id FROM sales.orders")
    return lake


def rows(lake: Any, text: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in lake.sql(text).collect()), key=str)


def test_schema_tells_of_tables_columns_and_views(lake: lv.Lake, table_format: str) -> None:
    assert rows(lake, "SELECT schema_name FROM information_schema.schemata") == [
        ("default",),
        ("information_schema",),
        ("sales",),
    ]
    told = "SELECT table_schema, table_name, table_type, data_source_format, comment FROM "
    assert rows(lake, told + "information_schema.tables") == [
        ("default", "plain", "BASE TABLE", table_format, None),
        ("default", "v", "VIEW", None, None),
        ("sales", "orders", "BASE TABLE", table_format, "all of them"),
    ]
    assert rows(
        lake,
        "SELECT table_name, column_name, ordinal_position, is_nullable, data_type, comment, "
        "partition_ordinal_position FROM Information_Schema.COLUMNS",
    ) == [
        ("orders", "day", 2, "YES", "date", "of the sale", 1),
        ("orders", "id", 1, "NO", "bigint", None, None),
        ("plain", "s", 1, "YES", "struct<a:int>", None, None),
        ("v", "k", 1, "YES", "bigint", "the key", None),
    ]
    assert rows(lake, "SELECT table_name, view_definition FROM information_schema.views") == [
        ("v", "SELECT id FROM sales.orders")
    ]
    assert ("orders", "team", "x") in rows(
        lake, "SELECT table_name, property_name, property_value FROM information_schema.table_properties"
    )


def test_constraints_are_listed(lake: lv.Lake, table_format: str) -> None:
    text = "SELECT table_name, constraint_name, check_clause FROM information_schema.table_constraints"
    assert rows(lake, text) == [("orders", "id_not_null", "id IS NOT NULL")]
    if table_format == "delta":
        lake.sql("ALTER TABLE plain ADD CONSTRAINT small CHECK (s.a < 10)")
        assert ("plain", "small", "s.a < 10") in rows(lake, text)


def test_schema_is_seen_as_the_transaction_and_the_instant_see_it(lake: lv.Lake) -> None:
    lake.tag("then")
    names = "SELECT table_name FROM information_schema.tables"
    with lake.transaction() as tx:
        tx.sql("CREATE TABLE fresh (id INT)")
        tx.sql("DROP VIEW v")
        assert rows(tx, names) == [("fresh",), ("orders",), ("plain",)]
        assert rows(lake, names) == [("orders",), ("plain",), ("v",)]
    assert rows(lake, names) == [("fresh",), ("orders",), ("plain",)]
    assert rows(lake.at(tag="then"), names) == [("orders",), ("plain",), ("v",)]
    joined = "SELECT o.id FROM sales.orders o, information_schema.tables t WHERE t.table_name = 'orders'"
    assert rows(lake, joined) == []


def test_unknown_table_of_the_schema_is_told(lake: lv.Lake) -> None:
    with pytest.raises(lv.InvalidInput, match="did you mean 'columns'") as error:
        lake.sql("SELECT * FROM information_schema.colums")
    assert error.value.position is not None
    for text in ("INSERT INTO information_schema.tables VALUES (1)", "DROP TABLE information_schema.tables"):
        with pytest.raises(lv.InvalidInput):
            lake.sql(text)
    with pytest.raises(lv.InvalidInput, match="the lake's own"):
        lake.sql("CREATE TABLE information_schema.x (id INT)")
