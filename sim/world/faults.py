"""What goes wrong: the fate of one request, and plans that choose it.

A request is sent, applies, and is answered: three events. A `Fate` says when each of them happens, if
at all; the store (`store`) only carries it out. Every fault of the simulation is one of these fates, a
cut connection or a pause; a crash is a fate too, because a client dies somewhere between its requests.
"""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Literal, Protocol

from sim.world.sites import site

Crash = Literal["before", "applied", "answered"]

REQUESTS = ("get", "get_range", "head", "list", "list_folders", "put", "create", "replace", "delete")
"""Every kind of request of the store port."""

WRITES = frozenset({"put", "create", "replace", "delete"})

_WEIGHTS = {"create": 6, "replace": 6, "put": 2}


@dataclass(frozen=True, slots=True)
class Fate:
    """What happens to one request; delays are simulated seconds from the send.

    `applies` are the moments at which it applies (none, one, or twice). `answer` says which of these
    applications the client hears of; without it the client gets `Unanswered(error)` after `gives_up`.
    `crash` kills the client before it sends, after the first application, or with the answer.
    `freeze` suspends the client for so long while the request is on its way; `cut` makes the
    client's further requests fail for so long.
    """

    fault: str = ""
    applies: tuple[float, ...] = ()
    answer: int | None = None
    answer_after: float = 0.0
    error: str = ""
    gives_up: float = 0.0
    crash: Crash | None = None
    freeze: float = 0.0
    cut: float = 0.0


@dataclass(frozen=True, slots=True)
class Denial:
    """From some moment on no request of these kinds on keys with this prefix succeeds, for any client: it is
    denied, it fails on the server, or it applies and its answer is lost. With a `site` (see `sites`) only
    requests there."""

    prefix: str
    kinds: frozenset[str]
    ends: Literal["denied", "failed", "mute"] = "denied"
    site: str = ""

    def concerns(self, kind: str, key: str) -> bool:
        return (
            kind in self.kinds
            and key.startswith(self.prefix)
            and (not self.site or site(kind, key) == self.site)
        )


class Plan(Protocol):
    """Chooses fates."""

    def fate(self, client: str, kind: str, key: str) -> Fate: ...


TIMEOUT = 5.0
"""After so long a client gives a request up."""

PAUSES = (120.0, 120.0, 4000.0)
"""Longer than any lease; the last longer than a premise may be old (an hour)."""


class Calm:
    """Nothing fails; only the latencies differ."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def fate(self, client: str, kind: str, key: str) -> Fate:  # noqa: ARG002
        return answered(self._random)


class Storm:
    """Faults at seeded gaps; `crashes` bounds how many clients die; `calm` ends the storm.

    Gaps are counted in requests, of which writes count more: faults gather where decisions are made.
    """

    def __init__(self, random: Random, *, mean_gap: int, crashes: int) -> None:
        self._random = random
        self._mean_gap = mean_gap
        self._crashes = crashes
        self.counts: dict[str, int] = {}
        self.calm = False
        self._next = self._gap()

    def fate(self, client: str, kind: str, key: str) -> Fate:  # noqa: ARG002
        self._next -= _WEIGHTS.get(kind, 1)
        if self.calm or self._next > 0:
            return answered(self._random)
        self._next = self._gap()
        choices = _CONDITIONAL if kind in ("create", "replace") else _PLAIN if kind in WRITES else _READS
        fate = self._random.choice(choices)(self._random)
        if fate.crash is not None:
            if self._crashes == 0:
                fate = lost(self._random)
            else:
                self._crashes -= 1
        self.counts[fate.fault] = self.counts.get(fate.fault, 0) + 1
        return fate

    def _gap(self) -> int:
        gap = self._random.randint(1, 2 * self._mean_gap)
        # The first three faults come early enough for every seed to have them.
        return gap if sum(self.counts.values()) >= 3 else min(gap, 20)


def answered(random: Random) -> Fate:
    """All goes well."""
    applied = _latency(random)
    return Fate(applies=(applied,), answer=0, answer_after=applied + _latency(random))


def refused(random: Random) -> Fate:
    """It fails before it applies: 429, 500, 503, or the connection breaks."""
    status = random.choice(("429", "500", "503", "connection reset"))
    return Fate("refused", error=status, gives_up=2 * _latency(random))


IN_PROGRESS = "409"


def conflicting(random: Random) -> Fate:
    """409: another request was in progress; ours may have applied or not."""
    applied = _latency(random)
    applies = (applied,) if random.random() < 0.5 else ()
    return Fate("conflicting", applies=applies, error=IN_PROGRESS, gives_up=applied + _latency(random))


def lost(random: Random) -> Fate:
    """It applies, but the answer is lost."""
    return Fate("lost", applies=(_latency(random),), error="timeout", gives_up=TIMEOUT)


def late(random: Random) -> Fate:
    """It applies after the client gave it up."""
    delay = random.choice((0.001, 0.1, 1.0, 10.0)) * (0.5 + random.random())
    return Fate("late", applies=(TIMEOUT + delay,), error="timeout", gives_up=TIMEOUT)


def twice(random: Random) -> Fate:
    """It applies twice (somebody between us and the store repeats it); we hear of either."""
    first = _latency(random)
    second = first + random.choice((0.01, 0.2, 3.0))
    heard = random.randrange(2)
    return Fate("twice", (first, second), heard, (first, second)[heard] + _latency(random))


def cut_off(random: Random) -> Fate:
    """The client cannot reach the store for a while."""
    return Fate("cut off", error="no route", gives_up=TIMEOUT, cut=random.choice((2.0, 20.0)))


def paused(random: Random) -> Fate:
    """The client stops for longer than its lease while the request is on its way, then goes on."""
    applied = _latency(random)
    freeze = random.choice(PAUSES) * (1 + random.random())
    return Fate("paused", (applied,), 0, applied + _latency(random), freeze=freeze)


def crash_before(random: Random) -> Fate:  # noqa: ARG001
    """The client dies before it sends."""
    return Fate("crash before", crash="before")


def crash_applied(random: Random) -> Fate:
    """The client dies after the request applied, without an answer."""
    return Fate("crash applied", applies=(_latency(random),), crash="applied")


def crash_answered(random: Random) -> Fate:
    """The client dies with the answer in its hands."""
    applied = _latency(random)
    return Fate("crash answered", (applied,), 0, applied + _latency(random), crash="answered")


def crash_late(random: Random) -> Fate:
    """The client dies, and its request applies long after."""
    return Fate("crash late", applies=(random.choice((1.0, 30.0)) * (1 + random.random()),), crash="before")


_READS: tuple[Callable[[Random], Fate], ...] = (
    *(refused, lost, cut_off, paused),
    *(crash_before, crash_answered),
)
_PLAIN: tuple[Callable[[Random], Fate], ...] = (
    *(refused, lost, late, twice, cut_off, paused),
    *(crash_before, crash_applied, crash_answered, crash_late),
)
# What a conditional write makes of a repeated or late request is where protocols go wrong.
_CONDITIONAL: tuple[Callable[[Random], Fate], ...] = (
    *(refused, conflicting, lost, late, late, twice, twice, twice, cut_off, paused),
    *(crash_before, crash_applied, crash_answered, crash_late),
)


def _latency(random: Random) -> float:
    """Mostly some milliseconds, sometimes much more: rivals overtake each other."""
    latency = random.expovariate(1 / 0.02)
    return latency * 20 if random.random() < 0.05 else latency
