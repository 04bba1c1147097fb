"""One seed of the suite `world`, from begin to verdict.

A seed draws its seasons and what its world has: a second lake, strangers on the tables, folders that people
delete, harsh outages. Clients work in every season; operators vacuum, tag and look back between them.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache, partial
from random import Random
from unittest.mock import patch

from lakevilla.lake import Lake
from sim.checkers.history import History
from sim.outside import acts, audit, restores, upkeep
from sim.outside.acts import ALL, INSIDE, NAMES, SHARED
from sim.outside.judge import judge
from sim.outside.plan import FOCUS, Seasons, draw_starts
from sim.outside.session import FAR, LAKE, OTHER, Notes, Obedient
from sim.outside.strangers import Stranger, delete_folder, make_anew
from sim.suites.base import Report, weather
from sim.world.bucket import Bucket
from sim.world.client import Client, World
from sim.world.faults import Calm, Storm
from sim.world.formats import PLAIN, Formats
from sim.world.lakes import EngineOf, open_lake
from sim.world.row_engine import rows_engine

SLOTS_KEPT = 3
"""So few entries of the global log are kept however old they are: seeds are short."""


PARTS = (
    "sleeps",
    "outages",
    "upkeep",
    "strangers",
    "cleaning",
    "second",
    "renewal",
    "wrecks",
    "definitions",
    "threads",
    "short logs",
)
"""What a world may have. `sleeps`: clients sleep until another season. `outages`: decisive writes stay
unanswered. `upkeep`: vacuum, tags and looks back. `strangers`: others write to the tables; `cleaning`: and
clean their logs. `second`: another lake has one of the tables. `renewal`: tables are dropped and made anew.
`wrecks`: folders are deleted. `definitions`: columns, properties and names change. `threads`: several share
one transaction. `short logs`: Delta tables have many checkpoints, and vacuum cleans their logs after a
day."""
CHANCES = {"upkeep": 0.8, "sleeps": 0.7, "wrecks": 0.25, "second": 0.4, "cleaning": 0.4, "short logs": 0.4}
SHORT_LOGS = {"delta.logRetentionDuration": "interval 1 days", "delta.checkpointInterval": "2"}
RESTORES = "restores"
"""One more part, which no seed of the suite `world` draws: a client restores tables to earlier instants."""


@dataclass(frozen=True)
class Setting:
    """What a seed's world has."""

    starts: tuple[float, ...]
    parts: frozenset[str]
    focus: str = ""
    empties: bool = False
    notes: Notes = field(default_factory=Notes)

    @staticmethod
    def draw(seed: int) -> "Setting":
        random = Random(f"setting {seed}")
        parts = [part for part in PARTS[:-1] if random.random() < CHANCES.get(part, 0.5)]
        parts += [part for part in PARTS[-1:] if Random(f"{part} {seed}").random() < CHANCES[part]]
        empties = "wrecks" in parts and random.random() < 0.15
        return Setting(draw_starts(random), frozenset(parts), random.choice(FOCUS), empties)

    def has(self, part: str) -> bool:
        return part in self.parts


def play(
    seed: int, *, engine: EngineOf = rows_engine, formats: Formats = PLAIN, setting: Setting | None = None
) -> Report:
    """Run one seed."""
    chosen = setting or Setting.draw(seed)
    short_logs = chosen.has("short logs")
    if short_logs:
        chosen.notes.properties = SHORT_LOGS

    def storm(draw: Random, *, mean_gap: int, crashes: int) -> Storm:
        sleeps, outages = 6 * chosen.has("sleeps"), 6 * chosen.has("outages")
        return Seasons(
            draw,
            chosen.starts,
            mean_gap=mean_gap,
            crashes=min(crashes, 2),
            sleeps=sleeps,
            outages=outages,
            focus=chosen.focus,
        )

    def start(world: World, history: History, random: Random) -> int:
        assert isinstance(world.plan, Seasons)
        world.plan.now = lambda: world.scheduler.now
        return _start(world, history, random, engine, chosen)

    def check(world: World, history: History) -> list[str]:
        return audit.audit(world, history, engine, chosen.notes, second=chosen.has("second"))

    def judge_all(bucket: Bucket, history: History) -> list[str]:
        return judge(bucket, history, chosen.notes)

    with patch("lakevilla.maintenance.instants.SLOTS_KEPT", SLOTS_KEPT):
        first = image(engine, formats, short_logs)
        return weather(seed, (40, 80, 160), first, start, check, judge_all, formats, storm)


def play_with_restores(seed: int, *, engine: EngineOf = rows_engine, formats: Formats = PLAIN) -> Report:
    """Run one seed of the suite `restores`: that of the suite `world`, with a client that restores."""
    setting = Setting.draw(seed)
    parts = setting.parts | {RESTORES, "upkeep"}
    return play(seed, engine=engine, formats=formats, setting=replace(setting, parts=parts))


@cache
def image(engine: EngineOf, formats: Formats = PLAIN, short_logs: bool = False) -> Bucket:
    """The store of two lakes: tables of one, of which the other knows one, and a table outside of both."""
    with World(0, Calm, formats=formats) as world:
        client, other = world.client("cmaker"), world.client("bmaker")

        def make() -> None:
            history, notes = History(), Notes(properties=SHORT_LOGS if short_logs else {})
            session = Obedient(client, open_lake(client, engine, LAKE, ALL), history, notes, LAKE)
            for table in INSIDE:
                acts.make(session, table, None)
            acts.make(session, FAR, FAR)
            second = open_lake(other, engine, OTHER, ALL)
            second.register(SHARED, f"sim://bucket/{LAKE}/{SHARED}")
            assert all(op.outcome == "ok" for op in history.operations), history.operations

        world.start(client, make)
        world.run()
        return world.bucket


