"""A client dies at each request of the commit of a batch, in each way; others run it again: it is there
once."""

from pathlib import Path
from random import Random

import pytest

from sim.actors.session import Session
from sim.checkers.batches import check_batches
from sim.checkers.history import History
from sim.checkers.lake.published import check_published
from sim.planted.batches import BUGS
from sim.suites import batches, tables
from sim.suites.crash import Point, Recorder
from sim.world.formats import FORMATS, PLAIN, Formats
from sim.world.row_engine import rows_engine
from tests.crash.deaths import Act, Left, act_and_die, failed_observers, problems_of_deaths
from tests.crash.test_many_tables import outsider
from tests.support.extent import in_turn

APP = batches.APPS[0]


def batch(session: Session) -> None:
    """The first batch of the app, or a replay of it."""
    batches.commit(session, Random(0), APP, 0, batches.ALL)


SCENARIOS: dict[str, Act | None] = {
    "alone": None,
    "against the same batch": batch,
    "against an outside writer": outsider,
}


def _play(name: str, point: Point | None, formats: Formats) -> tuple[Recorder, Left]:
    final: dict[str, tuple[int, ...]] = {}
    history = History()

    def look(session: Session) -> None:
        batch(session)
        for table in batches.PAIR:
            for key, text in session.lake.read(table).collect():
                if key != tables.STRANGER:
                    final[f"{table}/{key}"] = tables.items(text)

    image = tables.image(rows_engine, formats)
    recorder, bucket = act_and_die(image, history, batch, SCENARIOS[name], look, point, formats)
    violations = check_published(bucket.writes) + failed_observers(history)
    return recorder, Left(bucket, violations + check_batches(history, final, [APP], 1, batches.PAIR))


@pytest.mark.parametrize(("name", "formats"), in_turn({name: [*FORMATS] for name in SCENARIOS}))
def test_death_at_any_request_of_a_batch_that_runs_again_commits_it_once(
    name: str, formats: str, tmp_path: Path
) -> None:
    kinds = FORMATS[formats]
    recorder, left = _play(name, None, kinds)
    assert left.violations == []
    found = list(recorder.points)
    assert {"create", "put", "get"} <= {point.kind for point in found}
    assert (
        problems_of_deaths(found, lambda at: _play(name, at, kinds)[1], tmp_path, sample=kinds != PLAIN) == []
    )


def test_rival_with_the_same_batch_shows_a_planted_bug() -> None:
    with BUGS["batch-is-looked-for-only-when-it-begins"]():
        assert _play("against the same batch", None, PLAIN)[1].violations
