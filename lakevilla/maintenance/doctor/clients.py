"""What clients left: decided transactions that are not completed, tickets, and records."""

from collections.abc import Iterator

from lakevilla.maintenance.doctor.diagnosis import Check
from lakevilla.maintenance.queue_survey import (
    LakeView,
    Queues,
    open_transactions,
    read_folders,
    unsettled_entries,
)
from lakevilla.maintenance.reports import OpenTransaction
from lakevilla.markers.survey import find_stale


def unsettled(view: LakeView) -> Iterator[Check]:
    """Entries of the global log after HEAD."""
    waiting = unsettled_entries(view)
    if not waiting:
        yield Check("unsettled entries", "ok", "every decided transaction is completed")
    for entry in waiting:
        tables = tuple(ref.name for ref in entry.tables)
        named = ", ".join(map(repr, tables)) or "no table"
        yield Check(
            "unsettled entries",
            "warning",
            f"entry {entry.seq} (transaction {entry.txn}, {entry.kind} on {named}) is decided and not "
            "completed: its client is at work or died",
            "the next client that writes completes it; `lakevilla recover` (lake.recover()) does so now, or "
            "says what prevents it",
            tables,
        )


def dead_clients(view: LakeView, queues: Queues) -> Iterator[Check]:
    """Tickets and records of dead clients. Takes a lease time where there are any."""
    folders = [folder for folder in read_folders(view) if folder.sublogs]
    tickets = [queued for queued in queues.live if not queued.dead]
    suspects = [(queued.seen.marker.txn, queued.seen.marker.put) for queued in tickets]
    stale = find_stale([*suspects, *((folder.txn, "") for folder in folders)], view.leases, view.environment)
    held = [queued for queued, is_stale in zip(tickets, stale, strict=False) if is_stale]
    left = [folder for folder, is_stale in zip(folders, stale[len(tickets) :], strict=True) if is_stale]
    if not held and not left:
        yield Check("dead clients", "ok", "none holds a ticket or has left records")
    for queued in held:
        yield Check(
            "dead clients",
            "warning",
            f"transaction {queued.seen.marker.txn} holds ticket {queued.seen.ticket} of {queued.table!r}, "
            "and its client is dead",
            "the next writer that waits behind it releases it; `lakevilla recover` (lake.recover()) does so "
            "now",
            (queued.table,),
        )
    for transaction in open_transactions(view, left, [False] * len(left)):
        yield _left_behind(transaction)


def _left_behind(left: OpenTransaction) -> Check:
    txn = left.transaction
    if left.obstacle:
        text = f"transaction {txn} was left by its client and cannot be resumed: {left.obstacle}"
        advice = f"lake.outcome({txn!r}) says how it ended"
    else:
        text = f"transaction {txn} was left by its client"
        advice = f"lake.outcome({txn!r}) says how it ended, and lake.resume({txn!r}) continues it"
    return Check(
        "dead clients", "note", text, f"{advice}; vacuum removes its records after the retention", left.tables
    )
