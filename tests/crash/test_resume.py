"""A client dies at each request while it resumes a transaction that a slot decides, and others resume it: it
is committed once, as a whole, or not at all."""

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import pyarrow as pa
import pytest

from lakevilla.model import Features
from lakevilla.transaction.transaction import Transaction
from sim.actors.session import Session
from sim.checkers.history import History
from sim.checkers.isolation.cycles import Append
from sim.checkers.lake.published import check_published
from sim.checkers.relays import RELAY
from sim.checkers.tables.torn import Torn
from sim.suites import tables
from sim.suites.crash import Point, Recorder
from sim.world.bucket import Bucket
from sim.world.client import World
from sim.world.faults import Calm
from sim.world.formats import FORMATS, PLAIN, Formats
from sim.world.row_engine import rows_engine
from tests.crash.deaths import Act, Left, act_and_die, failed_observers, problems_of_deaths, start
from tests.crash.test_many_tables import TWO, outsider, transfer
from tests.support.extent import in_turn

R, CT, I = Features.R, Features.CT, Features.I  # noqa: E741 - as the features are called
VALUE = 300_000
MORE = "left/2"
"""The list to which a client that resumes the transaction appends, unless the one before has stored that."""
MADE = "made"
"""A table that the transaction makes, if it makes one."""


@dataclass(frozen=True)
class Case:
    """A transaction that its client left, and what another client does while a third one resumes it."""

    features: Features
    places: tuple[str, ...] = ("left/0", "right/1")
    isolation: str = "serializable"
    makes: bool = False
    rival: Act | None = None


def _append(tx: Transaction, place: str) -> None:
    table, key = place.split("/")
    tx.sql(f"UPDATE {table} SET items = concat(items, ',{VALUE}') WHERE k = {key}")


def leave(case: Case) -> Act:
    def act(session: Session) -> None:
        op = session.begin("lists", RELAY, "", VALUE)
        tx = session.lake.transaction(case.features, isolation=case.isolation)
        op.txn, op.result = tx.id, [Append(place, VALUE) for place in case.places]
        for place in case.places:
            _append(tx, place)
            session.client.environment.sleep(1.1)
        if case.makes:
            tx.create(MADE, pa.schema([("v", pa.int64())]), format=session.client.formats.of(MADE))
            tx.append(MADE, [{"v": 1}])
        session.client.environment.sleep(1.1)
        op.key = tx.statements
        session.end(op, "unknown", "forgotten")

    return act


def resume(session: Session) -> None:
    """Resume what was left: one more append, and the commit."""
    left = next(op for op in session.history.operations if op.action == RELAY)
    op = session.begin("lists", RELAY, "", VALUE)
    op.invoked = left.invoked

    def run() -> None:
        assert left.txn is not None
        op.txn = left.txn
        with session.lake.resume(left.txn) as tx:
            op.result = [*left.result, Append(MORE, VALUE)]
            if tx.statements == left.key:
                _append(tx, MORE)

    session.conclude(run, lambda: op)


CASES: dict[str, Case] = {
    "R,CT": Case(R | CT),
    "R,CT on one table": Case(R | CT, ("left/0", "left/1")),
    "R,CT,I": Case(R | CT | I),
    "R,I snapshot": Case(R | I, isolation="snapshot"),
    "R,CT,I that makes a table": Case(R | CT | I, makes=True),
    "R,CT,I against a rival": Case(R | CT | I, rival=transfer(("right", 1, False))),
    "R,CT,I against an outside writer": Case(R | CT | I, rival=outsider),
    "R,CT,I against another that resumes it": Case(R | CT | I, rival=resume),
    "R,CT against another that resumes it": Case(R | CT, ("left/0", "left/1"), rival=resume),
}


def _play(name: str, point: Point | None, formats: Formats) -> tuple[Recorder, Left]:
    case = CASES[name]
    final: dict[str, tuple[int, ...]] = {}
    made: list[bool] = []
    image, before = _image(name, formats)
    history = History([replace(op, invoked=-1.0, completed=0.0) for op in before.operations])

    def look(session: Session) -> None:
        resume(session)
        TWO(session)
        for table in tables.TABLES:
            for key, text in session.lake.read(table).collect():
                if key != tables.STRANGER:
                    final[f"{table}/{key}"] = tables.items(text)
        made[:] = [MADE in session.lake.tables() and session.lake.read(MADE).count() == 1]

    recorder, bucket = act_and_die(image, history, resume, case.rival, look, point, formats)
    violations = check_published(bucket.writes) + failed_observers(_without_relays(history))
    violations += tables.judge(history, final, Torn(bucket.writes))
    committed = any(VALUE in values for values in final.values())
    if not committed and point is None:
        # A client that died may have stored a statement whose files had not arrived: then it is lost.
        violations.append("no client committed what was left")
    if case.makes and made != [committed]:
        violations.append(f"the table is there: {made}, and the transaction is committed: {committed}")
    return recorder, Left(bucket, violations)


def _without_relays(history: History) -> History:
    """An observer that finds nothing left to resume has not failed."""
    return History([op for op in history.operations if op.action != RELAY])


@cache
def _image(name: str, formats: Formats) -> tuple[Bucket, History]:
    history = History()
    with World(1, Calm, formats=formats) as world:
        world.bucket.load(tables.image(rows_engine, formats))
        start(world, world.client("maker"), history, leave(CASES[name]))
        world.run()
        return world.bucket, history


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("name", "formats"), in_turn({name: [*FORMATS] for name in CASES}))
def test_death_at_any_request_of_a_resume_leaves_one_commit(name: str, formats: str, tmp_path: Path) -> None:
    kinds = FORMATS[formats]
    recorder, left = _play(name, None, kinds)
    assert left.violations == []
    found = list(recorder.points)
    assert {"create", "get", "list"} <= {point.kind for point in found}
    assert (
        problems_of_deaths(found, lambda at: _play(name, at, kinds)[1], tmp_path, sample=kinds != PLAIN) == []
    )
