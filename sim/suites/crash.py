"""The crash matrix: one client dies at each of its requests in turn, and others go on.

For each request of a scenario the client is killed before it sends, after the request applied but before
an answer, with the answer in its hands, and so that the request applies only after others have recovered.
Then a second client looks and works on, another one when a late request has applied, and a last one recovers
what is left, twice; the judges of `checkers` say whether every table stayed valid, what was acknowledged is
there, and the dead client's transaction is there wholly or not at all.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial

from sim.actors.audit import recover
from sim.actors.session import Session
from sim.checkers.history import History
from sim.checkers.tables.cataloged import judged
from sim.suites.verdict import judge
from sim.world.bucket import Bucket
from sim.world.client import Client, World
from sim.world.faults import WRITES, Calm, Fate
from sim.world.formats import PLAIN, Formats
from sim.world.lakes import EngineOf, first_image, open_lake
from sim.world.row_engine import rows_engine
from sim.world.sites import site

MODES = ("before", "applied", "answered", "late")

RIVAL_SECONDS = 10.0
"""Time enough for a rival's transaction."""

RECOVERY_SECONDS = 1000.0
"""Long after every recovery: then a late request applies."""


@dataclass(frozen=True)
class Scenario:
    """`act` is the work that is cut off at each request. It finds the actors' tables (unless `empty`) and
    what `prepare` did without faults. A `rival` works while the act's first create is on its way, so
    that the act loses that race. All of it happens `within` a context, such as a smaller limit."""

    name: str
    act: Callable[[Session], None]
    prepare: Callable[[Session], None] = lambda _: None
    rival: Callable[[Session], None] | None = None
    empty: bool = False
    engine: EngineOf = rows_engine
    within: Callable[[], AbstractContextManager[object]] = nullcontext

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Point:
    """One place to die at: the act's request with this number, and in which way."""

    number: int
    kind: str
    key: str
    mode: str

    def __str__(self) -> str:
        return f"{self.number}-{self.kind}-{self.mode}"


class Recorder:
    """Answers everything in fixed times, writes down what the actor sends, and kills it at the point.

    `rival` is called with the actor's first create, or first commit to a catalog, which then takes so long
    that the rival wins.
    """

    def __init__(self, point: Point | None = None) -> None:
        self.requests: list[tuple[str, str]] = []
        self.rival: Callable[[], None] | None = None
        self._point = point

    @property
    def looks(self) -> tuple[float, ...]:
        """When others look: long after the death, and again when a request that was on its way has come.
        Where none was, nothing has changed since."""
        late = self._point is not None and self._point.mode == "late"
        return (RECOVERY_SECONDS / 2, 2 * RECOVERY_SECONDS) if late else (RECOVERY_SECONDS / 2,)

    @property
    def points(self) -> Iterator[Point]:
        """Every request of an undisturbed run, in every mode; of the reads between two writes, which leave
        nothing behind, one of each site."""
        tried: set[str] = set()
        for number, (kind, key) in enumerate(self.requests):
            if kind in WRITES:
                tried.clear()
                yield from (Point(number, kind, key, mode) for mode in MODES)
            elif site(kind, key) not in tried:
                tried.add(site(kind, key))
                yield Point(number, kind, key, MODES[0])

    def fate(self, client: str, kind: str, key: str) -> Fate:
        if client != "actor":
            return _answered(0.01)
        self.requests.append((kind, key))
        delay = 0.01
        if self.rival is not None and (kind == "create" or site(kind, key) == "replace pointer"):
            delay, start, self.rival = RIVAL_SECONDS, self.rival, None
            start()
        if self._point is not None and len(self.requests) - 1 == self._point.number:
            return _death(self._point.mode, delay)
        return _answered(delay)


def _answered(delay: float) -> Fate:
    return Fate(applies=(delay,), answer=0, answer_after=delay + 0.01)


def _death(mode: str, delay: float) -> Fate:
    match mode:
        case "before":
            return Fate("crash", crash="before")
        case "applied":
            return Fate("crash", applies=(delay,), crash="applied")
        case "answered":
            return Fate("crash", applies=(delay,), answer=0, answer_after=delay + 0.01, crash="answered")
        case "late":
            return Fate("crash", applies=(RECOVERY_SECONDS,), crash="before")
    raise ValueError(mode)


@dataclass
class Outcome:
    """What was left after one death and the recovery."""

    bucket: Bucket
    history: History
    violations: list[str]


class Matrix:
    """All points of one scenario, on tables of these formats."""

    def __init__(self, scenario: Scenario, look: Callable[[Session], None], formats: Formats = PLAIN) -> None:
        self._scenario = scenario
        self._formats = formats
        self._look = look
        self._prepared = History()
        self._image = self._prepare()

    def points(self) -> Iterator[Point]:
        """Every request of an undisturbed run, in every mode.

        A read leaves nothing behind: to die with its answer is to die before the next request, and to die at
        one read is to die at any other before the next write. Of these, one of each site is tried.
        """
        recorder = Recorder()
        self._act(recorder)
        yield from recorder.points

    def die_at(self, point: Point) -> Outcome:
        """Cut the act off there, let others go on, and judge."""
        return self._act(Recorder(point))

    def _first_image(self) -> Bucket:
        """The store that the scenario begins with."""
        return first_image(self._scenario.engine, self._formats)

    def _judge(self, bucket: Bucket, history: History) -> list[str]:
        """What is wrong with what is left."""
        return judge(bucket, history)

    def _prepare(self) -> Bucket:
        # Not the seeds of `first_image` and the act: equal seeds would make equal ids.
        with World(1, Calm, formats=self._formats) as world:
            if not self._scenario.empty:
                world.bucket.load(self._first_image())
            self._start(world, "maker", self._prepared, self._scenario.prepare)
            world.run()
            return world.bucket

    def _act(self, recorder: Recorder) -> Outcome:
        with self._scenario.within(), World(2, lambda _: recorder, formats=self._formats) as world:
            world.bucket.load(self._image)
            history = History([replace(op, invoked=-1.0, completed=0.0) for op in self._prepared.operations])
            if (rival := self._scenario.rival) is not None:
                recorder.rival = lambda: self._start(world, "rival", history, rival)
            self._start(world, "actor", history, self._scenario.act)
            for name, seconds in zip(("observer", "last"), recorder.looks, strict=False):
                look = partial(self._start, world, name, history, self._look)
                world.scheduler.at(seconds, look)
            violations = []
            try:
                world.run()
                violations = recover(world, self._scenario.engine)
            except Exception as error:  # noqa: BLE001 - whatever escapes a client is a finding
                violations.append(f"unexpected {type(error).__name__}: {error}")
            left = judged(world)
            return Outcome(left, history, violations + self._judge(left, history))

    def _start(self, world: World, name: str, history: History, work: Callable[[Session], None]) -> None:
        client = world.client(name)
        world.start(client, lambda: work(self._session(client, history)))

    def _session(self, client: Client, history: History) -> Session:
        return Session(client, open_lake(client, self._scenario.engine), history)
