"""A client dies at each request of a commit on two or three tables, in each way: it is there, or nowhere."""

from dataclasses import replace
from functools import cache, partial

import pytest

from lakevilla.model import Features
from sim import making, tables
from sim.bucket import Bucket
from sim.checkers.cycles import Append
from sim.checkers.history import History, Operation
from sim.checkers.published import check_published
from sim.checkers.torn import Torn
from sim.crash import Point, Recorder
from sim.faults import Calm
from sim.legacy import LegacyWriter
from sim.legacy_store import encode_json
from sim.rows import rows_engine
from sim.session import Session
from sim.world import World
from tests.crash.dying import Act, act_and_die, failed_observers, start

BOTH = Features.R | Features.CT
OLD = "n1"
"""A table that is there before anybody dies."""


def transfer(*plan: tuple[str, int, bool]) -> Act:
    """Append one value to lists of these tables; a third True reads all lists before that."""

    def act(session: Session) -> None:
        value = len(session.history.operations) + 1

        def run(op: Operation) -> None:
            session.lake.run(partial(tables._work, op, value, list(plan), BOTH), 50, BOTH)

        session.perform("lists", "multi", "", value, run)

    return act


def defining(plan: making.Plan) -> Act:
    """Make or drop tables and append a value to a list, in one transaction."""
    return lambda session: making.transact(session, plan, "right", 0, BOTH, again=True)


def settler(session: Session) -> None:
    """A table in the place `s0`, by a client that knows nothing of us."""
    making.place_foreign_table(session.client, "s0")


def outsider(session: Session) -> None:
    """A row that tells nothing of itself, by a client that knows nothing of us: it concerns every update."""
    writer = LegacyWriter(session.client, session.history, encode_json)
    writer.append("right", "right", [{"k": tables.STRANGER, "items": ""}], statistics=False)


TWO = transfer(("left", 0, False), ("right", 1, False))
THREE = transfer(("left", 0, False), ("right", 1, False), ("up", 2, False))
READING = transfer(("left", 0, True), ("right", 1, True))

SCENARIOS: dict[str, tuple[Act, Act | None]] = {
    "two tables": (TWO, None),
    "two tables with reads": (READING, None),
    "one table with reads of another": (transfer(("left", 0, True)), None),
    "against a rival": (TWO, transfer(("right", 1, False), ("left", 2, False))),
    "against an outside writer": (TWO, outsider),
    "make two tables": (defining(making.make("n*", "s0")), None),
    "make a table against a rival": (defining(making.make("s0")), defining(making.make("s0"))),
    "make a table against an outside writer": (defining(making.make("n*")), outsider),
    "make two tables against an outsider in the place": (defining(making.make("n*", "s0")), settler),
    "drop a table": (defining(making.drop(OLD)), None),
    "drop a table against an outside writer": (defining(making.drop(OLD)), outsider),
    "replace a table against a rival": (defining(making.drop(OLD, again=True)), defining(making.drop(OLD))),
    "three tables against an outside writer": (THREE, outsider),
    "three tables against a rival": (THREE, transfer(("up", 2, False), ("left", 1, False))),
}


def _play(name: str, point: Point | None) -> tuple[Recorder, list[str]]:
    act, rival = SCENARIOS[name]
    final, tags = {}, {}
    image, history = _prepared()

    def look(session: Session) -> None:
        TWO(session)
        for table in tables.TABLES:
            for key, text in session.lake.read(table).collect():
                if key != tables.STRANGER:
                    final[f"{table}/{key}"] = tables.items(text)
        tags.clear()
        tags.update(making.visible(session.lake))

    recorder, bucket = act_and_die(image, history, act, rival, look, point)
    violations = check_published(bucket.writes) + failed_observers(history)
    torn = Torn(bucket.writes)
    violations += tables.judge(history, final, torn) + making.judge(history, final, tags, torn)
    return recorder, violations


def _prepared() -> tuple[Bucket, History]:
    """The lists and the table `OLD`, and the history of who made it."""
    image, made = _image()
    return image, History([replace(op, invoked=-1.0, completed=0.0) for op in made.operations])


@cache
def _image() -> tuple[Bucket, History]:
    history = History()
    with World(1, Calm) as world:
        world.bucket.load(tables.image(rows_engine))
        start(world, world.client("maker"), history, defining(making.make("n*")))
        world.run()
        return world.bucket, history


def _points(name: str) -> list[Point]:
    recorder, violations = _play(name, None)
    assert violations == []
    return list(recorder.points)


@pytest.mark.parametrize("name", SCENARIOS)
def test_death_at_any_request_of_a_commit_on_several_tables_leaves_all_or_nothing(name: str) -> None:
    found = _points(name)
    assert {"create", "replace", "put", "get"} <= {point.kind for point in found}
    problems = [f"{point} {point.key}: {what}" for point in found for what in _play(name, point)[1]]
    assert problems == []


def test_judge_sees_half_of_a_commit() -> None:
    history = History()
    op = history.begin("c", "lists", "multi", "", 1, 0.0)
    op.outcome, op.result = "unknown", [Append("left/0", 1), Append("right/0", 1)]
    assert any("by half" in found for found in tables.judge(history, {"left/0": (1,), "right/0": ()}, Torn()))
