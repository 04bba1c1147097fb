"""Vacuum and the log of a Delta table: old entries and checkpoints go, and what is needed stays readable."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

import lakevilla as lv
from lakevilla.formats.delta.log.paths import parse_log_key
from lakevilla.maintenance import expired_logs
from lakevilla.store.metered import Meter
from lakevilla.store.open import open_store
from lakevilla.store.port import Store
from tests.lake.vacuum.vacuum_lake import only, parquet
from tests.support.clocks import Days, date_files
from tests.support.hooked import Hooked
from tests.support.outsiders import DeltaRs

PROPERTIES = {
    "delta.checkpointInterval": "5",
    "delta.logRetentionDuration": "interval 3 days",
    "delta.deletedFileRetentionDuration": "interval 1 days",
}


@pytest.fixture
def clock() -> Days:
    return Days()


@pytest.fixture
def lake(tmp_path: Path, clock: Days) -> lv.Lake:
    """A lake with a table of version 0, before its first row."""
    return make(tmp_path, clock)


def open_lake(
    path: Path, clock: Days, store: Store | None = None, features: lv.Features = lv.R | lv.CT | lv.I
) -> lv.Lake:
    return lv.Lake(
        path,
        engine="local",
        features=features,
        environment=clock,
        storage_options={"fsync": "false"},
        store=store,
        lease_seconds=0.2,
    )


def make(path: Path, clock: Days, properties: dict[str, str] | None = None) -> lv.Lake:
    lake = open_lake(path, clock)
    lake.create("t", "id BIGINT, v BIGINT", properties=PROPERTIES | (properties or {}))
    return lake


def append(lake: lv.Lake, *numbers: int) -> None:
    for number in numbers:
        lake.append("t", [{"id": number, "v": 0}])


def grow_in_two_days(lake: lv.Lake, clock: Days) -> None:
    """Three days ago version 12 was current, and the newest is 17."""
    append(lake, *range(1, 13))
    clock.pass_days(2)
    append(lake, *range(13, 18))
    clock.pass_days(2)


def log_of(path: Path) -> Path:
    return path / "t" / "_delta_log"


def found(path: Path) -> tuple[list[int], list[int]]:
    """The versions that have entries, and those that have checkpoints."""
    names = [parse_log_key(f"_delta_log/{file.name}") for file in log_of(path).iterdir()]
    known = [name for name in names if name is not None]
    return (
        sorted(name.version for name in known if name.kind == "commit"),
        sorted({name.version for name in known if name.kind != "commit"}),
    )


def rows(path: Path, version: int | None = None) -> int:
    """What another client counts."""
    return len(DeltaRs().rows(path / "t", version))


def assert_versions(path: Path, clock: Days, versions: Sequence[int]) -> None:
    """A client that knows nothing yet, and another one, read all of these versions, and none before."""
    fresh = open_lake(path, clock)
    for version in versions:
        assert fresh.sql(f"SELECT id FROM t VERSION AS OF {version}").count() == version
        assert rows(path, version) == version
    assert fresh.read("t").count() == versions[-1] == rows(path)
    assert DeltaTable(path / "t").version() == versions[-1]


def test_old_entries_and_checkpoints_go_and_the_versions_of_the_retention_stay(
    lake: lv.Lake, clock: Days, tmp_path: Path
) -> None:
    grow_in_two_days(lake, clock)
    told = only(lake.vacuum(dry_run=False))
    # Version 12 was current three days ago: the checkpoint of version 10 and all since then stay.
    assert found(tmp_path) == (list(range(10, 18)), [10, 15])
    assert told.log.count == 11
    assert len(told.keys) == 11
    assert_versions(tmp_path, clock, range(10, 18))
    with pytest.raises(lv.InvalidInput, match="version 9 is not available; versions 10 to 17 are"):
        lake.sql("SELECT id FROM t VERSION AS OF 9")
    assert [entry.version for entry in lake.history("t")] == list(range(17, 9, -1))
    append(lake, 18)
    assert rows(tmp_path) == 18
    assert not lake.vacuum(dry_run=False).files.count


def test_nothing_goes_within_the_retention_of_the_table(lake: lv.Lake, clock: Days, tmp_path: Path) -> None:
    append(lake, *range(1, 13))
    clock.pass_days(2.9)
    assert not only(lake.vacuum(dry_run=False, retention_hours=24)).log.count
    assert found(tmp_path) == (list(range(13)), [5, 10])


def test_log_stays_as_long_as_the_removed_files_if_that_is_longer(
    lake: lv.Lake, clock: Days, tmp_path: Path
) -> None:
    append(lake, *range(1, 13))
    clock.pass_days(5)
    assert not only(lake.vacuum(dry_run=False, retention_hours=24 * 6)).log.count
    assert only(lake.vacuum(dry_run=False)).log.count == 11


def test_retention_is_never_less_than_a_day(tmp_path: Path, clock: Days) -> None:
    lake = make(tmp_path, clock, {"delta.logRetentionDuration": "interval 0 days"})
    append(lake, *range(1, 13))
    clock.pass_days(0.9)
    assert not only(lake.vacuum(dry_run=False, retention_hours=24)).log.count
    clock.pass_days(0.2)
    assert only(lake.vacuum(dry_run=False, retention_hours=24)).log.count == 11


def test_default_retention_is_thirty_days(tmp_path: Path, clock: Days) -> None:
    lake = open_lake(tmp_path, clock)
    lake.create("t", "id BIGINT, v BIGINT", properties={"delta.checkpointInterval": "5"})
    append(lake, *range(1, 8))
    clock.pass_days(29.9)
    assert not only(lake.vacuum(dry_run=False)).log.count
    clock.pass_days(0.2)
    assert only(lake.vacuum(dry_run=False)).log.count == 5


def test_dry_run_names_what_would_go_and_deletes_nothing(lake: lv.Lake, clock: Days, tmp_path: Path) -> None:
    append(lake, *range(1, 13))
    clock.pass_days(4)
    before = {path: path.stat().st_size for path in log_of(tmp_path).iterdir()}
    report = lake.vacuum()
    told = only(report)
    assert {path: path.stat().st_size for path in log_of(tmp_path).iterdir()} == before
    doomed = [tmp_path / "t" / key for key in told.keys]
    assert {path.name for path in doomed} == {
        *(f"{version:020}.json" for version in range(10)),
        f"{5:020}.checkpoint.parquet",
    }
    assert told.log.bytes == sum(before[path] for path in doomed)
    assert "old entries and checkpoints of the log: 11 files" in str(report)


def test_table_that_keeps_its_log_keeps_it(tmp_path: Path, clock: Days) -> None:
    lake = make(tmp_path, clock, {"delta.enableExpiredLogCleanup": "false"})
    append(lake, *range(1, 13))
    clock.pass_days(400)
    assert not only(lake.vacuum(dry_run=False)).log.count
    assert found(tmp_path) == (list(range(13)), [5, 10])


def test_log_without_a_checkpoint_stays(tmp_path: Path, clock: Days) -> None:
    lake = make(tmp_path, clock, {"delta.checkpointInterval": "100"})
    append(lake, *range(1, 13))
    clock.pass_days(400)
    assert not only(lake.vacuum(dry_run=False)).log.count
    assert_versions(tmp_path, clock, range(13))


def test_files_that_the_log_removed_go_before_their_entries(
    lake: lv.Lake, clock: Days, tmp_path: Path
) -> None:
    DeltaRs().append(tmp_path / "t", pa.table({"id": [1], "v": [0]}))
    DeltaRs().delete(tmp_path / "t", "id = 1")
    append(lake, *range(3, 13))
    clock.pass_days(8)
    told = only(lake.vacuum(dry_run=False))
    assert (told.expired.count, told.kept_foreign.count) == (1, 0)
    assert told.log.count == 11
    assert len(parquet(tmp_path)) == 10


def test_tag_keeps_the_log_from_its_version_on(lake: lv.Lake, clock: Days, tmp_path: Path) -> None:
    append(lake, *range(1, 8))
    lake.tag("before")
    append(lake, *range(8, 18))
    clock.pass_days(40)
    assert only(lake.vacuum(dry_run=False)).log.count == 5
    assert found(tmp_path)[0] == list(range(5, 18))
    past = open_lake(tmp_path, clock).at(tag="before")
    assert past.read("t").count() == 7
    lake.untag("before")
    clock.pass_days(40)
    assert only(lake.vacuum(dry_run=False)).log.count == 12
    assert_versions(tmp_path, clock, range(15, 18))


def test_log_of_a_table_that_the_global_log_does_not_follow_goes_too(tmp_path: Path, clock: Days) -> None:
    """The instant that HEAD has would keep it for ever."""
    make(tmp_path, clock)
    lake = open_lake(tmp_path, clock, features=lv.R)
    append(lake, *range(1, 13))
    clock.pass_days(8)
    assert not only(lake.vacuum(dry_run=False)).log.count
    assert lake.at(seq=1).read("t").count() == 0
    append(lake, *range(13, 18))
    clock.pass_days(8)
    assert only(lake.vacuum(dry_run=False)).log.count == 11
    assert_versions(tmp_path, clock, range(10, 18))


def test_instants_that_vacuum_keeps_stay_readable(tmp_path: Path, clock: Days) -> None:
    """Their retention is longer than that of the table's log."""
    lake = make(tmp_path, clock)
    seqs = {}
    for number in range(1, 18):
        append(lake, number)
        seqs[number] = lake.history(limit=1)[0].seq
        clock.pass_days(0.5)
    report = lake.vacuum(dry_run=False, retention_hours=24 * 5)
    assert only(report).log.count > 0
    kept = [number for number, seq in seqs.items() if seq >= report.horizon]
    fresh = open_lake(tmp_path, clock)
    assert [fresh.at(seq=seqs[number]).read("t").count() for number in kept] == kept
    assert len(kept) > 8


