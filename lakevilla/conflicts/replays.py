"""Which operations of a transaction are still valid after other commits came first. Pure.

An operation is still valid if no other commit since concerns it, and if no earlier operation that was redone
now has another effect that this one would have seen. A valid operation keeps its files; the others are
redone.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from lakevilla.conflicts.files import Hit, decide_conflict, follow
from lakevilla.conflicts.rows import RowFacts
from lakevilla.model import NO_FILES, Change, Footprint
from lakevilla.predicates import ANYTHING


@dataclass(frozen=True, slots=True)
class Shift:
    """What the redo of one operation does differently from its first run.

    `footprint` removes what the first run had added and the second removes, and adds what the second adds.
    `restored` says that files which the first run removed are there again.
    """

    footprint: Footprint
    restored: bool


def decide_redo(
    change: Change, foreign: Iterable[tuple[Footprint, RowFacts]], shifts: Iterable[Shift]
) -> Hit | None:
    """Why the operation has to be redone, or None if it is still valid. Other commits come with what is known
    of rows that both concern; what our own statements did is compared by whole files."""
    for footprint, facts in foreign:
        hit = decide_conflict(change, footprint, facts)
        if hit is not None:
            return hit
        change = replace(change, read=follow(change.read, footprint))
    for shift in shifts:
        if shift.restored and change.read.predicates:
            return Hit("an earlier statement of the transaction left rows that it had removed before")
        hit = decide_conflict(change, shift.footprint)
        if hit is not None:
            return Hit("an earlier statement of the transaction was redone", hit.file)
    return None


def shift_between(old: Footprint | None, new: Footprint | None) -> Shift | None:
    """The difference that a redo made to a table; None if the operation did nothing, then and now."""
    known = new or old
    if known is None:
        return None
    gone = frozenset(old.added.matching(ANYTHING)) if old is not None else frozenset[str]()
    removed = new.removed if new is not None else frozenset[str]()
    return Shift(
        Footprint(
            version=known.version,
            txn=known.txn,
            attempt=known.attempt,
            summary=known.summary,
            removed=gone | removed,
            added=new.added if new is not None else NO_FILES,
            metadata_changed=any(f is not None and f.metadata_changed for f in (old, new)),
            protocol_changed=any(f is not None and f.protocol_changed for f in (old, new)),
            file_of=known.file_of,
        ),
        restored=old is not None and bool(old.removed - removed),
    )
