"""A transaction as users hold it: statements, then commit or abort.

Statements run when they are called and are visible to nobody else before the commit. With features NONE a
transaction is one statement on one table, as the plain format has it.
"""

import logging
from types import TracebackType
from typing import Any, Self

from lakevilla.engines.port import Engine
from lakevilla.environment import Environment
from lakevilla.errors import CommitUnknown, InvalidInput, LakeVillaError, Unsupported
from lakevilla.formats.port import Snapshot
from lakevilla.model import Features, Receipt
from lakevilla.transaction import defining
from lakevilla.transaction.catalog import Catalog
from lakevilla.transaction.committing import commit_change
from lakevilla.transaction.outcome import LakeChange, TableChange
from lakevilla.transaction.state import State, may_follow
from lakevilla.transaction.verbs import Statement, Verbs
from lakevilla.transaction.workspace import Workspace

logger = logging.getLogger("lakevilla.transaction")


class Transaction(Verbs):
    """One unit of work. Use it as `with lake.transaction() as tx:`; leaving the block commits, an
    exception aborts. After the commit `tx.receipt` says what was done."""

    def __init__(
        self, catalog: Catalog, engine: Engine, environment: Environment, features: Features
    ) -> None:
        if features != Features.NONE:
            raise Unsupported(
                f"{features!r} is not in this release: use lakevilla.NONE, one statement per transaction"
            )
        self.id = environment.new_id()
        self.receipt: Receipt | None = None
        self._workspace = Workspace(catalog, engine, environment, self.id)
        self._state = State.OPEN
        self._statements = 0
        self._pending: TableChange | LakeChange | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._state is not State.OPEN:
            return
        if kind is None:
            self.commit()
        else:
            self.abort()

    def commit(self) -> Receipt:
        """Make the transaction visible. Raises Conflict if another commit came first and concerns it."""
        self._move(State.COMMITTING)
        try:
            seq, snapshot = self._publish()
        except CommitUnknown:
            self._move(State.UNKNOWN)
            raise
        except LakeVillaError:
            self._move(State.ABORTED)
            raise
        except BaseException:
            # Interrupted between sending and hearing: nobody knows whether the commit applied.
            self._move(State.UNKNOWN)
            logger.warning("transaction %s was interrupted in its commit: its outcome is unknown", self.id)
            raise
        self._move(State.COMMITTED)
        versions = self._keep(snapshot)
        self.receipt = Receipt(self.id, seq, versions, requests=self._workspace.meter.snapshot())
        return self.receipt

    def abort(self) -> None:
        """End the transaction; nothing of it was or will be visible. Uploaded files are left to vacuum."""
        if self._state is not State.ABORTED:
            self._move(State.ABORTED)

    def _publish(self) -> tuple[int | None, Snapshot | None]:
        """The entry of the global log or the version of the table that the commit became."""
        match self._pending:
            case TableChange() as pending:
                return None, commit_change(self._workspace.environment, pending, self.id)
            case LakeChange() as change:
                return defining.decide(self._workspace, change), None
            case None:
                return None, None

    def _keep(self, snapshot: Snapshot | None) -> dict[str, int]:
        """What comes after a commit: the next transaction starts here, and a checkpoint may be due."""
        if snapshot is None or not isinstance(self._pending, TableChange):
            return {}
        pinned, workspace = self._pending.pinned, self._workspace
        workspace.catalog.remember(pinned.ref, snapshot, workspace.environment.elapsed())
        pinned.table.maintain(snapshot)
        return {pinned.ref.name: snapshot.version}

    def _run(self, statement: Statement) -> Any:
        if self._state is not State.OPEN:
            raise InvalidInput(f"the transaction is {self._state.value}: start a new one")
        if self._statements:
            raise InvalidInput(
                "a transaction with features NONE is one statement: start another one for the next statement"
            )
        self._statements += 1
        try:
            outcome = statement(self._workspace)
        except RecursionError as error:
            raise InvalidInput("the statement is nested too deeply: split it") from error
        self._pending = outcome.pending
        return outcome.result

    def _move(self, after: State) -> None:
        if not may_follow(self._state, after):
            raise InvalidInput(f"the transaction is {self._state.value}: it cannot become {after.value}")
        self._state = after
