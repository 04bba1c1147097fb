"""What every job starts from: the same tables and files for each system, in a folder of its own."""

import datetime as dt
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import write_deltalake

FIRST_DAY, NEXT_DAY = dt.date(2026, 1, 1), dt.date(2026, 1, 2)
NO_AMOUNT = pa.array([], pa.float64())

TABLES = {
    "people": pa.table(
        {"id": [1, 2, 3], "name": ["Ada", "Grace", "Alan"], "city": ["London", "New York", "London"]}
    ),
    "orders": pa.table(
        {
            "id": [1, 2, 3],
            "person": [1, 2, 1],
            "amount": [10.0, 20.0, 5.0],
            "day": [FIRST_DAY, FIRST_DAY, NEXT_DAY],
        }
    ),
    "stock": pa.table({"item": ["apple", "pear"], "pieces": [100.0, 50.0]}),
    "copies": pa.table({"id": [1, 1, 2], "name": ["Ada", "Ada", "Grace"]}),
    "narrow": pa.table({"id": pa.array([1, 2], pa.int32())}),
    "history_of_people": pa.table(
        {
            "id": [1, 2],
            "city": ["London", "New York"],
            "valid_from": [FIRST_DAY, FIRST_DAY],
            "valid_to": pa.array([None, None], pa.date32()),
        }
    ),
    "totals": pa.table({"person": pa.array([], pa.int64()), "amount": NO_AMOUNT}),
    **{f"events_{n}": pa.table({"person": [1, 2], "what": [f"a {n}", f"b {n}"]}) for n in range(10)},
}
"""The tables of each system."""

EVENTS = [f"events_{n}" for n in range(10)]
NEW_ROWS = [{"id": 4, "name": "Edsger", "city": "Rotterdam"}]
NEW_PEOPLE = pd.DataFrame(NEW_ROWS)
WITH_EMAIL = pd.DataFrame([{**NEW_ROWS[0], "email": "e@example.org"}])
CHANGED_PEOPLE = pd.DataFrame({"id": [1, 4], "name": ["Ada", "Edsger"], "city": ["Paris", "Rotterdam"]})
MOVED = pd.DataFrame({"id": [2, 3], "city": ["Boston", "Delft"]})
NEW_DAY = pd.DataFrame({"id": [9], "person": [3], "amount": [7.0], "day": [FIRST_DAY]})
DAILY_SALES = pd.DataFrame({"day": [FIRST_DAY, NEXT_DAY], "amount": [1.5, 2.5]})


def write_files(folder: Path) -> None:
    """The files that jobs load: a CSV file, Parquet files, and a Delta table that another client made."""
    (folder / "new.csv").write_text("id,name,city\n4,Edsger,Rotterdam\n")
    (folder / "archive").mkdir()
    pq.write_table(pa.table({"id": [1, 2], "what": ["x", "y"]}), folder / "archive" / "part.parquet")
    write_deltalake(folder / "existing", pa.table({"id": [1, 2], "n": [10, 20]}))
