"""Recover and status: what dead clients left behind, released or only listed.

Recover does what a waiting client would do, on demand: it releases the tickets of dead owners, and completes
a commit that is decided and not visible yet. Both are safe at any moment: an owner that wakes up after its
ticket was released queues again, and settling is the same for every client. Nothing is deleted, and a second
run finds nothing to do. It also updates the hint of the newest version, where a format has one: the client
that published the version may have died before, or a suspended client may have set the hint back.
"""

from functools import partial

from lakevilla.errors import LakeVillaError
from lakevilla.maintenance.doctor.layout import layout_texts
from lakevilla.maintenance.queue_survey import (
    LakeView,
    open_transactions,
    read_folders,
    settle_all,
    survey_queues,
    unsettled,
)
from lakevilla.maintenance.reports import OpenTransaction, RecoverReport, Status
from lakevilla.markers.survey import Seen, find_stale, free_stale
from lakevilla.predicates import ANYTHING
from lakevilla.settle.completion import give_up
from lakevilla.store.port import Store


def recover(view: LakeView, name: str | None = None, lost: str | None = None) -> RecoverReport:
    """Release the tickets of dead clients, on this table or on all, and list what else they left.

    `lost` is a table that the next entry to complete cannot be published on: it is given up first. Takes a
    lease time where a client holds tickets or left records; no time otherwise.
    """
    if lost is not None:
        # Where the table cannot be reached, only a client that was told completes the entry.
        settled = settle_all(view, frozenset({give_up(view.log, view.environment, lost)}))
    else:
        settled = name is None and settle_all(view)
    queues = survey_queues(view, name)
    folders = [folder for folder in read_folders(view) if folder.sublogs]
    now_ms = view.environment.now_ms()
    freed: list[tuple[Store, Seen]] = []
    silent: list[bool] = []
    held: dict[tuple[str, int], str] = {}

    def refused(store: Store, seen: Seen, error: LakeVillaError) -> None:
        if name is not None:
            raise error
        held[store.url, seen.ticket] = str(error)

    def free() -> None:
        found = [(queued.store, queued.seen) for queued in queues.live]
        freed.extend(free_stale(found, view.leases, view.environment, refused))

    def watch() -> None:
        silent.extend(find_stale([(folder.txn, "") for folder in folders], view.leases, view.environment))

    # In parallel: each takes a lease time.
    view.environment.fan_out([free, watch])
    view.environment.fan_out([partial(one.table.renew_hint, one.snapshot) for one in queues.tables])
    found = open_transactions(view, folders, [not is_silent for is_silent in silent])
    gone = {(store.url, seen.ticket) for store, seen in freed}
    alive = [queued for queued in queues.live if queued.place not in gone and queued.place not in held]
    refusals = {queued.table: held[queued.place] for queued in queues.live if queued.place in held}
    return RecoverReport(
        freed=tuple(queued.ticket(now_ms) for queued in queues.live if queued.place in gone),
        waiting=tuple(queued.ticket(now_ms) for queued in alive),
        transactions=tuple(one for one in found if name is None or _uses(one, name)),
        settled=settled,
        failed={**queues.failed, **refusals},
    )


def status(view: LakeView) -> Status:
    """Which clients wait to write, and which transactions left records. Changes nothing and waits for no
    client."""
    queues, folders = survey_queues(view), read_folders(view)
    now_ms = view.environment.now_ms()
    waiting = [queued.ticket(now_ms) for queued in queues.live if not queued.dead]
    slow: dict[str, str] = {}
    for pinned in queues.tables:
        try:
            texts = layout_texts(pinned.snapshot.files(ANYTHING))
        except LakeVillaError as error:
            queues.errors[pinned.ref.name] = error
        else:
            slow |= {pinned.ref.name: ", and ".join(texts)} if texts else {}
    return Status(
        tuple(sorted(waiting, key=lambda ticket: (ticket.table, ticket.ticket))),
        open_transactions(view, folders, [None] * len(folders)),
        queues.failed,
        tuple(unsettled(view)),
        slow,
    )


def _uses(transaction: OpenTransaction, name: str) -> bool:
    # Names are found in any case.
    return name.casefold() in {table.casefold() for table in transaction.tables}
