"""Lakes whose clients die in the middle of a transaction."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lakevilla as lv
from tests.support.left_open import OPTIONS, store_all

ALL = lv.R | lv.CT | lv.I
PICKS = [lv.R | lv.CT, lv.R | lv.I, ALL]

Step = Callable[[lv.Transaction], Any]


def make_two_tables(root: Path) -> None:
    """A lake with the tables `a` and `b`, rows 1 to 3 in each."""
    lake = open_lake(root)
    for name in ("a", "b"):
        lake.create(name, "id BIGINT, v BIGINT")
        lake.append(name, [{"id": key, "v": 0} for key in (1, 2, 3)])


def open_lake(root: Path, store: Any = None) -> lv.Lake:
    return lv.Lake(root, engine="local", storage_options=OPTIONS, store=store, lease_seconds=0.3)


def add(table: str, key: int, amount: int = 1) -> Step:
    return lambda tx: tx.sql(f"UPDATE {table} SET v = v + {amount} WHERE id = {key}")


def look(table: str) -> Step:
    return lambda tx: tx.sql(f"SELECT * FROM {table}").collect()


def abandon(root: Path, *steps: Step, features: lv.Features = ALL, **picked: Any) -> lv.Transaction:
    """A transaction whose client does this much and then dies; all of it is stored."""
    lake = open_lake(root)
    tx = lake.transaction(features, **picked)
    for step in steps:
        step(tx)
    store_all(lake, tx)
    return tx


def values(lake: lv.Lake | lv.Transaction, table: str) -> list[int]:
    return [row.v for row in lake.sql(f"SELECT v FROM {table} ORDER BY id").collect()]
