"""`count(*)`, `min` and `max` that the log answers: without data files, and noted as read like a scan."""

from collections.abc import Mapping
from pathlib import Path

import pytest

import lakevilla as lv
from lakevilla.formats.delta.snapshot import DeltaSnapshot
from lakevilla.formats.iceberg.snapshot import IcebergSnapshot
from lakevilla.model import ReadSet

COUNT = "SELECT count(*) AS n FROM t"


@pytest.fixture
def lake(tmp_path: Path) -> lv.Lake:
    lake = lv.Lake(tmp_path, engine="local", storage_options={"fsync": "false"})
    lake.create("t", "id BIGINT, v STRING, p STRING", partition_by=["p"])
    lake.append(
        "t", [{"id": number, "v": f"v{number}", "p": ["even", "odd"][number % 2]} for number in range(6)]
    )
    lake.append("t", [{"id": 100, "v": None, "p": "even"}])
    return lake


def lose_data(path: Path) -> None:
    """From here on every scan fails."""
    for file in (path / "t").rglob("*.parquet"):
        if not {"_delta_log", "metadata"} & set(file.parts):
            file.unlink()


@pytest.mark.formats("delta", "iceberg")
def test_rows_are_counted_without_data_files(lake: lv.Lake, tmp_path: Path) -> None:
    lose_data(tmp_path)
    assert lake.sql(COUNT).collect() == [(7,)]
    assert lake.sql("SELECT count(*) FROM t WHERE p = 'even'").collect() == [(4,)]
    assert lake.sql("SELECT count(1) FROM t WHERE id > 50").to_dicts() == [{"count(1)": 1}]
    assert lake.sql("SELECT count(*) FROM t WHERE id < 0").collect() == [(0,)]
    with pytest.raises(lv.Corrupt):
        lake.sql("SELECT count(*) FROM t WHERE id < 3").collect()
    with pytest.raises(lv.Corrupt):
        lake.sql("SELECT count(v) FROM t").collect()


def test_least_and_greatest_values_are_told_without_data_files(lake: lv.Lake, tmp_path: Path) -> None:
    lose_data(tmp_path)
    asked = lake.sql("SELECT min(id), max(id) AS last, max(p) FROM t WHERE p <> 'odd'")
    assert asked.to_dicts() == [{"min(id)": 0, "last": 100, "max(p)": "even"}]
    with pytest.raises(lv.Corrupt):
        lake.sql("SELECT max(v) FROM t").collect()


@pytest.mark.formats("delta", "iceberg")
def test_transaction_counts_its_own_rows(lake: lv.Lake) -> None:
    with lake.transaction() as tx:
        tx.append("t", [{"id": 7, "v": "x", "p": "new"}])
        tx.delete("t", where="id = 1")
        assert tx.sql(COUNT).collect() == [(7,)]
        assert tx.sql("SELECT min(id), max(id) FROM t WHERE p = 'odd'").collect() == [(3, 5)]
    assert lake.sql(COUNT).collect() == [(7,)]


@pytest.mark.formats("delta", "iceberg")
def test_deleted_rows_are_not_counted_at_an_earlier_version_they_are(lake: lv.Lake, begin: int) -> None:
    lake.delete("t", where="p = 'odd'")
    assert lake.sql(COUNT).collect() == [(4,)]
    assert lake.sql(f"SELECT count(*) FROM t VERSION AS OF {begin + 1}").collect() == [(6,)]


@pytest.mark.formats("delta", "iceberg")
@pytest.mark.parametrize(
    "text",
    [COUNT, "SELECT count(*) FROM t WHERE p = 'even'", "SELECT count(*) FROM t AS x WHERE x.id > 50"],
)
def test_what_was_read_is_what_a_scan_reads(
    lake: lv.Lake, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    answered = reads_of(lake, text)
    for snapshot in (DeltaSnapshot, IcebergSnapshot):
        monkeypatch.setattr(snapshot, "summary", lambda *_: None)
    assert reads_of(lake, text) == answered
    ((read,),) = [answered.values()]
    assert len(read.predicates) == 1
    assert read.files


def reads_of(lake: lv.Lake, text: str) -> Mapping[str, ReadSet]:
    with lake.transaction() as tx:
        tx.sql(text).collect()
        (operation,) = tx._operations
        return operation.reads.all


@pytest.mark.parametrize("isolation", ["serializable", "snapshot"])
def test_rows_that_come_meanwhile_are_a_conflict_of_a_transaction_that_counted(
    lake: lv.Lake, tmp_path: Path, isolation: str
) -> None:
    lake.create("log", "n BIGINT")
    other = lv.Lake(tmp_path, engine="local", storage_options={"fsync": "false"})
    tx = lake.transaction(isolation=isolation)
    [(rows,)] = tx.sql(COUNT).collect()
    other.append("t", [{"id": 8, "v": "x", "p": "new"}])
    tx.append("log", [{"n": rows}])
    if isolation == "snapshot":
        tx.commit()
        return
    with pytest.raises(lv.Conflict):
        tx.commit()


def test_files_without_statistics_are_scanned(tmp_path: Path) -> None:
    lake = lv.Lake(tmp_path, engine="local", storage_options={"fsync": "false"})
    lake.create("t", "id BIGINT", properties={"delta.dataSkippingNumIndexedCols": "0"})
    lake.append("t", [{"id": 3}, {"id": None}])
    assert lake.sql("SELECT count(*), min(id), max(id) FROM t").collect() == [(2, 3, 3)]
    lose_data(tmp_path)
    assert lake.sql(COUNT).collect() == [(2,)]
    with pytest.raises(lv.Corrupt):
        lake.sql("SELECT min(id) FROM t").collect()
