"""A transaction on an Iceberg table that is open until the snapshot that it reads has expired."""

from pathlib import Path

import pytest

import lakevilla as lv
from tests.lake.pauses.test_age_of_uploads import DAY, OPTIONS, Clock


def _open(root: Path, clock: Clock) -> lv.Lake:
    return lv.Lake(root, engine="local", storage_options=OPTIONS, environment=clock)


@pytest.mark.parametrize("features", [lv.R, lv.R | lv.CT, lv.R | lv.CT | lv.I], ids=["R", "R,CT", "R,CT,I"])
def test_commit_on_a_snapshot_whose_manifests_were_deleted_conflicts(
    tmp_path: Path, features: lv.Features
) -> None:
    clock = Clock()
    other = _open(tmp_path, clock)
    for name in ("t", "u"):
        other.create(name, "id BIGINT", format="iceberg")
        other.append(name, [{"id": 1}])
    tx = _open(tmp_path, clock).transaction(features)
    for name in ("t", "u") if features != lv.R else ("t",):
        # An append reads no manifest.
        tx.append(name, [{"id": 2}])
    lists = {path for path in (tmp_path / "t/metadata").glob("*.avro") if "snap" in path.name}
    for _ in range(2):
        clock.ahead += 10 * DAY
        other.append("t", [{"id": 3}])
        other.vacuum(dry_run=False)
    assert not any(path.exists() for path in lists)
    with pytest.raises(lv.Conflict):
        tx.commit()
    fresh = _open(tmp_path, clock)
    assert sorted(row["id"] for row in fresh.read("t").collect()) == [1, 3, 3]
    assert [row["id"] for row in fresh.read("u").collect()] == [1]
