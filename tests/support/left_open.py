"""A lake on a directory, and clients that leave a transaction open in it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

import lakevilla as lv
from lakevilla.store import keys
from lakevilla.store.open import open_store
from lakevilla.store.port import Store
from tests.support.hooked import Hooked

OPTIONS = {"fsync": "false"}


def make_lake(root: Path) -> Path:
    """A lake with rows in two files: ids 1 to 10, and 11 to 20."""
    lake = open_lake(root)
    lake.create("t", "id BIGINT, v BIGINT")
    lake.append("t", pa.table({"id": list(range(1, 11)), "v": [0] * 10}))
    lake.append("t", pa.table({"id": list(range(11, 21)), "v": [0] * 10}))
    return root


def open_lake(root: Path, store: Store | None = None) -> lv.Lake:
    """A client of its own."""
    return lv.Lake(
        root, engine="local", features=lv.R, storage_options=OPTIONS, store=store, lease_seconds=0.3
    )


def hooked(root: Path) -> tuple[lv.Lake, Hooked]:
    """A client of its own, and the store through which its requests go."""
    store = Hooked(open_store(str(root), OPTIONS))
    return open_lake(root, store), store


def values(lake: lv.Lake | lv.Transaction, *ids: int) -> list[int]:
    rows = lake.sql("SELECT v FROM t WHERE id IN (:ids) ORDER BY id", ids=list(ids)).collect()
    return [row.v for row in rows]


def records(root: Path) -> list[str]:
    """The sublogs that lie in the lake."""
    return sorted(str(path.relative_to(root)) for path in (root / keys.TXNS).glob("*/*/*.json"))


Step = Callable[[lv.Transaction], Any]


def abandon(root: Path, *steps: Step) -> lv.Transaction:
    """A transaction whose client does this much and then dies; all of it is stored."""
    lake = open_lake(root)
    tx = lake.transaction(lv.R)
    for step in steps:
        step(tx)
    store_all(lake, tx)
    return tx


def store_all(lake: lv.Lake, tx: lv.Transaction) -> None:
    """Wait until everything that the transaction did is stored: its files, and its records, which may name
    files that are still on their way."""
    tx._workspace.uploads.finish()
    lake.close()


def add(key: int, amount: int) -> Step:
    return lambda tx: tx.sql("UPDATE t SET v = v + :amount WHERE id = :key", amount=amount, key=key)


def insert(key: int, value: int) -> Step:
    return lambda tx: tx.append("t", [{"id": key, "v": value}])
