"""The jobs in LakeVilla, on its local engine: a function for each, as a user would write it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import pandas as pd
import pyarrow.parquet as pq

import lakevilla as lv
import lakevilla.dbapi
from bench.jobs.job import Other, Rows, plain
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

NAME = "LakeVilla"
CANNOT = {
    "adopt_parquet": "tables are Delta and Iceberg tables; deltalake turns Parquet files into one",
    "widen": "`ALTER COLUMN ... TYPE` is not supported; a column that another client widened is read",
    "changes": "there is no change feed; compare two versions",
}


def open(folder: Path) -> lv.Lake:
    lake = lv.Lake(folder / "lake", engine="local")
    with lake.transaction() as tx:
        for name, data in TABLES.items():
            tx.create(name, data)
    return lake


def rows(folder: Path, table: str) -> Rows:
    found: Rows = plain(lv.Lake(folder / "lake", engine="local").read(table))
    return found


def columns(folder: Path, table: str) -> list[str]:
    return lv.Lake(folder / "lake", engine="local").read(table).columns


def spoil(folder: Path) -> None:
    lv.Lake(folder / "lake", engine="local").sql("UPDATE orders SET amount = -1")


def file_count(folder: Path, table: str) -> int:
    return len(deltalake.DeltaTable(folder / "lake" / table).file_uris())


def add_hundred(folder: Path) -> None:
    with lv.Lake(folder / "lake", engine="local").transaction() as tx:
        tx.sql("UPDATE orders SET amount = amount + 100 WHERE id = 1")
        tx.sql("UPDATE stock SET pieces = pieces + 100 WHERE item = 'apple'")


def delete_everything(lake: lv.Lake, other: Other) -> None:
    with lake.transaction() as tx:
        tx.delete("people")
        tx.delete("orders")


def create(lake: lv.Lake, other: Other) -> None:
    lake.create("visits", "id BIGINT, day DATE, pages ARRAY<STRING>, n DECIMAL(12, 2)")


def create_partitioned(lake: lv.Lake, other: Other) -> None:
    lake.create("sales", DAILY_SALES, partition_by=["day"])


def append_dicts(lake: lv.Lake, other: Other) -> None:
    lake.append("people", NEW_ROWS)


def append_frame(lake: lv.Lake, other: Other) -> None:
    lake.append("people", NEW_PEOPLE)


def load_csv(lake: lv.Lake, other: Other) -> None:
    lake.append("people", "new.csv")


def append_new_column(lake: lv.Lake, other: Other) -> None:
    lake.append("people", WITH_EMAIL, schema="merge")


def use_delta(lake: lv.Lake, other: Other) -> Any:
    lake.register("existing", "existing")
    lake.sql("UPDATE existing SET n = n + 1")
    return lake.read("existing")


def adopt_parquet(lake: lv.Lake, other: Other) -> Any:
    lake.register("archive", "archive")
    return lake.read("archive")


def join(lake: lv.Lake, other: Other) -> Any:
    return lake.sql(
        "SELECT name, sum(amount) AS total FROM people JOIN orders ON people.id = person GROUP BY name"
    )


def to_pandas(lake: lv.Lake, other: Other) -> Any:
    return lake.sql("SELECT * FROM people WHERE city = 'London'").to_pandas()


def parameters(lake: lv.Lake, other: Other) -> Any:
    return lake.sql("SELECT * FROM people WHERE name = :name", name="Grace")


def join_frame(lake: lv.Lake, other: Other) -> Any:
    return lake.sql("SELECT name, moved.city FROM people JOIN moved USING (id)", views={"moved": MOVED})


def export_parquet(lake: lv.Lake, other: Other) -> None:
    pq.write_table(lake.sql("SELECT * FROM people").to_arrow(), "out.parquet")


def other_reader(lake: lv.Lake, other: Other) -> Any:
    return deltalake.DeltaTable("lake/people").to_pandas()


def read_sql(lake: lv.Lake, other: Other) -> Any:
    return pd.read_sql("SELECT * FROM people", lakevilla.dbapi.connect("lake", engine="local"))


def update(lake: lv.Lake, other: Other) -> None:
    lake.sql("UPDATE people SET city = 'Boston' WHERE id = 2")


def delete(lake: lv.Lake, other: Other) -> None:
    lake.sql("DELETE FROM people WHERE city = 'London'")


def upsert(lake: lv.Lake, other: Other) -> None:
    lake.merge("people", CHANGED_PEOPLE, on=["id"], matched="update", not_matched="insert")


def replace_day(lake: lv.Lake, other: Other) -> None:
    lake.overwrite("orders", NEW_DAY, where="day = DATE'2026-01-01'")


def deduplicate(lake: lv.Lake, other: Other) -> None:
    lake.sql("INSERT OVERWRITE copies SELECT DISTINCT * FROM copies")


def dimension(lake: lv.Lake, other: Other) -> None:
    with lake.transaction() as tx:
        changed = "SELECT h.id FROM history_of_people h JOIN moved m USING (id) WHERE h.city <> m.city"
        tx.sql(
            f"""UPDATE history_of_people SET valid_to = DATE'2026-01-02'
                WHERE valid_to IS NULL AND id IN ({changed})""",
            views={"moved": MOVED},
        )
        tx.sql(
            """INSERT INTO history_of_people SELECT id, city, DATE'2026-01-02', NULL FROM moved
               WHERE id NOT IN (SELECT id FROM history_of_people WHERE valid_to IS NULL)""",
            views={"moved": MOVED},
        )


def fill_from_query(lake: lv.Lake, other: Other) -> None:
    lake.sql("INSERT INTO totals SELECT person, sum(amount) FROM orders GROUP BY person")


def add_column(lake: lv.Lake, other: Other) -> None:
    lake.add_column("people", "email", "STRING")


def rename_column(lake: lv.Lake, other: Other) -> None:
    lake.sql("ALTER TABLE people SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    lake.sql("ALTER TABLE people RENAME COLUMN city TO town")


def add_check(lake: lv.Lake, other: Other) -> None:
    lake.sql("ALTER TABLE orders ADD CONSTRAINT positive CHECK (amount > 0)")


def widen(lake: lv.Lake, other: Other) -> None:
    lake.sql("ALTER TABLE narrow ALTER COLUMN id TYPE BIGINT")
    lake.append("narrow", [{"id": 5_000_000_000}])


def view(lake: lv.Lake, other: Other) -> None:
    lake.sql("CREATE VIEW in_london AS SELECT id FROM people WHERE city = 'London'")


def two_tables(lake: lv.Lake, other: Other) -> None:
    with lake.transaction() as tx:
        tx.sql("UPDATE orders SET amount = amount + 50 WHERE id = 1")
        other()
        tx.sql("UPDATE stock SET pieces = pieces - 50 WHERE item = 'apple'")


def savepoint(lake: lv.Lake, other: Other) -> None:
    with lake.transaction() as tx:
        tx.sql("UPDATE people SET city = 'Paris' WHERE id = 1")
        tx.savepoint("before")
        tx.sql("DELETE FROM people")
        tx.rollback_to("before")


def lost_update(lake: lv.Lake, other: Other) -> None:
    with lake.transaction() as tx:
        tx.sql("UPDATE orders SET amount = amount + 10 WHERE id = 1")
        other()


def one_instant(lake: lv.Lake, other: Other) -> Any:
    with lake.transaction() as tx:
        amount = tx.sql("SELECT amount FROM orders WHERE id = 1").collect()[0].amount
        other()
        return amount + tx.sql("SELECT pieces FROM stock WHERE item = 'apple'").collect()[0].pieces


def once(lake: lv.Lake, other: Other) -> None:
    for _ in range(2):
        lake.run(lambda tx: tx.append("people", NEW_ROWS), once=("load", 1))


def audit(lake: lv.Lake, other: Other) -> None:
    with lake.transaction() as tx:
        tx.append("orders", NEW_DAY)
        other()
        if tx.sql("SELECT count(*) AS n FROM orders WHERE person NOT IN (1, 2)").collect()[0].n:
            tx.abort()


def forget(lake: lv.Lake, other: Other) -> None:
    with lake.transaction() as tx:
        for table in EVENTS:
            tx.delete(table, where="person = 1")
            other()


def earlier(lake: lv.Lake, other: Other) -> Any:
    return lake.read("people", version=0)


def restore(lake: lv.Lake, other: Other) -> None:
    lake.restore(version=0, tables=["people"])


def restore_all(lake: lv.Lake, other: Other) -> None:
    lake.restore(seq=1)


def changes(lake: lv.Lake, other: Other) -> Any:
    return lake.sql("SELECT id, name, city FROM table_changes('people', 1)")


def history(lake: lv.Lake, other: Other) -> int:
    return len(lake.history("people")) - 1


def compact(lake: lv.Lake, other: Other) -> None:
    lake.sql("OPTIMIZE people")