def test_needed_version_that_another_client_cleaned_away_keeps_what_is_left(
    lake: lv.Lake, clock: Days, tmp_path: Path
) -> None:
    """Later instants may name any version since, and only the oldest one is asked for."""
    grow_in_two_days(lake, clock)
    for version in range(5):
        (log_of(tmp_path) / f"{version:020}.json").unlink()
    pinned = lake._catalog.pin("t", Meter())
    table, newest, now = pinned.table, pinned.snapshot, clock.now_ms()
    assert len(table.expired_log(newest, now, 0, {6, 17})) == 0
    assert len(table.expired_log(newest, now, 0, {12, 17})[0]) == 6
    assert len(table.expired_log(newest, now, 0, {2, 17})) == 0


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
        entry = json.loads((log / f"{0:020}.json").read_text().splitlines()[1])
        del entry
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
    lake = open_lake(tmp_path, clock, features=lv.R)
    append(lake, *range(1, 7))
    pending = lake.transaction(lv.R)
    pending.append("t", [{"id": 7, "v": 0}])
    assert found(tmp_path)[0] == list(range(8))
    DeltaRs().append(tmp_path / "t", pa.table({"id": [8], "v": [0]}))
    DeltaTable(tmp_path / "t").create_checkpoint()
    for _ in range(2):
        clock.pass_days(8)
        open_lake(tmp_path, clock).vacuum(dry_run=False)
    assert found(tmp_path)[0] == list(range(5, 9))
    pending.commit()
    assert rows(tmp_path) == 8


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
