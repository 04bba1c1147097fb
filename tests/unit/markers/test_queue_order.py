"""Many transactions queue on one table, in simulated worlds: which one gets its turn, when and how often."""

from functools import partial

import pytest

from lakevilla.errors import Fenced, Unavailable
from sim.world.client import World
from sim.world.faults import Calm, Storm
from tests.unit.markers.players import Player, Table, marker_at, run


class Turns:
    """Transactions that take turns; records which ones had a turn, and which ones had it at the same time as
    another."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.table = Table()
        self.taken: list[int] = []
        self.inside = 0
        self.overlaps = 0

    def play(self, player: Player, txn: str) -> None:
        environment = player.environment
        environment.sleep(environment.random())
        queue = player.queue(txn)
        player.leases.busy(txn)
        try:
            queue.claim(latest=len(self.table.published), dead=self.table.dead())
            queue.wait(self.table.dead)
            assert queue.ticket is not None
            self.overlaps += self.inside > 0
            self.inside += 1
            environment.sleep(environment.random())
            self.inside -= 1
            self.taken.append(queue.ticket)
            self.table.published.append(queue.ticket)
            queue.free()
        finally:
            player.leases.release(txn)


@pytest.mark.parametrize("seed", range(25))
def test_transactions_that_queue_each_get_one_turn_alone_in_ticket_order(seed: int) -> None:
    with World(seed, Calm) as world:
        turns = Turns(world)
        players = [Player(world, f"client-{number}") for number in range(3)]
        run(
            world,
            *((p, lambda p=p, t=f"t{n}{p.client.name}": turns.play(p, t)) for p in players for n in range(4)),
        )
        assert len(turns.taken) == len(set(turns.taken)) == 12
        assert turns.taken == sorted(turns.taken)
        assert turns.overlaps == 0
        assert all(not marker_at(world, ticket).live for ticket in turns.taken)


@pytest.mark.parametrize("seed", range(40))
def test_queue_moves_on_past_crashed_paused_and_cut_off_clients(seed: int) -> None:
    with World(seed, lambda random: Storm(random, mean_gap=60, crashes=2)) as world:
        turns = Turns(world)
        gave_up: list[str] = []

        def body(player: Player) -> None:
            try:
                turns.play(player, f"t-{player.client.name}")
            except Unavailable:
                gave_up.append(player.client.name)

        players = [Player(world, f"client-{number}") for number in range(4)]
        run(world, *((player, partial(body, player)) for player in players))
        alive = {player.client.name for player in players if not player.client.process.dead}
        assert len(turns.taken) == len(set(turns.taken)) >= len(alive - set(gave_up))


def test_living_owner_is_never_freed_however_long_its_statement_runs() -> None:
    with World(1, Calm) as world:
        owner, waiter = Player(world, "owner"), Player(world, "waiter")
        table, ended = Table(), []

        def own() -> None:
            queue = owner.queue("long")
            owner.leases.busy("long")
            queue.claim(0, 0)
            owner.environment.sleep(500)
            ended.append(world.scheduler.now)
            queue.free()
            owner.leases.release("long")

        def wait() -> None:
            waiter.environment.sleep(2)
            queue = waiter.queue("t")
            queue.claim(0, 0)
            queue.wait(table.dead)
            assert ended, "the waiter did not overtake"
            assert queue.ticket == 2
            waiter.leases.release("t")

        run(world, (owner, own), (waiter, wait))


def test_waiter_that_waits_long_keeps_its_own_place() -> None:
    with World(1, Calm) as world:
        owner, second, third = (Player(world, name) for name in ("owner", "second", "third"))
        order: list[str] = []

        def play(player: Player, txn: str, begins: float, holds: float) -> None:
            player.environment.sleep(begins)
            queue = player.queue(txn)
            queue.claim(0, 0)
            queue.wait(lambda: 0)
            player.leases.busy(txn)
            player.environment.sleep(holds)
            order.append(f"{txn} {queue.ticket}")
            queue.free()
            player.leases.release(txn)

        run(
            world,
            (owner, lambda: play(owner, "first", 0, 300)),
            (second, lambda: play(second, "second", 1, 1)),
            (third, lambda: play(third, "third", 2, 1)),
        )
        assert order == ["first 1", "second 2", "third 3"]


def test_crashed_owner_is_freed_one_lease_time_after_its_last_beat() -> None:
    with World(1, Calm) as world:
        owner, waiter = Player(world, "owner"), Player(world, "waiter")

        def own() -> None:
            owner.leases.busy("dies")
            owner.queue("dies").claim(0, 0)
            owner.environment.sleep(1000)

        def wait() -> None:
            waiter.environment.sleep(1)
            queue = waiter.queue("t")
            queue.claim(0, 0)
            queue.wait(lambda: 0)
            waiter.leases.release("t")
            assert 106 < world.scheduler.now < 118

        world.scheduler.at(100, lambda: world.scheduler.kill(owner.client.process))
        run(world, (owner, own), (waiter, wait))
        marker = marker_at(world, 1)
        assert marker is not None
        assert not marker.live


def test_paused_owner_lets_the_queue_pass_and_then_queues_again() -> None:
    with World(1, Calm) as world:
        sleeper, other = Player(world, "sleeper"), Player(world, "other")
        order: list[tuple[str, int | None]] = []

        def sleep() -> None:
            sleeper.leases.busy("sleeper")
            queue = sleeper.queue("sleeper")
            queue.claim(0, 0)
            sleeper.client.process.frozen_until = world.scheduler.now + 100
            sleeper.environment.sleep(1)
            queue.wait(lambda: 0)
            order.append(("sleeper", queue.ticket))
            queue.free()
            sleeper.leases.release("sleeper")

        def pass_by() -> None:
            other.environment.sleep(1)
            queue = other.queue("other")
            queue.claim(0, 0)
            queue.wait(lambda: 0)
            other.leases.busy("other")
            other.environment.sleep(150)
            order.append(("other", queue.ticket))
            queue.free()
            other.leases.release("other")

        run(world, (sleeper, sleep), (other, pass_by))
        assert order == [("other", 2), ("sleeper", 3)]


def test_owner_that_was_resumed_elsewhere_stops_waiting_as_fenced() -> None:
    with World(1, Calm) as world:
        ahead, old, new = (Player(world, name) for name in ("ahead", "old", "new"))
        turns: list[str] = []

        def hold_up() -> None:
            ahead.leases.busy("ahead")
            queue = ahead.queue("ahead")
            queue.claim(0, 0)
            ahead.environment.sleep(60)
            queue.free()
            ahead.leases.release("ahead")

        def lose() -> None:
            old.environment.sleep(1)
            queue = old.queue("t", "a1")
            queue.claim(0, 0)
            with pytest.raises(Fenced, match="another client resumed transaction t"):
                queue.wait(lambda: 0)
            queue.free()
            old.leases.release("t")

        def resume() -> None:
            new.environment.sleep(10)
            new.leases.take_over("t", "a2")
            queue = new.queue("t", "a2")
            queue.claim(0, 0)
            queue.wait(lambda: 0)
            turns.append(f"a2 at {queue.ticket}")
            new.leases.release("t")

        run(world, (ahead, hold_up), (old, lose), (new, resume))
        assert turns == ["a2 at 2"]


def test_owner_that_was_resumed_elsewhere_is_fenced_also_while_its_ticket_is_its_own() -> None:
    with World(1, Calm) as world:
        ahead, old, new = (Player(world, name) for name in ("ahead", "old", "new"))

        def lose() -> None:
            ahead.queue("ahead").claim(0, 0)
            queue = old.queue("t", "a1")
            queue.claim(0, 0)
            with pytest.raises(Fenced):
                queue.wait(lambda: 0)
            assert world.scheduler.now < 5

        def resume() -> None:
            new.environment.sleep(1)
            new.leases.take_over("t", "a2")
            new.leases.release("t")

        run(world, (old, lose), (new, resume))
