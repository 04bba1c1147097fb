"""The jobs in delta-rs, by its Python package deltalake: a function for each, as a user would write it."""

from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from deltalake import (
    CommitProperties,
    DeltaTable,
    Field,
    QueryBuilder,
    Schema,
    Transaction,
    convert_to_deltalake,
    write_deltalake,
)
from deltalake.exceptions import CommitFailedError
from deltalake.schema import PrimitiveType

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

NAME = "delta-rs"
CANNOT = {
    "read_sql": "there is no DB-API",
    "rename_column": "columns cannot be renamed",
    "widen": "the type of a column cannot be changed without rewriting the table",
    "view": "there are no views",
    "two_tables": "a commit is on one table",
    "savepoint": "a commit has one operation",
    "one_instant": "each table is opened for itself",
    "audit": "a commit has one operation: check the rows before they are written",
    "forget": "a commit is on one table",
    "restore_all": "a commit is on one table",
}


def open(folder: Path) -> str:
    for name, table in TABLES.items():
        # The change feed has to be switched on before the change.
        write_deltalake(
            folder / "lake" / name,
            table,
            configuration={"delta.enableChangeDataFeed": str(name == "people").lower()},
        )
    return "lake"


def rows(folder: Path, table: str) -> Rows:
    found: Rows = plain(DeltaTable(folder / "lake" / table).to_pyarrow_table())
    return found


def columns(folder: Path, table: str) -> list[str]:
    return [field.name for field in DeltaTable(folder / "lake" / table).schema().fields]


def spoil(folder: Path) -> None:
    DeltaTable(folder / "lake/orders").update({"amount": "-1.0"})


def file_count(folder: Path, table: str) -> int:
    return len(DeltaTable(folder / "lake" / table).file_uris())


def add_hundred(folder: Path) -> None:
    DeltaTable(folder / "lake/orders").update({"amount": "amount + 100"}, predicate="id = 1")
    DeltaTable(folder / "lake/stock").update({"pieces": "pieces + 100"}, predicate="item = 'apple'")


def delete_everything(lake: str, other: Other) -> None:
    DeltaTable(f"{lake}/people").delete()
    DeltaTable(f"{lake}/orders").delete()


def create(lake: str, other: Other) -> None:
    types = {"id": pa.int64(), "day": pa.date32(), "pages": pa.list_(pa.string()), "n": pa.decimal128(12, 2)}
    DeltaTable.create(f"{lake}/visits", pa.schema(types))


def create_partitioned(lake: str, other: Other) -> None:
    write_deltalake(f"{lake}/sales", DAILY_SALES, partition_by=["day"])


def append_dicts(lake: str, other: Other) -> None:
    write_deltalake(f"{lake}/people", pa.Table.from_pylist(NEW_ROWS), mode="append")


def append_frame(lake: str, other: Other) -> None:
    write_deltalake(f"{lake}/people", NEW_PEOPLE, mode="append")


def load_csv(lake: str, other: Other) -> None:
    write_deltalake(f"{lake}/people", pyarrow.csv.read_csv("new.csv"), mode="append")


def append_new_column(lake: str, other: Other) -> None:
    write_deltalake(f"{lake}/people", WITH_EMAIL, mode="append", schema_mode="merge")


def use_delta(lake: str, other: Other) -> Any:
    table = DeltaTable("existing")
    table.update({"n": "n + 1"})
    return table.to_pandas()


def adopt_parquet(lake: str, other: Other) -> Any:
    convert_to_deltalake("archive")
    return DeltaTable("archive").to_pandas()


def join(lake: str, other: Other) -> Any:
    query = QueryBuilder().register("people", DeltaTable(f"{lake}/people"))
    query.register("orders", DeltaTable(f"{lake}/orders"))
    return query.execute(
        "SELECT name, sum(amount) AS total FROM people JOIN orders ON people.id = person GROUP BY name"
    )


def to_pandas(lake: str, other: Other) -> Any:
    return DeltaTable(f"{lake}/people").to_pandas(filters=[("city", "=", "London")])


def parameters(lake: str, other: Other) -> Any:
    return DeltaTable(f"{lake}/people").to_pandas(filters=[("name", "=", "Grace")])


def join_frame(lake: str, other: Other) -> Any:
    people = DeltaTable(f"{lake}/people").to_pandas(columns=["id", "name"])
    return people.merge(MOVED, on="id")[["name", "city"]]


def export_parquet(lake: str, other: Other) -> None:
    pq.write_table(DeltaTable(f"{lake}/people").to_pyarrow_table(), "out.parquet")


def other_reader(lake: str, other: Other) -> Any:
    return DeltaTable(f"{lake}/people").to_pandas()


def read_sql(lake: str, other: Other) -> Any:
    return pd.read_sql("SELECT * FROM people", QueryBuilder())


def update(lake: str, other: Other) -> None:
    DeltaTable(f"{lake}/people").update({"city": "'Boston'"}, predicate="id = 2")


def delete(lake: str, other: Other) -> None:
    DeltaTable(f"{lake}/people").delete("city = 'London'")


