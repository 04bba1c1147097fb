"""The optimistic commit of one change to one table (the plain format's commit, features NONE).

Create the next version; if somebody else holds it, ask whether their commit concerns ours, and if not, try
the number after it. Every version between is looked at, none is skipped. Losing means that somebody else
got ahead, so the lake as a whole always makes progress; the limit only ends a hopeless race. Who has lost
several times waits, and then catches up with all that came meanwhile before the next try: one who waited
for every version on the way would never reach a table that grows faster.
"""

import logging
from collections.abc import Callable, Sequence

from lakevilla.conflicts.files import Hit, decide_conflict
from lakevilla.environment import Environment
from lakevilla.errors import Conflict
from lakevilla.formats.port import Published, Snapshot, Taken
from lakevilla.model import Author, Footprint
from lakevilla.transaction.catalog import PREMISE_SECONDS, Pinned
from lakevilla.transaction.effect import TableChange

logger = logging.getLogger("lakevilla.transaction")

LOSSES_ALLOWED = 1000
BACK_OFF_AFTER = 3
BACK_OFF_SECONDS = 0.01
BACK_OFF_LIMIT_SECONDS = 0.5


def commit_change(
    environment: Environment, pending: TableChange, txn: str, attempt: str, settle: Callable[[int], None]
) -> Snapshot:
    """Publish the change and return the version that it became, or raise Conflict.

    `settle` sees to it that an entry of the global log is settled before we build on what it decided.
    """
    table, base = pending.pinned.table, pending.pinned.snapshot
    if environment.elapsed() - pending.pinned.pinned_at > PREMISE_SECONDS:
        renew_premise(pending)
    for losses in range(LOSSES_ALLOWED):
        author = Author(txn, attempt, environment.new_id())
        match table.publish(base, pending.change, author):
            case Published(snapshot):
                return snapshot
            case Taken() as taken:
                settle(taken.snapshot.slot)
                base = _rebase(pending, base, [taken])
                if losses >= BACK_OFF_AFTER:
                    back_off(environment, losses)
                    base = _rebase(pending, base, table.since(base))
    raise Conflict(
        f"{pending.change.operation} on {pending.pinned.ref.name!r} lost {LOSSES_ALLOWED} races in a row: "
        "nothing was changed; try again when fewer clients write",
        table=pending.pinned.ref.name,
        operation=pending.change.operation,
    )


def _rebase(pending: TableChange, base: Snapshot, between: Sequence[Taken]) -> Snapshot:
    """The base after these commits; Conflict if one of them concerns the change."""
    for theirs in between:
        hit = decide_conflict(pending.change, theirs.footprint)
        if hit is not None:
            raise _conflict(pending, theirs.footprint, hit)
        logger.debug("rebasing %s past %s", pending.pinned.ref.name, theirs.footprint.summary)
        base = theirs.snapshot
    return base


def renew_premise(pending: TableChange) -> None:
    """Read again what the commit builds on, after a statement so long that it may have been cleaned away.

    The versions after our base must all still be there, or the create could take a number that was
    used; and so must the files that we uploaded.
    """
    pinned, change = pending.pinned, pending.change
    gone = "" if pinned.is_new or _is_whole(pinned) else "log entries since it began"
    gone = gone or next(iter(pinned.table.missing(change.added)), "")
    if gone:
        raise Conflict(
            f"{change.operation} on {pinned.ref.name!r} took so long that {gone} were cleaned away: nothing "
            "was changed; run it again, and look at the table's retention",
            table=pinned.ref.name,
            operation=change.operation,
        )


def _is_whole(pinned: Pinned) -> bool:
    """Whether the log still has every entry after the pinned version."""
    # In this order: what is published between the two reads makes the second one newer, not the first.
    newest = pinned.table.latest()
    followed = pinned.table.latest(pinned.snapshot)
    return followed is not None and newest is not None and followed.version >= newest.version


def back_off(environment: Environment, losses: int) -> None:
    """Step aside for a random time that grows with the losses, so that rivals spread out."""
    longest = min(BACK_OFF_LIMIT_SECONDS, BACK_OFF_SECONDS * 2.0 ** min(losses - BACK_OFF_AFTER, 10))
    environment.sleep(longest * environment.random())


def _conflict(pending: TableChange, theirs: Footprint, hit: Hit) -> Conflict:
    name, operation = pending.pinned.ref.name, pending.change.operation
    about = f" ({hit.file})" if hit.file else ""
    return Conflict(
        f"{operation} on {name!r} conflicts with {theirs.summary}: {hit.reason}{about}. "
        "Nothing was changed; run it again to work on the new version",
        table=name,
        operation=operation,
        file=hit.file,
        winner=theirs.summary,
        transaction=theirs.txn or "",
    )
