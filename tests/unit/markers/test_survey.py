"""What recover and status see of a table's queue, and which tickets recover frees."""

from lakevilla.markers.survey import Seen, free_stale, survey
from lakevilla.store import keys
from sim.world.bucket import EPOCH_MS
from sim.world.client import World
from sim.world.faults import Calm
from tests.unit.markers.players import Player, Steady, marker_at, run


def test_survey_gives_all_markers_by_ticket_with_one_list() -> None:
    plan = Steady()
    with World(1, lambda _: plan) as world:
        player = Player(world, "a")

        def body() -> None:
            first, second = player.queue("one"), player.queue("two")
            first.claim(8, 0)
            second.claim(8, 0)
            first.free()
            player.store.put(f"{keys.MARKERS}README.txt", b"not ours")
            player.store.put(keys.marker(11), b"rubbish")
            plan.requests.clear()
            seen = survey(player.store, player.environment)
            assert [(s.ticket, s.marker.txn, s.marker.live) for s in seen] == [
                (9, "one", False),
                (10, "two", True),
            ]
            assert all(0 < s.modified_ms - EPOCH_MS <= world.scheduler.now * 1000 for s in seen)
            assert sorted(kind for _, kind, _ in plan.requests) == ["get", "get", "get", "list"]

        run(world, (player, body))


def test_stale_tickets_are_freed_in_one_lease_time_and_living_ones_are_kept() -> None:
    with World(1, Calm) as world:
        dead, living, doctor = (Player(world, name) for name in ("dead", "living", "doctor"))

        def die() -> None:
            dead.queue("t1").claim(0, 0)
            dead.environment.sleep(1000)

        def live() -> None:
            living.environment.sleep(1)
            living.leases.busy("t2")
            living.queue("t2").claim(0, 0)
            living.environment.sleep(100)
            living.leases.release("t2")

        def recover() -> None:
            doctor.environment.sleep(30)
            before = world.scheduler.now
            found = [(doctor.store, seen) for seen in survey(doctor.store, doctor.environment)]
            freed = free_stale(found, doctor.leases, doctor.environment)
            assert [seen.marker.txn for _, seen in freed] == ["t1"]
            assert 10 < world.scheduler.now - before < 13
            again = [(doctor.store, seen) for seen in survey(doctor.store, doctor.environment)]
            assert free_stale(again, doctor.leases, doctor.environment) == []

        world.scheduler.at(5, lambda: world.scheduler.kill(dead.client.process))
        run(world, (dead, die), (living, live), (doctor, recover))
        one, two = marker_at(world, 1), marker_at(world, 2)
        assert one is not None
        assert two is not None
        assert (one.live, two.live) == (False, True)


def test_table_without_live_tickets_is_recovered_at_once() -> None:
    with World(1, Calm) as world:
        player = Player(world, "a")

        def body() -> None:
            queue = player.queue("t")
            queue.claim(0, 0)
            queue.free()
            before = world.scheduler.now
            found = [(player.store, seen) for seen in survey(player.store, player.environment)]
            assert free_stale(found, player.leases, player.environment) == []
            assert world.scheduler.now - before < 2

        run(world, (player, body))


def test_ticket_that_changed_since_the_survey_is_left_alone() -> None:
    with World(1, Calm) as world:
        player = Player(world, "a", idle_seconds=0.0)

        def body() -> None:
            player.queue("t", "a1").claim(0, 0)
            (seen,) = survey(player.store, player.environment)
            player.queue("t", "a2").claim(0, 0)
            old = Seen(seen.ticket, seen.marker, seen.etag, seen.modified_ms)
            assert free_stale([(player.store, old)], player.leases, player.environment) == []

        run(world, (player, body))
        marker = marker_at(world, 1)
        assert marker is not None
        assert marker.live
