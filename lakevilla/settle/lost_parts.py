"""Tables that were given up in a refused commit: is anything of the commit there, now or later?

Such a table counts as torn, unless its log shows that the commit's part is not there, and no client can
publish it any more. That can be shown where the slot was created long after its client had looked at the
table. Then the log may have been cleaned up past the validated version before the commit was decided, so that
no client can begin to publish it:

- What was published for the commit came after its slot. So every version has to be known that was written
  since then: the log goes back, without a gap, to a version that is older than the slot.
- A client that passed those versions before they were cleaned up may be about to publish the part above them.
  So the part is published first, as an empty commit, and rolled back by another one. That client finds its
  attempt there, as on every other table of the commit.

Where uploads are missing, no client publishes: each of them looks for the uploads first.
"""

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import partial

from lakevilla.answers import HistoryEntry
from lakevilla.environment import Environment
from lakevilla.errors import Unavailable, Unsupported
from lakevilla.formats.catalogs import NotConfigured
from lakevilla.formats.port import Snapshot, Table, Taken
from lakevilla.model import Author, Change, TableRef
from lakevilla.settle.places import Places
from lakevilla.settle.premise import Premise
from lakevilla.settle.publish_walk import FOR_GOOD, PublishedAt, walk
from lakevilla.versions.commits import Write
from lakevilla.versions.log import PREMISE_SECONDS

PREMISE_MS = int(PREMISE_SECONDS * 1000)

INVERSE = "-inverse"
"""The suffix of an inverse commit's attempt, after the attempt that it rolls back."""

EMPTY_PART = "REFUSED"
"""The operation of the empty commit that takes the place of a part."""

OpenAt = Callable[[TableRef, int], tuple[Table, Snapshot]]
"""A table and its snapshot at a version."""


@dataclass(frozen=True)
class LostParts:
    """See above. `premise` knows when the slot was created, and whether that was late."""

    environment: Environment
    places: Places
    open_at: OpenAt
    premise: Premise | None

    def find_untouched(self, writes: Sequence[Write], author: Author) -> AbstractSet[str]:
        """The locations of these tables where nothing of the commit is, and nothing can be any more: they are
        not torn.

        Unavailable or Unsupported if this client cannot tell: another one may. A table that an operator has
        declared lost counts as torn then."""
        found = self.environment.fan_out([partial(self._is_untouched, write, author) for write in writes])
        return {write.table.location for write, is_so in zip(writes, found, strict=True) if is_so}

    def _is_untouched(self, write: Write, author: Author) -> bool:
        try:
            table = self.places.open(write.table)
            if table.is_dropped_without(author.attempt, write.base):
                return True
            if self.premise is None or not self.premise.late:
                return False
            return self._is_late_part_absent(table, write, author, self.premise)
        except (Unavailable, Unsupported, NotConfigured) as error:
            if self.premise is not None and write.table.location in self.premise.lost:
                return False
            kind = Unsupported if isinstance(error, Unsupported) else Unavailable
            raise kind(f"table {write.table.name!r}: {error}", table=write.table.name) from error
        except FOR_GOOD:
            return False

    def _is_late_part_absent(self, table: Table, write: Write, author: Author, premise: Premise) -> bool:
        change = table.decode_change(write.change)
        missing = bool(table.missing((*change.added, *change.feed)))
        newest = table.latest()
        if write.creates:
            return missing and newest is None
        if newest is None or newest.table_id != write.table_id:
            return False
        later = self._later(write)
        if missing and write.base + len(later) >= newest.version:
            return all(taken.footprint.attempt != author.attempt for taken in later)
        known = self._find_empty(table, write, author, premise)
        if known is not None and author.attempt not in known:
            walk(table, newest, Change(EMPTY_PART), author, self.environment.new_id)
            # What another client has published meanwhile is found by the second look.
            known = self._find_empty(table, write, author, premise)
        if known is None or author.attempt not in known:
            return False
        return author.attempt + INVERSE in known or self._roll_back(table, author)

    def _find_empty(self, table: Table, write: Write, author: Author, premise: Premise) -> set[str] | None:
        """The attempts, this one or its inverse, of empty commits in the log. None if the log does not have
        every version since the slot was created, or if one of them is the part."""
        written, decided_ms = table.written(), premise.decided_ms()
        versions, is_whole = versions_since(written, write.base, decided_ms)
        # What was published since the slot was created cannot have been cleaned up within an hour.
        if not is_whole and not premise.is_recent():
            return None
        # Versions that are published after the first look are not among those that it found.
        history = table.history(len(versions), max(versions, default=0) + 1) if written else table.history()
        found = {entry.version: entry for entry in history}
        shown = [found.get(version) for version in versions] if written else history
        if any(entry is None or _is_part(entry, author.attempt) for entry in shown):
            return None
        ours = (author.attempt, author.attempt + INVERSE)
        return {entry.attempt for entry in shown if entry is not None and entry.attempt in ours}

    def _roll_back(self, table: Table, author: Author) -> bool:
        newest = table.latest()
        change = Change("ROLLBACK", {"of": EMPTY_PART}, inverse=True)
        inverse = replace(author, attempt=author.attempt + INVERSE)
        if newest is None:
            return False
        return isinstance(walk(table, newest, change, inverse, self.environment.new_id), PublishedAt)

    def _later(self, write: Write) -> Sequence[Taken]:
        """What was committed after the validated version; nothing if that was cleaned up."""
        try:
            table, base = self.open_at(write.table, write.base)
            return table.since(base)
        except FOR_GOOD:
            return []


def versions_since(written: Mapping[int, int], base: int, decided_ms: int | None) -> tuple[list[int], bool]:
    """The newest versions of a log, as far down as one may have been written after this moment and after
    `base`; and False if one is missing on the way. Pure. Clocks of two stores may be an hour apart."""
    known: list[int] = []
    version = max(written, default=base)
    while version > base and version in written:
        if decided_ms is not None and written[version] < decided_ms - PREMISE_MS:
            return known, True
        known.append(version)
        version -= 1
    return known, bool(written) and version == base


def _is_part(entry: HistoryEntry, attempt: str) -> bool:
    return entry.attempt == attempt and entry.operation != EMPTY_PART
