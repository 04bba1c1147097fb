"""A pipeline that can be killed at any moment and run again: raw -> cleaned -> two aggregates.

    python examples/pipeline.py LAKE FOLDER

Each file `<number>.json` in the folder is one batch of orders. A batch goes through all four tables in one
transaction: the orders as they came (`raw`), the valid ones (`cleaned`), and the sums by customer and by day.
`once=` makes a batch that runs again a no-op, so the pipeline keeps no list of what it has done.
"""

import json
import sys
from pathlib import Path

import lakevilla as lv

APP = "orders"


def create_tables(lake: lv.Lake) -> None:
    with lake.transaction() as tx:
        tx.sql("CREATE TABLE IF NOT EXISTS raw (batch BIGINT, text STRING)")
        tx.sql("CREATE TABLE IF NOT EXISTS cleaned (id BIGINT, customer STRING, day STRING, amount BIGINT)")
        tx.sql("CREATE TABLE IF NOT EXISTS by_customer (customer STRING, orders BIGINT, amount BIGINT)")
        tx.sql("CREATE TABLE IF NOT EXISTS by_day (day STRING, orders BIGINT, amount BIGINT)")


def load(tx: lv.Transaction, number: int, lines: list[str]) -> None:
    """All tables of one batch. The sums are computed from `cleaned` as this transaction sees it."""
    tx.append("raw", [{"batch": number, "text": line} for line in lines])
    orders = [json.loads(line) for line in lines]
    valid = [order for order in orders if order["amount"] is not None]
    if not valid:
        return
    tx.append("cleaned", valid)
    for table, column in (("by_customer", "customer"), ("by_day", "day")):
        touched = sorted({order[column] for order in valid})
        keys = ", ".join(f"'{key}'" for key in touched)
        tx.sql(f"DELETE FROM {table} WHERE {column} IN ({keys})")
        tx.sql(
            f"INSERT INTO {table} SELECT {column}, count(*), sum(amount) FROM cleaned "
            f"WHERE {column} IN ({keys}) GROUP BY {column}"
        )


def run(lake: lv.Lake, folder: Path) -> int:
    """Load every file of the folder that is not loaded yet; returns how many were."""
    create_tables(lake)
    loaded = 0
    for path in sorted(folder.glob("*.json"), key=lambda path: int(path.stem)):
        number = int(path.stem)
        print(f"batch {number}", flush=True)
        lines = path.read_text().splitlines()
        receipt = lake.run(lambda tx, n=number, rows=lines: load(tx, n, rows), once=(APP, number))
        loaded += not receipt.replayed
    return loaded


if __name__ == "__main__":
    with_lake = lv.Lake(sys.argv[1], engine="local")
    print(f"loaded {run(with_lake, Path(sys.argv[2]))} batches")
