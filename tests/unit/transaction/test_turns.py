"""Tickets on several tables: no transaction waits for a table while it holds a ticket on one that comes after
it."""

import threading
import time
from collections.abc import Callable

import pytest

import lakevilla as lv
from lakevilla.store.open import open_store
from lakevilla.tables.pinned import Pinned
from lakevilla.transaction.commit.writer_queues import WriterQueues
from sim.suites.storm import play

BOTH = lv.R | lv.CT
LEASE_SECONDS = 0.4


@pytest.fixture
def open_lake() -> Callable[[], lv.Lake]:
    """Clients of a lake with the tables x, y and z."""
    store = open_store("memory://")

    def client() -> lv.Lake:
        return lv.Lake("memory://", engine="local", features=lv.R, store=store, lease_seconds=LEASE_SECONDS)

    for name in ("x", "y", "z"):
        client().create(name, "id BIGINT, v BIGINT")
    return client


def _begin(lake: lv.Lake) -> tuple[WriterQueues, dict[str, Pinned]]:
    """The places of a new transaction that has looked at every table."""
    tx = lake.transaction(BOTH)
    for name in ("x", "y", "z"):
        tx.read(name)
    return tx._queues, {name: tx._workspace.base(name) for name in ("x", "y", "z")}


def test_place_on_a_table_that_is_no_longer_changed_is_given_back(open_lake: Callable[[], lv.Lake]) -> None:
    queues, tables = _begin(open_lake())
    queues.queue_up([tables["x"], tables["z"]])
    queues.queue_up([tables["y"]])
    assert [queues.ticket(tables[name].ref) is not None for name in "xyz"] == [False, True, False]
    assert queues.shifts == 1


def test_places_that_were_taken_in_order_are_kept(open_lake: Callable[[], lv.Lake]) -> None:
    queues, tables = _begin(open_lake())
    queues.queue_up([tables["x"], tables["y"]])
    held = queues.ticket(tables["x"].ref)
    queues.queue_up([tables["z"], tables["y"], tables["x"]])
    assert (queues.ticket(tables["x"].ref), queues.shifts) == (held, 0)


def test_wait_for_one_table_gives_back_what_comes_after_it(open_lake: Callable[[], lv.Lake]) -> None:
    queues, tables = _begin(open_lake())
    queues.wait(tables["y"])
    queues.wait(tables["x"])
    assert (queues.ticket(tables["y"].ref), queues.shifts) == (None, 1)


def test_place_that_was_lost_in_sleep_costs_those_after_it(open_lake: Callable[[], lv.Lake]) -> None:
    """The sleeper's place on x is freed and another holds it; the sleeper's place on y still counts."""
    sleeper, tables = _begin(open_lake())
    sleeper.queue_up([tables["x"], tables["y"]])
    ticket = sleeper.ticket(tables["x"].ref)
    assert ticket is not None
    queue = sleeper._of(tables["x"].ref, tables["x"].snapshot)
    assert queue.held is not None
    queue._bury(queue.held)
    other, _ = _begin(open_lake())
    other.wait(tables["x"])
    time.sleep(LEASE_SECONDS)
    both = [
        threading.Thread(target=lambda: sleeper.queue_up([tables["x"], tables["y"]])),
        threading.Thread(target=lambda: (other.wait(tables["y"]), other.free())),
    ]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join(60)
    assert not any(thread.is_alive() for thread in both)
    assert sleeper.shifts == 1


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(3))
def test_storm_of_deadlocks_ends_without_waiting_for_leases(seed: int) -> None:
    storm = play(seed, transactions=4)
    assert storm.violations == []
    assert storm.tally.commits == 32
    assert storm.tally.shifts > 0
    # A commit takes some seconds of slow requests; rings that only a lease ends took a minute each.
    assert storm.seconds / storm.tally.commits < 20
