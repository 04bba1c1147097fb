"""One transaction's place in the queue: what it costs, which number it gets, and which transactions precede
it."""

from collections.abc import Callable

import pytest

from lakevilla.errors import Unavailable, Unsupported
from lakevilla.markers.lease import Leases
from lakevilla.markers.records import Marker
from lakevilla.markers.side import SideQueue
from lakevilla.store import keys
from lakevilla.store.faulty import Fault, Faulty, always, nth
from lakevilla.store.metered import Meter, Metered
from lakevilla.store.open import open_adapter
from lakevilla.store.port import Store
from lakevilla.store.retry import Retrying
from tests.unit.store.clocked import Clocked


class Still(Clocked):
    """Nothing happens in the background: leases of these tests are not renewed."""

    def background(self, task: Callable[[], None]) -> Callable[[], None]:
        return task


class Bench:
    """A table in memory, whose requests are counted."""

    def __init__(self) -> None:
        self.environment = Still()
        self.meter = Meter()
        self.adapter = open_adapter("memory://", None, self.environment)
        self.store: Store = Retrying(Metered(self.adapter, self.meter), self.environment)

    def queue(self, txn: str, attempt: str = "a1", store: Store | None = None) -> SideQueue:
        store = store or self.store
        return SideQueue(store, Leases(store, self.environment), self.environment, txn, attempt)

    def marker(self, ticket: int) -> Marker:
        found = self.adapter.get(keys.marker(ticket))
        assert found is not None
        return Marker.decode(found.data, "marker")

    def requests(self, action: Callable[[], object]) -> dict[str, int]:
        before = self.meter.snapshot()
        action()
        after = self.meter.snapshot()
        return {
            kind: after[kind] - before[kind]
            for kind in after
            if after[kind] != before[kind] and "bytes" not in kind
        }


@pytest.fixture
def bench() -> Bench:
    return Bench()


def nobody() -> int:
    return 0


def test_probe_costs_one_get(bench: Bench) -> None:
    assert bench.requests(lambda: bench.queue("t").probe(5)) == {"get": 1}


def test_claim_of_an_empty_queue_costs_a_list_and_a_create(bench: Bench) -> None:
    queue = bench.queue("t")
    assert bench.requests(lambda: queue.claim(latest=4, dead=0)) == {"list": 1, "create": 1}
    assert queue.ticket == 5
    assert queue.predecessors == ()


def test_first_in_the_queue_waits_without_a_request(bench: Bench) -> None:
    queue = bench.queue("t")
    queue.claim(4, 0)
    assert bench.requests(lambda: queue.wait(nobody)) == {}
    assert bench.environment.pauses == []


def test_free_costs_one_replace_and_leaves_a_tombstone(bench: Bench) -> None:
    queue = bench.queue("t")
    queue.claim(4, 0)
    assert bench.requests(queue.free) == {"replace": 1}
    assert queue.ticket is None
    assert not bench.marker(5).live
    assert bench.marker(5).txn == "t"
    assert bench.requests(queue.free) == {}


def test_second_claim_of_a_holder_asks_nothing(bench: Bench) -> None:
    queue = bench.queue("t")
    queue.claim(4, 0)
    assert bench.requests(lambda: queue.claim(9, 0)) == {}
    assert queue.ticket == 5


def test_probe_finds_live_markers_of_others_only(bench: Bench) -> None:
    queue, other = bench.queue("t"), bench.queue("other")
    queue.claim(4, 0)
    assert other.probe(5)
    assert not queue.probe(5)
    assert not other.probe(6)
    queue.free()
    assert not other.probe(5)


def test_probe_finds_who_waits_behind_a_ticket_that_was_given_up(bench: Bench) -> None:
    first, second, other = bench.queue("one"), bench.queue("two"), bench.queue("other")
    first.claim(4, 0)
    second.claim(4, 0)
    first.free()
    assert other.probe(5)
    second.free()
    assert bench.requests(lambda: other.probe(5)) == {"get": 3}


def test_probe_looks_past_the_tickets_that_published_entries_named(bench: Bench) -> None:
    bench.queue("published").claim(6, 0)
    bench.queue("waiting").claim(7, 0)
    other = bench.queue("other")
    assert bench.requests(lambda: other.probe(version=6, dead=7)) == {"get": 1}
    assert other.probe(version=6, dead=7)
    assert not other.probe(version=6, dead=8)


def test_probe_of_many_tombstones_ends_soon(bench: Bench) -> None:
    for number in range(10):
        queue = bench.queue(f"t{number}")
        queue.claim(4, 0)
        queue.free()
    assert bench.requests(lambda: bench.queue("other").probe(5)) == {"get": 4}


def test_claim_reads_the_queue_in_one_round_and_names_who_precedes(bench: Bench) -> None:
    first, second, third = (bench.queue(name) for name in ("one", "two", "three"))
    first.claim(4, 0)
    second.claim(4, 0)
    assert bench.requests(lambda: third.claim(4, 0)) == {"list": 1, "get": 2, "create": 1}
    assert (first.ticket, second.ticket, third.ticket) == (5, 6, 7)
    assert third.predecessors == ("one", "two")
    assert bench.marker(7).predecessors == ("one", "two")
    assert bench.marker(7).attempt == "a1"


