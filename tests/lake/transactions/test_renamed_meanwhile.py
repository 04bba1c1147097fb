"""A table is renamed while a transaction is open, and another one gets its name: the transaction writes the
table that it has read."""

from pathlib import Path

import pytest

import lakevilla as lv

pytestmark = pytest.mark.formats("delta", "iceberg")

KINDS = {
    "R": lv.R,
    "CT": lv.CT,
    "R,CT": lv.R | lv.CT,
    "CT,I": lv.CT | lv.I,
    "R,CT,I": lv.R | lv.CT | lv.I,
}
SCHEMA = "id BIGINT, v BIGINT"
STATEMENT = "UPDATE t SET v = v + 1 WHERE id = 1"


def _open(root: Path) -> lv.Lake:
    return lv.Lake(root, engine="local", storage_options={"fsync": "false"})


@pytest.fixture
def lake(tmp_path: Path) -> lv.Lake:
    lake = _open(tmp_path)
    lake.create("t", SCHEMA)
    lake.append("t", [{"id": 1, "v": 1}])
    return lake


def _swap(root: Path) -> lv.Lake:
    """Another client gives the table another name, and its name to a new table."""
    other = _open(root)
    other.rename("t", "old")
    other.create("t", SCHEMA)
    other.append("t", [{"id": 1, "v": 700}])
    return other


def _values(lake: lv.Lake | lv.Transaction, name: str) -> list[int]:
    return [row.v for row in lake.read(name).collect()]


@pytest.mark.parametrize("begun", [False, True], ids=["has read", "has written"])
@pytest.mark.parametrize("kind", KINDS)
def test_open_transaction_writes_the_table_that_it_has_read(
    lake: lv.Lake, tmp_path: Path, kind: str, begun: bool
) -> None:
    with lake.transaction(KINDS[kind]) as tx:
        assert _values(tx, "t") == [1]
        if begun:
            tx.sql(STATEMENT)
        other = _swap(tmp_path)
        if not begun:
            tx.sql(STATEMENT)
        assert _values(tx, "t") == [2]
    assert (_values(other, "old"), _values(other, "t")) == ([2], [700])


@pytest.mark.parametrize("kind", ["R", "R,CT", "R,CT,I"])
def test_statement_that_is_redone_works_on_the_table_that_it_has_read(
    lake: lv.Lake, tmp_path: Path, kind: str
) -> None:
    tx = lake.transaction(KINDS[kind])
    tx.sql(STATEMENT)
    other = _swap(tmp_path)
    other.sql("UPDATE old SET v = v * 10")
    tx.commit()
    assert (_values(other, "old"), _values(other, "t")) == ([11], [700])
