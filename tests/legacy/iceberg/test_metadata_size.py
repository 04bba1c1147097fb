"""How the metadata of an Iceberg table grows with its history, and what other clients read of it then."""

import json
from pathlib import Path
from typing import Any

import pytest

import lakevilla as lv
from tests.legacy.clients.iceberg_readers import by_duckdb, by_pyiceberg
from tests.support.clocks import Days
from tests.support.iceberg_files import FilesCatalog

KEPT = "'write.metadata.previous-versions-max' = '5'"
ROUND = 15
SNAPSHOT_BYTES = 1000
"""What a snapshot may take, with its entry in the log of snapshots."""


@pytest.fixture
def clock() -> Days:
    return Days()


@pytest.fixture
def lake(tmp_path: Path, clock: Days) -> lv.Lake:
    options = {"fsync": "false"}
    lake = lv.Lake(
        tmp_path,
        engine="local",
        default_format="iceberg",
        environment=clock,
        storage_options=options,
        lease_seconds=0.2,
    )
    lake.sql(f"CREATE TABLE t (id BIGINT) TBLPROPERTIES ({KEPT})")
    return lake


def _append(lake: lv.Lake, times: int = ROUND) -> None:
    for number in range(times):
        with lake.transaction(lv.R) as tx:
            tx.append("t", [{"id": number}])


def _metadata(place: Path) -> tuple[int, dict[str, Any]]:
    """The size of the newest metadata file, and what is in it."""
    url = str(place / "t")
    data = Path(url, "metadata", f"v{FilesCatalog().newest(url)}.metadata.json").read_bytes()
    return len(data), json.loads(data)


def test_metadata_grows_by_a_bounded_entry_for_each_snapshot_and_by_nothing_else(
    lake: lv.Lake, tmp_path: Path
) -> None:
    first, _ = _metadata(tmp_path)
    _append(lake)
    size, raw = _metadata(tmp_path)
    assert len(raw["metadata-log"]) == 5
    assert len(raw["snapshots"]) == len(raw["snapshot-log"]) == ROUND
    assert size - first < (ROUND + 2) * SNAPSHOT_BYTES


def test_vacuum_bounds_the_metadata_and_others_read_on(lake: lv.Lake, tmp_path: Path, clock: Days) -> None:
    url, sizes = str(tmp_path / "t"), []
    _append(lake)
    lake.tag("early")
    for turn in range(4):
        _append(lake)
        clock.pass_days(8)
        _append(lake, 1)
        lake.vacuum(dry_run=False)
        _append(lake, 1)
        size, raw = _metadata(tmp_path)
        sizes.append(size)
        # Current before the retention began, since, and by the tag. That one was not current in between, nor
        # was the version of the instant that the vacuum before had made, which was current until this one.
        assert (len(raw["snapshots"]), len(raw["snapshot-log"])) == (4 if turn == 0 else 5, 3)
    assert max(sizes[1:]) - min(sizes[1:]) < 100, sizes
    assert max(sizes) < 6 * SNAPSHOT_BYTES + 2000
    rows = 5 * ROUND + 8
    assert len(by_pyiceberg(url)) == len(by_duckdb(url)) == lake.read("t").count() == rows
    assert lake.at(tag="early").read("t").count() == ROUND
