"""A transaction of several statements at work, and the steps that are written down of it.

Contract: a statement stands in the journal before it runs (who resumes the transaction may find it stored
before it returns), and what a client was shown when it has been seen, as a copy. A
transaction that `lake.run` runs again gets an operation for each attempt, of which all but the last failed.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from lakevilla.errors import InvalidInput, Unavailable
from lakevilla.model import Counts, Features
from lakevilla.transaction.transaction import Transaction
from sim.actors.session import Session
from sim.checkers.history import Operation, Step

RETRIES = 100
"""How often `lake.run` may call its function again: so often that no client gives up."""

FORGOTTEN = "forgotten"
"""What is written down of a transaction that its client neither committed nor aborted."""

Row = dict[str, Any]


class Journal:
    """One attempt of a transaction on one table. A `stubborn` client continues when a change is
    unavailable."""

    def __init__(self, session: Session, op: Operation, tx: Transaction) -> None:
        self.tx = tx
        self.table = op.table
        self._session = session
        self._op = op
        self._values = 0
        self._savepoint: int | None = None
        self._statements = tx.statements
        self.stubborn = False
        op.txn = tx.id

    @property
    def by_rows(self) -> bool:
        """Whether rows of one file do not conflict."""
        return self._session.client.formats.merge_on_read

    def fresh(self) -> int:
        """A value that is written once in this run of the simulation."""
        self._values += 1
        return 10_000 + 100 * self._op.number + self._values

    def change(
        self, action: str, key: Any, value: Any, statement: Callable[[Transaction], Counts | None]
    ) -> None:
        """Run a statement that changes the table, without a look at how many rows that were."""
        step = Step(action, key, value, statement=self._statements + 1)
        self._op.steps.append(step)
        try:
            statement(self.tx)
        except Unavailable:
            if not self.stubborn:
                raise
            # The client goes on without it: what failed has done nothing.
            self._op.steps.remove(step)
            return
        self._statements += 1

    def delete(self, part: int) -> None:
        """Delete a part of the table, and look how many rows it had."""
        counts: list[Counts] = []
        asked = len(self._op.steps)
        self.change(
            "delete", part, None, lambda tx: counts.append(tx.delete(self.table, where=f"part = {part}"))
        )
        if not counts:
            return
        seen = Step("count", ("part", part), counts[0].deleted, statement=self._statements)
        self._op.steps.insert(asked, seen)

    def read(self, key: tuple[str, int] | None = None) -> list[Row]:
        """All rows, or those that have this value in this column."""
        asked = self._ask(key)
        where = "" if key is None else f" WHERE {key[0]} = {key[1]}"
        result = self.tx.sql(f"SELECT * FROM {self.table}{where}") if where else self.tx.read(self.table)
        rows = [dict(zip(result.columns, row, strict=True)) for row in result.collect()]
        asked.action, asked.value = "read", rows
        return rows

    def count(self) -> int:
        """The number of rows, asked by SQL."""
        asked = self._ask(None)
        number: int = self.tx.sql(f"SELECT count(*) AS n FROM {self.table}").collect()[0][0]
        asked.action, asked.value = "count", number
        return number

    def savepoint(self) -> None:
        self.tx.savepoint("here")
        self._savepoint = len(self._op.steps)

    def roll_back(self) -> None:
        """Back to the savepoint, if there is one."""
        if self._savepoint is None:
            return
        self.tx.rollback_to("here")
        for step in self._op.steps[self._savepoint :]:
            if step.undone_at is None:
                step.undone_at = len(self._op.steps)

    def fail(self) -> None:
        """A statement that is refused, after which the transaction goes on."""
        try:
            self.tx.update(self.table, set={"missing": 1})
        except InvalidInput:
            self._op.steps.append(Step("refused", None, None, statement=self._statements))
            return
        raise AssertionError("an update of a missing column was taken")

    def pause(self, seconds: float) -> None:
        """The client thinks, or goes for lunch."""
        self._session.client.environment.sleep(seconds)

    def _ask(self, key: Any) -> Step:
        """A statement that will show something."""
        self._statements += 1
        self._op.steps.append(Step("asked", key, None, statement=self._statements))
        return self._op.steps[-1]


Work = Callable[[Journal], None]


def transact(session: Session, table: str, work: Work) -> None:
    """A plain `with` block, which ends in Conflict if something that it was shown has changed."""
    op = session.begin(table, "steps")

    def run() -> None:
        with session.lake.transaction(Features.R) as tx:
            work(Journal(session, op, tx))
        _note_receipt(op, tx)

    session.conclude(run, lambda: op)


def run_again(session: Session, table: str, work: Work) -> None:
    """`lake.run`, which calls the work again in that case."""
    attempts: list[Operation] = []

    def attempt(tx: Transaction) -> None:
        if attempts:
            session.end(attempts[-1], "failed", "run again")
        attempts.append(session.begin(table, "steps"))
        work(Journal(session, attempts[-1], tx))

    def run() -> None:
        receipt = session.lake.run(attempt, retries=RETRIES, features=Features.R)
        attempts[-1].version = receipt.versions.get(table)

    session.conclude(run, lambda: attempts[-1])


def give_up(session: Session, table: str, work: Work) -> None:
    """Aborted by its client."""
    op = session.begin(table, "steps")

    def run() -> None:
        tx = session.lake.transaction(Features.R)
        work(Journal(session, op, tx))
        tx.abort()

    session.conclude(run, lambda: op)
    if op.outcome == "ok":
        session.end(op, "failed", "aborted")


def walk_away(session: Session, table: str, work: Work) -> None:
    """Neither committed nor aborted: a forgotten notebook, which may hold a ticket."""
    op = session.begin(table, "steps")

    def run() -> None:
        work(Journal(session, op, session.lake.transaction(Features.R)))

    session.conclude(run, lambda: op)
    if op.outcome == "ok":
        session.end(op, "failed", FORGOTTEN)


def resume(session: Session, left: Operation, work: Work) -> None:
    """Resume a transaction that another client began; that client may be alive."""
    op = session.begin(left.table, "steps")
    assert left.txn is not None
    txn = left.txn

    def run() -> None:
        with session.lake.resume(txn) as tx:
            before = _taken_over([o for o in session.history.operations if o.txn == txn], tx.statements)
            op.begun = min(o.looks_from for o in before)
            op.steps.extend(replace(s) for s in before[0].steps if s.statement <= tx.statements)
            journal = Journal(session, op, tx)
            journal.read()
            work(journal)
        _note_receipt(op, tx)

    session.conclude(run, lambda: op)


def _taken_over(attempts: Sequence[Operation], statements: int) -> list[Operation]:
    """The attempts that may have been taken over after so many statements, which were the same in all.

    Left alone are those that differ, if several clients had resumed one transaction, and rollbacks, of which
    nobody can tell from outside whether they were stored.
    """
    may = [op for op in attempts if op.steps and op.steps[-1].statement >= statements]
    known = {repr([step for step in op.steps if step.statement <= statements]) for op in may}
    if len(known) != 1 or any(step.undone_at is not None for op in may for step in op.steps):
        raise InvalidInput("left alone")
    return may


def _note_receipt(op: Operation, tx: Transaction) -> None:
    if tx.receipt is not None:
        op.version = tx.receipt.versions.get(op.table)
