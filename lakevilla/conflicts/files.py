"""Conflicts at file granularity: may a change still be published after another commit came first?

Pure decisions over values. A change was computed on some base version; each commit that was published
since is asked in turn. No conflict means that the change can be rebased as it is: the result is the same
as if the statement had run after that commit.
"""

from dataclasses import dataclass, field, replace

from lakevilla.model import Change, Footprint, ReadSet
from lakevilla.predicates import ANYTHING


@dataclass(frozen=True, slots=True)
class Hit:
    """Why the change cannot be rebased. `file` is empty where the whole table is concerned.

    `final` says that to run the statement again would not help either. `winner` is the commit that came
    first, where it is one commit.
    """

    reason: str
    file: str = ""
    final: bool = False
    winner: Footprint | None = field(default=None, compare=False, repr=False)


def decide_conflict(change: Change, theirs: Footprint) -> Hit | None:
    """The first rule that the two break, or None.

    Schema, partitioning and protocol changes conflict with every change, blind appends too: the files were
    written for another schema. Otherwise a blind append never conflicts. A commit that keeps all rows
    conflicts only with changes of the files that it removed: what was read is still true, see `follow`.
    """
    if theirs.keeps_rows:
        change = replace(change, read=ReadSet())
    hit = _decide(change, theirs)
    return None if hit is None else replace(hit, winner=theirs)


def follow(read: ReadSet, theirs: Footprint) -> ReadSet:
    """What was read, in the files as they are after a commit that did not conflict with it.

    A commit that keeps all rows moves them to other files: from then on a change of those files concerns what
    was read. They are added to the read set, whichever of its files they come from.
    """
    if not theirs.keeps_rows or not read.files:
        return read
    return read.union(ReadSet((), frozenset(theirs.added.matching(ANYTHING))))


def _decide(change: Change, theirs: Footprint) -> Hit | None:
    if theirs.unreadable:
        return Hit(f"a version that came first cannot be read ({theirs.unreadable})", final=True)
    if theirs.dropped:
        return Hit("the table was dropped", final=True)
    if theirs.protocol_changed or theirs.metadata_changed:
        return Hit("the table's schema or properties were changed")
    touched = change.read.files | {file.identity for file in change.removed}
    gone = touched & theirs.removed
    if gone:
        return Hit("a file that this statement read was removed", min(gone))
    for predicate in change.read.predicates:
        appeared = theirs.added.matching(predicate)
        if appeared:
            return Hit("a file was added that may hold rows this statement would have read", appeared[0])
    return None
