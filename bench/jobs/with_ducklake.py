"""The jobs in DuckDB with its DuckLake extension: a function for each, as a user would write it."""

from pathlib import Path
from typing import Any

import duckdb
import duckdb_extension_delta
import duckdb_extension_ducklake
import pandas as pd

from bench.jobs.job import Other, Rows
from bench.jobs.world import (
    CHANGED_PEOPLE,
    DAILY_SALES,
    EVENTS,
    MOVED,
    NEW_DAY,
    NEW_PEOPLE,
    NEW_ROWS,
    TABLES,
    WITH_EMAIL,
)

NAME = "DuckDB + DuckLake"
CANNOT = {
    "use_delta": "DuckDB's extension for Delta has no UPDATE; DuckLake needs a copy of the table",
    "other_reader": "the tables' metadata is in an SQL database; clients need a DuckLake reader",
    "add_check": "CHECK constraints are not supported",
    "savepoint": "DuckDB has no savepoints",
}

Connection = duckdb.DuckDBPyConnection


_OPEN: dict[Path, Connection] = {}
"""The connections by folder: a DuckDB file as metadata can be attached once at a time, so another client is
another cursor here. Clients in several processes keep the metadata in PostgreSQL or SQLite."""


def open(folder: Path) -> Connection:
    connection = duckdb.connect()
    for package in (duckdb_extension_ducklake, duckdb_extension_delta):
        (extension,) = Path(package.__file__).parent.rglob("*.duckdb_extension")
        connection.execute(f"LOAD '{extension}'")
    # Rows as files, as in the other systems, and not in the metadata database.
    connection.execute(
        f"ATTACH 'ducklake:{folder / 'lake.ducklake'}' AS lake "
        f"(DATA_PATH '{folder / 'files'}', DATA_INLINING_ROW_LIMIT 0)"
    )
    connection.execute("USE lake")
    connection.execute("BEGIN")
    for name, table in TABLES.items():
        connection.register("given", table)
        connection.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
        connection.unregister("given")
    connection.execute("COMMIT")
    _OPEN[folder] = connection
    return connection


def _cursor(folder: Path) -> Connection:
    cursor = _OPEN[folder].cursor()
    cursor.execute("USE lake")
    return cursor


def rows(folder: Path, table: str) -> Rows:
    return _cursor(folder).execute(f"SELECT * FROM {table}").fetchall()


def columns(folder: Path, table: str) -> list[str]:
    return _cursor(folder).sql(f"FROM {table}").columns


def spoil(folder: Path) -> None:
    _cursor(folder).execute("UPDATE orders SET amount = -1")


def file_count(folder: Path, table: str) -> int:
    return len(_cursor(folder).execute(f"FROM ducklake_list_files('lake', '{table}')").fetchall())


def add_hundred(folder: Path) -> None:
    cursor = _cursor(folder)
    cursor.execute("BEGIN")
    cursor.execute("UPDATE orders SET amount = amount + 100 WHERE id = 1")
    cursor.execute("UPDATE stock SET pieces = pieces + 100 WHERE item = 'apple'")
    cursor.execute("COMMIT")


def delete_everything(con: Connection, other: Other) -> None:
    con.execute("BEGIN")
    con.execute("DELETE FROM people")
    con.execute("DELETE FROM orders")
    con.execute("COMMIT")


def create(con: Connection, other: Other) -> None:
    con.execute("CREATE TABLE visits (id BIGINT, day DATE, pages VARCHAR[], n DECIMAL(12, 2))")


def create_partitioned(con: Connection, other: Other) -> None:
    con.execute("CREATE TABLE sales AS FROM DAILY_SALES WITH NO DATA")
    con.execute("ALTER TABLE sales SET PARTITIONED BY (day)")
    con.execute("INSERT INTO sales FROM DAILY_SALES")


def append_dicts(con: Connection, other: Other) -> None:
    con.executemany("INSERT INTO people VALUES ($id, $name, $city)", NEW_ROWS)


