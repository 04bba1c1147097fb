"""A client that rewrites files of tables while all others work. No row may come or go by what it does."""

from collections.abc import Collection, Sequence

from lakevilla.model import Features
from sim.actors.session import Session
from sim.checkers.history import History, Operation
from sim.world.client import World
from sim.world.lakes import EngineOf, open_lake

TIMES = 6
FEATURES = (
    Features.R | Features.CT | Features.I,
    Features.R | Features.CT,
    Features.R,
    Features.CT | Features.I,
    Features.NONE,
)
SIZES = (60, 1_000_000)
"""The bytes of new files: room for a few rows, or for all."""


def start_optimizer(
    world: World, history: History, engine: EngineOf, tables: Sequence[str], exclusive: Collection[str] = ()
) -> None:
    """Optimize tables now and then; a client that dies is followed by a new one. Tables in `exclusive` are
    changed by slots only."""
    left = [TIMES]

    def begin() -> None:
        client = world.client(f"optimizer{left[0]}")
        lake = open_lake(client, engine)
        session = Session(client, lake, history)

        def body() -> None:
            while left[0] > 0:
                left[0] -= 1
                table, size = world.random.choice(tables), world.random.choice(SIZES)
                full = world.random.random() < 0.5
                lake._features = world.random.choice(FEATURES[:1] if table in exclusive else FEATURES)

                def run(op: Operation, table: str = table, size: int = size, full: bool = full) -> None:
                    op.result = lake.optimize(table, target_size=size, full=full).versions

                session.perform("", "optimize", table, None, run)
                client.environment.sleep(world.random.expovariate(1 / 0.3))

        def restart() -> None:
            if left[0] > 0:
                begin()

        client.process.on_death = lambda: world.scheduler.at(world.random.random() * 5, restart)
        world.start(client, body)

    begin()
