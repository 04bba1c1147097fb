"""A client dies at each request of a commit on two tables of which an outside writer is in the way, while a
transaction with R waits to change one of them: it settles what it meets, and tears nothing."""

from functools import partial

import pytest

from lakevilla.model import Features
from sim.actors.session import Session
from sim.checkers.history import History
from sim.checkers.lake.published import check_published
from sim.checkers.tables.torn import Torn
from sim.planted.tables import NARROW
from sim.suites import tables
from sim.suites.crash import Point, Recorder
from sim.world.bucket import Bucket
from sim.world.client import World
from sim.world.formats import FORMATS, Formats
from sim.world.row_engine import rows_engine
from tests.crash.chosen_deaths import chosen
from tests.crash.deaths import failed_observers, start
from tests.crash.test_many_tables import TWO, outsider

HALF_DONE_SECONDS = 200.0
"""Long after the death, and before anybody else looks."""


def wait_and_alter(session: Session) -> None:
    """Changes the table's definition, which is in the way of every inverse: begun before the commit that is
    cut off, with a ticket, and committed after it."""
    with session.lake.transaction(Features.R) as tx:
        tx.sql("ALTER TABLE left SET TBLPROPERTIES ('first' = '1')")
        session.client.environment.sleep(1.1)
        tx.sql("ALTER TABLE left SET TBLPROPERTIES ('second' = '1')")
        session.client.environment.sleep(HALF_DONE_SECONDS)


def _play(point: Point | None, formats: Formats) -> tuple[Recorder, list[str]]:
    recorder, history = Recorder(point), History()
    final: dict[str, tuple[int, ...]] = {}

    def look(session: Session) -> None:
        TWO(session)
        for table in tables.TABLES:
            for key, text in session.lake.read(table).collect():
                if key != tables.STRANGER:
                    final[f"{table}/{key}"] = tables.items(text)

    with World(2, lambda _: recorder, formats=formats) as world:
        world.bucket.load(tables.image(rows_engine, formats))
        recorder.rival = lambda: start(world, world.client("rival"), history, outsider)
        start(world, world.client("waiter"), history, wait_and_alter)
        world.scheduler.at(5.0, partial(start, world, world.client("actor"), history, TWO))
        for number, seconds in enumerate(recorder.looks):
            observer = world.client(f"observer{number}")
            world.scheduler.at(5.0 + seconds, partial(start, world, observer, history, look))
        world.run()
        bucket: Bucket = world.bucket
    torn = Torn(bucket.writes)
    violations = check_published(bucket.writes) + failed_observers(history)
    violations += tables.judge(history, final, torn)
    return recorder, violations + [f"{table} is torn by a client of ours" for table in torn.flagged]


@pytest.mark.parametrize("formats", ["delta", "iceberg", "mixed"])
def test_writer_that_waits_settles_what_a_dead_client_left(formats: str) -> None:
    kinds = FORMATS[formats]
    recorder, violations = _play(None, kinds)
    assert violations == []
    points = chosen(recorder.points, sample=formats != "delta")
    assert {str(point): found for point in points if (found := _play(point, kinds)[1])} == {}


def test_matrix_finds_a_writer_that_builds_on_what_is_not_settled() -> None:
    kinds = FORMATS["delta"]
    points = chosen(_play(None, kinds)[0].points, sample=False)
    with NARROW["only-the-pinned-version-is-settled"]():
        assert any("torn" in what for point in points for what in _play(point, kinds)[1])
