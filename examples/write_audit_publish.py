"""Write, audit, publish: models are built and tested in one transaction, and published by its commit.

    python examples/write_audit_publish.py LAKE ORDERS.csv

As in dbt, a model is a SELECT, and a test is a SELECT of the rows that should not be there. The file's rows
go to `raw_orders`, the models are built anew from it, and the tests look at what would be published. If a
test finds rows, nothing becomes visible: readers continue to see what was published before, on all tables.
There is no staging table, no branch and no swap.
"""

import sys
from collections.abc import Mapping
from pathlib import Path

import lakevilla as lv

COLUMNS = "id BIGINT, customer STRING, day DATE, amount DECIMAL(12, 2)"

MODELS = {
    "orders": """
        SELECT id, lower(trim(customer)) AS customer, day, amount
        FROM raw_orders WHERE amount IS NOT NULL
    """,
    "customers": """
        SELECT customer, count(*) AS orders, sum(amount) AS amount
        FROM orders GROUP BY customer
    """,
    "daily": "SELECT day, sum(amount) AS amount FROM orders GROUP BY day",
}
"""Models in the order in which they are built; each may read those before it."""

TESTS = {
    "orders.id is unique": "SELECT id FROM orders GROUP BY id HAVING count(*) > 1",
    "orders.customer is not empty": "SELECT id FROM orders WHERE customer IS NULL OR customer = ''",
    "orders.amount is positive": "SELECT id FROM orders WHERE amount <= 0",
    "orders.customer is in customers": """
        SELECT o.id FROM orders o LEFT ANTI JOIN customers c ON o.customer = c.customer
    """,
    "daily has all of orders": """
        SELECT 1 AS differs
        WHERE (SELECT sum(amount) FROM daily) <> (SELECT sum(amount) FROM orders)
    """,
}
"""Rows that should not be there, by what should hold."""


class AuditFailed(Exception):
    """Tests found rows: for each of them the number of rows, and one of them."""

    def __init__(self, found: Mapping[str, tuple[int, object]]) -> None:
        lines = [f"{test}: {count} rows, such as {row}" for test, (count, row) in found.items()]
        super().__init__("nothing was published:\n  " + "\n  ".join(lines))
        self.found = found


def publish(lake: lv.Lake, file: Path) -> lv.Receipt:
    """Load the file, build all models, test them, and publish all tables at once; or nothing."""
    return lake.run(lambda tx: _work(tx, file))


def _work(tx: lv.Transaction, file: Path) -> None:
    """Called again if another commit changed what it read."""
    tx.sql(f"CREATE TABLE IF NOT EXISTS raw_orders ({COLUMNS})")
    tx.append("raw_orders", file)
    built = {row["tableName"] for row in tx.sql("SHOW TABLES").collect()}
    for name, query in MODELS.items():
        tx.sql(f"INSERT OVERWRITE {name} {query}" if name in built else f"CREATE TABLE {name} AS {query}")
    found = {}
    for test, query in TESTS.items():
        rows = tx.sql(query).collect()
        if rows:
            found[test] = (len(rows), rows[0])
    if found:
        raise AuditFailed(found)


def main(root: str, file: str) -> int:
    lake = lv.Lake(root, engine="local")
    try:
        receipt = publish(lake, Path(file))
    except AuditFailed as failure:
        print(failure)
        return 1
    print(f"published {', '.join(sorted(receipt.versions))} as entry {receipt.seq}")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
