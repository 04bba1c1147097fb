"""A client dies at each request of a transaction with isolation: readers see all of it at once, or nothing.

Also while it adopts what others wrote, makes the lake's first entries, or rolls back what it had published.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from unittest.mock import patch

import pytest

from lakevilla.maintenance.instants import SLOTS_KEPT
from sim.actors import isolated, table_changes
from sim.actors.isolated import ALL, Doing, I, Plan, R, Wish
from sim.actors.session import Session
from sim.checkers.history import History, Operation
from sim.checkers.isolation.looks import INSERTED
from sim.checkers.lake.published import check_published
from sim.legacy.client import LegacyWriter
from sim.legacy.store import encode_json
from sim.suites import isolation
from sim.suites.crash import Point, Recorder
from sim.suites.isolation_verdict import Final, judge
from sim.world.bucket import Bucket
from sim.world.client import World
from sim.world.faults import Calm
from sim.world.formats import FORMATS, PLAIN, Formats
from sim.world.row_engine import rows_engine
from sim.world.sites import site
from tests.crash.deaths import Act, Left, act_and_die, failed_observers, problems_of_deaths, start
from tests.support.extent import in_turn

PICKS = {
    "I": Wish(I, "serializable", again=True),
    "R,CT,I": Wish(ALL, "serializable", again=False),
    "R,I snapshot": Wish(R | I, "snapshot", again=True),
}


def two(doing: Doing) -> None:
    """A transfer, and an insert into another table."""
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
    "against an outside writer that does not conflict": (two, outside("right", statistics=True)),
    "table that the log does not know": (late_table, None),
    "look": (look_at_all, None),
}


def making_tables(*names: str) -> Act:
    return lambda session: table_changes.transact(
        session, table_changes.make(*names), "left", 0, ALL, again=True
    )


def squat(session: Session) -> None:
    """A table in the place `s0`, by a client that knows nothing of us."""
    table_changes.place_foreign_table(session.client, "s0")


DAYS = 86_400.0
LONG_AGO = 9 * DAYS
"""Longer than files and instants are kept."""


def vacuum(session: Session) -> None:
    session.lake.vacuum(dry_run=False)


def optimize(session: Session) -> None:
    def run(op: Operation) -> None:
        op.result = session.lake.optimize("left", full=True).versions

    session.perform("", "optimize", "left", None, run)


def transfers(session: Session) -> None:
    """Leaves more slots than vacuum keeps however old they are, and files that the log has removed."""
    for _ in range(SLOTS_KEPT):
        isolated.transact(session, PICKS["R,CT,I"], one, "writer")


@contextmanager
def head_rolls() -> Iterator[None]:
    """With nearly every entry; what it is built on lies outside of it, as in a lake of many tables."""
    with (
        patch("lakevilla.versions.head_encoding.STEPS_KEPT", 1),
        patch("lakevilla.versions.head_encoding.INLINE_BYTES", 0),
    ):
        yield


@dataclass(frozen=True)
class Case:
    """What is cut off (`act`) and what comes between (`rival`), in a lake that may be `bare`, so long `since`
    what was `prepare`d, `within` a context. What `vacuums` deletes files on purpose, one like the other."""

    act: Act
    rival: Act | None = None
    bare: bool = False
    prepare: Act | None = None
    since: float = 0.0
    within: Callable[[], AbstractContextManager[object]] = nullcontext
    vacuums: bool = False
    formats: tuple[str, ...] = ("delta", "iceberg", "mixed")


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
ROLLING, VACUUM = "R,CT,I, three tables while HEAD rolls", "vacuum that moves the horizon"
PREPARED = ("three tables", "reads of others", "look")
SCENARIOS: dict[str, Case] = {
    f"{pick}, {name}{before}": Case(_act(wish, plan), rival, *prepared)
    for pick, wish in PICKS.items()
    for name, (plan, rival) in PLANS.items()
    for before, prepared in BEFORE.items()
    if (name in FEWER[pick] and before == "" if pick in FEWER else before == "" or name in PREPARED)
} | {
    "sync after an outside writer": Case(isolated.sync, None, *BEFORE[" after an outside writer"]),
    "R,CT,I, make two tables": Case(making_tables("n*", "s0")),
    "R,CT,I, make two tables against an outsider in the place": Case(making_tables("n*", "s0"), squat),
    "R,CT,I, optimize": Case(optimize),
    "R,CT,I, optimize against a rival": Case(optimize, _act(PICKS["R,CT,I"], two)),
    "R,CT,I, reads of others against optimize": Case(_act(PICKS["R,CT,I"], after_looks), optimize),
    ROLLING: Case(_act(PICKS["R,CT,I"], two), within=head_rolls, formats=("delta",)),
    VACUUM: Case(vacuum, prepare=transfers, since=LONG_AGO, vacuums=True),
}


def _play(name: str, point: Point | None, formats: Formats) -> tuple[Recorder, Left]:
    case = SCENARIOS[name]
    image, made = _image(case.bare, case.prepare, formats)
    history, final = History(list(made.operations)), Final()

    def look(session: Session) -> None:
        session.lake.sync()
        final.operations.append(isolated.transact(session, PICKS["R,CT,I"], two, "writer"))
        final.operations.append(isolated.transact(session, PICKS["I"], look_at_all, "reader"))
        final.looks.clear()
        for table in isolation.TABLES:
            final.see(table, session.lake.read(table).collect(), "plain")
        final.tags.clear()
        final.tags.update(table_changes.visible(session.lake))

    with case.within():
        recorder, bucket = act_and_die(image, history, case.act, case.rival, look, point, formats, case.since)
    writes = [write for write in bucket.writes if write.data is not None or not case.vacuums]
    violations = check_published(writes) + failed_observers(history)
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


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("name", "formats"), in_turn({name: case.formats for name, case in SCENARIOS.items()})
)
def test_death_at_any_request_of_a_transaction_with_isolation_leaves_all_or_nothing(
    name: str, formats: str, tmp_path: Path
) -> None:
    kinds = FORMATS[formats]
    recorder, left = _play(name, None, kinds)
    assert left.violations == []
    found = list(recorder.points)
    assert {"create", "get"} <= {point.kind for point in found} or "look" in name
    sample = kinds != PLAIN or SCENARIOS[name].vacuums
    assert problems_of_deaths(found, lambda at: _play(name, at, kinds)[1], tmp_path, sample=sample) == []


@pytest.mark.parametrize(
    ("name", "formats", "reached"),
    [
        (ROLLING, "delta", {"put past HEAD"}),
        (VACUUM, "delta", {"create slot", "delete slot", "delete data"}),
        (VACUUM, "iceberg", {"create slot", "create metadata", "delete manifest list", "delete data"}),
    ],
)
def test_scenario_reaches_what_it_is_there_for(name: str, formats: str, reached: set[str]) -> None:
    """HEAD rolls, instants of the lake expire, and snapshots of an Iceberg table."""
    recorder, _ = _play(name, None, FORMATS[formats])
    assert reached <= {site(*request) for request in recorder.requests}
