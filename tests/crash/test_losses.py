"""A table is lost for good at each request by which a commit on several tables is settled, whether the client
that settles it lives or dies there: the commit is whole on the tables that are left, or nowhere, and they can
be written again."""

from collections.abc import Callable

import pytest

from lakevilla.model import Features
from lakevilla.store.keys import GLOBAL_LOG
from sim.actors.session import Session
from sim.checkers.history import History
from sim.checkers.tables.cataloged import judged
from sim.suites import losses, tables
from sim.world.client import World
from sim.world.faults import REQUESTS, Fate
from sim.world.formats import FORMATS, Formats
from sim.world.row_engine import rows_engine
from sim.world.scheduler import Stuck
from tests.crash.chosen_deaths import ALL
from tests.crash.deaths import Act, start
from tests.crash.test_many_tables import THREE, outsider, transfer

LOST = "right"
LEFT = [table for table in tables.TABLES if table != LOST]


class Moment:
    """At one request of the actor something happens, and the actor may die before it sends that request."""

    def __init__(self, number: int | None, dies: bool) -> None:
        self.requests: list[tuple[str, str]] = []
        self.happens: Callable[[], None] = lambda: None
        self.outside: Callable[[], None] | None = None
        self._number = number
        self._dies = dies

    def fate(self, client: str, kind: str, key: str) -> Fate:
        delay = 0.01
        if client == "actor":
            self.requests.append((kind, key))
            if self.outside is not None and kind == "create" and key.startswith(GLOBAL_LOG):
                # The outside writer comes between the decision and the publishing.
                begin, self.outside, delay = self.outside, None, 5.0
                begin()
            if len(self.requests) - 1 == self._number:
                self.happens()
                if self._dies:
                    return Fate("crash", crash="before")
        return Fate(applies=(0.01,), answer=0, answer_after=0.01 + delay)

    @property
    def settling(self) -> range:
        """The requests since the commit was decided."""
        decided = self.requests.index(next(one for one in self.requests if one[1].startswith(GLOBAL_LOG)))
        return range(decided + 1, len(self.requests))


def _play(
    number: int | None,
    kind: str,
    dies: bool,
    refused: bool,
    formats: Formats,
    commit: Act = THREE,
    denied: frozenset[str] = losses.DENIED[0],
) -> tuple[Moment, list[str]]:
    moment, history = Moment(number, dies), History()
    with World(2, lambda _: moment, formats=formats) as world:
        world.bucket.load(losses.image(rows_engine, formats))
        moment.happens = lambda: losses.lose(world, LOST, kind, denied)
        if refused:
            moment.outside = lambda: start(world, world.client("outsider"), history, _beside)

        def act(session: Session) -> None:
            session.may_meet_damage = True
            commit(session)

        start(world, world.client("actor"), history, act)
        try:
            world.run()
            final = losses.audit_left(world, history, rows_engine, LEFT)
        except Stuck as stuck:
            return moment, [f"liveness: {stuck}"]
        return moment, losses.judge_left(history, final, LOST, judged(world))


def _beside(session: Session) -> None:
    """On a table that is not the lost one."""
    outsider(session, "up")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("formats", ["delta", "iceberg", "mixed"] if ALL else ["delta"])
@pytest.mark.parametrize("refused", [False, True], ids=["published", "rolled-back"])
@pytest.mark.parametrize("dies", [False, True], ids=["lives", "dies"])
@pytest.mark.parametrize("kind", losses.KINDS)
def test_table_lost_at_any_request_of_settling_blocks_nothing(
    kind: str, dies: bool, refused: bool, formats: str
) -> None:
    undisturbed, violations = _play(None, kind, dies, refused, FORMATS[formats])
    assert violations == []
    assert len(undisturbed.settling) >= 4
    for number in undisturbed.settling if ALL else undisturbed.settling[::2]:
        found = _play(number, kind, dies, refused, FORMATS[formats])[1]
        assert found == [], f"{kind} at request {number}: {undisturbed.requests[number]}"


FEATURES = {"CT": Features.CT, "R,CT,I": Features.R | Features.CT | Features.I}


@pytest.mark.long
@pytest.mark.parametrize("formats", ["delta", "iceberg", "mixed"])
@pytest.mark.parametrize("features", FEATURES)
@pytest.mark.parametrize("refused", [False, True], ids=["published", "rolled-back"])
@pytest.mark.parametrize("kind", losses.KINDS)
def test_table_lost_while_a_commit_of_any_features_is_settled_blocks_nothing(
    kind: str, refused: bool, features: str, formats: str
) -> None:
    plan = [(table, number, False) for number, table in enumerate(("left", "right", "up"))]
    commit = transfer(*plan, features=FEATURES[features])
    undisturbed, violations = _play(None, kind, False, refused, FORMATS[formats], commit)
    assert violations == []
    for turn, number in enumerate(undisturbed.settling if ALL else undisturbed.settling[::3]):
        found = _play(number, kind, turn % 2 == 1, refused, FORMATS[formats], commit)[1]
        assert found == [], f"{kind} at request {number}: {undisturbed.requests[number]}"


@pytest.mark.long
@pytest.mark.parametrize("formats", ["delta", "iceberg", "mixed"])
@pytest.mark.parametrize("denied", [kind for kind in REQUESTS if kind != "list_folders"])
def test_requests_of_one_kind_denied_from_any_request_of_settling_on_block_nothing(
    denied: str, formats: str
) -> None:
    settling = _play(None, "denied", False, True, FORMATS[formats])[0].settling
    for turn, number in enumerate(settling if ALL else settling[::3]):
        refused, dies = turn % 2 == 0, turn % 3 == 2
        kinds = frozenset((denied,))
        moment, found = _play(number, "denied", dies, refused, FORMATS[formats], denied=kinds)
        assert found == [], f"{denied} denied at request {number}: {moment.requests[number:]}"
