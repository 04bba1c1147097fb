"""A client dies at each request of what it does, in each way, while others go on; on several tables."""

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from sim.actors.session import Session
from sim.checkers.history import History
from sim.checkers.tables.cataloged import judged
from sim.suites.crash import Point, Recorder
from sim.world.bucket import Bucket
from sim.world.client import Client, World
from sim.world.formats import Formats
from sim.world.lakes import open_lake
from sim.world.row_engine import rows_engine
from tests.crash.chosen_deaths import chosen, opened
from tests.crash.other_readers import differing_tables

Act = Callable[[Session], None]


class Left(NamedTuple):
    """What is there after a death and after others went on, and what is wrong with it."""

    bucket: Bucket
    violations: list[str]


def problems_of_deaths(
    points: Iterable[Point],
    die_at: Callable[[Point], Left],
    folder: Path,
    *,
    sample: bool,
    rows: bool = False,
) -> list[str]:
    """Die at all of the points, or at a sample; after some deaths other readers open the tables too, in this
    folder, and compare `rows` if they can read them."""
    problems = []
    tried = chosen(points, sample)
    assert tried
    looked_at = opened(tried, sample)
    for point in tried:
        bucket, found = die_at(point)
        if point in looked_at:
            found = found + differing_tables(bucket.contents(), folder / str(point), rows)
        problems += [f"{point} {point.key}: {what}" for what in found]
    return problems


def act_and_die(
    image: Bucket,
    history: History,
    act: Act,
    rival: Act | None,
    look: Act,
    point: Point | None,
    formats: Formats,
    since: float = 0.0,
) -> tuple[Recorder, Bucket]:
    """Let the act die at the point, if there is one; an observer looks later, and another one when a request
    that was on its way has arrived. All of it begins so many seconds `since` the image was made."""
    recorder = Recorder(point)
    with World(2, lambda _: recorder, formats=formats) as world:
        world.bucket.load(image)
        if rival is not None:
            recorder.rival = lambda: start(world, world.client("rival"), history, rival)
        world.scheduler.at(since, partial(start, world, world.client("actor"), history, act))
        for number, seconds in enumerate(recorder.looks):
            client = world.client(f"observer{number}")
            world.scheduler.at(since + seconds, partial(start, world, client, history, look))
        world.run()
        return recorder, judged(world)


def start(world: World, client: Client, history: History, work: Act) -> None:
    world.start(client, lambda: work(Session(client, open_lake(client, rows_engine), history)))


def failed_observers(history: History) -> list[str]:
    """Nothing that the dead client left may stop those who come after."""
    later = [op for op in history.operations if op.client.startswith("observer")]
    return [f"{op.client} cannot {op.action}: {op.error}" for op in later if op.outcome != "ok"]
