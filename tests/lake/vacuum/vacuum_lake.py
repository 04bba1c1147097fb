"""What the tests of vacuum share: a lake with one table, and transactions that end without their files."""

import time
from pathlib import Path

import lakevilla as lv
from lakevilla.maintenance.reports import TableVacuum
from lakevilla.store.port import Store
from tests.support.clocks import Days


def new_lake(path: Path, clock: Days, store: Store | None = None) -> lv.Lake:
    """A lake with a table `t` of one row, in one file."""
    lake = open_lake(path, clock, store)
    lake.create("t", "id BIGINT, v BIGINT")
    lake.append("t", [{"id": 1, "v": 1}])
    return lake


def open_lake(path: Path, clock: Days, store: Store | None = None) -> lv.Lake:
    options = {"fsync": "false"}
    return lv.Lake(
        path,
        engine="local",
        features=lv.R,
        environment=clock,
        storage_options=options,
        store=store,
        lease_seconds=0.2,
    )


def parquet(tmp_path: Path, table: str = "t") -> set[str]:
    """The names of the table's data files."""
    return {path.name for path in (tmp_path / table).rglob("*.parquet") if "_delta_log" not in path.parts}


def data(told: TableVacuum) -> list[str]:
    """The data files among those that go: the metadata of an Iceberg table has files too."""
    return [key for key in told.keys if key.endswith(".parquet")]


def abort(lake: lv.Lake, key: int = 9) -> str:
    """A transaction that uploads a file and ends without it."""
    tx = lake.transaction()
    tx.append("t", [{"id": key, "v": 0}])
    uploaded(lake, tx)
    tx.abort()
    return tx.id


def uploaded(lake: lv.Lake, tx: lv.Transaction, files: int = 1) -> None:
    """Wait until so many files of the transaction are there: uploads run in the background."""
    end = time.monotonic() + 30
    while sum(tx.id in meta.key for meta in lake._store.list("t/")) < files:
        assert time.monotonic() < end
        time.sleep(0.005)


def only(report: lv.VacuumReport) -> TableVacuum:
    (table,) = report.tables
    return table
