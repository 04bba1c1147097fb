"""Faults of the suite `world`: sleeps until another season, and outages at the writes that decide.

Time goes in **seasons**: short bursts of work, hours, days or weeks apart. A client that sleeps wakes up in a
later one, or past the hour for which a premise counts. It sleeps right before it sends, with a request under
way, or with one that went unanswered: the request applied, did not, or applies late. An **outage** does the
same to the answer of a write that decides something, and lasts longer than the client's retries.
"""

from collections.abc import Callable
from dataclasses import replace
from random import Random

from sim.world.faults import TIMEOUT, Fate, Storm, answered, late, lost, refused
from sim.world.sites import site

DECISIVE = frozenset(
    ("create log entry", "create slot", "replace HEAD", "create metadata", "replace pointer", "create HEAD")
)
HOUR = 3600.0
DAY = 24 * HOUR
OUTAGES = 0.2
"""How often a write that decides meets an outage."""
FOCUS = ("", "", "create slot", "create log entry", "create metadata", "replace HEAD")
GAPS = (2 * HOUR, 30 * HOUR, 3 * DAY, 9 * DAY, 20 * DAY)
"""How long the time between two seasons may be: past a premise, a day, and the retention of a week."""


def draw_starts(random: Random) -> tuple[float, ...]:
    """When the seasons of a seed begin."""
    starts = [0.0]
    for _ in range(random.randint(3, 5)):
        starts.append(starts[-1] + random.choice(GAPS) * (1 + random.random() / 10))
    return tuple(starts)


class Seasons(Storm):
    """See above. `now` is the simulated clock; so many `sleeps` and `outages` there are at most. With a
    `focus` clients fall asleep at this kind of request alone, and often."""

    now: Callable[[], float]

    def __init__(
        self,
        random: Random,
        starts: tuple[float, ...],
        *,
        mean_gap: int,
        crashes: int,
        sleeps: int,
        outages: int,
        focus: str = "",
    ) -> None:
        super().__init__(random, mean_gap=mean_gap, crashes=crashes)
        self._starts = starts
        self._sleeps = sleeps
        self._outages = outages
        self._focus = focus

    def fate(self, client: str, kind: str, key: str) -> Fate:
        if self.calm or not client.startswith(("c", "b")):
            return answered(self._random)
        where, draw = site(kind, key), self._random.random()
        decides = where in DECISIVE
        if decides and self._outages and draw < OUTAGES:
            self._outages -= 1
            return self._noted(self._outage())
        if self._sleeps and draw > self._wakeful(where, decides):
            self._sleeps -= 1
            return self._noted(self._asleep(decides))
        return super().fate(client, kind, key)

    def _wakeful(self, where: str, decides: bool) -> float:
        """How likely it is that a client stays awake."""
        if self._focus:
            return 0.7 if where == self._focus else 1.0
        return 0.92 if decides else 0.995

    def _outage(self) -> Fate:
        """The answer is lost, and the store cannot be reached for longer than a client tries."""
        fate = self._random.choice((lost, lost, late, refused))(self._random)
        cut = self._random.choice((45.0, 90.0, 300.0))
        return replace(fate, fault=f"outage, {fate.fault}", gives_up=TIMEOUT, cut=cut)

    def _asleep(self, decides: bool) -> Fate:
        freeze = self._until_later()
        kinds = (answered, answered, lost, late, refused) if decides else (answered, answered, lost)
        fate = self._random.choice(kinds)(self._random)
        if self._random.random() < 0.4:
            # It fell asleep before it sent the request.
            applies = tuple(freeze + at for at in fate.applies)
            after, gives_up = freeze + fate.answer_after, freeze + fate.gives_up
            fate = replace(fate, applies=applies, answer_after=after, gives_up=gives_up)
            return replace(fate, fault=f"asleep before, {fate.fault}", freeze=freeze)
        return replace(fate, fault=f"asleep, {fate.fault}", freeze=freeze)

    def _until_later(self) -> float:
        """The time from now until somewhere in a later season, or a little more than an hour."""
        now = self.now()
        later = [start for start in self._starts if start > now + HOUR / 2]
        if not later or self._random.random() < 0.2:
            return HOUR * (1 + self._random.random())
        return self._random.choice(later) + self._random.random() * 4 - now

    def _noted(self, fate: Fate) -> Fate:
        self.counts[fate.fault] = self.counts.get(fate.fault, 0) + 1
        return fate
