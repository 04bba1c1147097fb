"""Vacuum and logs with damage, with files of other clients, with markers, and with deaths in the middle."""

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

import lakevilla as lv
from lakevilla.maintenance import expired_logs
from lakevilla.store.open import open_store
from tests.lake.vacuum.log_lake import (
    append,
    assert_versions,
    found,
    grow_in_two_days,
    log_of,
    make,
    open_lake,
    rows,
)
from tests.lake.vacuum.vacuum_lake import only
from tests.support.clocks import Days, date_files
from tests.support.hooked import Hooked
from tests.support.outsiders import DeltaRs


@pytest.fixture
def clock() -> Days:
    return Days()


@pytest.fixture
def lake(tmp_path: Path, clock: Days) -> lv.Lake:
    """A lake with a table of version 0, before its first row."""
    return make(tmp_path, clock)


def test_damaged_checkpoint_is_not_a_base(lake: lv.Lake, clock: Days, tmp_path: Path) -> None:
    grow_in_two_days(lake, clock)
    damaged = log_of(tmp_path) / f"{10:020}.checkpoint.parquet"
    damaged.write_bytes(damaged.read_bytes()[:-40])
    assert only(lake.vacuum(dry_run=False)).log.count == 5
    assert found(tmp_path) == (list(range(5, 18)), [5, 10, 15])


def test_checkpoint_whose_files_cannot_be_decoded_is_not_a_base(
    lake: lv.Lake, clock: Days, tmp_path: Path
) -> None:
    grow_in_two_days(lake, clock)
    path = log_of(tmp_path) / f"{10:020}.checkpoint.parquet"
    group = pq.ParquetFile(path).metadata.row_group(1)
    columns = [group.column(at) for at in range(group.num_columns)]
    (page,) = [found.data_page_offset for found in columns if found.path_in_schema == "add.path"]
    data = bytearray(path.read_bytes())
    data[page : page + 24] = b"\xff" * 24
    path.write_bytes(data)
    assert only(lake.vacuum(dry_run=False)).log.count == 5
    assert found(tmp_path)[0] == list(range(5, 18))


def test_late_entry_under_a_used_number_stops_the_clean_up(
    lake: lv.Lake, clock: Days, tmp_path: Path
) -> None:
    """What its client needs to see that the number had been used."""
    append(lake, *range(1, 13))
    clock.pass_days(8)
    lake.vacuum(dry_run=False)
    append(lake, *range(13, 23))
    clock.pass_days(8)
    late = log_of(tmp_path) / f"{3:020}.json"
    shutil.copy(log_of(tmp_path) / f"{12:020}.json", late)
    date_files(log_of(tmp_path), set(log_of(tmp_path).iterdir()) - {late}, clock.now_ms())
    assert not only(lake.vacuum(dry_run=False)).log.count
    clock.pass_days(8)
    assert only(lake.vacuum(dry_run=False)).log.count > 10
    assert_versions(tmp_path, clock, range(20, 23))


def test_checksums_and_compacted_files_go_with_their_entries(
    lake: lv.Lake, clock: Days, tmp_path: Path
) -> None:
    append(lake, *range(1, 13))
    log = log_of(tmp_path)
    names = [
        f"{3:020}.crc",
        f".{3:020}.json.crc",
        f"{2:020}.{4:020}.compacted.json",
        f"{12:020}.crc",
        "other",
    ]
    for name in names:
        (log / name).write_bytes(b"{}")
    date_files(log, set(log.iterdir()) - {log / name for name in names}, clock.now_ms())
    clock.pass_days(8)
    assert only(lake.vacuum(dry_run=False)).log.count == 11 + 3
    assert {path.name for path in log.iterdir()} >= {f"{12:020}.crc", "other"}
    assert_versions(tmp_path, clock, range(10, 13))


