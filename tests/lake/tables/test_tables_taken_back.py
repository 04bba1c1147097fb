"""Tables that a transaction makes while an outside client is in the way of its commit (CT)."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakevilla as lv
from lakevilla.store.metered import Meter
from tests.support.outsiders import OUTSIDERS, Outsider

pytestmark = pytest.mark.formats("delta", "iceberg")

BOTH = lv.R | lv.CT


@pytest.fixture
def lake(tmp_path: Path) -> lv.Lake:
    """A table of three rows."""
    lake = _open(tmp_path)
    lake.create("src", [{"id": number, "v": 10 * number} for number in (1, 2, 3)])
    return lake


@pytest.fixture
def outside(table_format: str) -> Outsider:
    """A client that knows nothing of us."""
    return OUTSIDERS[table_format]


def _open(path: Path) -> lv.Lake:
    return lv.Lake(path, engine="local", storage_options={"fsync": "false"})


def _rows(lake: lv.Lake, name: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in lake.read(name).collect())


def test_new_table_that_had_to_be_taken_back_is_made_again_in_another_folder(
    lake: lv.Lake, tmp_path: Path, outside: Outsider
) -> None:
    """An outside client alters a table, to which the transaction appends, before that is published."""
    with lake.transaction(BOTH) as tx:
        tx.create("t", pa.table({"id": [1]}))
        tx.sql("INSERT INTO t VALUES (2)")
        tx.append("src", [{"id": 4, "v": 40}])
        outside.add_text_column(tmp_path / "src", "note")
    assert tx.receipt is not None
    assert (tx.receipt.redone, tx.receipt.versions) == (3, {"src": outside.begin + 2, "t": outside.begin})
    assert _rows(_open(tmp_path), "t") == [(1,), (2,)]
    assert lake.tables() == ["src", "t"]
    assert lake._catalog.head(Meter(), fresh=True).dropped == {"t"}
    assert lake.outcome(tx.id).state == "committed"


def test_new_table_that_had_to_be_taken_back_is_gone_without_recovery(
    lake: lv.Lake, tmp_path: Path, outside: Outsider
) -> None:
    tx = lake.transaction(lv.CT)
    tx.create("t", pa.table({"id": [1]}))
    tx.append("src", [{"id": 4, "v": 40}])
    outside.add_text_column(tmp_path / "src", "note")
    with pytest.raises(lv.Conflict):
        tx.commit()
    assert lake.tables() == _open(tmp_path).tables() == ["src"]
    assert (lake.outcome(tx.id).state, len(_rows(lake, "src"))) == ("aborted", 3)
    lake.create("t", pa.table({"id": [2]}))
    assert _rows(lake, "t") == [(2,)]


def test_place_of_a_new_table_that_an_outside_client_took_is_a_conflict(
    lake: lv.Lake, tmp_path: Path, outside: Outsider
) -> None:
    tx = lake.transaction(BOTH)
    tx.create("t", pa.table({"id": [1]}))
    tx.create("u", pa.table({"id": [1]}))
    tx.update("src", {"v": 0})
    outside.create(tmp_path / "t", pa.table({"name": ["theirs"]}))
    with pytest.raises(lv.Conflict) as caught:
        tx.commit()
    assert caught.value.table == "t"
    assert (lake.tables(), _rows(lake, "t")) == (["src", "t"], [("theirs",)])
    assert _rows(lake, "src")[0] == (1, 10)
