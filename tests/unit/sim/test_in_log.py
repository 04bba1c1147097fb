"""Seeds on tables whose markers lie in the log are clean, and the judges of such tables can be trusted."""

import json
from unittest.mock import patch

import pytest

from sim.bucket import Write
from sim.checkers.log_markers import check_log_markers, pending_markers, without_markers
from sim.in_log import play

LEASE = 1.0


def test_first_seeds_show_no_violation():
    for seed in range(12):
        assert play(seed).violations == [], f"replay with: python -m sim.in_log --seed {seed}"


@pytest.mark.parametrize(
    ("target", "wrong"),
    [
        ("lakevilla.formats.delta.opening.is_pending", lambda _: False),
        ("lakevilla.markers.log.bury", lambda store, _environment, entries, read: _put(store, entries, read)),
        ("lakevilla.markers.lease.Leases.is_stale", lambda *_: True),
    ],
    ids=["readers go past markers", "freed whatever it became", "nobody is alive"],
)
def test_planted_bug_is_found(target, wrong):
    with patch(target, wrong):
        assert any(play(seed).violations for seed in range(20))


def _put(store, entries, read) -> bool:
    store.put(entries.key(read.ticket), entries.encode(read.ticket, read.marker.tombstone("p").record()))
    return True


def entry(at: float, version: int, marker: bool | None, txn: str = "a", client: str = "c") -> Write:
    ours = {"txn": txn} if marker is None else {"txn": txn, "marker": marker}
    data = json.dumps({"commitInfo": {"lakevilla": ours}}).encode()
    return Write(at, client, "create", f"t/_delta_log/{version:020d}.json", data)


FIRST = entry(0.0, 0, None)
CHECKPOINT = Write(3.0, "c", "create", f"t/_delta_log/{1:020d}.checkpoint.parquet", b"")


def test_markers_that_are_filled_and_freed_in_order_pass():
    writes = [FIRST, entry(1, 1, True), entry(1, 2, True, "b"), entry(2, 1, None), entry(2, 2, False, "b")]
    assert check_log_markers(writes, LEASE) == []
    assert pending_markers(writes[:4]) == [("t", 2)]
    kept, numbers = without_markers([*writes, entry(3, 3, True), entry(4, 3, None)])
    assert [write.key[-6:] for write in kept] == ["0.json", "1.json", "2.json"]
    assert numbers.of("t", 3) == 2


@pytest.mark.parametrize(
    ("writes", "problem"),
    [
        ([entry(1, 1, None)], "begins filled"),
        ([entry(1, 1, True), entry(2, 1, None), entry(3, 1, None)], "was filled, and changes"),
        ([entry(1, 1, True), entry(2, 1, False), entry(3, 1, None)], "was freed, and changes"),
        ([entry(1, 1, True), entry(2, 1, None, "b")], "was held by a"),
        ([entry(1, 1, True), entry(1.5, 1, False, client="d")], "is freed 0.50 seconds after"),
        (
            [entry(1, 1, True), entry(1, 2, True), entry(2, 2, None)],
            "filled above the pending markers [1]",
        ),
        ([entry(1, 1, True), CHECKPOINT], "covers the pending markers [1]"),
    ],
)
def test_rule_that_is_broken_is_named(writes, problem):
    (found,) = check_log_markers([FIRST, *writes], LEASE)
    assert problem in found
