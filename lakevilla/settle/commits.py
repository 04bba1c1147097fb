"""Settling a commit on several tables: publish all of it, or take back what was published.

Two rounds, each in parallel. First the tables on which an outside writer could be in the way, all of them,
never stopping early: a helper that stopped at the first refusal while another goes on would publish a
commit that is aborted. Only when every one of them is published, the rest. If one is refused, each table that
was published gets an inverse commit by the same walk. Every walk's result is fixed by logs that nobody
rewrites, so all who settle an entry reach the same outcome, at whatever time and in whatever order.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from lakevilla.environment import Environment
from lakevilla.formats.port import Snapshot, Table
from lakevilla.model import Author, Change, TableRef
from lakevilla.settle.walking import Landed, Refused, walk
from lakevilla.versions.commits import Commit, Settled, Write

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


@dataclass(frozen=True)
class Outcome:
    """What became of a commit: the tables after it by location, or who was in the way."""

    settled: Settled
    snapshots: Mapping[str, Snapshot]
    refused: Refused | None


@dataclass(frozen=True)
class CommitSettler:
    """Settles the commit of one entry, for its owner or for somebody who found it."""

    seq: int
    txn: str
    attempt: str
    environment: Environment
    open_at: OpenAt

    def settle(self, commit: Commit) -> Outcome:
        """Publish the commit, or take it back."""
        walked: list[_Walked] = []
        for part in (
            [write for write in commit.writes if not write.blind],
            [write for write in commit.writes if write.blind],
        ):
            walked += self.environment.fan_out([partial(self._land, write) for write in part])
            refused = next((w.outcome for w in walked if isinstance(w.outcome, Refused)), None)
            if refused is not None:
                return Outcome(self._take_back(walked), {}, refused)
        landed = {w.write.table.location: w.outcome.after for w in walked if isinstance(w.outcome, Landed)}
        versions = {location: snapshot.version for location, snapshot in landed.items()}
        return Outcome(Settled(True, versions), landed, None)

    def _land(self, write: Write) -> _Walked:
        table, base = self.open_at(write.table, write.base)
        # What was read of the table counts too: it must not have changed under the commit.
        change = replace(table.decode_change(write.change), read=write.read)
        author = replace(self._author(self.attempt), ticket=write.ticket)
        outcome = walk(table, base, change, author, self.environment.new_id)
        return _Walked(write, table, change, outcome)

    def _take_back(self, walked: Sequence[_Walked]) -> Settled:
        """Inverse commits for all that was published."""
        published = [w for w in walked if isinstance(w.outcome, Landed)]
        results = self.environment.fan_out([partial(self._invert, w) for w in published])
        versions, torn = {}, set()
        for part, result in zip(published, results, strict=True):
            location = part.write.table.location
            if isinstance(result, Landed):
                versions[location] = result.after.version
            else:
                logger.error(
                    "table %s is torn: %s built on a commit that had to be taken back",
                    part.write.table.name,
                    result.winner.summary,
                )
                torn.add(location)
        return Settled(False, versions, frozenset(torn))

    def _invert(self, walked: _Walked) -> Landed | Refused:
        assert isinstance(walked.outcome, Landed)
        landed = walked.outcome
        inverse = walked.table.inverse(landed.before, walked.change)
        author = self._author(self.attempt + INVERSE)
        return walk(walked.table, landed.after, inverse, author, self.environment.new_id)

    def _author(self, attempt: str) -> Author:
        return Author(self.txn, attempt, "", slot=self.seq)
