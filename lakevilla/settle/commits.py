"""Settling a commit on several tables: publish all of it, or roll back what was published.

Rounds, each in parallel. First the tables on which an outside writer could be in the way, all of them, never
stopping early: if one helper stopped at the first refusal while another continued, an aborted commit would be
published. Only when every one of them is published, blind appends, tables that have no outside writers, and
new tables: no client is in their way but one that alters the table, or makes one in the same place. If one is
refused, each table that was published gets an inverse commit by the same walk, and a new one a notice that it
is dropped. When all is published, tables that the commit drops get theirs. Every walk's result is fixed by
logs that are never rewritten, so all clients that settle an entry reach the same outcome, at whatever time
and in whatever order.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from lakevilla.environment import Environment
from lakevilla.errors import Corrupt, Unavailable
from lakevilla.formats.catalogs import NotConfigured
from lakevilla.formats.identity import recreated
from lakevilla.formats.port import Snapshot, Table
from lakevilla.model import Author, Batch, Change, Notice
from lakevilla.settle.lost_parts import INVERSE, LostParts, OpenAt
from lakevilla.settle.places import Places, claim
from lakevilla.settle.premise import Premise
from lakevilla.settle.publish_walk import FOR_GOOD, OutOfReach, PublishedAt, Refused, publish_notice, walk
from lakevilla.settle.row_facts import RowReader
from lakevilla.versions.commits import Commit, Drop, Settled, Write

logger = logging.getLogger("lakevilla.settle")


@dataclass(frozen=True)
class _Walked:
    """One table's part of the commit, and how far it came."""

    write: Write
    table: Table
    change: Change
    outcome: PublishedAt | Refused
    owned: bool = False
    """Whether it made the table, which belongs to the lake now."""

    @property
    def location(self) -> str:
        return self.write.table.location


@dataclass(frozen=True)
class Outcome:
    """The result of settling a commit: the tables after it by location, or the conflicting commit, or the
    locations of its tables that are out of reach."""

    settled: Settled
    snapshots: Mapping[str, Snapshot]
    refused: Refused | None
    lost: frozenset[str] = frozenset()