def append_frame(con: Connection, other: Other) -> None:
    con.execute("INSERT INTO people BY NAME FROM NEW_PEOPLE")


def load_csv(con: Connection, other: Other) -> None:
    con.execute("INSERT INTO people FROM 'new.csv'")


def append_new_column(con: Connection, other: Other) -> None:
    con.execute("ALTER TABLE people ADD COLUMN email VARCHAR")
    con.execute("INSERT INTO people BY NAME FROM WITH_EMAIL")


def use_delta(con: Connection, other: Other) -> None:
    con.execute("ATTACH 'existing' AS existing (TYPE delta)")
    con.execute("UPDATE existing SET n = n + 1")


def adopt_parquet(con: Connection, other: Other) -> Any:
    con.execute("CREATE TABLE archive AS FROM 'archive/*.parquet' WITH NO DATA")
    con.execute("CALL ducklake_add_data_files('lake', 'archive', 'archive/*.parquet')")
    return con.execute("FROM archive").fetchall()


def join(con: Connection, other: Other) -> Any:
    return con.execute(
        "SELECT name, sum(amount) AS total FROM people JOIN orders ON people.id = person GROUP BY name"
    ).fetchall()


def to_pandas(con: Connection, other: Other) -> Any:
    return con.sql("FROM people WHERE city = 'London'").df()


def parameters(con: Connection, other: Other) -> Any:
    return con.execute("FROM people WHERE name = $name", {"name": "Grace"}).fetchall()


def join_frame(con: Connection, other: Other) -> Any:
    return con.execute("SELECT name, m.city FROM people JOIN MOVED m USING (id)").fetchall()


def export_parquet(con: Connection, other: Other) -> None:
    con.execute("COPY people TO 'out.parquet'")


def other_reader(con: Connection, other: Other) -> Any:
    import deltalake

    return deltalake.DeltaTable("files/main/people").to_pandas()


def read_sql(con: Connection, other: Other) -> Any:
    return pd.read_sql("SELECT * FROM lake.people", con)


def update(con: Connection, other: Other) -> None:
    con.execute("UPDATE people SET city = 'Boston' WHERE id = 2")


def delete(con: Connection, other: Other) -> None:
    con.execute("DELETE FROM people WHERE city = 'London'")


def upsert(con: Connection, other: Other) -> None:
    con.execute(
        """MERGE INTO people USING CHANGED_PEOPLE USING (id)
           WHEN MATCHED THEN UPDATE WHEN NOT MATCHED THEN INSERT"""
    )


def replace_day(con: Connection, other: Other) -> None:
    con.execute("BEGIN")
    con.execute("DELETE FROM orders WHERE day = DATE '2026-01-01'")
    con.execute("INSERT INTO orders BY NAME FROM NEW_DAY")
    con.execute("COMMIT")


def deduplicate(con: Connection, other: Other) -> None:
    con.execute("CREATE OR REPLACE TABLE copies AS SELECT DISTINCT * FROM copies")


def dimension(con: Connection, other: Other) -> None:
    con.execute("BEGIN")
    con.execute(
        """UPDATE history_of_people h SET valid_to = DATE '2026-01-02'
           FROM MOVED m WHERE h.id = m.id AND valid_to IS NULL AND h.city <> m.city"""
    )
    con.execute(
        """INSERT INTO history_of_people SELECT id, city, DATE '2026-01-02', NULL FROM MOVED
           WHERE id NOT IN (SELECT id FROM history_of_people WHERE valid_to IS NULL)"""
    )
    con.execute("COMMIT")


def fill_from_query(con: Connection, other: Other) -> None:
    con.execute("INSERT INTO totals SELECT person, sum(amount) FROM orders GROUP BY person")


def add_column(con: Connection, other: Other) -> None:
    con.execute("ALTER TABLE people ADD COLUMN email VARCHAR")


