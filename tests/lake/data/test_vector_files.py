"""The files of deletion vectors: as long as a version or a transaction needs one, it stays."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakevilla as lv
from lakevilla.predicates import ANYTHING
from lakevilla.store import keys
from lakevilla.store.metered import Meter
from lakevilla.store.open import open_store
from tests.lake.vacuum.vacuum_lake import only, open_lake
from tests.support.clocks import Days
from tests.support.hooked import Hooked
from tests.support.left_open import store_all
from tests.support.outsiders import OUTSIDERS

COUNT = 2000
OPTIONS = {"fsync": "false"}
VECTORS = {"delta.enableDeletionVectors": "true"}
THIRDS = "DELETE FROM t WHERE id % 3 = 0"


class Died(BaseException):
    """The client's process ended."""


class Clock(Days):
    """The real world, all of whose clocks can be moved on together."""

    def elapsed(self) -> float:
        return super().elapsed() + self.ahead_ms / 1000


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def lake(tmp_path: Path, clock: Days) -> lv.Lake:
    lake = open_lake(tmp_path, clock)
    columns = pa.table({"id": list(range(COUNT)), "v": [0] * COUNT})
    lake.create("t", columns, properties=VECTORS)
    return lake


def vectors(root: Path) -> list[Path]:
    return sorted(root.rglob("deletion_vector_*.bin"))


def count(lake: Any) -> int:
    (row,) = lake.sql("SELECT count(*) FROM t").collect()
    return int(row[0])


def left(root: Path, clock: Days, *texts: str) -> lv.Transaction:
    """A transaction that is open, whose client died."""
    lake = open_lake(root, clock)
    tx = lake.transaction(lv.R)
    for text in texts:
        tx.sql(text)
    store_all(lake, tx)
    return tx


def test_vacuum_deletes_what_an_ended_transaction_left(lake: lv.Lake, clock: Days, tmp_path: Path) -> None:
    tx = lake.transaction()
    tx.sql(THIRDS)
    tx._workspace.uploads.finish()
    tx.abort()
    assert len(vectors(tmp_path)) == 1
    clock.pass_days(8)
    told = only(lake.vacuum(dry_run=False))
    assert (told.orphans.count, told.foreign.count) == (1, 0)
    assert vectors(tmp_path) == []
    assert count(lake) == COUNT


def test_vacuum_keeps_vectors_that_are_needed_and_deletes_replaced_ones(
    lake: lv.Lake, clock: Days, tmp_path: Path
) -> None:
    lake.sql(THIRDS)
    (first,) = vectors(tmp_path)
    clock.pass_days(8)
    assert not only(lake.vacuum(dry_run=False)).keys
    lake.sql("DELETE FROM t WHERE id % 12 = 1")
    clock.pass_days(6)
    assert not only(lake.vacuum(dry_run=False)).keys
    clock.pass_days(8)
    told = only(lake.vacuum(dry_run=False))
    assert (told.expired.count, [tmp_path / "t" / key for key in told.keys]) == (1, [first])
    assert len(vectors(tmp_path)) == 1
    assert count(open_lake(tmp_path, clock)) == len([i for i in range(COUNT) if i % 3 and i % 12 != 1])


def test_tag_keeps_the_vectors_of_its_instant(tmp_path: Path, clock: Days) -> None:
    lake = lv.Lake(tmp_path, engine="local", environment=clock, storage_options=OPTIONS)
    columns = pa.table({"id": list(range(COUNT)), "v": [0] * COUNT})
    lake.create("t", columns, properties=VECTORS)
    lake.sql(THIRDS)
    lake.tag("thirds")
    lake.sql("DELETE FROM t WHERE id % 12 = 1")
    clock.pass_days(9)
    lake.vacuum(dry_run=False)
    assert len(vectors(tmp_path)) == 2
    assert count(lake.at(tag="thirds")) == len([i for i in range(COUNT) if i % 3])


