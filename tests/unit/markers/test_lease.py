"""Leases: when beats are written and when not, which client is fenced, and when an owner counts as dead."""

from collections.abc import Callable
from itertools import pairwise

import pytest

from lakevilla.store import keys
from sim.world.client import World
from sim.world.faults import Fate
from tests.unit.markers.players import Player, Steady, lease_of, run


def _world() -> tuple[World, Steady]:
    plan = Steady()
    return World(0, lambda _: plan), plan


def _beats(world: World, txn: str = "t") -> list[float]:
    return [write.at for write in world.bucket.writes if write.key == keys.lease(txn) and write.data]


def test_short_holder_writes_no_lease_and_the_world_ends() -> None:
    world, plan = _world()
    with world:
        player = Player(world, "a")

        def body() -> None:
            player.leases.hold("t", "a1")
            player.environment.sleep(3.3)
            player.leases.release("t")

        run(world, (player, body))
        assert plan.requests == []
        assert world.scheduler.now < 10


def test_holder_beats_three_times_in_a_lease_time_and_leaves_nothing() -> None:
    world, _ = _world()
    with world:
        player = Player(world, "a")

        def body() -> None:
            player.leases.busy("t")
            player.leases.hold("t", "a1")
            player.environment.sleep(100)
            lease = lease_of(world, "t")
            assert lease is not None
            assert (lease.txn, lease.attempt, lease.beat) == ("t", "a1", 29)
            player.leases.idle("t")
            player.leases.release("t")

        run(world, (player, body))
        beats = _beats(world)
        assert beats[0] == pytest.approx(10 / 3, abs=0.2)
        assert max(late - early for early, late in pairwise(beats)) < 3.6
        assert lease_of(world, "t") is None


def test_forgotten_transaction_is_renewed_no_longer_than_the_idle_time() -> None:
    world, _ = _world()
    with world:
        player = Player(world, "a", idle_seconds=20.0)

        def body() -> None:
            player.leases.hold("t", "a1")
            player.environment.sleep(5)
            player.leases.busy("t")
            player.environment.sleep(30)
            player.leases.idle("t")

        run(world, (player, body))
        assert 50 < _beats(world)[-1] < 55.1
        assert world.scheduler.now < 60


def test_statement_of_an_idle_transaction_starts_the_beats_again_at_once() -> None:
    world, _ = _world()
    with world:
        player = Player(world, "a", idle_seconds=20.0)

        def body() -> None:
            player.leases.hold("t", "a1")
            player.environment.sleep(100)
            player.leases.busy("t")
            player.environment.sleep(1)
            player.leases.idle("t")
            player.leases.release("t")

        run(world, (player, body))
        assert _beats(world)[-1] == pytest.approx(100, abs=0.1)


def test_one_loop_renews_the_leases_of_all_transactions(monkeypatch: pytest.MonkeyPatch) -> None:
    world, _ = _world()
    with world:
        player = Player(world, "a", idle_seconds=20.0)
        started: list[Callable[[], None]] = []
        background = player.environment.background

        def count(task: Callable[[], None]) -> Callable[[], None]:
            started.append(task)
            return background(task)

        monkeypatch.setattr(player.environment, "background", count)

        def body() -> None:
            for number in range(5):
                player.leases.hold(f"t{number}", "a1")
                player.environment.sleep(1)
            player.environment.sleep(10)
            for number in range(5):
                player.leases.release(f"t{number}")
            player.environment.sleep(10)
            player.leases.hold("later", "a1")
            player.environment.sleep(5)
            player.leases.release("later")

        run(world, (player, body))
        assert all(len(_beats(world, f"t{number}")) >= 3 for number in range(5))
        assert len(_beats(world, "later")) == 1
        assert len(started) == 2


def test_beat_that_is_on_its_way_at_the_end_leaves_no_lease() -> None:
    world, plan = _world()
    with world:
        player = Player(world, "a")
        plan.fates["a", "create"] = Fate(applies=(2.0,), answer=0, answer_after=2.5)

        def body() -> None:
            player.leases.hold("t", "a1")
            player.environment.sleep(4)
            player.leases.release("t")

        run(world, (player, body))
        assert len(_beats(world)) == 1
        assert lease_of(world, "t") is None


def test_cut_off_owner_beats_on_and_does_not_take_its_own_beat_for_a_stranger() -> None:
    world, plan = _world()
    with world:
        player = Player(world, "a")
        plan.fates["a", "replace"] = Fate("lost", applies=(0.01,), error="timeout", gives_up=5.0, cut=30.0)

        def body() -> None:
            player.leases.busy("t")
            player.leases.hold("t", "a1")
            player.environment.sleep(60)
            assert not player.leases.fenced("t")
            player.leases.release("t")

        run(world, (player, body))
        assert _beats(world)[-1] > 55
        assert lease_of(world, "t") is None


@pytest.mark.parametrize("held_seconds", [1.0, 8.0])
def test_owner_that_was_taken_over_is_fenced_by_its_next_beat(held_seconds: float) -> None:
    """Whether or not it had written a beat before."""
    world, _ = _world()
    with world:
        old, new = Player(world, "old"), Player(world, "new")

        def owner() -> None:
            old.leases.busy("t")
            old.leases.hold("t", "a1")
            old.environment.sleep(held_seconds + 5)
            assert old.leases.fenced("t")
            old.leases.release("t")

        def resumer() -> None:
            new.environment.sleep(held_seconds)
            new.leases.take_over("t", "a2")
            new.environment.sleep(20)
            assert not new.leases.fenced("t")
            new.leases.release("t")

        run(world, (old, owner), (new, resumer))
        lease = lease_of(world, "t")
        assert lease is not None, "the fence stays for an owner that sleeps"
        assert lease.attempt == "a2"
        assert lease.beat > 5


