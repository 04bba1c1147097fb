"""The forty jobs, and what counts as done."""

from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq

from bench.jobs.job import Job, System
from bench.jobs.world import EVENTS, FIRST_DAY, NEXT_DAY

ADA, GRACE, ALAN = (1, "Ada", "London"), (2, "Grace", "New York"), (3, "Alan", "London")
EDSGER = (4, "Edsger", "Rotterdam")
ORDERS = [(1, 1, 10.0, FIRST_DAY), (2, 2, 20.0, FIRST_DAY), (3, 1, 5.0, NEXT_DAY)]
STOCK = [("apple", 100.0), ("pear", 50.0)]
NAMES_OF_ORDERS = [("Ada", 15.0), ("Grace", 20.0)]


def _exported(folder: Path, _: System) -> None:
    found = pq.read_table(folder / "out.parquet").to_pylist()
    assert sorted(tuple(row.values()) for row in found) == [ADA, GRACE, ALAN], found


def _nothing_left(folder: Path, system: System) -> None:
    for table in EVENTS:
        assert [row[0] for row in system.rows(folder, table)] == [2], table


def _tables_with_ada(system: System, folder: Path) -> int:
    return sum(1 in [row[0] for row in system.rows(folder, table)] for table in EVENTS)


def _one_file(folder: Path, system: System) -> None:
    assert system.file_count(folder, "people") == 1


def _sums(system: System, folder: Path) -> float:
    """What a reader sees in between: the amount of order 1 and the pieces of apples together."""
    amounts = sum(row[2] for row in system.rows(folder, "orders") if row[0] == 1)
    return float(amounts + sum(row[1] for row in system.rows(folder, "stock") if row[0] == "apple"))