def upsert(lake: str, other: Other) -> None:
    merge = DeltaTable(f"{lake}/people").merge(
        CHANGED_PEOPLE, "t.id = s.id", source_alias="s", target_alias="t"
    )
    merge.when_matched_update_all().when_not_matched_insert_all().execute()


def replace_day(lake: str, other: Other) -> None:
    write_deltalake(f"{lake}/orders", NEW_DAY, mode="overwrite", predicate="day = DATE '2026-01-01'")


def deduplicate(lake: str, other: Other) -> None:
    rows = DeltaTable(f"{lake}/copies").to_pandas().drop_duplicates(ignore_index=True)
    write_deltalake(f"{lake}/copies", rows, mode="overwrite")


def dimension(lake: str, other: Other) -> None:
    table = DeltaTable(f"{lake}/history_of_people")
    current = table.to_pandas()
    current = current[current.valid_to.isna()][["id", "city"]]
    changed = MOVED.merge(current, on="id", how="left", suffixes=("", "_old"))
    changed = changed[changed.city != changed.city_old][["id", "city"]]
    # A row without a key is inserted; the row with the key closes the period that was open.
    source = pd.concat([changed.assign(key=changed.id), changed.assign(key=None)])
    merge = table.merge(source, "t.id = s.key AND t.valid_to IS NULL", source_alias="s", target_alias="t")
    merge = merge.when_matched_update({"valid_to": "DATE '2026-01-02'"})
    new = {"id": "s.id", "city": "s.city", "valid_from": "DATE '2026-01-02'", "valid_to": "NULL"}
    merge.when_not_matched_insert(new, predicate="s.key IS NULL").execute()


def fill_from_query(lake: str, other: Other) -> None:
    query = QueryBuilder().register("orders", DeltaTable(f"{lake}/orders"))
    rows = query.execute("SELECT person, sum(amount) AS amount FROM orders GROUP BY person")
    write_deltalake(f"{lake}/totals", rows, mode="append")


def add_column(lake: str, other: Other) -> None:
    DeltaTable(f"{lake}/people").alter.add_columns([Field("email", PrimitiveType("string"))])


def rename_column(lake: str, other: Other) -> None:
    DeltaTable(f"{lake}/people").alter.rename_column("city", "town")  # type: ignore[attr-defined]


def add_check(lake: str, other: Other) -> None:
    DeltaTable(f"{lake}/orders").alter.add_constraint({"positive": "amount > 0"})


def widen(lake: str, other: Other) -> None:
    table = DeltaTable(f"{lake}/narrow")
    table.alter.add_columns([Field("id", PrimitiveType("long"))])
    write_deltalake(table, pa.table({"id": [5_000_000_000]}), mode="append", schema_mode="merge")


def two_tables(lake: str, other: Other) -> None:
    DeltaTable(f"{lake}/orders").update({"amount": "amount + 50"}, predicate="id = 1")
    other()
    DeltaTable(f"{lake}/stock").update({"pieces": "pieces - 50"}, predicate="item = 'apple'")


def lost_update(lake: str, other: Other) -> None:
    while True:
        table = DeltaTable(f"{lake}/orders")
        other()
        try:
            table.update({"amount": "amount + 10"}, predicate="id = 1")
            return
        except CommitFailedError:
            pass


def one_instant(lake: str, other: Other) -> Any:
    orders = DeltaTable(f"{lake}/orders").to_pandas()
    other()
    stock = DeltaTable(f"{lake}/stock").to_pandas()
    return orders[orders.id == 1].amount.sum() + stock[stock.item == "apple"].pieces.sum()


def once(lake: str, other: Other) -> None:
    for _ in range(2):
        table = DeltaTable(f"{lake}/people")
        if (table.transaction_version("load") or 0) < 1:
            batch = CommitProperties(app_transactions=[Transaction("load", 1)])
            write_deltalake(table, NEW_PEOPLE, mode="append", commit_properties=batch)


def audit(lake: str, other: Other) -> None:
    table = DeltaTable(f"{lake}/orders")
    write_deltalake(table, NEW_DAY, mode="append")
    other()
    if not table.to_pandas().person.isin([1, 2]).all():
        table.restore(table.version() - 1)


def forget(lake: str, other: Other) -> None:
    for table in EVENTS:
        DeltaTable(f"{lake}/{table}").delete("person = 1")
        other()


def earlier(lake: str, other: Other) -> Any:
    return DeltaTable(f"{lake}/people", version=0).to_pandas()


def restore(lake: str, other: Other) -> None:
    DeltaTable(f"{lake}/people").restore(0)


def restore_all(lake: str, other: Other) -> None:
    DeltaTable(f"{lake}/people").restore(0)
    other()
    DeltaTable(f"{lake}/orders").restore(0)


def changes(lake: str, other: Other) -> Any:
    rows = pa.table(DeltaTable(f"{lake}/people").load_cdf(starting_version=1))
    return rows.select(["id", "name", "city"])


def history(lake: str, other: Other) -> int:
    return len(DeltaTable(f"{lake}/people").history()) - 1


def compact(lake: str, other: Other) -> None:
    DeltaTable(f"{lake}/people").optimize.compact()