def test_tickets_up_to_a_published_one_are_neither_read_nor_waited_for(bench: Bench) -> None:
    for name in ("one", "two", "three"):
        bench.queue(name).claim(4, 0)
    queue = bench.queue("t")
    assert bench.requests(lambda: queue.claim(latest=5, dead=6)) == {"list": 1, "get": 1, "create": 1}
    assert queue.predecessors == ("three",)


def test_number_of_a_tombstone_is_never_used_again(bench: Bench) -> None:
    for expected in (5, 6, 7):
        queue = bench.queue(f"t{expected}")
        queue.claim(4, 0)
        assert queue.ticket == expected
        queue.free()


def test_number_that_a_published_entry_named_is_not_used_after_vacuum(bench: Bench) -> None:
    queue = bench.queue("t")
    queue.claim(latest=4, dead=9)
    assert queue.ticket == 10


def test_claim_that_lost_its_number_queues_behind_the_winner(bench: Bench) -> None:
    rival = bench.queue("rival")

    class Late:
        """A store whose list is answered before the rival claims."""

        def __getattr__(self, name: str) -> object:
            return getattr(bench.store, name)

        def list(self, prefix: str, start_after: str = "") -> object:
            listed = list(bench.store.list(prefix, start_after))
            rival.claim(4, 0)
            return iter(listed)

    queue = bench.queue("t", store=Late())
    queue.claim(4, 0)
    assert (rival.ticket, queue.ticket) == (5, 6)
    assert queue.predecessors == ("rival",)


def test_wait_ends_when_all_predecessors_are_freed_in_any_order(bench: Bench) -> None:
    first, second, third = (bench.queue(name) for name in ("one", "two", "three"))
    for queue in (first, second, third):
        queue.claim(4, 0)
    events = iter([first.free, lambda: None, second.free])
    bench.environment.sleep = lambda _: next(events)()
    third.wait(nobody)
    assert third.predecessors == ()
    assert third.ticket == 7
    assert next(events, None) is None


def test_log_spares_the_reading_of_the_markers_that_it_names(bench: Bench) -> None:
    queues = [bench.queue(f"t{number}") for number in range(10)]
    for queue in queues:
        queue.claim(4, 0)
    assert bench.requests(lambda: queues[9].wait(lambda: 13)) == {}
    assert queues[9].ticket == 14


def test_who_is_far_behind_looks_less_often_than_who_is_next(bench: Bench) -> None:
    queues = [bench.queue(f"t{number}") for number in range(10)]
    for queue in queues:
        queue.claim(4, 0)
    published = iter([4, 4, *range(5, 14)])
    queues[9].wait(lambda: next(published))
    pauses = bench.environment.pauses
    # No transaction has passed yet: turns are assumed to be as short as possible.
    assert pauses[0] == pytest.approx(8.5 * 0.005 / 2)
    assert min(pauses) == pytest.approx(0.005)


def test_who_is_far_behind_waits_for_half_of_the_turns_ahead(bench: Bench) -> None:
    queues = [bench.queue(f"t{number}") for number in range(6)]
    for queue in queues:
        queue.claim(4, 0)
    begun = bench.environment.elapsed()
    seconds_each = 0.2
    queues[5].wait(lambda: 4 + int((bench.environment.elapsed() - begun) / seconds_each))
    took = bench.environment.elapsed() - begun
    assert took < 6 * seconds_each + 0.3
    assert len(bench.environment.pauses) < 20


def test_owner_that_published_and_died_before_it_freed_is_noticed_in_the_log(bench: Bench) -> None:
    bench.queue("died").claim(4, 0)
    queue = bench.queue("t")
    queue.claim(4, 0)
    queue.wait(lambda: 5)
    assert bench.environment.time - 1000 < 2
    assert bench.marker(5).live


def test_marker_that_vacuum_deleted_precedes_nobody(bench: Bench) -> None:
    bench.queue("one").claim(4, 0)
    queue = bench.queue("t")
    queue.claim(4, 0)
    bench.store.delete(keys.marker(5))
    queue.wait(nobody)
    assert queue.predecessors == ()