def test_vectors_of_an_open_transaction_stay_and_it_is_resumed(
    lake: lv.Lake, clock: Days, tmp_path: Path
) -> None:
    tx = left(tmp_path, clock, THIRDS, "UPDATE t SET v = 1 WHERE id % 100 = 1")
    assert len(vectors(tmp_path)) == 2
    clock.pass_days(2)
    # Its records are younger than the retention.
    assert only(lake.vacuum(dry_run=False)).kept_undecided.count == 0
    with open_lake(tmp_path, clock).resume(tx.id) as resumed:
        assert count(resumed) == len([i for i in range(COUNT) if i % 3])
        resumed.sql("DELETE FROM t WHERE v = 1 AND id = 1")
    assert count(lake) == len([i for i in range(COUNT) if i % 3]) - 1
    assert lake.sql("SELECT count(*) FROM t WHERE v = 1").collect() == [
        (len([i for i in range(1, COUNT, 100) if i % 3]) - 1,)
    ]


def test_transaction_whose_vector_vanished_is_not_resumed(lake: lv.Lake, clock: Days, tmp_path: Path) -> None:
    tx = left(tmp_path, clock, THIRDS, "DELETE FROM t WHERE id % 100 = 1")
    vectors(tmp_path)[-1].unlink()
    with pytest.raises(lv.Conflict, match="cleaned up"):
        open_lake(tmp_path, clock).resume(tx.id)


def test_transaction_that_slept_does_not_commit_a_vector_that_vacuum_deleted(
    lake: lv.Lake, clock: Days, tmp_path: Path
) -> None:
    tx = lake.transaction()
    tx.sql(THIRDS)
    tx._workspace.uploads.finish()
    clock.pass_days(9)
    other = open_lake(tmp_path, clock)
    other.vacuum(dry_run=False)
    assert vectors(tmp_path) == []
    with pytest.raises(lv.Conflict):
        tx.commit()
    assert count(other) == COUNT


def test_names_of_vectors_say_whose_they_are(lake: lv.Lake, tmp_path: Path) -> None:
    with lake.transaction() as tx:
        tx.sql(THIRDS)
    (path,) = vectors(tmp_path)
    found = pa.compute.extract_regex(pa.array([str(path.relative_to(tmp_path / "t"))]), keys.DATA_FILE)
    assert found.field("txn").to_pylist() == [tx.id]


def test_commit_that_was_rolled_back_leaves_the_vectors_of_before(tmp_path: Path) -> None:
    store = Hooked(open_store(str(tmp_path), OPTIONS))
    lake = lv.Lake(tmp_path, engine="local", store=store, lease_seconds=0.3)
    lake.create("t", pa.table({"id": list(range(COUNT)), "v": [0] * COUNT}), properties=VECTORS)
    lake.create("b", pa.table({"id": [1]}))
    lake.sql(THIRDS)

    def die(kind: str, key: str) -> None:
        if kind == "create" and key.startswith("b/_delta_log/"):
            raise Died

    tx = lake.transaction(lv.CT)
    tx.sql("DELETE FROM t WHERE id % 12 = 1")
    tx.sql("UPDATE b SET id = id + 1")
    store.hook = die
    with pytest.raises(Died):
        tx.commit()
    # A change that is in the way of the other half.
    OUTSIDERS["delta"].update(tmp_path / "b", {"id": "100"})
    fresh = lv.Lake(tmp_path, engine="local", storage_options=OPTIONS, lease_seconds=0.3)
    fresh.recover()
    assert [entry.operation for entry in fresh.history("t")[:3]] == ["ROLLBACK", "DELETE", "DELETE"]
    assert count(fresh) == len([i for i in range(COUNT) if i % 3])
    (added,) = fresh._catalog.pin("t", Meter()).snapshot.files(ANYTHING)
    assert (added.rows, added.deletes and added.deletes.count) == (COUNT, 667)
    assert sorted(row["id"] for row in OUTSIDERS["vectors"].rows(tmp_path / "t"))[:3] == [1, 2, 4]
