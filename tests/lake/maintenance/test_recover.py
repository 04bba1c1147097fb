"""Recover and status: which clients wait, which are dead, what they left, and that a second run changes
nothing."""

from pathlib import Path

import pytest

import lakevilla as lv
from lakevilla.environment import SystemEnvironment
from lakevilla.errors import Unavailable
from lakevilla.markers.lease import Leases
from lakevilla.markers.records import Lease, Marker
from lakevilla.markers.side import SideQueue
from lakevilla.model import Counts, ReadSet, TableRef
from lakevilla.store import keys
from lakevilla.store.open import open_store
from lakevilla.store.port import Store
from lakevilla.store.prefixed import Prefixed
from lakevilla.sublogs.records import Ran, Saved, Sublog, Touched
from lakevilla.versions.head_encoding import unpack
from tests.support.hooked import Hooked
from tests.support.outsiders import OUTSIDERS

pytestmark = pytest.mark.formats("delta", "iceberg")

DEAD, WAITING = "0197" + "a" * 28, "0197" + "b" * 28
LEASE_SECONDS = 0.3


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(str(tmp_path))


@pytest.fixture
def lake(tmp_path: Path) -> lv.Lake:
    lake = lv.Lake(
        tmp_path,
        engine="local",
        features=lv.R,
        lease_seconds=LEASE_SECONDS,
        storage_options={"fsync": "false"},
    )
    lake.create("t", "id BIGINT, v BIGINT")
    lake.append("t", [{"id": 1, "v": 1}])
    return lake


def _mark(store: Store, table: str, ticket: int, txn: str, precedes: tuple[str, ...] = ()) -> None:
    marker = Marker(txn, txn, f"put-{ticket}", _now_ms() - 60_000, live=True, predecessors=precedes)
    Prefixed(store, table).put(keys.marker(ticket), marker.encode())


def _now_ms() -> int:
    return SystemEnvironment().now_ms()


def _sublog(store: Store, txn: str, statements: int) -> None:
    touched = Touched(TableRef("t", "t", "delta"), 1, ReadSet())
    ran = [Ran((touched,), "DELETE FROM t", counts=Counts(deleted=1)) for _ in range(statements)]
    records = (*ran, Saved("here"), Ran((touched,), "SELECT x", over=True))
    store.put(keys.sublog(txn, txn, 0), Sublog(txn, txn, "put", 0, 0, records).encode())


def _marker(store: Store, table: str, ticket: int) -> Marker | None:
    found = Prefixed(store, table).get(keys.marker(ticket))
    return None if found is None else Marker.decode(found.data, "marker")


