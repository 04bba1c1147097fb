"""A commit on two tables is settled while one kind of request fails for good; then clients come, and it ends.

The commit writes `left` and `right`. Two more tables have nothing to do with it. From some request of
settling on a fault stands: requests of this kind on this kind of object of this table are denied, fail on the
server, or lose their answers, for every client; or the object is lost or damaged. The client that settles is
the owner, or one that comes after the owner's death. Meanwhile other clients write the other tables, ask for
the outcome, and look at the lake. Then an operator gives the table up, or the fault ends.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal, NamedTuple

import pyarrow as pa

from lakevilla.errors import CommitUnknown, Conflict, LakeVillaError, Torn
from lakevilla.lake import Lake
from lakevilla.maintenance.doctor.diagnosis import Diagnosis
from lakevilla.maintenance.reports import RecoverReport, Status
from lakevilla.model import Features
from lakevilla.store.keys import GLOBAL_LOG
from sim.checkers.history import History
from sim.legacy.client import LegacyWriter
from sim.legacy.store import encode_json
from sim.suites import losses
from sim.suites.tables import STRANGER, TABLES
from sim.world.bucket import Bucket
from sim.world.client import Client, World
from sim.world.faults import WRITES, Calm, Denial, Fate
from sim.world.formats import Formats
from sim.world.lakes import make_table, open_lake
from sim.world.row_engine import rows_engine
from sim.world.sites import site

WRITTEN, FREE = ("left", "right"), ("up", "free")
GLOBAL = "_lakevilla/global/"
VALUE = "7"
BOTH = Features.R | Features.CT
ALL = BOTH | Features.I

How = Literal["denied", "failed", "mute", "lost", "damaged"]
RUBBISH = b'{"commitInfo":{}}\n{"add":{"pa'


class Spot(NamedTuple):
    """A request of settling, by its place among them."""

    number: int
    kind: str
    key: str

    @property
    def table(self) -> str:
        """The table that it is about; empty for the lake itself."""
        name = self.key.partition("/")[0]
        return name if name in TABLES else ""

    @property
    def site(self) -> str:
        return site(self.kind, self.key)

    @property
    def denial(self) -> Denial:
        return Denial(
            f"{self.table}/" if self.table else GLOBAL, frozenset((self.kind,)), "denied", self.site
        )

    def __str__(self) -> str:
        return f"request {self.number}: {self.site} of {self.table or 'the lake'}"


@dataclass(frozen=True)
class Case:
    """Which client settles, the owner or a helper; and whether an outside writer is in the way."""

    formats: Formats
    helped: bool = False
    refused: bool = False
    features: Features = BOTH


@dataclass
class Played:
    """What happened."""

    requests: list[Spot] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)


class _Watch:
    """Every request is answered; those of the client that settles are noted, from the slot on."""

    def __init__(self) -> None:
        self.settler = "owner"
        self.dies = False
        self.requests: list[Spot] | None = None
        self.decided: Callable[[], None] = lambda: None
        self.settles: Callable[[int], None] = lambda _: None
        """Told how many requests of settling were sent."""

    def fate(self, client: str, kind: str, key: str) -> Fate:
        if client == self.settler and self.requests is not None:
            self.requests.append(Spot(len(self.requests), kind, key))
            self.settles(len(self.requests))
            if site(kind, key) == "replace HEAD":
                # That ends the settling.
                self.requests = None
        after = 0.02
        if client == "owner" and kind == "create" and key.startswith(GLOBAL_LOG):
            self.decided()
            if self.dies:
                return Fate("dies", applies=(0.01,), crash="applied")
            after = 6.0
        return Fate(applies=(0.01,), answer=0, answer_after=after)


@cache
def _image(formats: Formats) -> Bucket:
    """A lake with four tables, all at an instant."""
    with World(3, Calm, formats=formats) as world:
        world.bucket.load(losses.image(rows_engine, formats))
        client = world.client("maker")

        def make() -> None:
            lake = open_lake(client, rows_engine)
            make_table(lake, client, "free", pa.schema([("k", pa.int64()), ("items", pa.string())]))
            lake.append("free", [{"k": key, "items": ""} for key in range(3)])
            lake.sync()

        world.start(client, make)
        world.run()
        return world.bucket


class _Play:
    def __init__(self, world: World, watch: _Watch, case: Case, spot: Spot | None, how: How) -> None:
        self.world, self.watch, self.case, self.spot, self.how = world, watch, case, spot, how
        self.played = Played()
        self.txn = ""
        self.answer = "died"
        self._kept: dict[str, bytes | None] = {}

    def run(self, given_up: bool) -> Played:
        self._settle()
        if self.spot is not None:
            self._look("while it stands")
            self._go_on(given_up)
            self._end()
        self._judge()
        return self.played

    def _client(self, name: str, body: Callable[[Lake], Any], features: Features = Features.R) -> Any:
        """What a client of its own gives back, or the error of LakeVilla that it meets."""
        client, results = self.world.client(name), list[Any]()

        def run() -> None:
            try:
                results.append(body(open_lake(client, rows_engine, features=features)))
            except LakeVillaError as error:
                results.append(error)

        self.world.start(client, run)
        self.world.run()
        return results[0] if results else None

    def _settle(self) -> None:
        """The transaction; from its slot on the fault stands, once the outside writer has written."""
        watch, world = self.watch, self.world

        def decided() -> None:
            watch.decided = lambda: None
            if self.case.refused:
                outsider = world.client("outsider")
                world.start(outsider, lambda: _write_outside(outsider))
            if not self.case.helped:
                world.scheduler.at(5.0, begin)

        def begin() -> None:
            watch.requests = self.played.requests
            sent(0)

        def sent(count: int) -> None:
            if self.spot is not None and count == self.spot.number:
                # When the request before has applied, and before its answer.
                world.scheduler.at(0.015 if count else 0.0, self._stand)

        watch.decided, watch.dies, watch.settles = decided, self.case.helped, sent

        def transact(lake: Lake) -> str:
            with lake.transaction() as tx:
                self.txn = tx.id
                for table in WRITTEN:
                    tx.update(table, set={"items": f"concat(items, ',{VALUE}')"}, where="k = 1")
            return "committed"

        told = self._client("owner", transact, self.case.features)
        if self.case.helped:
            watch.settler, watch.dies = "helper", False
            begin()
            told = self._client("helper", lambda lake: lake.recover())
            self.played.answers.append(f"helper: {told}")
        else:
            self.answer = told if isinstance(told, str) else type(told).__name__
            self.played.answers.append(f"owner: {told}")
            # The next attempt of a refused transaction may meet any error, and then nothing is visible.
            expected = LakeVillaError if self.case.refused else CommitUnknown | Conflict | Torn
            if not isinstance(told, str | expected):
                self._problem(f"the owner of a decided entry was told {told!r}")
        watch.requests = None

    def _stand(self) -> None:
        """The fault, from now on."""
        spot = self.spot
        if spot is None:
            return
        if self.how in ("denied", "failed", "mute"):
            known = spot.denial
            self.world.deny(Denial(known.prefix, known.kinds, self.how, known.site))
            return
        found = self.world.bucket.get(spot.key)
        self._kept[spot.key] = None if found is None else found.data
        now = self.world.scheduler.now
        if self.how == "lost":
            self.world.bucket.delete(now, "vandal", spot.key)
        elif found is None:
            self.world.bucket.create(now, "vandal", spot.key, RUBBISH)
        else:
            self.world.bucket.put(now, "vandal", spot.key, found.data[: len(found.data) // 2])

    def _restore(self) -> None:
        """The fault ends: an operator restores what is lost or damaged, unless a client has replaced it."""
        self.world.allow()
        now = self.world.scheduler.now
        for key, data in self._kept.items():
            found = self.world.bucket.get(key)
            if data is None:
                if found is not None and found.data == RUBBISH:
                    self.world.bucket.delete(now, "operator", key)
            elif found is None or found.data == data[: len(data) // 2]:
                self.world.bucket.put(now, "operator", key, data)

    def _look(self, when: str) -> None:
        """Two clients compute one outcome, and the lake can be looked at."""
        told = [self._client(f"asks{number}", lambda lake: lake.outcome(self.txn)) for number in (1, 2)]
        kinds = [getattr(one, "state", type(one).__name__) for one in told]
        self.played.answers.append(f"outcome {when}: {kinds[0]}")
        if kinds[0] != kinds[1]:
            self._problem(f"two clients were told different outcomes {when}: {told}")
        if self.answer == "committed" and kinds[0] not in ("committed", "Unavailable", "Corrupt"):
            self._problem(f"committed, and the outcome {when} is {told[0]}")
        told = self._client("recovers", lambda lake: lake.recover())
        status = self._client("status", lambda lake: lake.status())
        if isinstance(told, RecoverReport) and not (isinstance(status, Status) and not status.unsettled):
            self._problem(f"recover says {told}, and status {when}: {status}")
        found = self._client("doctor", lambda lake: lake.doctor(files=False))
        if not isinstance(found, Diagnosis):
            self._problem(f"the doctor says {when}: {found!r}")

    def _go_on(self, given_up: bool) -> None:
        """Other tables can be written: alone at once, together when the table is given up at the latest."""
        spot = self.spot
        assert spot is not None
        alone = self._client("alone", lambda lake: lake.append("up", [{"k": 50, "items": ""}]))
        together = self._client("together", lambda lake: _write(lake, FREE, 8, 2), BOTH)
        if spot.table:
            if isinstance(alone, LakeVillaError):
                self._problem(f"another table cannot be written: {alone}")
            if isinstance(together, LakeVillaError):
                self._check_blocked(together)
                if given_up:
                    self._give_up(spot.table)
        else:
            for error in (alone, together):
                if isinstance(error, LakeVillaError) and not (
                    GLOBAL in str(error) or "of the global log" in str(error)
                ):
                    self._problem(f"the error does not name the global log: {error}")

    def _check_blocked(self, error: LakeVillaError) -> None:
        assert self.spot is not None
        for word in (self.txn, repr(self.spot.table), "recover --give-up"):
            if word not in str(error):
                self._problem(f"the error does not say {word}: {error}")
        found = self._client("doctor2", lambda lake: lake.doctor(files=False))
        waiting = [check for check in found.checks if check.subject == "unsettled entries"]
        if not any(self.txn in check.text for check in waiting):
            self._problem(f"blocked, and the doctor says {waiting}")
        status = self._client("status2", lambda lake: lake.status())
        if self.txn not in str(status):
            self._problem(f"blocked, and status says {status}")
        told = self._client("recover2", lambda lake: lake.recover())
        if not isinstance(told, LakeVillaError) or self.txn not in str(told):
            self._problem(f"blocked, and recover says {told!r}")

    def _give_up(self, table: str) -> None:
        told = self._client("operator", lambda lake: lake.recover(give_up=table))
        self.played.answers.append(f"give up: {told}")
        if isinstance(told, LakeVillaError):
            self._problem(f"giving {table!r} up did not help: {told!r}")
            return
        again = self._client("together2", lambda lake: _write(lake, FREE, 8, 2), BOTH)
        if isinstance(again, LakeVillaError):
            self._problem(f"given up, and the other tables cannot be written: {again!r}")
        self._look("when it is given up")

    def _end(self) -> None:
        self._restore()
        told = self._client("recovers", lambda lake: lake.recover())
        if isinstance(told, LakeVillaError):
            self._problem(f"the fault has ended, and recover says {told!r}")

    def _judge(self) -> None:
        """Everything is settled, the outcome is what the tables show, and all tables can be written."""
        outcome = self._client("auditor", lambda lake: lake.outcome(self.txn))
        state = getattr(outcome, "state", repr(outcome))
        self.played.answers.append(f"in the end: {state}")
        found = self._client("shows", _read)
        if isinstance(found, LakeVillaError):
            self._problem(f"in the end the tables cannot be read: {found!r}")
            return
        visible = {table for table in WRITTEN if VALUE in found[table]}
        torn = self._torn()
        expected = {"committed": set(WRITTEN), "aborted": set(), "undecided": set()}
        if state == "torn":
            if not torn or visible - torn:
                self._problem(f"torn on {torn}, and visible on {visible}")
        elif visible != expected.get(state):
            self._problem(f"the outcome is {state}, and it is visible on {visible}: {outcome}")
        self._check_final(state, visible)
        diagnosis = self._client("doctor3", lambda lake: lake.doctor(files=False))
        left = [c for c in diagnosis.checks if c.subject == "unsettled entries" and c.state != "ok"]
        wrong = [c for c in diagnosis.checks if c.state == "problem" and c.subject != "torn tables"]
        if left or wrong:
            self._problem(f"in the end the doctor finds {[*left, *wrong]}")
        self._client("accepts", lambda lake: lake.sync(accept_torn=True))
        told = self._client("writes", lambda lake: _write(lake, (*WRITTEN, *FREE), 9, 0), BOTH)
        if isinstance(told, LakeVillaError):
            self._problem(f"in the end the tables cannot be written: {told!r}")

    def _check_final(self, state: str, visible: set[str]) -> None:
        if self.answer == "committed" and state != "committed":
            self._problem(f"it was acknowledged, and the outcome is {state}")
        if self.answer not in ("committed", "died", "CommitUnknown", "Torn") and visible:
            self._problem(f"its client was told {self.answer}, and it is visible on {visible}")
        if self.answer == "Torn" and state != "torn":
            self._problem(f"the owner was told Torn, and the outcome is {state}")

    def _torn(self) -> set[str]:
        diagnosis = self._client("doctor4", lambda lake: lake.doctor(files=False))
        return {table for c in diagnosis.checks if c.subject == "torn tables" for table in c.tables}

    def _problem(self, text: str) -> None:
        self.played.problems.append(text)


def _write_outside(client: Client) -> None:
    """A row by a client that knows nothing of us: it concerns every update."""
    writer = LegacyWriter(client, History(), encode_json)
    writer.append("right", "right", [{"k": STRANGER, "items": ""}], statistics=False)


def _write(lake: Lake, tables: tuple[str, ...], value: int, key: int) -> None:
    with lake.transaction() as tx:
        for table in tables:
            tx.update(table, set={"items": f"concat(items, ',{value}')"}, where=f"k = {key}")


def _read(lake: Lake) -> dict[str, list[str]]:
    found = {}
    for table in (*WRITTEN, *FREE):
        rows = {row[0]: row[1] for row in lake.read(table).collect()}
        found[table] = rows[1].split(",")
    return found


def play(case: Case, spot: Spot | None = None, how: How = "denied", given_up: bool = False) -> Played:
    """Play the commit, with the fault or without one."""
    watch = _Watch()
    with World(4, lambda _: watch, formats=case.formats) as world:
        world.bucket.load(_image(case.formats))
        return _Play(world, watch, case, spot, how).run(given_up)


def spots(case: Case) -> list[Spot]:
    """The requests of settling."""
    return play(case).requests


def faults(spot: Spot) -> list[How]:
    """The ways in which such a request can fail for good."""
    broken: list[How] = ["denied", "failed"]
    if spot.kind in WRITES:
        return [*broken, "mute"]
    if spot.site.endswith((" pointer", " named metadata")):
        # The simulated catalogs are whole: they have what they name.
        return broken
    return [*broken, "lost", "damaged"] if spot.kind in ("get", "get_range") else broken
