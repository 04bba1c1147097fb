"""Many transactions queue on one table, in simulated worlds: who gets its turn, when and how often."""

from functools import partial

import pytest

from lakevilla.errors import Unavailable
from sim.faults import Calm, Storm
from sim.world import World
from tests.unit.markers.players import Player, Table, marker_at, run


class Turns:
    """Transactions that take turns; notes who had one, and who had it at the same time as another."""

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
