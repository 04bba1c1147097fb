"""A transaction: begin, statements, commit or abort.

Statements run when they are called and are visible to no other client before the commit. With features NONE a
transaction is one statement on one table, as the plain format has it. With R it has any number of statements
on one table, sees its own changes, and is redone instead of aborted when another commit came first. With CT
it has any number of tables, and may make and drop some. With I it sees all of them at one instant.
"""

import logging
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import Any, Self

from lakevilla.answers import Receipt
from lakevilla.errors import Aborted, CommitUnknown, Conflict, Fenced, InvalidInput, LakeVillaError
from lakevilla.formats.identity import Recreated
from lakevilla.markers.lease import Leases
from lakevilla.sublogs.journal import Journal
from lakevilla.sublogs.reads import Reads
from lakevilla.sublogs.records import RolledBack, Saved
from lakevilla.transaction.commit.after_commit import keep
from lakevilla.transaction.commit.commit_strategy import CommitStrategy
from lakevilla.transaction.commit.parts import CommitParts
from lakevilla.transaction.commit.queued_commit import QueuedCommit
from lakevilla.transaction.commit.slot_commit import Committed
from lakevilla.transaction.lifecycle.call_guard import CallGuard
from lakevilla.transaction.lifecycle.once import look_for, unknown_batch
from lakevilla.transaction.lifecycle.process import OwnProcess
from lakevilla.transaction.lifecycle.start import TransactionStart
from lakevilla.transaction.lifecycle.state import State, ended, may_follow
from lakevilla.transaction.redo.journal import record_of, records_of
from lakevilla.transaction.redo.operations import Operation
from lakevilla.transaction.redo.resume import lease_of
from lakevilla.transaction.statements.effect import Effect, TableChange
from lakevilla.transaction.statements.inputs import frozen
from lakevilla.transaction.statements.statement import Statement
from lakevilla.transaction.statements.statement_rules import (
    refuse_next,
    refuse_second_table,
    refuse_table_after_resume,
)
from lakevilla.transaction.verbs import Verbs

logger = logging.getLogger("lakevilla.transaction")

STATEMENT = "a statement"
COMMIT = "the commit"


