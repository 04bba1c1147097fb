"""Resuming a transaction whose client died (module 2; docs/protocol.md, section 4).

The records of its newest attempt are turned into operations again (see `restoration`). Nothing of that
decides a commit. A client that still works on the transaction and ours meet in one log, and the second is
fenced there. With R alone that is the log of the table, from the same version on, which is why a transaction
that has changed nothing yet cannot be resumed, and why one that was resumed stays with its table. Otherwise
it is the global log (see `fence`).
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from lakevilla.engines.port import Engine
from lakevilla.environment import Environment
from lakevilla.errors import Conflict, InvalidInput, LakeVillaError
from lakevilla.markers.lease import Leases
from lakevilla.markers.records import Lease
from lakevilla.model import Change, TableRef
from lakevilla.settle.entries import settle_up_to
from lakevilla.store import keys
from lakevilla.store.metered import Meter
from lakevilla.store.port import Store
from lakevilla.sublogs.finder import Left, has_sublogs, newest, read_sublogs
from lakevilla.sublogs.net import net
from lakevilla.sublogs.records import Anew, Ran, Terms
from lakevilla.tables.catalog import Catalog, CatalogPlaces
from lakevilla.tables.pinned import Pinned
from lakevilla.transaction.commit.premises import refuse_gap, refuse_missing
from lakevilla.transaction.guarantees import Guarantees, guarantees
from lakevilla.transaction.lifecycle.background import BackgroundTasks
from lakevilla.transaction.lifecycle.start import TransactionStart, journal_of
from lakevilla.transaction.redo.fence import Fence, decided_as
from lakevilla.transaction.redo.operations import READ, Operations
from lakevilla.transaction.redo.restoration import changes_something, current_records, restore
from lakevilla.transaction.statements.effect import TableChange
from lakevilla.transaction.workspace import Workspace


def resume(
    catalog: Catalog,
    engine: Engine,
    environment: Environment,
    leases: Leases,
    background_tasks: BackgroundTasks,
    txn: str,
) -> TransactionStart | None:
    """The transaction, restored from its records; None if it has left none.

    From here on its lease names our attempt, so that a client which still works on it learns of that.
    """
    meter = Meter()
    store = catalog.root(meter)
    lease = lease_of(store, txn)
    if not has_sublogs(store, txn):
        return None
    attempt, named = environment.new_id(), None if lease is None else lease.attempt
    leases.take_over(txn, attempt)
    try:
        # Only now: what the old client finished before it was fenced is part of it.
        left = read_sublogs(store, environment, txn)
        if left:
            last = newest(left, txn, named)
            terms = last.terms
            picked = guarantees(terms.features, terms.isolation, terms.slack, terms.once)
            workspace = Workspace(
                catalog, engine, environment, txn, picked, begun_ms=last.begun_ms, meter=meter
            )
            return _go_on(workspace, picked, background_tasks, attempt, left, last)
    except BaseException:
        leases.release(txn)
        leases.give_back(txn, named or txn)
        raise
    leases.release(txn)
    leases.lift(txn)
    return None


def lease_of(store: Store, txn: str) -> Lease | None:
    """The lease of a transaction, below the lake's root."""
    key = keys.lease(txn)
    found = store.get(key)
    return None if found is None else Lease.decode(found.data, f"{store.url}/{key}")


def _go_on(
    workspace: Workspace,
    picked: Guarantees,
    background_tasks: BackgroundTasks,
    attempt: str,
    left: list[Left],
    last: Left,
) -> TransactionStart:
    """What is left, in a workspace that was made for it; `last` are the records of the newest attempt."""
    terms = replace(last.terms, since=min(found.terms.since for found in left))
    fence = Fence(workspace.txn)
    if terms.by_slots:
        _refuse_decided(workspace, fence, terms)
    operations, statements = restore(workspace, last.records)
    table = _refuse_unchanged(workspace, operations, picked)
    if table is not None:
        _refuse_committed(workspace.catalog, workspace.meter, workspace.txn, table.ref, left)
    for pinned in workspace.touched if table is None else [workspace.base(table.ref.location)]:
        _refuse_lost_files(operations, pinned)
    new_journal = partial(journal_of, workspace, background_tasks, picked, fence)
    journal = new_journal(attempt)
    journal.take_over(last.records, [key for found in left for key in found.keys], terms)
    return TransactionStart(
        workspace,
        picked,
        operations,
        fence,
        attempt,
        journal,
        new_journal,
        statements,
        None if table is None else table.ref.name,
    )


