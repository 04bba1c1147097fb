"""The parts of an open transaction that its commit works with, whichever way it commits."""

from dataclasses import dataclass

from lakevilla.markers.lease import Leases
from lakevilla.transaction.commit.premises import Premises
from lakevilla.transaction.commit.writer_queues import WriterQueues
from lakevilla.transaction.guarantees import Guarantees
from lakevilla.transaction.lifecycle.start import TransactionStart
from lakevilla.transaction.redo.fence import Fence
from lakevilla.transaction.redo.operations import Operations
from lakevilla.transaction.redo.redo import Redo
from lakevilla.transaction.workspace import BeforeChange, Workspace


@dataclass(frozen=True)
class CommitParts:
    """What one transaction has done, the versions it builds on, and how it handles commits of others."""

    workspace: Workspace
    operations: Operations
    guarantees: Guarantees
    queues: WriterQueues
    fence: Fence
    redo: Redo
    premises: Premises

    @staticmethod
    def of(start: TransactionStart, leases: Leases, before_change: BeforeChange) -> "CommitParts":
        """The parts of a transaction that starts from there; `before_change` is called before a statement
        changes a table."""
        workspace, operations = start.workspace, start.operations
        queues = WriterQueues(workspace, leases, start.attempt)
        return CommitParts(
            workspace,
            operations,
            start.guarantees,
            queues,
            start.fence,
            Redo(workspace, operations, start.attempt, before_change),
            Premises(workspace, operations, queues),
        )
