"""What a transaction starts from: nothing, or what a client before it has left."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from lakevilla.engines.port import Engine
from lakevilla.environment import Environment
from lakevilla.store.metered import Meter
from lakevilla.sublogs.journal import Journal
from lakevilla.sublogs.records import Terms
from lakevilla.tables.catalog import Catalog
from lakevilla.transaction.guarantees import Guarantees
from lakevilla.transaction.lifecycle.background import BackgroundTasks
from lakevilla.transaction.lifecycle.once import look_for
from lakevilla.transaction.redo.fence import Fence
from lakevilla.transaction.redo.operations import Operations
from lakevilla.transaction.workspace import Workspace
from lakevilla.versions.batches import Done

STORED_AFTER_SECONDS = 1.0
"""A transaction that slots decide stores nothing before it has been open for so long: to run a shorter one
again is as fast as to resume it, and short transactions send no extra request."""


@dataclass(frozen=True)
class TransactionStart:
    """The parts of a transaction that it does not make itself.

    `attempt` is its first attempt, `journal` keeps what that does, `new_journal` makes one for a further
    attempt. `statements` have finished already. `table` is set for a transaction with R alone that was
    resumed: the only one that it may change. `done` says that its batch was committed before it began.
    """

    workspace: Workspace
    guarantees: Guarantees
    operations: Operations
    fence: Fence
    attempt: str
    journal: Journal
    new_journal: Callable[[str], Journal]
    statements: int = 0
    table: str | None = None
    done: Done | None = None


def begin(
    catalog: Catalog,
    engine: Engine,
    environment: Environment,
    background_tasks: BackgroundTasks,
    guarantees: Guarantees,
) -> TransactionStart:
    """A new transaction, whose id is also that of its first attempt. One that commits a batch looks whether
    that is committed already."""
    txn = environment.new_id()
    workspace, fence = Workspace(catalog, engine, environment, txn, guarantees), Fence(txn)
    new_journal = partial(journal_of, workspace, background_tasks, guarantees, fence)
    done = look_for(workspace, guarantees.once)
    journal = new_journal(txn)
    return TransactionStart(workspace, guarantees, Operations(), fence, txn, journal, new_journal, done=done)


def journal_of(
    workspace: Workspace,
    background_tasks: BackgroundTasks,
    guarantees: Guarantees,
    fence: Fence,
    attempt: str,
) -> Journal:
    """Where an attempt of the workspace's transaction keeps what it does.

    No statement waits for its requests, so the transaction's meter does not count them.
    """
    store, environment = workspace.catalog.root(Meter()), workspace.environment
    agree = partial(_agree, workspace, guarantees, fence, environment.elapsed())
    return Journal(
        store, environment, background_tasks.start, workspace.txn, attempt, workspace.now_ms, agree
    )


def _agree(workspace: Workspace, guarantees: Guarantees, fence: Fence, begun_at: float) -> Terms | None:
    """What the records say about the transaction; None if it is not worth storing yet."""
    if not guarantees.by_slots:
        return Terms()
    if workspace.environment.elapsed() - begun_at < STORED_AFTER_SECONDS:
        return None
    picked = guarantees.features, guarantees.isolation, guarantees.slack
    terms = Terms(*picked, _settled(workspace), guarantees.once)
    fence.open(terms.since)
    return terms


def _settled(workspace: Workspace) -> int:
    """The number of an entry of the global log that is settled."""
    if workspace.instant is not None and workspace.instant.is_pinned:
        return workspace.instant.head.seq
    head = workspace.catalog.head(Meter())
    return 0 if head is None else head.seq