class Transaction(Verbs):
    """One unit of work. Use it as `with lake.transaction() as tx:`; leaving the block commits, an
    exception aborts. After the commit `tx.receipt` says what was done.

    It runs one statement at a time: a call from a second thread while one runs is refused (InvalidInput)."""

    def __init__(self, start: TransactionStart, leases: Leases) -> None:
        guarantees = start.guarantees
        self.id = start.workspace.txn
        self.receipt: Receipt | None = None
        self.statements = start.statements
        """How many statements have finished, also those that were rolled back since: after `lake.resume` the
        client continues with the next."""
        self._start = start
        self._guarantees = guarantees
        self._done = start.done
        self._attempts = 1
        self._workspace = start.workspace
        self._leases = leases
        self._operations = start.operations
        self._recorded_moves = 0
        self._keep_records(start.journal)
        self._table = start.table
        parts = CommitParts.of(start, leases, self._enter)
        self._queues = parts.queues
        self._redo = parts.redo
        self._queued = QueuedCommit(parts)
        self._publisher = CommitStrategy(parts)
        self._may_rewind = False
        self._process = OwnProcess(self.id)
        self._call_guard = CallGuard()
        self._state = State.OPEN

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._state is not State.OPEN:
            return
        if kind is None:
            self.commit()
        elif isinstance(error, Fenced):
            self.step_back()
        else:
            self.abort()

    def __repr__(self) -> str:
        return f"Transaction({self.id!r}, {self._state.value}, statements={self.statements})"

    def __del__(self) -> None:
        # It may not have got beyond its beginning.
        if getattr(self, "_state", None) is State.OPEN:
            self._process.warn_of_loss(self, self.statements)

    def commit(self) -> Receipt:
        """Make the transaction visible.

        Raises Conflict if another commit came first and concerns it: without R always, with R only if
        something that the client was given has changed.
        """
        with self._call_guard.running(COMMIT, self._abort):
            try:
                return self._commit()
            except Fenced:
                self.step_back()
                raise
            except Aborted:
                if not self._may_rewind:
                    self._abort()
                raise

    def abort(self) -> None:
        """End the transaction; nothing of it was or will be visible. Uploaded files are left to vacuum.

        A client from which `lake.resume` took the transaction over is not stopped by that, if it still lives.
        While a statement runs in another thread, the transaction is aborted when that statement ends.
        """
        if not self._call_guard.abort_after(STATEMENT):
            with self._call_guard.running("an abort", self._abort):
                self._abort()

    def _abort(self) -> None:
        if self._state is not State.ABORTED:
            self._move(State.ABORTED)
            if not self._process.is_forked:
                self._queues.free()
                self._journal.remove(partial(self._leases.lift, self.id))

    def step_back(self) -> None:
        """End our part in the transaction: another client continues it, perhaps from our records."""
        if self._state is not State.ABORTED:
            self._move(State.ABORTED)
            if not self._process.is_forked:
                self._queues.free()

    def savepoint(self, name: str) -> None:
        """A place to which `rollback_to` can return. The same name again moves it here."""
        with self._call_guard.running("a savepoint", self._abort):
            self._check_open()
            self._require_recovery("a savepoint")
            self._operations.savepoint(name)
            self._journal.note(lambda: Saved(name))
            self._journal.write()

    def rollback_to(self, name: str) -> None:
        """Undo what the transaction did since the savepoint, which stays."""
        with self._call_guard.running("a rollback", self._abort):
            self._check_open()
            self._operations.roll_back_to(name)
            self._operations.show(self._workspace)
            self._journal.note(lambda: RolledBack(name))
            self._journal.write()

    def _commit(self) -> Receipt:
        """Commit. After Aborted the state is COMMITTING: the caller ends the transaction, or rewinds it."""
        self._process.refuse_forked()
        begun_at = self._workspace.environment.elapsed()
        self._move(State.COMMITTING)
        self._refuse_halfway()
        try:
            committed = self._replay() or self._publisher.publish(may_rewind=self._may_rewind)
        except Recreated:
            self._workspace.catalog.forget(pinned.ref for pinned in self._workspace.touched)
            raise
        except Aborted:
            raise
        except CommitUnknown as error:
            self._move(State.UNKNOWN)
            self._queues.free(unknown=True)
            if self._guarantees.once is not None:
                raise unknown_batch(self._guarantees.once, error) from error
            raise
        except LakeVillaError:
            self._abort()
            raise
        except BaseException:
            # Interrupted between sending and hearing: it is unknown whether the commit applied.
            self._move(State.UNKNOWN)
            logger.warning("transaction %s was interrupted in its commit: its outcome is unknown", self.id)
            self._queues.free(unknown=True)
            raise
        self._move(State.COMMITTED)
        self._queues.free()
        # Where a slot decided, every other client finds the transaction in the global log.
        lift = partial(self._leases.lift, self.id) if self._guarantees.by_slots else lambda: None
        self._journal.remove(lift)
        self.receipt = self._receipt(committed, begun_at)
        return self.receipt

    @property
    def replayed(self) -> bool:
        """Whether the batch of `once=` was committed before: known when the transaction begins, or when it
        has committed. Its commit changes nothing then."""
        return self._done is not None or (self.receipt is not None and self.receipt.replayed)

    def _receipt(self, committed: Committed | None, begun_at: float) -> Receipt:
        return Receipt(
            self.id,
            None if committed is None else committed.seq,
            {} if committed is None else keep(self._workspace, committed, begun_at),
            redone=self._redo.redone,
            saved_bytes=self._redo.saved_bytes,
            requests=self._workspace.meter.snapshot(),
            attempts=self._attempts,
            shifts=self._queues.shifts,
            replayed=committed is not None and committed.replayed,
        )

    def _replay(self) -> Committed | None:
        once = self._guarantees.once
        return None if self._done is None or once is None else Committed.before(once, self._done)

    def attempt(self, work: Callable[[Self], Any]) -> Receipt:
        """Call `work` and commit. After Aborted the transaction can be rewound, or must be aborted."""
        self._may_rewind = True
        try:
            if not self.replayed:
                work(self)
        except Aborted:
            raise
        except BaseException:
            if self._state in (State.OPEN, State.COMMITTING):
                self.abort()
            raise
        if self._state in (State.ABORTED, State.COMMITTING):
            self.abort()
            raise InvalidInput("lake.run has nothing to commit: the function aborted its transaction")
        with self._call_guard.running(COMMIT, self._abort):
            return self.receipt or self._commit()

    def rewind(self) -> None:
        """Start again from the beginning as a new attempt; our tickets stay."""
        if self._call_guard.abort_after(STATEMENT):
            raise InvalidInput(
                "a statement of the transaction is still running in another thread, so the transaction "
                "cannot run again: it is aborted. Let the function wait for the threads that it starts"
            )
        with self._call_guard.running("a new attempt", self._abort):
            self._rewind()

    def _rewind(self) -> None:
        if self._state is not State.OPEN:
            self._move(State.OPEN)
        try:
            self._leave_records()
        except Fenced:
            self.step_back()
            raise
        except BaseException:
            self._abort()
            raise
        self._redo.begin(self._workspace.environment.new_id())
        self._attempts += 1
        self._keep_records(self._start.new_journal(self._redo.attempt))
        self.statements, self._table = 0, None
        self._operations.clear()
        self._workspace.forget()
        self._done = look_for(self._workspace, self._guarantees.once)

    def _run(self, statement: Statement) -> Any:
        with self._call_guard.running(STATEMENT, self._abort):
            return self._execute(statement)

    def _execute(self, statement: Statement) -> Any:
        self._check_open()
        refuse_next(self._guarantees, self._operations, statement)
        self._journal.next_statement()
        workspace = self._workspace
        begun_at, reads = workspace.environment.elapsed(), Reads()
        self._leases.busy(self.id)
        try:
            with workspace.statement(self._enter) as reads:
                workspace.pin_instant(statement.tables, statement.blind)
                operation = Operation(statement, reads, statement.run(workspace), begun_at)
        except BaseException as error:
            # Its failure may have told the client something about what it read.
            self._add(Operation(statement, reads, Effect(None)).undone())
            if isinstance(error, Aborted):
                # What we have done may be half redone: the records up to here are all that holds.
                self._journal.stop()
            if isinstance(error, Fenced):
                self.step_back()
            if isinstance(error, RecursionError):
                raise InvalidInput("the statement is nested too deeply: split it") from error
            raise
        finally:
            self._leases.idle(self.id)
        self.statements += 1
        self._add(operation)
        self._journal.write()
        self._let_see(operation)
        return operation.hand_out()

    def _add(self, operation: Operation) -> None:
        """A statement has ended. If other commits made us redo earlier ones, all records are written
        again."""
        self._operations.add(operation)
        if not self._guarantees.recovers:
            return
        if self._recorded_moves == self._redo.moves:
            self._journal.note(record_of(self._workspace, operation))
        else:
            self._recorded_moves = self._redo.moves
            self._journal.note(records_of(self._workspace, self._operations, self.statements))

    def _let_see(self, operation: Operation) -> None:
        """The statements after it see what it did; a client that changes a table may take a place in its
        queue."""
        if not self._guarantees.features:
            return
        operation.show(self._workspace)
        if isinstance(operation.pending, TableChange) and self._guarantees.is_alone:
            ref = operation.pending.pinned.ref
            self._table = ref.name
            change = operation.change_and_reads(ref.location)
            self._queues.wrote(self._workspace.base(ref.location), change is not None and change.blind)

    def _kept(self, data: object) -> object:
        return frozen(data) if self._guarantees.recovers else data

    def _enter(self, name: str, blind: bool) -> None:
        """Before a statement changes a table."""
        if not self._guarantees.is_alone:
            return
        refuse_second_table(self._operations, name)
        if self._table is not None and self._table.casefold() != name.casefold():
            self._change_table(name)
        if not blind:
            self._queued.enter(name)

    def _change_table(self, name: str) -> None:
        """All changes were rolled back, and the next change is to another table.

        A client that resumes the transaction from its records would publish on the old table, and neither
        client would see the other's commit.
        """
        refuse_table_after_resume(self._start.table, name)
        self._leave_records()

    def _keep_records(self, journal: Journal) -> None:
        """What is done from here on is noted there, if the transaction can be resumed."""
        self._journal = journal
        if not self._guarantees.recovers:
            journal.stop()

    def _leave_records(self) -> None:
        """From here on no client can resume what we have done so far; Fenced if another client already
        has."""
        if not self._journal.sent:
            return
        self._journal.remove_now()
        lease = lease_of(self._workspace.catalog.root(self._workspace.meter), self.id)
        if lease is not None and lease.attempt != self._start.attempt:
            raise Fenced(
                f"transaction {self.id} was resumed by another client, which continues it",
                transaction=self.id,
            )
        # A client that took the transaction over and committed it may have deleted its lease.
        self._start.fence.check_newest(self._workspace.catalog.log(self._workspace.meter))

    def _check_open(self) -> None:
        if self._state is not State.OPEN:
            raise ended(self.id, self._state)
        self._process.refuse_forked()
        self._refuse_halfway()

    def _refuse_halfway(self) -> None:
        if self._redo.halfway:
            raise Conflict(
                "the transaction conflicts with commits of others, and an earlier statement could not be "
                "redone: nothing was changed; run the transaction again"
            )

    def _require_recovery(self, what: str) -> None:
        if not self._guarantees.recovers:
            raise InvalidInput(f"{what} needs recovery: start the transaction with lakevilla.R")

    def _move(self, after: State) -> None:
        if not may_follow(self._state, after):
            raise ended(self.id, self._state)
        self._state = after
        if after in (State.COMMITTED, State.ABORTED, State.UNKNOWN):
            self._operations.forget_results()