def test_sidecars_go_that_no_checkpoint_names_which_stays(lake: lv.Lake, clock: Days, tmp_path: Path) -> None:
    append(lake, *range(1, 13))
    log = log_of(tmp_path)
    (log / "_sidecars").mkdir()
    for version, sidecar in ((5, "a"), (10, "b")):
        shutil.copy(log / f"{version:020}.checkpoint.parquet", log / "_sidecars" / f"{sidecar}.parquet")
        (log / f"{version:020}.checkpoint.parquet").unlink()
        top = [
            {"checkpointMetadata": {"version": version}},
            *(json.loads(line) for line in (log / f"{0:020}.json").read_text().splitlines()[1:]),
            {"sidecar": {"path": f"{sidecar}.parquet", "sizeInBytes": 1, "modificationTime": 1}},
        ]
        name = f"{version:020}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json"
        (log / name).write_text("\n".join(map(json.dumps, top)))
    (log / "_last_checkpoint").unlink()
    (log / "_sidecars" / "unnamed.parquet").write_bytes(b"x")
    date_files(log, {path for path in log.iterdir() if "checkpoint" not in path.name}, clock.now_ms())
    clock.pass_days(8)
    (log / "_sidecars" / "young.parquet").write_bytes(b"x")
    date_files(log, set(log.rglob("*")) - {log / "_sidecars" / "young.parquet"}, clock.now_ms())
    told = only(lake.vacuum(dry_run=False))
    assert {path.name for path in (log / "_sidecars").iterdir()} == {"b.parquet", "young.parquet"}
    assert told.log.count == 11 + 2
    assert open_lake(tmp_path, clock).read("t").count() == 12


def test_entries_from_a_pending_marker_on_stay(tmp_path: Path, clock: Days) -> None:
    """Another client took the marker for an empty commit, and wrote a checkpoint over it."""
    make(tmp_path, clock, {"lakevilla.markers": "log"})
    # The client is alive, also on a machine that is held up.
    lake = open_lake(tmp_path, clock, features=lv.R, lease_seconds=3)
    append(lake, *range(1, 7))
    pending = lake.transaction(lv.R)
    pending.delete("t", where="id = 3")
    assert found(tmp_path)[0] == list(range(8))
    DeltaRs().append(tmp_path / "t", pa.table({"id": [8], "v": [0]}))
    DeltaTable(tmp_path / "t").create_checkpoint()
    for _ in range(2):
        clock.pass_days(8)
        open_lake(tmp_path, clock, lease_seconds=3).vacuum(dry_run=False)
    assert found(tmp_path)[0] == list(range(5, 9))
    pending.commit()
    assert rows(tmp_path) == 6


def test_table_that_is_made_anew_while_its_log_is_cleaned_keeps_its_log(
    lake: lv.Lake, clock: Days, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expired_logs, "BATCH", 4)
    append(lake, *range(1, 13))
    clock.pass_days(8)
    hooked = Hooked(open_store(str(tmp_path), {"fsync": "false"}, environment=clock))
    deleted: list[str] = []
    log = log_of(tmp_path)

    def step(kind: str, key: str) -> None:
        if kind == "delete" and "_delta_log" in key:
            deleted.append(key)
        elif kind == "get" and len(deleted) == 4 and not log.with_name("anew").exists():
            shutil.rmtree(tmp_path / "t")
            DeltaRs().create(tmp_path / "t", pa.table({"id": [1], "v": [1]}))
            for version in range(1, 13):
                shutil.copy(log / f"{0:020}.json", log / f"{version:020}.json")
            log.with_name("anew").touch()

    hooked.hook = step
    report = open_lake(tmp_path, clock, hooked).vacuum(dry_run=False)
    assert "deleted or recreated while vacuum cleaned its log" in report.failed["t"]
    assert len(deleted) == 4
    assert found(tmp_path)[0] == list(range(13))


def test_client_that_dies_between_any_two_deletes_leaves_a_readable_table(
    tmp_path: Path, clock: Days
) -> None:
    lake = make(tmp_path / "whole", clock)
    grow_in_two_days(lake, clock)

    class Died(BaseException):
        pass

    for survived in range(11):
        place = tmp_path / f"died-{survived}"
        shutil.copytree(tmp_path / "whole", place)
        hooked = Hooked(open_store(str(place), {"fsync": "false"}, environment=clock))
        deleted: list[str] = []

        def step(kind: str, key: str, done: list[str] = deleted, survived: int = survived) -> None:
            if kind == "delete" and "_delta_log" in key:
                if len(done) >= survived:
                    raise Died
                done.append(key)

        hooked.hook = step
        with pytest.raises(Died):
            open_lake(place, clock, hooked).vacuum(dry_run=False)
        assert len(deleted) == survived
        assert_versions(place, clock, (10, 12, 17))
        assert only(open_lake(place, clock).vacuum(dry_run=False)).log.count == 11 - survived
