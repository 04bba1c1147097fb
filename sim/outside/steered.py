"""The suite `steered`: the world of the suite `world`, led to states that it rarely reaches by chance.

One client changes two tables and falls asleep at a chosen request of its commit; the others know when. They
go on, vacuum, and clean logs until it wakes up weeks later. The times, the requests and what the others do
are the seed's. The judges are those of `world`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from unittest.mock import patch

from lakevilla.model import Features
from sim.checkers.history import History, Operation
from sim.checkers.tables.rows import KEYS, Change, Work
from sim.outside import acts, audit, upkeep
from sim.outside.acts import ALL, CT, NONE, R
from sim.outside.judge import judge
from sim.outside.plan import DAY, Seasons
from sim.outside.play import SLOTS_KEPT, image
from sim.outside.session import LAKE, Notes, Obedient
from sim.outside.strangers import Stranger
from sim.suites.base import Report, weather
from sim.world.bucket import Bucket
from sim.world.client import World
from sim.world.faults import Crash, Fate, Storm, answered, late, lost
from sim.world.formats import DELTA, PLAIN, Formats
from sim.world.lakes import EngineOf, open_lake
from sim.world.row_engine import rows_engine
from sim.world.sites import site

SLEEPER = "c0"
STARTS = (0.0, 9 * DAY, 18 * DAY, 27 * DAY)
TABLES = ("left", "right")
PATIENCE = 400.0
"""So long the others wait for the client to fall asleep."""


@dataclass(frozen=True)
class Scenario:
    """The requests at one of which the client falls asleep, and whether before it is sent; if it is after,
    the answer is lost. `cleans` says that a stranger cleans the logs, `builds` that one is in the way of the
    commit, and that a client with R builds on the part of it that is published. `dies`: the client dies when
    the request applies, a day before the others go on; until then they use no slots. `alone`: the commit is
    of one table and may stay unanswered, and vacuum falls asleep as well, before it deletes the uploads."""

    sites: frozenset[str]
    before: bool
    cleans: bool = False
    builds: bool = False
    dies: bool = False
    alone: bool = False

    @property
    def wakes_at(self) -> float:
        return STARTS[-1] - (DAY if self.dies else 0.0)


_PUBLISH = frozenset(("create log entry", "create metadata"))
SCENARIOS = {
    "slot": Scenario(frozenset(("create slot",)), before=False),
    "settle": Scenario(_PUBLISH, before=True, cleans=True),
    "half": Scenario(_PUBLISH, before=True, builds=True),
    "late": Scenario(frozenset(("create slot",)), before=True, cleans=True, dies=True),
    "alone": Scenario(_PUBLISH, before=True, alone=True),
}
"""`slot`: the slot is created, its answer is lost, and it is vacuumed when its client asks for it. `settle`:
others have settled the entry and the logs are cleaned when its client publishes. `half`: the commit is
published on one table, a client with R builds on that, and the commit has to be rolled back. `late`: the slot
is created after the logs were cleaned, and others find it a day later. `alone`: the commit of one table is
sent while vacuum deletes its uploads."""


class Steered(Seasons):
    """Faults as in other suites, and one sleep."""

    asleep_at = ""
    """The key of the request at which the client fell asleep."""
    vacuum_sleeps = False
    """Whether vacuum fell asleep before it deleted a data file of that table."""

    def steer(self, scenario: Scenario) -> None:
        self._scenario = scenario
        # A commit that is built on is published on one of its two tables. It has one slot.
        two = scenario.sites == _PUBLISH and not scenario.alone
        self._skipped = 1 if scenario.builds else self._random.randrange(2) if two else 0

    def fate(self, client: str, kind: str, key: str) -> Fate:
        if self._meets_vacuum(client, kind, key):
            self.vacuum_sleeps = True
            return self._noted(self._asleep_before(answered(self._random), "vacuum asleep, steered"))
        chosen = client == SLEEPER and site(kind, key) in self._scenario.sites
        if self.asleep_at or self.calm or not chosen:
            return super().fate(client, kind, key)
        if self._skipped:
            self._skipped -= 1
            return answered(self._random)
        self.asleep_at = key
        fault, random, scenario = "asleep, steered", self._random, self._scenario
        if not scenario.before:
            return self._noted(replace(lost(random), fault=fault, freeze=self._freeze()))
        kinds = (answered, answered, lost, late) if scenario.alone else (answered,)
        crash: Crash | None = "applied" if scenario.dies else None
        return self._noted(replace(self._asleep_before(random.choice(kinds)(random), fault), crash=crash))

    def _meets_vacuum(self, client: str, kind: str, key: str) -> bool:
        if not self._scenario.alone or not self.asleep_at or self.vacuum_sleeps or self.calm:
            return False
        table = "/".join(self.asleep_at.split("/")[:2])
        return client.startswith("c-upkeep") and site(kind, key) == "delete data" and key.startswith(table)

    def _freeze(self) -> float:
        return self._scenario.wakes_at + self._random.random() * 4 - self.now()

    def _asleep_before(self, fate: Fate, fault: str) -> Fate:
        """The client falls asleep before it sends the request."""
        freeze = self._freeze()
        applies = tuple(freeze + at for at in fate.applies)
        after, gives_up = freeze + fate.answer_after, freeze + fate.gives_up
        return replace(
            fate, applies=applies, answer_after=after, gives_up=gives_up, fault=fault, freeze=freeze
        )


def play(
    seed: int,
    *,
    engine: EngineOf = rows_engine,
    formats: Formats = PLAIN,
    scenario: str | None = None,
) -> Report:
    """Run one seed."""
    notes, draw = Notes(), Random(f"steered {seed}")
    chosen = SCENARIOS[scenario or draw.choice(sorted(SCENARIOS))]

    def storm(random: Random, *, mean_gap: int, crashes: int) -> Storm:  # noqa: ARG001
        plan = Steered(random, STARTS, mean_gap=mean_gap, crashes=0, sleeps=0, outages=0)
        plan.steer(chosen)
        return plan

    def start(world: World, history: History, random: Random) -> int:
        return _Cast(world, history, engine, notes, chosen).start(random)

    def check(world: World, history: History) -> list[str]:
        return audit.audit(world, history, engine, notes, second=False)

    def judge_all(bucket: Bucket, history: History) -> list[str]:
        # Where it dies, the logs go back to its slot: it creates that a day before the others come, and
        # they were cleaned up for the last time before.
        return judge(bucket, history, notes, may_tear=not chosen.dies)

    with patch("lakevilla.maintenance.instants.SLOTS_KEPT", SLOTS_KEPT):
        return weather(seed, (160, 320), image(engine, formats), start, check, judge_all, formats, storm)


@dataclass(frozen=True)
class _Cast:
    """The clients and tables of one seed."""

    world: World
    history: History
    engine: EngineOf
    notes: Notes
    scenario: Scenario

    def start(self, random: Random) -> int:
        plan = self.world.plan
        assert isinstance(plan, Steered)
        plan.now = lambda: self.world.scheduler.now
        key, features = random.randrange(KEYS), random.choice((CT, R | CT, ALL))
        if self.scenario.builds:
            # With tickets the two would wait for each other.
            features = CT
            self._run("c1", 0.0, partial(self._build, key=key))
        begun = 2.0 if self.scenario.builds else 0.0
        tables: tuple[str, ...] = TABLES
        if self.scenario.alone:
            features, tables = random.choice((R, NONE)), (random.choice(TABLES),)
        self._run(SLEEPER, begun, lambda session: self._change(session, tables, key, features))
        for start in STARTS[1:]:
            quiet = self.scenario.dies and start < self.scenario.wakes_at
            # A table on which others commit is not published on later.
            idle = self.scenario.alone and start < self.scenario.wakes_at
            for number in () if idle else (2, 3):
                begun = start + 20 * self.scenario.alone
                self._run(f"c{number}-{round(start)}", begun, self._work_alone if quiet else self._work)
            if not quiet and (not idle or start == STARTS[1]):
                self._run(f"c-upkeep-{round(start)}", start + 60, self._keep)
        if self.scenario.cleans:
            stranger = Stranger(self.world, self.world.client("stranger"), self.history, self.notes)
            for start in STARTS[1:-1]:
                for table in TABLES:
                    self._at(start + 120, partial(stranger.clean, f"{LAKE}/{table}"))
        return 3

    def _run(self, name: str, at: float, act: Callable[[Obedient], object]) -> None:
        client = self.world.client(name)

        def body() -> None:
            client.environment.sleep(at + self.world.random.random())
            act(Obedient(client, open_lake(client, self.engine, LAKE, ALL), self.history, self.notes, LAKE))

        self.world.start(client, body)

    def _at(self, at: float, act: Callable[[], object]) -> None:
        client = self.world.client("stranger-clock")

        def body() -> None:
            client.environment.sleep(at)
            act()

        self.world.start(client, body)

    def _change(
        self,
        session: Obedient,
        tables: tuple[str, ...],
        key: int,
        features: Features,
        pause: Callable[[], None] = lambda: None,
    ) -> None:
        value = 100 * (len(self.history.operations) + 1)
        work: Work = {table: [Change("append", key, value + n)] for n, table in enumerate(tables)}
        acts.transact(session, work, features, pause, again=False)

    def _work(self, session: Obedient) -> None:
        random = self.world.random
        for _ in range(3):
            tables = random.choice((TABLES, TABLES, ("left",), ("right",), ("left", "up")))
            self._change(session, tables, random.randrange(KEYS), random.choice((CT, R | CT, ALL)))

    def _work_alone(self, session: Obedient) -> None:
        """Without slots."""
        random = self.world.random
        for _ in range(3):
            self._change(session, (random.choice(TABLES),), random.randrange(KEYS), R)

    def _keep(self, session: Obedient) -> None:
        """Vacuum until nothing old is left."""
        for _ in range(2):
            upkeep.vacuum_all(session, 24)
            session.client.environment.sleep(1.0)
        upkeep.recover(session, self.world.random)

    def _build(self, session: Obedient, key: int) -> None:
        """A transaction with R that has changed one of the tables when the client publishes there and falls
        asleep. A stranger is in the way of what the client was about to publish on the other one. Then the
        transaction commits: it changes the same row, or the definition, which does not conflict with what the
        client published, and is in the way of an inverse."""
        plan, environment = self.world.plan, session.client.environment
        assert isinstance(plan, Steered)
        stranger = Stranger(self.world, self.world.client("stranger"), self.history, self.notes)
        table = self.world.random.choice(TABLES)

        def wait() -> None:
            while not plan.asleep_at and environment.elapsed() < PATIENCE:
                environment.sleep(0.05)
            environment.sleep(0.5)
            root = "/".join(plan.asleep_at.split("/")[:2])
            if plan.asleep_at and self.world.formats.of(root) == DELTA:
                stranger.compact(root)

        def define(op: Operation) -> None:
            with session.lake.transaction(R) as tx:
                op.txn = tx.id
                tx.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('first' = '1')")
                wait()
                tx.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('second' = '1')")

        if self.world.random.random() < 0.3:
            self._change(session, (table,), key, R, wait)
        else:
            session.perform(table, "define", "properties", {table: []}, define)
