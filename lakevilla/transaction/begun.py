"""What a transaction starts from: nothing, or what a client before it has left."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from lakevilla.engines.port import Engine
from lakevilla.environment import Environment
from lakevilla.store.metered import Meter
from lakevilla.sublogs.journal import Journal
from lakevilla.transaction.catalog import Catalog
from lakevilla.transaction.chores import Chores
from lakevilla.transaction.operations import Operations
from lakevilla.transaction.workspace import Workspace


@dataclass(frozen=True)
class Begun:
    """The parts of a transaction that it does not make itself.

    `attempt` is its first attempt, `journal` keeps what that does, `new_journal` makes one for a further
    attempt. `statements` have finished already. `table` is set for a transaction that was resumed: the only
    one that it may change.
    """

    workspace: Workspace
    operations: Operations
    attempt: str
    journal: Journal
    new_journal: Callable[[str], Journal]
    statements: int = 0
    table: str | None = None


def begin(catalog: Catalog, engine: Engine, environment: Environment, chores: Chores) -> Begun:
    """A new transaction, whose id is also that of its first attempt."""
    txn = environment.new_id()
    workspace = Workspace(catalog, engine, environment, txn)
    new_journal = partial(journal_of, workspace, chores)
    return Begun(workspace, Operations(), txn, new_journal(txn), new_journal)


def journal_of(workspace: Workspace, chores: Chores, attempt: str) -> Journal:
    """Where an attempt of the workspace's transaction keeps what it does.

    Its requests are nobody's to wait for, so the transaction's meter does not count them.
    """
    store = workspace.catalog.root(Meter())
    return Journal(store, workspace.environment, chores.start, workspace.txn, attempt, workspace.now_ms)