@pytest.fixture
def waits(lake: lv.Lake, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long the lake slept, each time."""
    seconds: list[float] = []
    monkeypatch.setattr(lake._environment, "sleep", seconds.append)
    return seconds


def test_quiet_lake_has_nothing_to_recover_and_takes_no_time(lake: lv.Lake, waits: list[float]) -> None:
    report = lake.recover()
    assert report == lv.RecoverReport()
    assert str(report) == "nothing to recover"
    assert waits == []
    assert str(lake.status()) == "no client waits to write, and no transaction left records"


def test_table_that_cannot_be_written_does_not_keep_recover_from_the_others(
    lake: lv.Lake, store: Store, tmp_path: Path
) -> None:
    lake.create("u", "id BIGINT")
    for table in "tu":
        _mark(store, table, 5, DEAD)
    refusing = Hooked(store)

    def refuse(kind: str, key: str) -> None:
        if kind == "replace" and key.startswith("t/"):
            raise Unavailable(f"access denied: {key}")

    refusing.hook = refuse
    operator = lv.Lake(tmp_path, engine="local", store=refusing, lease_seconds=LEASE_SECONDS)
    report = operator.recover()
    assert [ticket.table for ticket in report.freed] == ["u"]
    assert report.waiting == ()
    assert set(report.failed) == {"t"}
    with pytest.raises(Unavailable):
        operator.recover("t")


def test_tickets_of_owners_that_are_gone_are_freed_on_every_table(lake: lv.Lake, store: Store) -> None:
    lake.create("u", "id BIGINT")
    _mark(store, "t", 5, DEAD)
    _mark(store, "u", 3, DEAD)
    report = lake.recover()
    assert [(ticket.table, ticket.ticket) for ticket in report.freed] == [("t", 5), ("u", 3)]
    assert "freed ticket 5 of t" in str(report)
    for table, ticket in (("t", 5), ("u", 3)):
        marker = _marker(store, table, ticket)
        assert marker is not None
        assert not marker.live
    assert lake.recover() == lv.RecoverReport()
    assert lake.update("t", {"v": 2}).updated == 1


def test_recover_of_one_table_leaves_the_others_alone(lake: lv.Lake, store: Store) -> None:
    lake.create("u", "id BIGINT")
    _mark(store, "t", 5, DEAD)
    _mark(store, "u", 3, DEAD)
    assert [ticket.table for ticket in lake.recover("u").freed] == ["u"]
    assert [ticket.table for ticket in lake.recover().freed] == ["t"]
    with pytest.raises(lv.InvalidInput, match="unknown table"):
        lake.recover("nowhere")


def test_ticket_of_an_owner_that_beats_is_kept(lake: lv.Lake, store: Store) -> None:
    environment = SystemEnvironment()
    leases = Leases(store, environment, LEASE_SECONDS)
    owner = SideQueue(Prefixed(store, "t"), leases, environment, WAITING, WAITING)
    leases.busy(WAITING)
    owner.claim(1, 0)
    try:
        report = lake.recover()
    finally:
        leases.release(WAITING)
    assert (report.freed, [ticket.transaction for ticket in report.waiting]) == ((), [WAITING])
    assert "is alive" in str(report)


def test_transactions_that_left_sublogs_are_listed_with_what_they_did(lake: lv.Lake, store: Store) -> None:
    _sublog(store, DEAD, 2)
    (found,) = lake.recover().transactions
    assert (found.transaction, found.tables, found.statements, found.alive) == (DEAD, ("t",), 2, False)
    assert found.silent_seconds < 60
    assert "2 finished statements" in str(lake.recover())
    assert lake.recover("T").transactions[0].transaction == DEAD
    assert store.head(keys.sublog(DEAD, DEAD, 0)) is not None


def test_transaction_whose_lease_moves_is_alive(tmp_path: Path, store: Store) -> None:
    hooked = Hooked(store)
    lake = lv.Lake(tmp_path, engine="local", features=lv.R, store=hooked, lease_seconds=LEASE_SECONDS)
    lake.create("t", "id BIGINT, v BIGINT")
    _sublog(store, DEAD, 1)

    def beat(kind: str, key: str) -> None:
        if (kind, key) == ("get", keys.lease(DEAD)):
            store.put(key, Lease(DEAD, DEAD, SystemEnvironment().new_id(), 1, 0).encode())

    hooked.hook = beat
    assert [found.alive for found in lake.recover().transactions] == [True]


def test_damaged_sublog_is_listed_without_what_it_did(lake: lv.Lake, store: Store) -> None:
    store.put(keys.sublog(DEAD, DEAD, 0), b"rubbish")
    (found,) = lake.recover().transactions
    assert (found.transaction, found.tables, found.statements) == (DEAD, (), 0)
    assert "an unknown table" in str(lake.status())


def test_change_of_the_tables_that_was_left_half_done_is_completed(
    lake: lv.Lake, store: Store, tmp_path: Path
) -> None:
    """Its client died after it had decided to create a table, before that was visible."""
    before = store.get(keys.HEAD)
    assert before is not None
    lake.create("u", "id BIGINT")
    store.put(keys.HEAD, before.data)
    assert [step.seq for step in unpack(before.data, "HEAD").steps] == [1]
    fresh = lv.Lake(tmp_path, engine="local", features=lv.R, lease_seconds=LEASE_SECONDS)
    report = fresh.recover()
    assert report.settled
    assert "half done" in str(report)
    assert fresh.tables() == ["t", "u"]
    found = store.get(keys.HEAD)
    assert found is not None
    assert [step.seq for step in unpack(found.data, "HEAD").steps] == [1, 2]
    assert not fresh.recover().settled


def test_status_shows_who_waits_for_whom_and_changes_nothing(
    lake: lv.Lake, store: Store, waits: list[float]
) -> None:
    _mark(store, "t", 7, WAITING, precedes=(DEAD,))
    _mark(store, "t", 5, DEAD)
    _sublog(store, DEAD, 3)
    status = lake.status()
    assert waits == []
    assert [(ticket.ticket, ticket.transaction, ticket.waits_for) for ticket in status.tickets] == [
        (5, DEAD, ()),
        (7, WAITING, (DEAD,)),
    ]
    assert all(59 < ticket.age_seconds < 120 for ticket in status.tickets)
    assert [(found.transaction, found.statements, found.alive) for found in status.transactions] == [
        (DEAD, 3, None)
    ]
    lines = str(status).splitlines()
    assert lines[0].split() == ["table", "ticket", "transaction", "about", "waits", "for"]
    assert lines[1].endswith("no client")
    assert lines[2].split()[-1] == DEAD
    marker = _marker(store, "t", 5)
    assert marker is not None
    assert marker.live


def test_ticket_that_a_published_version_used_up_is_not_waiting(
    lake: lv.Lake, store: Store, begin: int
) -> None:
    _mark(store, "t", begin + 2, DEAD)
    waiting = lake.transaction()
    waiting.update("t", {"v": 5})
    waiting.commit()
    _mark(store, "t", begin + 2, DEAD)
    assert lake.status().tickets == ()


def test_table_that_cannot_be_read_does_not_hide_the_others(
    lake: lv.Lake, store: Store, tmp_path: Path, table_format: str
) -> None:
    lake.create("u", "id BIGINT")
    _mark(store, "t", 5, DEAD)
    (tmp_path / "u" / OUTSIDERS[table_format].entry(1)).write_text("rubbish")
    status, report = lake.status(), lake.recover()
    assert [ticket.table for ticket in status.tickets] == ["t"]
    assert "u" in status.failed
    assert [ticket.table for ticket in report.freed] == ["t"]
    assert "u: skipped" in str(report)
