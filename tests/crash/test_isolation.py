"""A client dies at each request of a transaction with isolation: readers see all of it at once, or nothing.

Also while it adopts what others wrote, makes the lake's first entries, or takes back what it had published.
"""

from functools import cache
from pathlib import Path

import pytest

from sim import isolated, isolation, making
from sim.bucket import Bucket
from sim.checkers.history import History
from sim.checkers.looks import INSERTED
from sim.checkers.published import check_published
from sim.crash import Point, Recorder
from sim.faults import Calm
from sim.formats import FORMATS, Formats
from sim.isolated import ALL, Doing, I, Plan, R, Wish
from sim.judge_isolation import Final, judge
from sim.legacy import LegacyWriter
from sim.legacy_store import encode_json
from sim.rows import rows_engine
from sim.session import Session
from sim.world import World
from tests.crash.dying import Act, Left, act_and_die, failed_observers, problems_of_deaths, start

PICKS = {
    "I": Wish(I, "serializable", again=True),
    "R,CT,I": Wish(ALL, "serializable", again=False),
    "R,I snapshot": Wish(R | I, "snapshot", again=True),
}


def two(doing: Doing) -> None:
    """A transfer, and an insert beside it."""
    doing.append("left", 0, -5)
    doing.append("right", 1, 5)
    doing.insert("up")


def after_looks(doing: Doing) -> None:
    doing.read("up")
    doing.read("left", 0)
    doing.append("right", 1)


def one(doing: Doing) -> None:
    doing.append("left", 0)


def look_at_all(doing: Doing) -> None:
    for table in isolation.TABLES:
        doing.read(table)


def late_table(doing: Doing) -> None:
    """The lake's log does not know the second table yet when the first is read."""
    doing.read("left")
    doing.append("found", 0)
    doing.append("left", 1)


def _act(wish: Wish, plan: Plan) -> Act:
    def act(session: Session) -> None:
        isolated.transact(session, wish, plan, "writer")

    return act


def outside(table: str, *, statistics: bool) -> Act:
    """A row by a client that knows nothing of us; without statistics it concerns every update."""

    def act(session: Session) -> None:
        value = len(session.history.operations) + 1
        rows = [{"k": INSERTED + value, "v": 0, "items": f",{value}"}]
        LegacyWriter(session.client, session.history, encode_json).append(
            table, table, rows, statistics=statistics
        )

    return act


PLANS: dict[str, tuple[Plan, Act | None]] = {
    "three tables": (two, None),
    "one table": (one, None),
    "reads of others": (after_looks, None),
    "against a rival": (two, _act(PICKS["R,CT,I"], two)),
    "reads against a rival": (after_looks, _act(PICKS["R,CT,I"], one)),
    "against an outside writer in the way": (two, outside("right", statistics=False)),
    "against an outside writer beside it": (two, outside("right", statistics=True)),
    "table that the log does not know": (late_table, None),
    "look": (look_at_all, None),
}


def making_tables(*names: str) -> Act:
    return lambda session: making.transact(session, making.make(*names), "left", 0, ALL, again=True)


def squat(session: Session) -> None:
    """A table in the place `s0`, by a client that knows nothing of us."""
    making.place_foreign_table(session.client, "s0")


BEFORE: dict[str, tuple[bool, Act | None]] = {
    "": (False, None),
    " in a lake without a log": (True, None),
    " after an outside writer": (False, outside("left", statistics=True)),
}

# All plans with all features; where another set of features goes another way, with that too.
FEWER = {
    "I": ("three tables", "against a rival", "against an outside writer in the way"),
    "R,I snapshot": ("against a rival",),
}
PREPARED = ("three tables", "reads of others", "look")
SCENARIOS: dict[str, tuple[Act, Act | None, bool, Act | None]] = {
    f"{pick}, {name}{before}": (_act(wish, plan), rival, *prepared)
    for pick, wish in PICKS.items()
    for name, (plan, rival) in PLANS.items()
    for before, prepared in BEFORE.items()
    if (name in FEWER[pick] and before == "" if pick in FEWER else before == "" or name in PREPARED)
} | {
    "sync after an outside writer": (isolated.sync, None, *BEFORE[" after an outside writer"]),
    "R,CT,I, make two tables": (making_tables("n*", "s0"), None, False, None),
    "R,CT,I, make two tables against an outsider in the place": (
        making_tables("n*", "s0"),
        squat,
        False,
        None,
    ),
}


def _play(name: str, point: Point | None, formats: Formats) -> tuple[Recorder, Left]:
    act, rival, bare, prepare = SCENARIOS[name]
    image, made = _image(bare, prepare, formats)
    history, final = History(list(made.operations)), Final()

    def look(session: Session) -> None:
        session.lake.sync()
        final.operations.append(isolated.transact(session, PICKS["R,CT,I"], two, "writer"))
        final.operations.append(isolated.transact(session, PICKS["I"], look_at_all, "reader"))
        final.looks.clear()
        for table in isolation.TABLES:
            final.see(table, session.lake.read(table).collect(), "plain")
        final.tags.clear()
        final.tags.update(making.visible(session.lake))

    recorder, bucket = act_and_die(image, history, act, rival, look, point, formats)
    violations = check_published(bucket.writes) + failed_observers(history)
    return recorder, Left(bucket, violations + judge(bucket, history, final))


@cache
def _image(bare: bool, prepare: Act | None, formats: Formats) -> tuple[Bucket, History]:
    history = History()
    with World(1, Calm, formats=formats) as world:
        world.bucket.load(isolation.image(rows_engine, bare, formats))
        if prepare is not None:
            start(world, world.client("maker"), history, prepare)
        world.run()
    for op in history.operations:
        op.invoked, op.completed = -1.0, 0.0
    return world.bucket, history


@pytest.mark.parametrize("formats", FORMATS)
@pytest.mark.parametrize("name", SCENARIOS)
def test_death_at_any_request_of_a_transaction_with_isolation_leaves_all_or_nothing(
    name: str, formats: str, tmp_path: Path
) -> None:
    kinds = FORMATS[formats]
    recorder, left = _play(name, None, kinds)
    assert left.violations == []
    found = list(recorder.points)
    assert {"create", "get"} <= {point.kind for point in found} or "look" in name
    assert problems_of_deaths(found, lambda at: _play(name, at, kinds)[1], formats, tmp_path) == []
