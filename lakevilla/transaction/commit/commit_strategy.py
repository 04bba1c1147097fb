"""The commit of a transaction by its features: one table by its own log, or all tables by the global log."""

from collections.abc import Sequence
from functools import partial

from lakevilla.formats.port import Snapshot
from lakevilla.transaction.commit.commit_base import PerTableBase
from lakevilla.transaction.commit.instant_base import InstantBase
from lakevilla.transaction.commit.optimistic_commit import commit_change, settle_base
from lakevilla.transaction.commit.parts import CommitParts
from lakevilla.transaction.commit.queued_commit import QueuedCommit
from lakevilla.transaction.commit.slot_commit import Committed, SlotCommit
from lakevilla.transaction.statements import ddl
from lakevilla.transaction.statements.effect import TableChange


class CommitStrategy:
    """Publishes what one transaction did."""

    def __init__(self, parts: CommitParts) -> None:
        self._parts = parts
        self._workspace = parts.workspace
        self._operations = parts.operations
        self._guarantees = parts.guarantees

    def publish(self, *, may_rewind: bool = False) -> Committed | None:
        """What the commit became; None if there was nothing to publish. Raises Aborted. `may_rewind` says
        that the transaction may start again then, under the same id."""
        workspace, guarantees = self._workspace, self._guarantees
        lake_change = self._operations.lake_change
        if lake_change is not None:
            return Committed(ddl.decide(workspace, lake_change), {})
        defines = workspace.own.made or workspace.own.dropped or workspace.own.views
        changeable = {pinned.ref.location for pinned in workspace.changeable}
        targets = [at for at in (p.ref.location for p in self._operations.targets) if at in changeable]
        once = guarantees.once is not None
        by_slot = once or self._is_decided_by_slot(targets)
        # A transaction that found no row to change is a writer too: its reads decided that. With isolation
        # they were true at one instant.
        idle = by_slot and self._operations.meant_to_change and not guarantees.isolates
        if not targets and not defines and not idle and not once:
            self._refuse_no_op_on_a_stale_instant()
            return None
        if by_slot or defines:
            # A transaction without a statement has no instant yet, and may have a batch to commit.
            workspace.pin_instant(())
            with self._parts.queues.at_work():
                final = not may_rewind and not guarantees.recovers
                base = InstantBase(self._parts) if guarantees.isolates else PerTableBase(self._parts)
                return SlotCommit(self._parts, base, final=final).commit()
        publish = QueuedCommit(self._parts).commit if guarantees.recovers else self._once
        snapshot = publish(targets[0])
        return None if snapshot is None else Committed(None, {targets[0]: snapshot})

    def _refuse_no_op_on_a_stale_instant(self) -> None:
        """A statement that found no row to change must have seen the newest rows."""
        instant = self._workspace.instant
        if instant is not None and instant.stayed is not None and self._operations.meant_to_change:
            raise instant.stayed

    def _is_decided_by_slot(self, targets: Sequence[str]) -> bool:
        """With I always, with CT if there are several tables to it, or one that no other client may change,
        or if another client may have resumed it: all clients of a transaction must meet in one log."""
        workspace, guarantees = self._workspace, self._guarantees
        if guarantees.isolates or not guarantees.by_slots:
            return guarantees.isolates
        if self._parts.fence.is_open:
            return True
        return len(workspace.touched) + len(workspace.stored_views.seen) > 1 or any(
            workspace.base(at).snapshot.coordination.exclusive for at in targets
        )

    def _once(self, location: str) -> Snapshot | None:
        """The plain format's commit: rebased, never redone."""
        change = self._operations.change(location)
        if change is None:
            return None
        workspace = self._workspace
        workspace.uploads.finish()
        pending = TableChange(workspace.base(location), change)
        settle = partial(settle_base, workspace.catalog, meter=workspace.meter)
        attempt, premises = self._parts.redo.attempt, self._parts.premises
        return commit_change(workspace.environment, pending, workspace.txn, attempt, settle, premises)
