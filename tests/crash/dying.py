"""A client dies at each request of what it does, in each way, while others go on; on several tables."""

from collections.abc import Callable
from functools import partial

from sim.bucket import Bucket
from sim.checkers.history import History
from sim.crash import Point, Recorder
from sim.lakes import open_lake
from sim.rows import rows_engine
from sim.session import Session
from sim.world import Client, World

Act = Callable[[Session], None]


def act_and_die(
    image: Bucket, history: History, act: Act, rival: Act | None, look: Act, point: Point | None
) -> tuple[Recorder, Bucket]:
    """Let the act die at the point, if there is one; an observer looks later, and another one when a request
    that was on its way has arrived."""
    recorder = Recorder(point)
    with World(2, lambda _: recorder) as world:
        world.bucket.load(image)
        if rival is not None:
            recorder.rival = lambda: start(world, world.client("rival"), history, rival)
        start(world, world.client("actor"), history, act)
        for number, seconds in enumerate(recorder.looks):
            client = world.client(f"observer{number}")
            world.scheduler.at(seconds, partial(start, world, client, history, look))
        world.run()
        return recorder, world.bucket


def start(world: World, client: Client, history: History, work: Act) -> None:
    world.start(client, lambda: work(Session(client, open_lake(client, rows_engine), history)))


def failed_observers(history: History) -> list[str]:
    """Nothing that the dead client left may stop those who come after."""
    later = [op for op in history.operations if op.client.startswith("observer")]
    return [f"{op.client} cannot {op.action}: {op.error}" for op in later if op.outcome != "ok"]
