"""A client dies at each request of a commit on two or three tables, in each way: it is there, or nowhere."""

from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import pytest

from lakevilla.model import Features
from sim.actors import table_changes
from sim.actors.session import Session
from sim.checkers.history import History, Operation
from sim.checkers.isolation.cycles import Append
from sim.checkers.lake.published import check_published
from sim.checkers.tables.torn import Torn
from sim.legacy.client import LegacyWriter
from sim.legacy.store import encode_json
from sim.planted.tables import BUGS
from sim.suites import tables
from sim.suites.crash import Point, Recorder
from sim.world.bucket import Bucket
from sim.world.client import World
from sim.world.faults import Calm
from sim.world.formats import FORMATS, PLAIN, Formats
from sim.world.row_engine import rows_engine
from tests.crash.chosen_deaths import chosen
from tests.crash.deaths import Act, Left, act_and_die, failed_observers, problems_of_deaths, start
from tests.support.extent import in_turn

BOTH = Features.R | Features.CT
OLD = "n1"
"""A table that is there before anybody dies."""


def transfer(*plan: tuple[str, int, bool], features: Features = BOTH) -> Act:
    """Append one value to lists of these tables; a third True reads all lists before that."""

    def act(session: Session) -> None:
        value = len(session.history.operations) + 1

        def run(op: Operation) -> None:
            session.lake.run(partial(tables._work, op, value, list(plan), features), 50, features)

        session.perform("lists", "multi", "", value, run)

    return act


def defining(plan: table_changes.Plan) -> Act:
    """Make or drop tables and append a value to a list, in one transaction."""
    return lambda session: table_changes.transact(session, plan, "right", 0, BOTH, again=True)


def settler(session: Session) -> None:
    """A table in the place `s0`, by a client that knows nothing of us."""
    table_changes.place_foreign_table(session.client, "s0")


def outsider(session: Session, table: str = "right") -> None:
    """A row that tells nothing of itself, by a client that knows nothing of us: it concerns every update."""
    writer = LegacyWriter(session.client, session.history, encode_json)
    writer.append(table, table, [{"k": tables.STRANGER, "items": ""}], statistics=False)


TWO = transfer(("left", 0, False), ("right", 1, False))
THREE = transfer(("left", 0, False), ("right", 1, False), ("up", 2, False))
READING = transfer(("left", 0, True), ("right", 1, True))

SCENARIOS: dict[str, tuple[Act, Act | None]] = {
    "two tables": (TWO, None),
    "two tables with reads": (READING, None),
    "one table with reads of another": (transfer(("left", 0, True)), None),
    "against a rival": (TWO, transfer(("right", 1, False), ("left", 2, False))),
    "against an outside writer": (TWO, outsider),
    "against a rival on other rows": (TWO, transfer(("right", 2, False), ("left", 1, False))),
    "against a writer of other rows, without a slot": (
        TWO,
        transfer(("right", 2, False), features=Features.R),
    ),
    "make two tables": (defining(table_changes.make("n*", "s0")), None),
    "make a table against a rival": (defining(table_changes.make("s0")), defining(table_changes.make("s0"))),
    "make a table against an outside writer": (defining(table_changes.make("n*")), outsider),
    "make two tables against an outsider in the place": (defining(table_changes.make("n*", "s0")), settler),
    "drop a table": (defining(table_changes.drop(OLD)), None),
    "drop a table against an outside writer": (defining(table_changes.drop(OLD)), outsider),
    "replace a table against a rival": (
        defining(table_changes.drop(OLD, again=True)),
        defining(table_changes.drop(OLD)),
    ),
    "replace a table in its log": (defining(table_changes.replace(OLD)), None),
    "replace a table in its log against an outside writer": (defining(table_changes.replace(OLD)), outsider),
    "make a view": (defining(table_changes.set_view("v0", False)), None),
    "make a view against a rival": (
        defining(table_changes.set_view("v0", False)),
        defining(table_changes.set_view("v0", False)),
    ),
    "three tables against an outside writer": (THREE, outsider),
    "three tables against a rival": (THREE, transfer(("up", 2, False), ("left", 1, False))),
}


def _play(name: str, point: Point | None, formats: Formats) -> tuple[Recorder, Left]:
    act, rival = SCENARIOS[name]
    final, tags = {}, {}
    image, history = _prepared(formats)

    def look(session: Session) -> None:
        TWO(session)
        for table in tables.TABLES:
            for key, text in session.lake.read(table).collect():
                if key != tables.STRANGER:
                    final[f"{table}/{key}"] = tables.items(text)
        tags.clear()
        tags.update(table_changes.visible(session.lake))

    recorder, bucket = act_and_die(image, history, act, rival, look, point, formats)
    violations = check_published(bucket.writes) + failed_observers(history)
    torn = Torn(bucket.writes)
    violations += tables.judge(history, final, torn) + table_changes.judge(history, final, tags, torn)
    return recorder, Left(bucket, violations)


def _prepared(formats: Formats) -> tuple[Bucket, History]:
    """The lists and the table `OLD`, and the history of who made it."""
    image, made = _image(formats)
    return image, History([replace(op, invoked=-1.0, completed=0.0) for op in made.operations])


@cache
def _image(formats: Formats) -> tuple[Bucket, History]:
    history = History()
    with World(1, Calm, formats=formats) as world:
        world.bucket.load(tables.image(rows_engine, formats))
        start(world, world.client("maker"), history, defining(table_changes.make("n*")))
        world.run()
        return world.bucket, history


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("name", "formats"), in_turn({name: [*FORMATS] for name in SCENARIOS}))
def test_death_at_any_request_of_a_commit_on_several_tables_leaves_all_or_nothing(
    name: str, formats: str, tmp_path: Path
) -> None:
    kinds = FORMATS[formats]
    recorder, left = _play(name, None, kinds)
    assert left.violations == []
    found = list(recorder.points)
    assert {"create", "replace", "put", "get"} <= {point.kind for point in found}
    assert (
        problems_of_deaths(found, lambda at: _play(name, at, kinds)[1], tmp_path, sample=kinds != PLAIN) == []
    )


@pytest.mark.parametrize("formats", ["iceberg", "mixed"])
def test_sample_finds_a_bug_that_only_a_death_between_two_tables_shows(formats: str) -> None:
    name, kinds = "three tables against an outside writer", FORMATS[formats]
    points = chosen(_play(name, None, kinds)[0].points, sample=True)
    with BUGS["identity-by-put"]():
        assert _play(name, None, kinds)[1].violations == []
        assert any(_play(name, point, kinds)[1].violations for point in points)


def test_judge_sees_half_of_a_commit() -> None:
    history = History()
    op = history.begin("c", "lists", "multi", "", 1, 0.0)
    op.outcome, op.result = "unknown", [Append("left/0", 1), Append("right/0", 1)]
    assert any("by half" in found for found in tables.judge(history, {"left/0": (1,), "right/0": ()}, Torn()))
