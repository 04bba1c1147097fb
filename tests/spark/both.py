"""The same lake twice, one for each engine, and the comparison of what they give."""

import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa

import lakevilla as lv
from lakevilla.sql.types import type_name

ACCOUNTS = (
    "INSERT INTO accounts VALUES "
    "(1, 'ann', 10.50, DATE'2024-01-31', TIMESTAMP'2024-01-31 12:00:00', 1.5, array(1, 2), "
    "named_struct('city', 'Rome', 'zip', 1)), "
    "(2, 'bob', NULL, NULL, NULL, CAST('NaN' AS DOUBLE), NULL, NULL), "
    "(3, NULL, -3.25, DATE'1969-12-31', TIMESTAMP'1969-12-31 23:59:59.999999', CAST('-Infinity' AS DOUBLE), "
    "array(), named_struct('city', CAST(NULL AS STRING), 'zip', 3)), "
    "(4, 'dée', 0.00, DATE'2024-02-29', TIMESTAMP'2024-02-29 00:00:00', -0.5, array(NULL, 4), "
    "named_struct('city', 'Ulm', 'zip', 4))"
)
COLUMNS = (
    "id BIGINT, owner STRING, balance DECIMAL(12,2), day DATE, at TIMESTAMP, score DOUBLE, tags ARRAY<INT>, "
    "home STRUCT<city: STRING, zip: INT>"
)


def fill(lake: lv.Lake) -> None:
    """Two tables and an empty one; `accounts` has two files, `orders` is partitioned."""
    lake.create("accounts", COLUMNS)
    lake.sql(ACCOUNTS)
    lake.sql(
        "INSERT INTO accounts (id, owner, balance) "
        "SELECT id + 10, concat(owner, '!'), balance * 2 FROM accounts"
    )
    lake.create("orders", "id INT, account BIGINT, region STRING, amount INT", partition_by=["region"])
    lake.sql(
        "INSERT INTO orders VALUES (1, 1, 'eu', 5), (2, 1, 'us', 7), (3, 2, NULL, 9), (4, 3, 'a/b=c %', 11), "
        "(5, 99, 'eu', NULL)"
    )
    lake.create("empty", "id INT, name STRING")


@cache
def _filled(merge_on_read: bool) -> "tempfile.TemporaryDirectory[str]":
    """A filled lake to copy, which takes less time than to fill another."""
    folder = tempfile.TemporaryDirectory(prefix="lakevilla-filled-")
    fill(lv.Lake(folder.name, engine="local", merge_on_read=merge_on_read))
    return folder


class Both:
    """One lake on the local engine and its twin on Spark; their changes may delete rows where they
    are."""

    def __init__(
        self, folder: Path, spark: Any, merge_on_read: bool = False, table_format: str = "delta"
    ) -> None:
        for name in ("local", "spark"):
            if table_format == "iceberg":
                # An Iceberg table knows where it lies: a copy is read only.
                fill(
                    lv.Lake(
                        folder / name, engine="local", merge_on_read=merge_on_read, default_format="iceberg"
                    )
                )
            else:
                shutil.copytree(_filled(merge_on_read).name, folder / name)
        self.local = lv.Lake(folder / "local", engine="local")
        self.spark = lv.Lake(folder / "spark", spark=spark)
        # What Spark wrote, seen without Spark.
        self.judge = lv.Lake(folder / "spark", engine="local")

    def tables(self) -> list[tuple[Any, Any]]:
        """Rows and types of every table, in both lakes."""
        return [
            (content(self.local.read(name)), content(self.judge.read(name)))
            for name in sorted(self.local.tables())
        ]


def content(result: Any, ordered: bool = False) -> tuple[list[tuple[str, str]], list[str]]:
    """Names and types, and rows as text, so that NaN is equal to NaN."""
    table: pa.Table = result.toArrow()
    rows = [repr(tuple(row.values())) for row in table.to_pylist()]
    types = [(field.name, type_name(field.type)) for field in table.schema]
    return types, rows if ordered else sorted(rows)