def test_fenced_owner_that_ends_leaves_the_fence() -> None:
    world, _ = _world()
    with world:
        old, new = Player(world, "old"), Player(world, "new")

        def owner() -> None:
            old.leases.hold("t", "a1")
            old.environment.sleep(12)
            assert old.leases.fenced("t")
            old.leases.release("t")

        def resumer() -> None:
            new.environment.sleep(5)
            new.leases.take_over("t", "a2")
            new.leases.release("t")

        run(world, (old, owner), (new, resumer))
        lease = lease_of(world, "t")
        assert lease is not None
        assert lease.attempt == "a2"


def test_owner_that_ends_unaware_of_a_take_over_does_not_fence_its_successor() -> None:
    world, _ = _world()
    with world:
        old, new = Player(world, "old"), Player(world, "new")

        def owner() -> None:
            old.leases.hold("t", "a1")
            old.environment.sleep(5)
            old.leases.release("t")

        def resumer() -> None:
            new.environment.sleep(4.8)
            new.leases.take_over("t", "a2")
            new.environment.sleep(20)
            assert not new.leases.fenced("t")
            new.leases.release("t")

        run(world, (old, owner), (new, resumer))
        assert lease_of(world, "t") is not None


def test_owner_whose_lease_was_vacuumed_is_fenced() -> None:
    world, _ = _world()
    with world:
        player = Player(world, "a")

        def body() -> None:
            player.leases.busy("t")
            player.leases.hold("t", "a1")
            player.environment.sleep(5)
            player.store.delete(keys.lease("t"))
            player.environment.sleep(5)
            assert player.leases.fenced("t")

        run(world, (player, body))


def test_lost_beat_of_an_earlier_attempt_does_not_fence_the_owner() -> None:
    world, plan = _world()
    with world:
        player = Player(world, "a")
        plan.fates["a", "create"] = Fate("lost", applies=(0.01,), error="timeout", gives_up=5.0, cut=30.0)

        def body() -> None:
            player.leases.busy("t")
            player.leases.hold("t", "a1")
            player.environment.sleep(20)
            player.leases.hold("t", "a2")
            player.environment.sleep(40)
            assert not player.leases.fenced("t")
            player.leases.release("t")

        run(world, (player, body))
        assert _beats(world)[-1] > 55


def test_new_attempt_of_the_same_owner_is_not_fenced() -> None:
    world, _ = _world()
    with world:
        player = Player(world, "a")

        def body() -> None:
            player.leases.busy("t")
            player.leases.hold("t", "a1")
            player.environment.sleep(5)
            player.leases.hold("t", "a2")
            player.environment.sleep(5)
            lease = lease_of(world, "t")
            assert lease is not None
            assert lease.attempt == "a2"
            assert not player.leases.fenced("t")
            player.leases.release("t")

        run(world, (player, body))


def _looks(pauses: list[float], owner: bool, signs: list[str] | None = None) -> list[bool]:
    """What an observer answers at looks after these pauses, while an owner beats or not."""
    world, _ = _world()
    answers: list[bool] = []
    with world:
        holder, observer = Player(world, "owner"), Player(world, "observer")

        def own() -> None:
            holder.leases.busy("t")
            holder.leases.hold("t", "a1")
            holder.environment.sleep(sum(pauses) + 5)
            holder.leases.release("t")

        def observe() -> None:
            for number, pause in enumerate(pauses):
                observer.environment.sleep(pause)
                answers.append(observer.leases.is_stale("t", signs[number] if signs else "put"))

        run(world, (observer, observe), *([(holder, own)] if owner else []))
    return answers


def test_owner_without_a_beat_is_stale_after_the_lease_time_and_not_before() -> None:
    assert _looks([0, 4, 4, 1.9, 0.2], owner=False) == [False, False, False, False, True]


def test_owner_that_beats_is_never_stale() -> None:
    assert not any(_looks([2.5] * 40, owner=True))


def test_one_long_pause_of_the_observer_condemns_nobody() -> None:
    assert _looks([0, 1000, 5.1], owner=False) == [False, False, True]


def test_other_sign_starts_the_time_anew() -> None:
    answers = _looks([0, 4, 4, 4, 4, 4], owner=False, signs=["p", "p", "q", "q", "q", "q"])
    assert answers == [False, False, False, False, False, True]


def test_forked_child_neither_waits_for_a_loop_nor_renews_what_its_parent_holds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, _ = _world()
    with world:
        player = Player(world, "a")
        loops: list[Callable[[], None]] = []
        monkeypatch.setattr(player.environment, "background", loops.append)
        player.leases.hold("parent", "a1")
        monkeypatch.setattr("os.getpid", lambda: -1)
        player.leases.hold("child", "a1")
        _, loop_of_the_child = loops
        run(world, (player, loop_of_the_child))
        assert _beats(world, "child")
        assert not _beats(world, "parent")
