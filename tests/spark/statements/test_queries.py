"""Queries mean the same on both engines: equal names, types and rows."""

from typing import Any

import pytest

from lakevilla.errors import InvalidInput
from tests.spark.both import Both, content

QUERIES = [
    "SELECT * FROM accounts",
    "SELECT * FROM orders",
    "SELECT * FROM empty",
    "SELECT id, owner FROM accounts WHERE id = 3",
    "SELECT a.id, a.home.city FROM accounts a WHERE a.home.zip >= 3",
    "SELECT accounts.id FROM accounts WHERE owner LIKE 'd%' OR owner IS NULL",
    "SELECT id FROM accounts WHERE score > 1",
    "SELECT id FROM accounts WHERE day BETWEEN DATE'1969-01-01' AND DATE'2024-01-31'",
    "SELECT id FROM accounts WHERE at < TIMESTAMP'2024-02-01 00:00:00'",
    "SELECT id FROM accounts WHERE balance IN (10.5, 0)",
    "SELECT id, region FROM orders WHERE region = 'eu'",
    "SELECT id, region FROM orders WHERE region IS NULL OR region = 'a/b=c %'",
    "SELECT id FROM orders WHERE region <> 'eu'",
    "SELECT region, count(*) AS n, sum(amount) AS total FROM orders GROUP BY region",
    "SELECT o.id, a.owner FROM orders o JOIN accounts a ON o.account = a.id",
    "SELECT o.id, a.owner FROM orders o LEFT JOIN accounts a ON o.account = a.id WHERE a.owner IS NULL",
    "WITH rich AS (SELECT * FROM accounts WHERE balance > 0) SELECT id, balance + 1 AS more FROM rich",
    "SELECT id, row_number() OVER (PARTITION BY region ORDER BY id) AS n FROM orders",
    "SELECT id FROM accounts WHERE id IN (SELECT account FROM orders)",
    "SELECT id FROM accounts a WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.account = a.id)",
    "SELECT max(balance) AS top, avg(score) AS mean, min(day) AS first FROM accounts WHERE id IN (1, 3)",
    "SELECT id, size(tags) AS n, tags[0] AS head FROM accounts WHERE tags IS NOT NULL AND size(tags) > 0",
    "SELECT owner FROM accounts UNION SELECT region FROM orders",
    "SELECT CASE WHEN balance > 0 THEN 'up' ELSE 'other' END AS sign, count(*) AS n FROM accounts GROUP BY 1",
    "SELECT upper(owner) AS loud, length(owner) AS n, coalesce(owner, '-') AS named FROM accounts",
    "SELECT CAST(balance AS INT) AS whole, CAST(id AS STRING) AS text FROM accounts WHERE balance < 99",
    "SELECT 1 AS one, 'x' AS text, CAST(NULL AS DATE) AS nothing",
    "SELECT count(*) AS n FROM empty",
    "SELECT sum(id) AS s FROM empty",
]


@pytest.fixture(scope="module")
def both(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Both:
    return Both(tmp_path_factory.mktemp("queries"), spark)


@pytest.mark.parametrize("sql", QUERIES)
def test_query_gives_the_same_on_both_engines(both: Both, sql: str) -> None:
    assert content(both.spark.sql(sql)) == content(both.local.sql(sql))


def test_order_of_a_sorted_query_is_the_same(both: Both) -> None:
    sql = "SELECT owner, score FROM accounts ORDER BY score DESC NULLS LAST, owner NULLS FIRST"
    assert content(both.spark.sql(sql), ordered=True) == content(both.local.sql(sql), ordered=True)


def test_time_travel_reads_the_older_version(both: Both) -> None:
    version = both.spark.history("accounts")[-1].version
    assert both.spark.read("accounts", version=version).count() == 0
    assert both.spark.sql(f"SELECT * FROM accounts VERSION AS OF {version + 1}").count() == 4


def test_now_is_the_same_in_all_rows_and_its_column_keeps_its_name(both: Both) -> None:
    rows = both.spark.sql("SELECT now(), current_date() AS today FROM accounts").toArrow()
    assert rows.schema.names == ["now()", "today"]
    assert len(set(rows.column(0).to_pylist())) == 1


@pytest.mark.parametrize(
    "sql",
    ["SELECT nothing FROM accounts", "SELECT id FROM missing", "SELECT unknown_function(id) FROM orders"],
)
def test_wrong_query_is_invalid_input(both: Both, sql: str) -> None:
    with pytest.raises(InvalidInput):
        both.spark.sql(sql)


def test_views_of_a_query_are_gone_afterwards(spark: Any, both: Both) -> None:
    frame = both.spark.sql("SELECT * FROM accounts a JOIN orders o ON a.id = o.account")
    assert not [table.name for table in spark.catalog.listTables() if table.name.startswith("lakevilla")]
    assert frame.count() == 4


def test_frame_works_with_the_rest_of_spark(spark: Any, both: Both) -> None:
    orders = both.spark.read("orders")
    orders.createOrReplaceTempView("mine")
    total = spark.sql("SELECT sum(amount) FROM mine WHERE region = 'eu'").collect()[0][0]
    spark.catalog.dropTempView("mine")
    assert total == 5
    accounts = both.spark.read("accounts")
    assert orders.join(accounts, orders.account == accounts.id).count() == 4