def why_not(catalog: Catalog, txn: str, left: Sequence[Left]) -> str:
    """Why nothing can be resumed of what a transaction has left; empty if it can. Changes nothing."""
    meter, (found, _) = Meter(), current_records(left[-1].records)
    if not changes_something(found):
        return "it has changed nothing"
    try:
        if left[-1].terms.by_slots:
            fence, log = Fence(txn), catalog.log(meter)
            fence.open(min(one.terms.since for one in left))
            read = log.read_head()
            step = None if read is None else fence.find(log, read)
            return "" if step is None else decided_as(txn, step)
        ran = next(one for one in found if isinstance(one, Ran) and one.change is not None)
        ref = next(touched.table for touched in ran.touched if touched.table.location == ran.target)
        _refuse_committed(catalog, meter, txn, ref, left)
    except LakeVillaError as error:
        # Also a table that is out of reach: this is advice, and must not stop what asks for it.
        return str(error)
    return ""


def _refuse_unchanged(workspace: Workspace, operations: Operations, picked: Guarantees) -> Pinned | None:
    """The one table that a transaction with R alone has to stay with; None if a slot decides it."""
    if not any(operation.pending is not None for operation in operations):
        raise InvalidInput(
            f"transaction {workspace.txn} cannot be resumed: it has changed nothing. Start a new one",
            transaction=workspace.txn,
        )
    return operations.targets[0] if picked.is_alone else None


def _refuse_decided(workspace: Workspace, fence: Fence, terms: Terms) -> None:
    """InvalidInput if an entry of the global log has decided the transaction already.

    Its client may have died right after it created the slot: what is decided is settled first.
    """
    log, environment = workspace.catalog.log(workspace.meter), workspace.environment
    places = CatalogPlaces(workspace.catalog, workspace.meter)
    fence.open(terms.since)
    read = log.read_head()
    if read is not None:
        read = settle_up_to(log, environment, read.head.seq + 1, places) or read
        step = fence.find(log, read)
        if step is not None:
            raise InvalidInput(
                f"{decided_as(workspace.txn, step)}: there is nothing to resume",
                transaction=workspace.txn,
                entry=step.seq,
            )
        workspace.catalog.learn(read.head)


def _refuse_committed(catalog: Catalog, meter: Meter, txn: str, ref: TableRef, left: Sequence[Left]) -> None:
    """Look at every version since the first that an attempt may have published on."""
    records = [record for found in left for record in found.records]
    records += [kept for record in records if isinstance(record, Anew) for kept in record.records]
    touched = [seen for record in records if isinstance(record, Ran) for seen in record.touched]
    oldest = min(seen.version for seen in touched if seen.table.location == ref.location)
    table = catalog.open(ref, meter)
    for taken in table.since(table.at_version(oldest)):
        if taken.footprint.txn == txn:
            raise InvalidInput(
                f"transaction {txn} is committed, as version {taken.footprint.version} of {ref.name!r}: "
                "there is nothing to resume",
                transaction=txn,
                table=ref.name,
                version=taken.footprint.version,
            )


def _refuse_lost_files(operations: Operations, base: Pinned) -> None:
    """Conflict if an uploaded file was deleted, or log entries since the version that we build on. The lease
    is ours: what is there now, vacuum keeps."""
    changes = [change for op in operations if (change := op.change_of(base.ref.location)) is not None]
    added = tuple(file for change in changes for file in (*change.added, *change.feed))
    whole = net(changes) or Change(changes[0].operation if changes else READ)
    pending = TableChange(base, replace(whole, added=added))
    try:
        refuse_gap(pending)
        refuse_missing(pending)
    except Conflict as error:
        raise Conflict(
            f"the transaction cannot be resumed: a file that it uploaded to {base.ref.name!r}, or a log "
            "entry of that table, is missing. Its client died before the upload ended, or the file was "
            f"cleaned up. Nothing was changed; run the transaction again ({error})",
            table=base.ref.name,
        ) from error
