"""What the tests of vacuum and the log share: a table with many checkpoints, and what is left of its log."""

from collections.abc import Sequence
from pathlib import Path

from deltalake import DeltaTable

import lakevilla as lv
from lakevilla.formats.delta.log.paths import parse_log_key
from lakevilla.store.port import Store
from tests.support.clocks import Days
from tests.support.outsiders import DeltaRs

PROPERTIES = {
    "delta.checkpointInterval": "5",
    "delta.logRetentionDuration": "interval 3 days",
    "delta.deletedFileRetentionDuration": "interval 1 days",
}


def open_lake(
    path: Path,
    clock: Days,
    store: Store | None = None,
    features: lv.Features = lv.R | lv.CT | lv.I,
    lease_seconds: float = 0.2,
) -> lv.Lake:
    return lv.Lake(
        path,
        engine="local",
        features=features,
        environment=clock,
        storage_options={"fsync": "false"},
        store=store,
        lease_seconds=lease_seconds,
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