GROUPS: dict[str, list[Job]] = {
    "Make and load": [
        Job("create", "Create a table with typed columns", tables={"visits": []}),
        Job(
            "create_partitioned",
            "Create a table from a DataFrame, partitioned by day",
            tables={"sales": [(FIRST_DAY, 1.5), (NEXT_DAY, 2.5)]},
        ),
        Job("append_dicts", "Append dicts", tables={"people": [ADA, GRACE, ALAN, EDSGER]}),
        Job("append_frame", "Append a pandas DataFrame", tables={"people": [ADA, GRACE, ALAN, EDSGER]}),
        Job("load_csv", "Load a CSV file", tables={"people": [ADA, GRACE, ALAN, EDSGER]}),
        Job(
            "append_new_column",
            "Append rows that have a new column",
            tables={"people": [(*row, None) for row in (ADA, GRACE, ALAN)] + [(*EDSGER, "e@example.org")]},
        ),
        Job("use_delta", "Change an existing Delta table where it is", value=[(1, 11), (2, 21)]),
        Job("adopt_parquet", "Use existing Parquet files without a copy", value=[(1, "x"), (2, "y")]),
    ],
    "Read": [
        Job("join", "Join two tables and add up", value=NAMES_OF_ORDERS),
        Job("to_pandas", "Filtered rows as a pandas DataFrame", value=[ADA, ALAN], kind=pd.DataFrame),
        Job("parameters", "Pass a value into a query", value=[GRACE]),
        Job("join_frame", "Join a table with a DataFrame", value=[("Alan", "Delft"), ("Grace", "Boston")]),
        Job("export_parquet", "Write a query's rows to a Parquet file", check=_exported),
        Job("other_reader", "Read the table with a client that knows only Delta", value=[ADA, GRACE, ALAN]),
        Job("read_sql", "`pandas.read_sql`", value=[ADA, GRACE, ALAN], kind=pd.DataFrame),
    ],
    "Change": [
        Job("update", "Update rows", tables={"people": [ADA, (2, "Grace", "Boston"), ALAN]}),
        Job("delete", "Delete rows", tables={"people": [GRACE]}),
        Job(
            "upsert",
            "Upsert a DataFrame",
            tables={"people": [(1, "Ada", "Paris"), GRACE, ALAN, EDSGER]},
        ),
        Job(
            "replace_day",
            "Replace the rows of one day",
            tables={"orders": [ORDERS[2], (9, 3, 7.0, FIRST_DAY)]},
        ),
        Job("deduplicate", "Remove rows that are there twice", tables={"copies": [(1, "Ada"), (2, "Grace")]}),
        Job(
            "dimension",
            "Slowly changing dimension, type 2",
            tables={
                "history_of_people": [
                    (1, "London", FIRST_DAY, None),
                    (2, "Boston", NEXT_DAY, None),
                    (2, "New York", FIRST_DAY, NEXT_DAY),
                    (3, "Delft", NEXT_DAY, None),
                ]
            },
        ),
        Job("fill_from_query", "Fill a table from a query", tables={"totals": [(1, 15.0), (2, 20.0)]}),
    ],
    "Define": [
        Job("add_column", "Add a column", columns={"people": ["city", "email", "id", "name"]}),
        Job("rename_column", "Rename a column", columns={"people": ["id", "name", "town"]}),
        Job("add_check", "A constraint that refuses wrong rows", spoiled=True, tables={"orders": ORDERS}),
        Job(
            "widen",
            "Make an INT column a BIGINT column, and append a larger number",
            tables={"narrow": [(1,), (2,), (5_000_000_000,)]},
        ),
        Job("view", "A view that is kept", tables={"in_london": [(1,), (3,)]}),
    ],
    "Transactions": [
        Job(
            "two_tables",
            "Change two tables in one commit",
            tables={"orders": [(1, 1, 60.0, FIRST_DAY), *ORDERS[1:]], "stock": [("apple", 50.0), STOCK[1]]},
            other=_sums,
            seen=110.0,
        ),
        Job(
            "savepoint",
            "Undo a part of a transaction",
            tables={"people": [(1, "Ada", "Paris"), GRACE, ALAN]},
        ),
        Job(
            "lost_update",
            "Add to an amount while another client does too",
            tables={"orders": [(1, 1, 120.0, FIRST_DAY), *ORDERS[1:]]},
            other=lambda system, folder: system.add_hundred(folder),
        ),
        Job(
            "one_instant",
            "Read two tables at one instant while another client changes both",
            value=110.0,
            other=lambda system, folder: system.add_hundred(folder),
        ),
        Job("once", "Run a load again without loading twice", tables={"people": [ADA, GRACE, ALAN, EDSGER]}),
        Job(
            "audit",
            "Write, check what the table would hold, publish only if it is right",
            tables={"orders": ORDERS},
            other=lambda system, folder: len(system.rows(folder, "orders")),
            seen=3,
        ),
        Job(
            "forget",
            "Delete a person from ten tables in one commit",
            check=_nothing_left,
            other=_tables_with_ada,
            seen=10,
        ),
    ],
    "Time": [
        Job("earlier", "Read an earlier version of a table", value=[ADA, GRACE, ALAN], before="delete"),
        Job(
            "restore",
            "Bring a table back to an earlier version",
            tables={"people": [ADA, GRACE, ALAN]},
            before="delete",
        ),
        Job(
            "restore_all",
            "Bring two tables back to one instant, in one commit",
            tables={"people": [ADA, GRACE, ALAN], "orders": ORDERS},
            before="delete_everything",
            other=lambda system, folder: (
                len(system.rows(folder, "people")) > 0,
                len(system.rows(folder, "orders")) > 0,
            ),
            seen=(False, False),
        ),
        Job("changes", "The rows that a change inserted", value=[EDSGER], before="append_dicts"),
        Job("history", "The number of changes that a table has had", value=1, before="delete"),
    ],
    "Keep": [
        Job(
            "compact",
            "Compact small files",
            tables={"people": [ADA, GRACE, ALAN, EDSGER]},
            check=_one_file,
            before="append_dicts",
        ),
    ],
}

JOBS = [job for jobs in GROUPS.values() for job in jobs]
