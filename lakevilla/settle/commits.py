"""Settling a commit on several tables: publish all of it, or take back what was published.

Rounds, each in parallel. First the tables on which an outside writer could be in the way, all of them,
never stopping early: a helper that stopped at the first refusal while another goes on would publish a
commit that is aborted. Only when every one of them is published, blind appends, tables that have no outside
writers, and new tables: nobody is in their way but who alters the table, or makes one in the same place. If
one is refused, each table that was published gets an inverse commit by the same walk, and a new one a notice
that it is dropped. When all is published, tables that the commit drops get theirs. Every walk's result is
fixed by logs that nobody rewrites, so all who settle an entry reach the same outcome, at whatever time and in
whatever order.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from lakevilla.environment import Environment
from lakevilla.errors import Unavailable
from lakevilla.formats.port import Snapshot, Table
from lakevilla.model import Author, Change, Notice, TableRef
from lakevilla.settle.places import Places, claim
from lakevilla.settle.walking import Landed, Refused, tell, walk
from lakevilla.versions.commits import Commit, Drop, Settled, Write

logger = logging.getLogger("lakevilla.settle")

OpenAt = Callable[[TableRef, int], tuple[Table, Snapshot]]
"""A table and its snapshot at a version."""

INVERSE = "-inverse"
"""What the attempt of an inverse commit has behind the attempt that it takes back."""


@dataclass(frozen=True)
class _Walked:
    """One table's part of the commit, and how far it came."""

    write: Write
    table: Table
    change: Change
    outcome: Landed | Refused
    owned: bool = False
    """Whether it made the table, which belongs to the lake now."""

    @property
    def location(self) -> str:
        return self.write.table.location


@dataclass(frozen=True)
class Outcome:
    """What became of a commit: the tables after it by location, or who was in the way."""

    settled: Settled
    snapshots: Mapping[str, Snapshot]
    refused: Refused | None


@dataclass(frozen=True)
class CommitSettler:
    """Settles the commit of one entry of a lake, for its owner or for somebody who found it.

    `open_at` gives tables that the commit found at the version that it was validated on.
    """

    lake: str
    seq: int
    txn: str
    attempt: str
    environment: Environment
    places: Places
    open_at: OpenAt

    def settle(self, commit: Commit) -> Outcome:
        """Publish the commit, or take it back."""
        walked: list[_Walked] = []
        certain = [write.blind or write.exclusive or write.creates for write in commit.writes]
        for later in (False, True):
            part = [write for write, last in zip(commit.writes, certain, strict=True) if last is later]
            walked += self.environment.fan_out([partial(self._land, write) for write in part])
            refused = next((w.outcome for w in walked if isinstance(w.outcome, Refused)), None)
            if refused is not None:
                return Outcome(self._take_back(walked), {}, refused)
        self.environment.fan_out([partial(self._tell, drop) for drop in commit.drops])
        landed = {w.location: w.outcome.after for w in walked if isinstance(w.outcome, Landed)}
        versions = {location: snapshot.version for location, snapshot in landed.items()}
        return Outcome(Settled(True, versions, owned=_owned(walked)), landed, None)

    def _land(self, write: Write) -> _Walked:
        try:
            return self._make(write) if write.creates else self._publish(write)
        except Unavailable as error:
            raise Unavailable(f"table {write.table.name!r}: {error}") from error

    def _publish(self, write: Write) -> _Walked:
        table, base = self.open_at(write.table, write.base)
        # What was read of the table counts too: it must not have changed under the commit.
        change = replace(table.decode_change(write.change), read=write.read)
        author = replace(self._author(self.attempt), ticket=write.ticket)
        outcome = walk(table, base, change, author, self.environment.new_id)
        return _Walked(write, table, change, outcome)

    def _make(self, write: Write) -> _Walked:
        """Create the first version of a new table, which is the lake's from then on."""
        table = self.places.open(write.table)
        change = table.decode_change(write.change)
        author = self._author(self.attempt)
        outcome = walk(table, table.describe(change), change, author, self.environment.new_id)
        if isinstance(outcome, Refused):
            return _Walked(write, table, change, outcome)
        owner = claim(self.places.store(write.table), self.environment, self.lake, self.places.url)
        return _Walked(write, table, change, outcome, owned=owner.lake == self.lake)

    def _tell(self, drop: Drop) -> None:
        """A table below the root that is dropped says so in its own log."""
        if drop.base is not None:
            self._notice(self.places.open(drop.table), drop.base, self.attempt)

    def _notice(self, table: Table, base: int, attempt: str) -> None:
        tell(table, base, Notice(self.lake, self.seq, dropped=True), self.txn, attempt)

    def _take_back(self, walked: Sequence[_Walked]) -> Settled:
        """Inverse commits for all that was published; new tables are dropped, whoever has used them."""
        made = [w for w in walked if w.write.creates and isinstance(w.outcome, Landed)]
        self.environment.fan_out([partial(self._drop, w.table) for w in made])
        published = [w for w in walked if not w.write.creates and isinstance(w.outcome, Landed)]
        results = self.environment.fan_out([partial(self._invert, w) for w in published])
        versions, torn = {}, set()
        for part, result in zip(published, results, strict=True):
            location = part.location
            if isinstance(result, Landed):
                versions[location] = result.after.version
            else:
                logger.error(
                    "table %s is torn: %s built on a commit that had to be taken back",
                    part.write.table.name,
                    result.winner.summary,
                )
                torn.add(location)
        dropped = frozenset(w.location for w in made if w.write.table.is_inside)
        return Settled(False, {**versions, **_met(walked)}, frozenset(torn), dropped)

    def _drop(self, table: Table) -> None:
        self._notice(table, table.first_version, self.attempt + INVERSE)

    def _invert(self, walked: _Walked) -> Landed | Refused:
        assert isinstance(walked.outcome, Landed)
        landed = walked.outcome
        inverse = walked.table.inverse(landed.before, walked.change)
        author = self._author(self.attempt + INVERSE)
        result = walk(walked.table, landed.after, inverse, author, self.environment.new_id)
        if isinstance(result, Landed):
            walked.table.renew_hint(result.after)
        return result

    def _author(self, attempt: str) -> Author:
        return Author(self.txn, attempt, "", slot=self.seq)


def _met(walked: Sequence[_Walked]) -> dict[str, int]:
    """The versions that were in the way, written without the global log: they are part of it from here on,
    so that the transaction can be redone on them."""
    refused = {
        w.location: w.outcome.winner for w in walked if isinstance(w.outcome, Refused) and not w.write.creates
    }
    return {place: winner.version for place, winner in refused.items() if not winner.dropped}


def _owned(walked: Sequence[_Walked]) -> frozenset[str]:
    return frozenset(w.location for w in walked if w.owned)
