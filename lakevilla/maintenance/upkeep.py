"""The upkeep of a lake as its methods: optimize, vacuum, recover, status and explain."""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from lakevilla.answers import Receipt
from lakevilla.maintenance.explain import explain
from lakevilla.maintenance.optimize.report import OptimizeReport
from lakevilla.maintenance.queue_survey import LakeView
from lakevilla.maintenance.recover import recover, status
from lakevilla.maintenance.reports import Explanation, RecoverReport, Status, VacuumReport
from lakevilla.maintenance.retention import retention_ms
from lakevilla.maintenance.vacuum import VacuumOptions, vacuum
from lakevilla.transaction.statements.statement import Statement
from lakevilla.transaction.transaction import Transaction

logger = logging.getLogger("lakevilla.lake")


class Upkeep(ABC):
    """What an operator calls."""

    @property
    @abstractmethod
    def _view(self) -> LakeView: ...

    @abstractmethod
    def transaction(self) -> Transaction:
        """Start a transaction with the lake's features."""

    def optimize(
        self,
        name: str,
        where: str | None = None,
        zorder_by: Sequence[str] = (),
        target_size: int | str | None = None,
        full: bool = False,
    ) -> OptimizeReport:
        """Rewrite a table's files so that it is quick to read; its rows stay as they are.

        Small files of one partition are packed into files of `target_size` (bytes, or a text such as
        `"256 MB"`; the default is the table's own target size, else 128 MB), and files of whose rows 5% are
        deleted are rewritten without them. `where` chooses the files that may hold such rows. `zorder_by`
        clusters the rows by these columns, which rewrites all chosen files; so does `full`. Readers and
        appends are never in its way, nor it in theirs; an update of a file that it rewrites is redone, or
        optimize leaves that file alone. Large tables take several commits, at most 4 GiB of files each.
        """
        from lakevilla.maintenance.optimize.run import OptimizeOptions, optimize

        options = OptimizeOptions(where, zorder_by, target_size, full)
        return optimize(self._view, self._commit, name, options)

    def _commit(self, statement: Statement) -> Receipt:
        with self.transaction() as tx:
            tx._run(statement)
        assert tx.receipt is not None, "it is committed"
        return tx.receipt

    def vacuum(
        self,
        name: str | None = None,
        *,
        dry_run: bool = True,
        retention_hours: float | None = None,
        foreign: bool = False,
        dropped: bool = False,
        progress: Callable[[str], None] | None = None,
    ) -> VacuumReport:
        """Delete what no reader and no transaction can need any more, of one table or of the whole lake.

        Only reports what it would delete, unless `dry_run=False`. A file is deleted if the log removed it
        longer ago than the retention (the table's `delta.deletedFileRetentionDuration`, else 7 days;
        `retention_hours` overrides it, at least 24), or if a LakeVilla transaction uploaded it and ended
        without using it. `foreign=True` also deletes old files in the table's folder that no version names,
        of any client; `dropped=True` the folders of dropped tables. Versions older than the retention cannot
        be read afterwards. `progress` is called with lines of text during long work.
        """
        options = VacuumOptions(dry_run, retention_ms(retention_hours), foreign, dropped)
        return vacuum(self._view, name, options, progress or logger.info)

    def recover(self, name: str | None = None, *, give_up: str | None = None) -> RecoverReport:
        """Release what dead clients hold, complete what they left half done, and list what they left behind.

        Takes up to a lease time (10 s), because a client counts as dead only after its lease has expired.
        Waiting clients do the same; a second call finds nothing to do.

        `give_up` names a table that a decided transaction cannot be published on and never will be, for
        example because its bucket was deleted. The transaction is then rolled back on its other tables, and
        this table is marked as torn. A table whose log is deleted or damaged is given up automatically.
        """
        return recover(self._view, name, give_up)

    def status(self) -> Status:
        """The tickets in the writer queues, and the transactions that left records. Changes nothing."""
        return status(self._view)

    def explain(self, what: str | None = None) -> Explanation:
        """Why a transaction waits or was refused, and what happens next, in sentences. Changes nothing.

        `what` is the id of a transaction (`tx.id`, `Conflict.transaction`) or the name of a table; without
        it, everything that waits or is half done is explained. Takes up to a lease time (10 s) if a ticket is
        held, because a client counts as dead only after its lease has expired.
        """
        return explain(self._view, what)
