"""Vacuum and the instants of the lake: what tags and the retention need stays, and the rest goes."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

import lakevilla as lv
from lakevilla.maintenance.instants import decide_horizon
from lakevilla.store import keys
from lakevilla.store.adapters.directory import Directory
from lakevilla.store.open import open_store
from lakevilla.store.port import Meta, Store
from lakevilla.tables.catalog import Catalog
from lakevilla.versions.head_encoding import STEPS_KEPT
from lakevilla.versions.records import Head
from tests.support.clocks import DAY_MS, Days, date_files
from tests.support.hooked import Hooked
from tests.support.outsiders import OUTSIDERS

pytestmark = pytest.mark.formats("delta", "iceberg")

OPTIONS = {"fsync": "false"}


@pytest.fixture
def clock() -> Days:
    return Days()


@pytest.fixture
def lake(tmp_path: Path, clock: Days) -> lv.Lake:
    lake = _open(tmp_path, clock)
    lake.create("a", pa.table({"v": [0]}))
    lake.create("b", pa.table({"v": [0]}))
    return lake


@pytest.fixture
def store(tmp_path: Path, clock: Days) -> Store:
    return open_store(str(tmp_path), OPTIONS, environment=clock)


def _open(path: Path, clock: Days, store: Store | None = None) -> lv.Lake:
    return lv.Lake(
        path, engine="local", storage_options=OPTIONS, environment=clock, store=store, lease_seconds=0.2
    )


def _set(lake: lv.Lake, value: int) -> int:
    """One entry that rewrites both tables: nothing of the versions before is live any more."""
    with lake.transaction() as tx:
        tx.update("a", {"v": value})
        tx.update("b", {"v": value})
    assert tx.receipt is not None
    assert tx.receipt.seq is not None
    return tx.receipt.seq


def _values(past: lv.PastLake) -> tuple[int, int]:
    return past.read("a").collect()[0].v, past.read("b").collect()[0].v


def _slots(store: Store) -> list[int]:
    return [seq for meta in store.list(keys.GLOBAL_LOG) if (seq := keys.seq_of(meta.key)) is not None]


def _states(store: Store) -> list[int]:
    return [seq for meta in store.list(keys.HEADS) if (seq := keys.past_seq_of(meta.key)) is not None]


def test_instants_within_the_retention_stay_readable_and_older_ones_are_said_to_be_expired(
    lake: lv.Lake, clock: Days
) -> None:
    seqs = []
    for value in range(10):
        seqs.append(_set(lake, value))
        clock.pass_days(1)
    report = lake.vacuum(dry_run=False)
    assert report.files.count > 0
    assert report.horizon == seqs[3]
    for value in range(3, 10):
        assert _values(lake.at(seq=seqs[value])) == (value, value)
    for value in range(3):
        with pytest.raises(lv.InvalidInput, match=f"entry {seqs[value]} .* expired.* with entry {seqs[3]}$"):
            lake.at(seq=seqs[value])
        with pytest.raises(lv.InvalidInput, match="expired"):
            lake.tag("late", at=seqs[value])
    with pytest.raises(lv.InvalidInput, match=f"too early: what is kept begins with entry {seqs[3]}"):
        lake.at("2001-01-01")
    assert [entry.seq for entry in lake.history()][-1] == seqs[3]
    assert "kept from entry" in str(report)


@pytest.mark.parametrize("placed", ["a", "b"])
def test_instants_since_the_horizon_stay_readable_if_vacuum_is_suspended(
    lake: lv.Lake, clock: Days, tmp_path: Path, placed: str
) -> None:
    """It has decided which instants are kept, and continues with a table a month later."""
    seqs = [_set(lake, value) for value in range(3)]
    store = Hooked(open_store(str(tmp_path), OPTIONS, environment=clock))

    def sleep(kind: str, key: str) -> None:
        if kind == "put" and key.startswith(f"{placed}/_lakevilla/probe"):
            store.hook = None
            seqs.extend(_set(lake, value) for value in range(3, 6))
            clock.pass_days(30)

    store.hook = sleep
    report = _open(tmp_path, clock, store).vacuum(dry_run=False)
    assert store.hook is None
    assert report.horizon <= seqs[0]
    for value, seq in enumerate(seqs):
        assert _values(_open(tmp_path, clock).at(seq=seq)) == (value, value)


def test_uploads_of_an_entry_that_was_decided_while_vacuum_was_suspended_stay(
    lake: lv.Lake, clock: Days, tmp_path: Path
) -> None:
    """Vacuum had settled all entries before. The client of the new one dies before it has published."""

    class Died(BaseException):
        pass

    def die(kind: str, key: str) -> None:
        if kind == "create" and ("/_delta_log/" in key or "/metadata/v" in key):
            raise Died

    def sleep(kind: str, key: str) -> None:
        if kind == "put" and key.startswith("a/_lakevilla/probe"):
            store.hook = None
            mortal = Hooked(open_store(str(tmp_path), OPTIONS, environment=clock))
            mortal.hook = die
            with pytest.raises(Died):
                _set(_open(tmp_path, clock, mortal), 7)
            clock.pass_days(30)

    store = Hooked(open_store(str(tmp_path), OPTIONS, environment=clock))
    store.hook = sleep
    _open(tmp_path, clock, store).vacuum(dry_run=False)
    assert store.hook is None
    other = _open(tmp_path, clock)
    other.recover()
    assert [other.read(name).collect()[0].v for name in ("a", "b")] == [7, 7]


def test_slot_that_was_cleaned_up_and_created_again_does_not_hold_the_horizon() -> None:
    """A client that was suspended has created it, and died before it deleted it again."""

    def horizon(*slots: tuple[int, int]) -> int:
        found = {seq: Meta(keys.slot(seq), 1, "", modified_ms) for seq, modified_ms in slots}
        return decide_horizon(Head("lake", 20, "", horizon=12), found, 100)

    ages = [(17, 40), (18, 50), (19, 150), (20, 160)]
    assert horizon(*ages) == horizon((8, 170), *ages) == 18
    assert horizon((8, 170), *ages[2:]) == 18
    assert horizon((8, 170), *ages[:2], (20, 60)) == 20


def test_tagged_instant_stays_readable_for_ever_and_goes_when_the_tag_goes(
    lake: lv.Lake, clock: Days, store: Store
) -> None:
    tagged = _set(lake, 7)
    lake.tag("end")
    for value in range(2 * STEPS_KEPT + 5):
        _set(lake, value)
    for _ in range(3):
        clock.pass_days(30)
        lake.vacuum(dry_run=False)
        assert _values(_open(Path(store.url.removeprefix("file://")), clock).at(tag="end")) == (7, 7)
        _set(lake, 100)
    assert tagged not in _slots(store)
    assert lake.at(seq=tagged).seq == tagged
    lake.tag("again", at="end")
    lake.untag("end")
    lake.untag("again")
    clock.pass_days(10)
    report = lake.vacuum(dry_run=False)
    assert report.files.count > 0
    assert tagged <= min(_states(store))
    with pytest.raises(lv.InvalidInput, match="expired"):
        lake.at(seq=tagged)


def test_version_that_an_instant_has_stays_although_others_went_on_long_before(
    lake: lv.Lake, clock: Days, tmp_path: Path, table_format: str
) -> None:
    """Another client rewrites a table; the lake does not know of it, and shows the version before."""
    before = _set(lake, 1)
    known = set(tmp_path.rglob("*"))
    outside = OUTSIDERS[table_format]
    outside.overwrite(tmp_path / "a", pa.table({"v": [50]}))
    date_files(tmp_path, known, clock.now_ms())
    clock.pass_days(20)
    lake.create("c", "id BIGINT")
    then = lake.history(limit=1)[0].seq
    clock.pass_days(1)
    lake.sync()
    lake.vacuum(dry_run=False)
    assert _values(lake.at(seq=then)) == (1, 1)
    clock.pass_days(10)
    lake.vacuum(dry_run=False)
    assert outside.rows(tmp_path / "a") == [{"v": 50}]
    with pytest.raises(lv.InvalidInput, match="expired"):
        lake.at(seq=before)


def test_tag_keeps_a_table_that_was_registered_again_under_another_spelling(
    lake: lv.Lake, clock: Days, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    far = tmp_path.parent / f"{tmp_path.name}-far"
    lake.create("far", pa.table({"v": [0]}), location=f"file://{far}/t")
    lake.drop("far")
    with monkeypatch.context() as earlier_release:
        earlier_release.setattr(Catalog, "place_of", lambda _, at: at)
        lake.register("far", f"file://{far}//t")
    assert lake.read("far").collect() == [(0,)]
    lake.tag("end")
    lake.drop("far")
    lake.register("far", f"file://{far}/t")
    lake.update("far", {"v": 1})
    clock.pass_days(30)
    lake.update("far", {"v": 2})
    assert not lake.vacuum(dry_run=False).failed
    assert lake.at(tag="end").read("far").collect() == [(0,)]
    assert lake.read("far").collect() == [(2,)]


def test_dropped_table_of_a_tag_is_kept_whole(lake: lv.Lake, clock: Days, tmp_path: Path) -> None:
    lake.tag("end")
    lake.drop("b")
    clock.pass_days(20)
    (folder,) = lake.vacuum(dry_run=False, dropped=True).dropped
    assert folder.kept == "the tags 'end' need it"
    assert _values(lake.at(tag="end")) == (0, 0)
    lake.untag("end")
    clock.pass_days(20)
    (folder,) = lake.vacuum(dry_run=False, dropped=True).dropped
    assert not folder.kept
    assert not list((tmp_path / "b").rglob("*.parquet"))


RETENTION = {
    "delta": "'delta.deletedFileRetentionDuration' = 'interval 2 days'",
    "iceberg": f"'history.expire.max-snapshot-age-ms' = '{2 * DAY_MS}'",
}


def test_instants_end_where_the_table_with_the_shortest_retention_does(
    lake: lv.Lake, clock: Days, table_format: str
) -> None:
    lake.sql(f"ALTER TABLE b SET TBLPROPERTIES ({RETENTION[table_format]})")
    seqs = []
    for value in range(5):
        seqs.append(_set(lake, value))
        clock.pass_days(1)
    lake.vacuum(dry_run=False)
    assert _values(lake.at(seq=seqs[3])) == (3, 3)
    with pytest.raises(lv.InvalidInput, match="expired"):
        lake.at(seq=seqs[2])


def test_entries_and_states_go_when_they_are_old_and_never_the_newest(
    lake: lv.Lake, clock: Days, store: Store
) -> None:
    for value in range(2 * STEPS_KEPT + 10):
        _set(lake, value)
    slots, states = _slots(store), _states(store)
    clock.pass_days(7.5)
    lake.vacuum(dry_run=False)
    assert (_slots(store)[:-1], _states(store)) == (slots, states)
    clock.pass_days(1)
    told = lake.vacuum()
    assert "would delete" in str(told)
    assert len(_slots(store)) == len(slots) + 1
    done = lake.vacuum(dry_run=False)
    assert done.leftovers.entries == tuple(slots[: len(slots) + 2 - 16])[: len(done.leftovers.entries)]
    assert done.leftovers.states == tuple(states[:-1])
    assert _slots(store)[-16:] == list(range(_slots(store)[-1] - 15, _slots(store)[-1] + 1))
    assert _states(store) == states[-1:]
    assert _set(lake, 1) == _slots(store)[-1]
    assert lake.read("a").collect() == [(1,)]


def test_dry_run_moves_no_horizon(lake: lv.Lake, clock: Days, store: Store) -> None:
    old = _set(lake, 1)
    _set(lake, 2)
    clock.pass_days(30)
    before = store.get(keys.HEAD)
    report = lake.vacuum()
    assert report.horizon == old + 1
    assert store.get(keys.HEAD) == before
    assert _values(lake.at(seq=old)) == (1, 1)


def test_runs_that_follow_find_nothing_to_expire(lake: lv.Lake, clock: Days, store: Store) -> None:
    """On an Iceberg table the second run brings the version into HEAD that the first has written."""
    _set(lake, 1)
    clock.pass_days(30)
    lake.vacuum(dry_run=False)
    clock.pass_days(1)
    lake.vacuum(dry_run=False)
    slots = _slots(store)
    clock.pass_days(1)
    lake.vacuum(dry_run=False)
    assert _slots(store) == slots


def test_tag_that_comes_while_vacuum_runs_is_kept_or_refused(
    clock: Days, tmp_path: Path, table_format: str
) -> None:
    """Another client tags an old instant at every third request of vacuum, once before and once after; on
    Iceberg tables, where vacuum sends more, at every twelfth."""
    every, times = {"delta": (3, 40), "iceberg": (12, 13)}[table_format]
    tagged: list[bool] = []
    for number in range(0, every * times, every):
        place = tmp_path / str(number)
        hooked = Hooked(Directory(str(place), clock))
        lake, other = _open(place, clock, hooked), _open(place, clock)
        lake.create("a", pa.table({"v": [0]}))
        lake.create("b", pa.table({"v": [0]}))
        old = _set(lake, 1)
        for value in range(2, 5):
            _set(lake, value)
        clock.pass_days(30)
        hooked.hook = _at_request(number, partial(_tag_or_be_refused, other, old))
        lake.vacuum(dry_run=False)
        hooked.hook = None
        lake.vacuum(dry_run=False)
        if other.tags():
            assert _values(other.at(tag="late")) == (1, 1)
        tagged.append(bool(other.tags()))
    assert tagged[0]
    assert not tagged[-1]


def _tag_or_be_refused(lake: lv.Lake, at: int) -> None:
    with suppress(lv.InvalidInput):
        lake.tag("late", at=at)


def _at_request(number: int, act: Callable[[], object]) -> Callable[[str, str], None]:
    count = iter(range(10_000))

    def hook(_: str, __: str) -> None:
        if next(count) == number:
            act()

    return hook


def test_outcome_of_a_young_transaction_is_told_after_vacuum_and_of_an_old_one_as_far_as_logs_tell(
    lake: lv.Lake, clock: Days
) -> None:
    with lake.transaction() as old:
        old.update("a", {"v": 1})
        old.update("b", {"v": 1})
    lake.tag("gone")
    tagged = lake.history(limit=1)[0].txn
    lake.untag("gone")
    for value in range(40):
        lake.update("a", {"v": value})
    clock.pass_days(12)
    with lake.transaction() as young:
        young.update("a", {"v": 2})
        young.update("b", {"v": 2})
    lost = lake.transaction()
    clock.pass_days(2)
    assert lake.vacuum(dry_run=False).leftovers.entries
    assert lake.outcome(young.id).state == "committed"
    assert lake.outcome(old.id).state == "committed"
    assert "may be run again" in lake.outcome(lost.id).advice
    assert lake.outcome(young.id).seq == lake.history(limit=3)[1].seq
    assert lake.outcome(tagged).state == "committed"
