"""Transactions that outlive their client: stored sublogs, `lake.resume` and `lake.outcome`."""

from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

import pyarrow as pa
import pytest

import lakevilla as lv
from lakevilla.store import keys
from lakevilla.store.opening import open_store
from lakevilla.store.port import Created, Exists, Store

OPTIONS = {"fsync": "false"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A lake with rows in two files: ids 1 to 10, and 11 to 20."""
    lake = _open(tmp_path)
    lake.create("t", "id BIGINT, v BIGINT")
    lake.append("t", pa.table({"id": list(range(1, 11)), "v": [0] * 10}))
    lake.append("t", pa.table({"id": list(range(11, 21)), "v": [0] * 10}))
    return tmp_path


def _open(root: Path, store: Store | None = None) -> lv.Lake:
    return lv.Lake(root, engine="local", storage_options=OPTIONS, store=store, lease_seconds=0.3)


def _values(lake: lv.Lake | lv.Transaction, *ids: int) -> list[int]:
    rows = lake.sql("SELECT v FROM t WHERE id IN (:ids) ORDER BY id", ids=list(ids)).collect()
    return [row.v for row in rows]


def _records(root: Path) -> list[str]:
    """The sublogs that lie in the lake."""
    return sorted(str(path.relative_to(root)) for path in (root / keys.TXNS).glob("*/*/*.json"))


def _abandon(root: Path, *work: Callable[[lv.Transaction], Any]) -> lv.Transaction:
    """A transaction whose client does this much and is not heard of again; all of it is stored."""
    lake = _open(root)
    tx = lake.transaction(lv.R)
    for step in work:
        step(tx)
    lake.close()
    return tx


def _add(key: int, amount: int) -> Callable[[lv.Transaction], Any]:
    return lambda tx: tx.sql("UPDATE t SET v = v + :amount WHERE id = :key", amount=amount, key=key)


def test_restarted_client_goes_on_after_the_last_statement(root: Path) -> None:
    old = _abandon(root, _add(3, 1), lambda tx: tx.append("t", [{"id": 30, "v": 7}]), _add(30, 1))
    lake = _open(root)
    with lake.resume(old.id) as tx:
        assert (tx.id, tx.statements) == (old.id, 3)
        assert (_values(tx, 3, 30), _values(lake, 3, 30)) == ([1, 8], [0])
        tx.delete("t", where="id = 4")
    assert tx.receipt is not None
    assert (tx.receipt.id, tx.receipt.versions, tx.receipt.redone) == (old.id, {"t": 3}, 0)
    assert _values(lake, 3, 4, 30) == [1, 8]
    lake.close()
    assert _records(root) == []