@dataclass(frozen=True)
class CommitSettler:
    """Settles the commit of one entry of a lake, for its owner or for a client that found it.

    `open_at` gives tables that the commit found at the version that it was validated on. `given_up` are
    locations that HEAD says are out of reach: with one of them the commit is refused. `premise` knows
    whether the slot was created so late that what the commit needs may have been deleted before.
    """

    lake: str
    seq: int
    txn: str
    attempt: str
    environment: Environment
    places: Places
    open_at: OpenAt
    given_up: frozenset[str] = frozenset()
    premise: Premise | None = None

    def settle(self, commit: Commit) -> Outcome:
        """Publish the commit, or roll it back. Raises OutOfReach if a table is out of reach."""
        lost = self.given_up & {write.table.location for write in commit.writes}
        reached = [write for write in commit.writes if write.table.location not in lost]
        walked: list[_Walked] = []
        for later in (False, True):
            part = [write for write in reached if _is_certain(write) is later]
            tasks = [partial(self._publish, write, commit.once) for write in part]
            walked += self.environment.fan_out(tasks)
            refused = next((w.outcome for w in walked if isinstance(w.outcome, Refused)), None)
            # With a table out of reach all others are published before they are rolled back: a client that
            # does not know yet may be about to publish any of them, and must find that done.
            if refused is not None and not lost:
                return Outcome(self._roll_back(walked), {}, refused)
        if lost:
            settled = self._roll_back(walked)
            parts = LostParts(self.environment, self.places, self.open_at, self.premise)
            author = self._author(self.attempt)
            untouched = parts.find_untouched([w for w in commit.writes if w.table.location in lost], author)
            torn = lost - untouched
            return Outcome(replace(settled, torn=settled.torn | torn), {}, refused, lost)
        self.environment.fan_out([partial(self._announce, drop) for drop in commit.drops])
        published = {w.location: w.outcome.after for w in walked if isinstance(w.outcome, PublishedAt)}
        versions = {location: snapshot.version for location, snapshot in published.items()}
        return Outcome(Settled(True, versions, owned=_owned(walked)), published, None)

    def _publish(self, write: Write, once: Batch | None) -> _Walked:
        try:
            return self._make(write, once) if write.creates else self._publish_change(write, once)
        except (Unavailable, NotConfigured) as error:
            # Another client may have what this one lacks: the table is not lost.
            raise Unavailable(f"table {write.table.name!r}: {error}", table=write.table.name) from error
        except FOR_GOOD as error:
            raise OutOfReach(write.table.location, str(error)) from error

    def _publish_change(self, write: Write, once: Batch | None) -> _Walked:
        table, base, change = self._open(write, once)
        author = replace(self._author(self.attempt), ticket=write.ticket)
        self._refuse_missing(write, table, change)
        rows = RowReader(tests_files=False) if write.by_rows else None
        outcome = walk(table, base, change, author, self.environment.new_id, rows)
        return _Walked(write, table, change, outcome)

    def _make(self, write: Write, once: Batch | None) -> _Walked:
        """Create the first version of a new table, which is the lake's from then on."""
        table, base, change = self._open(write, once)
        author = self._author(self.attempt)
        self._refuse_missing(write, table, change)
        outcome = walk(table, base, change, author, self.environment.new_id)
        if isinstance(outcome, Refused):
            return _Walked(write, table, change, outcome)
        owner = claim(self.places.store(write.table), self.environment, self.lake, self.places.url)
        return _Walked(write, table, change, outcome, owned=owner.lake == self.lake)

    def _open(self, write: Write, once: Batch | None = None) -> tuple[Table, Snapshot, Change]:
        """The table, the version that its part of the commit builds on, and that part."""
        if write.creates:
            table = self.places.open(write.table)
            change = replace(table.decode_change(write.change), once=once)
            return table, table.describe(change), change
        table, base = self.open_at(write.table, write.base)
        if write.table_id and base.table_id != write.table_id:
            raise recreated(write.table.location, write.base)
        # What was read of the table counts too: it must not have changed under the commit.
        return table, base, replace(table.decode_change(write.change), read=write.read, once=once)

    def _refuse_missing(self, write: Write, table: Table, change: Change) -> None:
        """Vacuum deletes nothing of an entry that is decided, so all clients that settle it find the same."""
        missing = table.missing((*change.added, *change.feed)) if self._is_late else ()
        if missing:
            raise Corrupt(
                f"{missing[0]}, which a decided commit adds to the table {write.table.name!r}, was deleted "
                "before the commit was decided",
                table=write.table.name,
            )

    @property
    def _is_late(self) -> bool:
        return self.premise is not None and self.premise.late

    def _announce(self, drop: Drop) -> None:
        """Publish a notice in the log of a dropped table below the root."""
        if drop.base is not None and drop.table.location not in self.given_up:
            self._notice(self.places.open(drop.table), drop.base, self.attempt)

    def _notice(self, table: Table, base: int, attempt: str) -> None:
        publish_notice(table, base, Notice(self.lake, self.seq, dropped=True), self.txn, attempt)

    def _roll_back(self, walked: Sequence[_Walked]) -> Settled:
        """Inverse commits for all that was published; new tables are dropped, even if
        another client has used them."""
        made = [w for w in walked if w.write.creates and isinstance(w.outcome, PublishedAt)]
        self.environment.fan_out([partial(self._drop, w.table) for w in made])
        published = [w for w in walked if not w.write.creates and isinstance(w.outcome, PublishedAt)]
        results = self.environment.fan_out([partial(self._invert, w) for w in published])
        versions, torn = {}, set()
        for part, result in zip(published, results, strict=True):
            location = part.location
            if isinstance(result, PublishedAt):
                versions[location] = result.after.version
            else:
                name = part.write.table.name
                logger.error("table %s is torn: a commit could not be rolled back there: %s", name, result)
                torn.add(location)
        dropped = frozenset(w.location for w in made if w.write.table.is_inside)
        return Settled(False, {**versions, **_met(walked)}, frozenset(torn), dropped)

    def _drop(self, table: Table) -> None:
        self._notice(table, table.first_version, self.attempt + INVERSE)

    def _invert(self, walked: _Walked) -> PublishedAt | str:
        """Roll the table back, or say why that is not possible."""
        assert isinstance(walked.outcome, PublishedAt)
        published = walked.outcome
        author = self._author(self.attempt + INVERSE)
        try:
            inverse = walked.table.inverse(published.before, walked.change, self._author(self.attempt))
            result = walk(walked.table, published.after, inverse, author, self.environment.new_id)
        except FOR_GOOD as error:
            return str(error)
        if isinstance(result, Refused):
            return f"{result.winner.summary} built on it"
        walked.table.renew_hint(result.after)
        return result

    def _author(self, attempt: str) -> Author:
        return Author(self.txn, attempt, "", slot=self.seq)


def _is_certain(write: Write) -> bool:
    """Whether only a client that alters the table, or makes one in the same place, can conflict."""
    return write.blind or write.exclusive or write.creates


def _met(walked: Sequence[_Walked]) -> dict[str, int]:
    """The conflicting versions, which were written without the global log: this entry adopts them, so that
    the transaction can be redone on them."""
    refused = {
        w.location: w.outcome.winner for w in walked if isinstance(w.outcome, Refused) and not w.write.creates
    }
    return {place: w.version for place, w in refused.items() if not w.dropped and not w.unreadable}


def _owned(walked: Sequence[_Walked]) -> frozenset[str]:
    return frozenset(w.location for w in walked if w.owned)
