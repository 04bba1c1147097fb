"""The walk: bring a decided change to the first version of its table that it can have (docs/protocol.md, 7).

From the version after its base upward: create the entry; if the number is taken, read the entry that is
there. It names our attempt: published. It conflicts: refused. Otherwise the next number. No number is skipped
unread, so the result is fixed by the table's log, and every client that walks reaches the same one. Identity
is the attempt, never the bytes: a helper writes other bytes.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace

from lakevilla.conflicts.files import Hit
from lakevilla.errors import CommitUnknown, Corrupt, InvalidInput, Unavailable
from lakevilla.formats.identity import Expired, Recreated
from lakevilla.formats.port import CatalogRefusal, Published, Snapshot, Table, Taken
from lakevilla.model import Author, Change, Footprint, Notice
from lakevilla.settle.row_facts import RowReader, decide

logger = logging.getLogger("lakevilla.settle")


@dataclass(frozen=True, slots=True)
class PublishedAt:
    """The change is a version of its table: `after`, built on `before`."""

    before: Snapshot
    after: Snapshot


@dataclass(frozen=True, slots=True)
class Refused:
    """Another client's commit prevents the publish permanently."""

    winner: Footprint
    hit: Hit


class OutOfReach(Exception):
    """A table's part of a decided entry that no client can publish: its log is deleted, cleaned up past the
    version that the entry was validated on, or damaged, or its catalog refuses the change."""

    def __init__(self, location: str, reason: str) -> None:
        super().__init__(f"{location}: {reason}")
        self.location = location
        self.reason = reason


FOR_GOOD = (Corrupt, InvalidInput, CatalogRefusal, Recreated, Expired)
"""Errors that every client meets alike, however often it tries."""


def publish_notice(table: Table, base: int, notice: Notice, txn: str, attempt: str) -> None:
    """Publish a notice about the table's name in its log, at the first version after `base` that is free.

    A log that cannot take it is left as it is: the name is decided already, and no client can write there.
    """
    try:
        table.publish_notice(base, notice, txn, attempt)
    except CommitUnknown as error:
        raise _unanswered(error) from error
    except FOR_GOOD as error:
        logger.warning("the notice about the table's name could not be published: %s", error)


def _unanswered(error: CommitUnknown) -> Unavailable:
    """The outcome of the entry is decided elsewhere, not by an unanswered request of ours."""
    return Unavailable(str(error))


def walk(
    table: Table,
    base: Snapshot,
    change: Change,
    author: Author,
    new_put: Callable[[], str],
    rows: RowReader | None = None,
) -> PublishedAt | Refused:
    """Publish the change at the first version after `base` that it can have. With `rows` conflicts are
    decided by rows, else by whole files."""
    while True:
        try:
            answer = table.publish(base, change, replace(author, put=new_put()))
        except CommitUnknown as error:
            raise _unanswered(error) from error
        match answer:
            case Published(snapshot, before):
                return PublishedAt(before or base, snapshot)
            case Taken(footprint=footprint) as taken:
                # Before the version is understood: a client that is too old for it decides the same.
                hit = decide(rows, table, base, change, footprint)
                if hit is not None:
                    return Refused(footprint, hit)
                base = taken.snapshot