def test_damaged_marker_precedes_nobody_and_keeps_its_number(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.store.put(keys.marker(5), b"rubbish")
    queue = bench.queue("t")
    assert not queue.probe(5)
    queue.claim(4, 0)
    queue.wait(nobody)
    assert queue.ticket == 6
    assert "ticket 5 is ignored" in caplog.text


def test_marker_of_a_newer_format_is_refused(bench: Bench) -> None:
    bench.queue("one").claim(4, 0)
    newer = bench.marker(5).encode().replace(b'"format":1', b'"format":2')
    bench.store.put(keys.marker(5), newer)
    with pytest.raises(Unsupported, match="record format 2"):
        bench.queue("t").claim(4, 0)


def test_object_that_is_no_marker_is_left_alone(bench: Bench) -> None:
    bench.store.put(f"{keys.MARKERS}README.txt", b"not ours")
    queue = bench.queue("t")
    queue.claim(4, 0)
    assert queue.ticket == 5


def test_stale_predecessor_is_freed_after_the_lease_time_and_not_before(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.queue("dead-owner").claim(4, 0)
    queue = bench.queue("t")
    queue.claim(4, 0)
    queue.wait(nobody)
    assert 10 < bench.environment.time - 1000 < 14
    assert not bench.marker(5).live
    assert bench.marker(5).txn == "dead-owner"
    assert "freed ticket 5: its owner, transaction dead-owner" in caplog.text


def test_waiter_watches_its_nearest_predecessor_and_looks_at_its_lease_now_and_then(bench: Bench) -> None:
    asked: list[str] = []
    watched = Faulty(bench.adapter, lambda kind, key, _: asked.append(key) if kind == "get" else None)
    bench.queue("first").claim(4, 0)
    bench.queue("dead-owner").claim(4, 0)
    queue = bench.queue("t", store=watched)
    queue.claim(4, 0)
    asked.clear()
    queue.wait(lambda: 5 if not bench.marker(6).live else 0)
    assert keys.marker(5) not in asked
    assert asked.count(keys.marker(6)) > 20
    assert 3 <= asked.count(keys.lease("dead-owner")) <= 6


def test_waiting_grows_its_pauses_within_bounds(bench: Bench) -> None:
    bench.queue("dead-owner").claim(4, 0)
    queue = bench.queue("t")
    queue.claim(4, 0)
    queue.wait(nobody)
    pauses = bench.environment.pauses
    assert pauses[0] == pytest.approx(0.005)
    assert pauses[:5] == sorted(pauses[:5])
    assert max(pauses) == pytest.approx(0.1)


def test_woken_owner_whose_ticket_was_freed_claims_again_behind_the_others(bench: Bench) -> None:
    sleeper, other = bench.queue("sleeper"), bench.queue("other")
    sleeper.claim(4, 0)
    other.claim(4, 0)
    other.wait(nobody)
    assert (sleeper.ticket, other.ticket) == (5, 6)
    pauses = len(bench.environment.pauses)
    bench.environment.sleep = lambda seconds: bench.environment.pauses.append(seconds) or other.free()
    sleeper.wait(nobody)
    assert sleeper.ticket == 7
    assert bench.marker(7).txn == "sleeper"
    assert len(bench.environment.pauses) > pauses


def test_owner_that_a_higher_ticket_overtook_frees_its_dead_one_and_claims_again(bench: Bench) -> None:
    bench.queue("ahead").claim(4, 0)
    queue = bench.queue("t")
    queue.claim(4, 0)
    queue.wait(lambda: 8)
    assert queue.ticket == 9
    assert not bench.marker(6).live


def test_free_of_a_ticket_that_a_stranger_freed_changes_nothing(bench: Bench) -> None:
    sleeper, other = bench.queue("sleeper"), bench.queue("other")
    sleeper.claim(4, 0)
    other.claim(4, 0)
    other.wait(nobody)
    tombstone = bench.marker(5)
    sleeper.free()
    assert bench.marker(5) == tombstone


def test_resumed_transaction_goes_on_at_its_old_place(bench: Bench) -> None:
    bench.queue("ahead").claim(4, 0)
    old = bench.queue("t", "a1")
    old.claim(4, 0)
    bench.queue("behind").claim(4, 0)
    new = bench.queue("t", "a2")
    new.claim(4, 0)
    assert new.ticket == 6
    assert new.predecessors == ("ahead",)
    assert bench.marker(6).attempt == "a2"
    old.free()
    assert bench.marker(6).live


def test_create_whose_answer_is_lost_is_recognised(bench: Bench) -> None:
    faulty = Faulty(bench.adapter, nth({1: Fault.LOST}, "create"))
    queue = bench.queue("t", store=Retrying(faulty, bench.environment))
    queue.claim(4, 0)
    assert queue.ticket == 5
    queue.free()
    assert not bench.marker(5).live


def test_create_that_stays_unknown_is_read_back(bench: Bench) -> None:
    """All tries lose their answers but the first applied; the read-back of the retries fails too."""
    creates = nth(dict.fromkeys(range(1, 9), Fault.LOST), "create")
    queue = bench.queue("t", store=Retrying(Faulty(bench.adapter, creates), bench.environment))
    queue.claim(4, 0)
    assert queue.ticket == 5


def test_claim_on_a_store_that_is_gone_is_unavailable(bench: Bench) -> None:
    faulty = Faulty(bench.adapter, always(Fault.FAILS, "create"))
    queue = bench.queue("t", store=Retrying(faulty, bench.environment))
    with pytest.raises(Unavailable):
        queue.claim(4, 0)
    assert queue.ticket is None


def test_free_on_a_store_that_is_gone_loses_no_commit(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    faulty = Faulty(bench.adapter, always(Fault.FAILS, "replace"))
    queue = bench.queue("t", store=Retrying(faulty, bench.environment))
    queue.claim(4, 0)
    queue.free()
    assert queue.ticket is None
    assert "ticket 5 of t could not be freed" in caplog.text