def images(engine: EngineOf, formats: Formats) -> None:
    image(engine, formats)
    image(engine, formats, short_logs=True)


def _start(world: World, history: History, random: Random, engine: EngineOf, setting: Setting) -> int:
    count = random.randint(3, 4)
    for number in range(count):
        _Client(world, history, engine, setting, f"c{number}", LAKE, NAMES).start()
    if setting.has("upkeep"):
        _Client(world, history, engine, setting, "c-upkeep", LAKE, NAMES, keeps=True).start()
    if setting.has(RESTORES):
        _Client(world, history, engine, setting, "c-restorer", LAKE, NAMES, restores=True).start()
    if setting.has("second"):
        _Client(world, history, engine, setting, "b0", OTHER, (SHARED,)).start()
    if setting.has("strangers") or setting.has("cleaning"):
        client = world.client("stranger")
        stranger = Stranger(world, client, history, setting.notes)

        def work() -> None:
            root = f"{LAKE}/{world.random.choice(INSIDE)}"
            root = root if world.random.random() < 0.8 else FAR
            if setting.has("cleaning") and world.random.random() < 0.5:
                stranger.clean(root)
            elif setting.has("strangers"):
                stranger.act(world.random, root)

        world.start(client, partial(_seasons, world, client, setting.starts, 2, work))
    if setting.has("wrecks"):
        _start_wrecker(world, random, setting)
    return count


def _start_wrecker(world: World, random: Random, setting: Setting) -> None:
    """In one season somebody deletes a table's folder, and mostly makes another table there; or all."""
    client, at = world.client("stranger-wrecker"), random.choice(setting.starts[1:])
    root = random.choice((*(f"{LAKE}/{table}" for table in INSIDE), FAR))
    again = random.random() < 0.8

    def wreck() -> None:
        client.environment.sleep(at + world.random.random() * 3)
        folder = LAKE if setting.empties else root
        setting.notes.wrecks.append((world.scheduler.now, folder))
        delete_folder(world, folder)
        if again and not setting.empties:
            client.environment.sleep(world.random.choice((0.0, 0.2, 5.0)))
            make_anew(world, client, root)

    world.start(client, wreck)


def _seasons(
    world: World, client: Client, starts: tuple[float, ...], times: int, work: Callable[[], None]
) -> None:
    """Some work in every season."""
    for start in starts:
        client.environment.sleep(max(0.0, start + world.random.random() * 2 - world.scheduler.now))
        for _ in range(times):
            work()
            client.environment.sleep(world.random.expovariate(1 / 0.3))


@dataclass
class _Client:
    """A client of ours; when it dies a new one goes on in the next season."""

    world: World
    history: History
    engine: EngineOf
    setting: Setting
    name: str
    root: str
    names: tuple[str, ...]
    keeps: bool = False
    restores: bool = False

    def start(self) -> None:
        client = self.world.client(self.name)
        session = Obedient(client, self._open(client), self.history, self.setting.notes, self.root)
        self.name += "'"
        client.process.on_death = lambda: self.world.scheduler.at(self.world.random.random() * 5, self.start)
        left = tuple(start for start in self.setting.starts if start >= self.world.scheduler.now)
        work = partial(self._restore if self.restores else self._keep if self.keeps else self._work, session)
        self.world.start(client, partial(_seasons, self.world, client, left, 2, work))

    def _open(self, client: Client) -> Lake:
        return open_lake(client, self.engine, self.root, ALL)

    def _keep(self, session: Obedient) -> None:
        random = self.world.random
        act = upkeep.vacuum if self.keeps and random.random() < 0.4 else random.choice(upkeep.UPKEEP)
        act(session, random)

    def _restore(self, session: Obedient) -> None:
        restores.restore(session, self.world.random, partial(self._nap, session))

    def _work(self, session: Obedient) -> None:
        random, names, has = self.world.random, self.names, self.setting.has
        nap = partial(self._nap, session)
        draw = random.random()
        if len(names) == 1:
            if draw < 0.5 or not has("upkeep"):
                acts.change_one(session, random, names, nap)
            else:
                self._keep(session)
        elif draw < 0.07 and has("renewal"):
            if random.random() < 0.6:
                upkeep.renew_far(session, self.world)
            else:
                upkeep.renew_near(session, random)
        elif draw < 0.2 and has("definitions"):
            acts.define(session, random, names)
        elif draw < 0.3 and has("threads"):
            acts.change_together(session, random, names)
        elif draw < 0.4:
            acts.look(session, random, names)
        elif draw < 0.45 and has("upkeep"):
            self._keep(session)
        elif draw < 0.7:
            acts.change_one(session, random, names, nap)
        else:
            acts.change_many(session, random, names, nap)

    def _nap(self, session: Obedient) -> None:
        """Sleep until the next season."""
        now = self.world.scheduler.now
        later = [start for start in self.setting.starts if start > now + 60]
        wait = (later[0] - now) if later else 4000.0
        session.client.environment.sleep(wait + self.world.random.random() * 2)
