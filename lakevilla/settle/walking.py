"""The walk: bring a decided change to the first version of its table that it can have (docs/protocol.md, 7).

From the version after its base upward: create the entry; if the number is taken, read who holds it. It names
our attempt: published. It conflicts: refused. Otherwise the next number. No number is skipped unread, so the
result is fixed by the table's log, and everybody who walks reaches the same one. Identity is the attempt,
never the bytes: whoever helps writes others.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from lakevilla.conflicts.files import Hit, decide_conflict
from lakevilla.errors import CommitUnknown, Unavailable
from lakevilla.formats.port import Published, Snapshot, Table, Taken
from lakevilla.model import Author, Change, Footprint


@dataclass(frozen=True, slots=True)
class Landed:
    """The change is a version of its table: `after`, built on `before`."""

    before: Snapshot
    after: Snapshot


@dataclass(frozen=True, slots=True)
class Refused:
    """Somebody else's commit is in the way for good."""

    winner: Footprint
    hit: Hit


def walk(
    table: Table, base: Snapshot, change: Change, author: Author, new_put: Callable[[], str]
) -> Landed | Refused:
    """Publish the change at the first version after `base` that it can have."""
    while True:
        try:
            answer = table.publish(base, change, replace(author, put=new_put()))
        except CommitUnknown as error:
            # It is decided elsewhere whether this commit stands; that this request went unanswered is not it.
            raise Unavailable(str(error)) from error
        match answer:
            case Published(snapshot):
                return Landed(base, snapshot)
            case Taken(footprint, snapshot):
                hit = decide_conflict(change, footprint)
                if hit is not None:
                    return Refused(footprint, hit)
                base = snapshot
