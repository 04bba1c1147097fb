"""The optimistic commit of one change to one table (the plain format's commit, features NONE).

Create the next version; if another client holds it, ask whether their commit concerns ours, and if not, try
the number after it. Every version between is looked at, none is skipped. Losing means that another client
got ahead, so the lake as a whole always makes progress; the limit only ends a hopeless race. A client that
has lost several times waits, and then catches up with all that came meanwhile before the next try: one that
waited for every version on the way would never reach a table that grows faster.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from lakevilla.conflicts.files import Hit, follow
from lakevilla.environment import Environment
from lakevilla.errors import Conflict
from lakevilla.formats.port import Published, Snapshot, Taken
from lakevilla.model import Author, Footprint
from lakevilla.settle.row_facts import RowReader
from lakevilla.store.metered import Meter
from lakevilla.tables.catalog import Catalog
from lakevilla.tables.pinned import Pinned
from lakevilla.transaction.commit.premises import Premises, moved_to
from lakevilla.transaction.statements.effect import TableChange

logger = logging.getLogger("lakevilla.transaction")

LOSSES_ALLOWED = 1000
BACK_OFF_AFTER = 3
BACK_OFF_SECONDS = 0.01
BACK_OFF_LIMIT_SECONDS = 0.5


def commit_change(
    environment: Environment,
    pending: TableChange,
    txn: str,
    attempt: str,
    settle: Callable[[Pinned], None],
    premises: Premises,
) -> Snapshot:
    """Publish the change and return the version that it became, or raise Conflict.

    `settle` settles the entry of the global log that decided the version below ours.
    """
    table, base, rows = pending.pinned.table, pending.pinned.snapshot, RowReader()
    if premises.is_behind(pending.pinned):
        pending, base = _rebase(rows, pending, base, table.since(base))
    for losses in range(LOSSES_ALLOWED):
        moved = moved_to(pending, base)
        settle(moved.pinned)
        premises.recheck([moved])
        author = Author(txn, attempt, environment.new_id())
        match premises.publish(partial(table.publish, base, pending.change, author)):
            case Published() as published:
                return premises.confirm(moved, published, author)
            case Taken() as taken:
                pending, base = _rebase(rows, pending, base, [taken])
                if losses >= BACK_OFF_AFTER:
                    back_off(environment, losses)
                    pending, base = _rebase(rows, pending, base, table.since(base))
    raise Conflict(
        f"{pending.change.operation} on {pending.pinned.ref.name!r} lost {LOSSES_ALLOWED} races in a row: "
        "nothing was changed; retry it when fewer clients write",
        table=pending.pinned.ref.name,
        operation=pending.change.operation,
    )


def _rebase(
    rows: RowReader, pending: TableChange, base: Snapshot, between: Sequence[Taken]
) -> tuple[TableChange, Snapshot]:
    """The change and its base after these commits; Conflict if one of them concerns the change."""
    for theirs in between:
        hit = rows.decide(pending.pinned.table, base, pending.change, theirs.footprint)
        if hit is not None:
            raise _conflict(pending, theirs.footprint, hit)
        logger.debug("rebasing %s past %s", pending.pinned.ref.name, theirs.footprint.summary)
        read = follow(pending.change.read, theirs.footprint)
        pending, base = replace(pending, change=replace(pending.change, read=read)), theirs.snapshot
    return pending, base


def settle_base(catalog: Catalog, pinned: Pinned, meter: Meter) -> None:
    """Settle the entry of the global log that decided the version on which a commit without a slot builds.

    Such a commit prevents an inverse commit: if the entry had to be rolled back later, the table would be
    torn. Every path to a publish passes here, wherever the version was met. If the entry is rolled back now,
    the number after the version is taken by the inverse. No request if the entry is known to be settled.
    """
    catalog.settle_up_to(pinned.snapshot.coordination.slot, meter)


def back_off(environment: Environment, losses: int) -> None:
    """Back off for a random time that grows with the losses, so that rivals spread out."""
    longest = min(BACK_OFF_LIMIT_SECONDS, BACK_OFF_SECONDS * 2.0 ** min(losses - BACK_OFF_AFTER, 10))
    environment.sleep(longest * environment.random())


def _conflict(pending: TableChange, theirs: Footprint, hit: Hit) -> Conflict:
    name, operation = pending.pinned.ref.name, pending.change.operation
    about = f" ({hit.file})" if hit.file else ""
    return Conflict(
        f"{operation} on {name!r} conflicts with {theirs.summary}: {hit.reason}{about}. "
        "Nothing was changed; run it again on the new version",
        table=name,
        operation=operation,
        file=hit.file,
        winner=theirs.summary,
        transaction=theirs.txn or "",
    )
