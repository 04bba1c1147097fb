"""The judges of transactions of several statements and of tickets, on hand-made histories."""

import json
from typing import Any

from sim.checkers.history import Operation, Step
from sim.checkers.steps import check_steps
from sim.checkers.tables.effects import bag
from sim.checkers.tables.markers import check_markers, live_tickets
from sim.checkers.tables.replay import check_replay
from sim.checkers.tables.versions import Version
from sim.world.bucket import Write

LEASE_SECONDS = 10.0


def version(at: float, *values: int, txn: str | None = None) -> Version:
    rows = [{"k": key, "v": value} for key, value in enumerate(values)]
    return Version(at, txn, rows, bag(rows))


def transaction(*steps: Step, outcome: Any = "ok", invoked: float = 1.0, completed: float = 5.0) -> Operation:
    return Operation(
        7, "c", "registers", "steps", None, None, invoked, completed, outcome, steps=list(steps), txn="t"
    )


def read(key: int, value: int) -> Step:
    return Step("read", ("k", key), [{"k": key, "v": value}])


def assign(key: int, value: int, undone_at: int | None = None) -> Step:
    return Step("set", key, value, undone_at)


VERSIONS = [version(0.0, 10, 20), version(2.0, 11, 20), version(4.0, 11, 21)]


def test_committed_transaction_that_saw_the_version_before_passes():
    op = transaction(read(1, 20), assign(1, 21), read(1, 21))
    assert check_steps(VERSIONS, [op], {7: 2}) == []


def test_committed_transaction_that_saw_an_older_version_is_found():
    op = transaction(read(0, 10), assign(1, 21))
    assert "did not see the version before" in check_steps(VERSIONS, [op], {7: 2})[0]


def test_own_write_that_was_not_seen_is_found():
    op = transaction(assign(1, 21), read(1, 20))
    assert "step 1 did not see" in check_steps(VERSIONS, [op], {7: 2})[0]


def test_rolled_back_write_is_seen_before_the_rollback_only():
    before = transaction(assign(0, 5, undone_at=2), read(0, 5), read(0, 11), assign(1, 21))
    assert check_steps(VERSIONS, [before], {7: 2}) == []
    after = transaction(assign(0, 5, undone_at=1), read(0, 5), assign(1, 21))
    assert check_steps(VERSIONS, [after], {7: 2}) != []


def test_failed_transaction_that_mixed_two_versions_is_found():
    torn = transaction(read(0, 10), read(1, 21), outcome="failed")
    assert "saw no version" in check_steps(VERSIONS, [torn], {})[0]
    whole = transaction(read(0, 11), read(1, 21), outcome="failed")
    assert check_steps(VERSIONS, [whole], {}) == []


def test_acknowledged_change_without_a_version_is_found():
    lost = transaction(read(0, 11), assign(0, 12))
    assert "asked for one" in check_steps(VERSIONS, [lost], {})[0]
    idle = transaction(read(0, 11), assign(0, 11))
    assert check_steps(VERSIONS, [idle], {}) == []


def test_transaction_that_is_published_twice_is_found():
    twice = [version(0.0, 10), version(1.0, 11, txn="t"), version(2.0, 12, txn="t")]
    assert any("of one transaction" in violation for violation in check_replay(twice, []))


def marker(at: float, client: str, txn: str, *, live: bool, ticket: int = 3) -> Write:
    record = json.dumps({"txn": txn, "live": live}).encode()
    return Write(at, client, "create", f"t/_lakevilla/markers/{ticket:020d}.json", record)


def test_ticket_that_its_owner_frees_passes():
    writes = [marker(0.0, "a", "t1", live=True), marker(1.0, "a", "t1", live=False)]
    assert check_markers(writes, LEASE_SECONDS) == []
    assert live_tickets(writes[:1]) == [("t", 3)]
    assert live_tickets(writes) == []


def test_ticket_that_is_used_again_is_found():
    writes = [
        marker(0.0, "a", "t1", live=True),
        marker(1.0, "a", "t1", live=False),
        marker(2.0, "b", "t2", live=True),
    ]
    assert "which was freed" in check_markers(writes, LEASE_SECONDS)[0]


def test_ticket_that_is_deleted_is_found():
    gone = Write(1.0, "a", "delete", marker(0.0, "a", "t1", live=True).key, None)
    assert "deletes" in check_markers([marker(0.0, "a", "t1", live=True), gone], LEASE_SECONDS)[0]


def test_ticket_of_a_living_owner_that_a_stranger_frees_is_found():
    early = [marker(0.0, "a", "t1", live=True), marker(9.0, "b", "t1", live=False)]
    assert "seconds after its owner wrote it" in check_markers(early, LEASE_SECONDS)[0]
    late = [marker(0.0, "a", "t1", live=True), marker(11.0, "b", "t1", live=False)]
    assert check_markers(late, LEASE_SECONDS) == []


def test_entry_that_names_the_ticket_of_another_is_found():
    info = {"commitInfo": {"lakevilla": {"txn": "t2", "ticket": 3}}}
    entry = Write(2.0, "b", "create", f"t/_delta_log/{1:020d}.json", json.dumps(info).encode())
    assert "not its transaction's" in check_markers([marker(0.0, "a", "t1", live=True), entry], 10.0)[0]