def rename_column(con: Connection, other: Other) -> None:
    con.execute("ALTER TABLE people RENAME COLUMN city TO town")


def add_check(con: Connection, other: Other) -> None:
    con.execute("ALTER TABLE orders ADD CONSTRAINT positive CHECK (amount > 0)")


def widen(con: Connection, other: Other) -> None:
    con.execute("ALTER TABLE narrow ALTER COLUMN id TYPE BIGINT")
    con.execute("INSERT INTO narrow VALUES (5_000_000_000)")


def view(con: Connection, other: Other) -> None:
    con.execute("CREATE VIEW in_london AS SELECT id FROM people WHERE city = 'London'")


def two_tables(con: Connection, other: Other) -> None:
    con.execute("BEGIN")
    con.execute("UPDATE orders SET amount = amount + 50 WHERE id = 1")
    other()
    con.execute("UPDATE stock SET pieces = pieces - 50 WHERE item = 'apple'")
    con.execute("COMMIT")


def savepoint(con: Connection, other: Other) -> None:
    con.execute("BEGIN")
    con.execute("SAVEPOINT before")


def lost_update(con: Connection, other: Other) -> None:
    while True:
        try:
            con.execute("BEGIN")
            con.execute("UPDATE orders SET amount = amount + 10 WHERE id = 1")
            other()
            con.execute("COMMIT")
            return
        except duckdb.TransactionException:
            pass


def one_instant(con: Connection, other: Other) -> Any:
    con.execute("BEGIN")
    amount = con.execute("SELECT amount FROM orders WHERE id = 1").fetchall()[0][0]
    other()
    pieces = con.execute("SELECT pieces FROM stock WHERE item = 'apple'").fetchall()[0][0]
    con.execute("COMMIT")
    return amount + pieces


def once(con: Connection, other: Other) -> None:
    con.execute("CREATE TABLE loads (app VARCHAR, batch BIGINT)")
    for _ in range(2):
        con.execute("BEGIN")
        if not con.execute("FROM loads WHERE app = 'load' AND batch >= 1").fetchall():
            con.execute("INSERT INTO people BY NAME FROM NEW_PEOPLE")
            con.execute("INSERT INTO loads VALUES ('load', 1)")
        con.execute("COMMIT")


def audit(con: Connection, other: Other) -> None:
    con.execute("BEGIN")
    con.execute("INSERT INTO orders BY NAME FROM NEW_DAY")
    other()
    wrong = con.execute("FROM orders WHERE person NOT IN (1, 2)").fetchall()
    con.execute("ROLLBACK" if wrong else "COMMIT")


def forget(con: Connection, other: Other) -> None:
    con.execute("BEGIN")
    for table in EVENTS:
        con.execute(f"DELETE FROM {table} WHERE person = 1")
        other()
    con.execute("COMMIT")


def earlier(con: Connection, other: Other) -> Any:
    return con.execute("FROM people AT (VERSION => 1)").fetchall()


def restore(con: Connection, other: Other) -> None:
    con.execute("CREATE OR REPLACE TABLE people AS FROM people AT (VERSION => 1)")


def restore_all(con: Connection, other: Other) -> None:
    con.execute("BEGIN")
    con.execute("CREATE OR REPLACE TABLE people AS FROM people AT (VERSION => 1)")
    other()
    con.execute("CREATE OR REPLACE TABLE orders AS FROM orders AT (VERSION => 1)")
    con.execute("COMMIT")


def changes(con: Connection, other: Other) -> Any:
    return con.execute("FROM ducklake_table_insertions('lake', 'main', 'people', 2, 2)").fetchall()


def history(con: Connection, other: Other) -> int:
    return len(con.execute("FROM ducklake_snapshots('lake')").fetchall()) - 2


def compact(con: Connection, other: Other) -> None:
    con.execute("CALL ducklake_merge_adjacent_files('lake', 'people')")
