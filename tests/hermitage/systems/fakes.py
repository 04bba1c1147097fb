"""Systems of a few lines that are right, or wrong, for a known reason: to try the player and the judge."""

import threading

from tests.hermitage.player import Program
from tests.hermitage.scripts.notation import Operation, Read, Rows
from tests.hermitage.scripts.script import FIRST_ROWS


class Refused(Exception):
    """The system refuses the transaction."""


class Dirty:
    """Every step is visible at once, and nothing is ever rolled back."""

    refusals = (Refused,)

    def __init__(self, rows: Rows = FIRST_ROWS) -> None:
        self._rows = rows

    def run(self, program: Program) -> None:
        program(self.execute)

    def rows(self) -> Rows:
        return self._rows

    def execute(self, operation: Operation) -> Rows | None:
        if isinstance(operation, Read):
            return operation.on(self._rows)
        self._rows = operation.on(self._rows)
        return None


class OneAtATime(Dirty):
    """A transaction starts when no other is running; the others wait for it."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()

    def run(self, program: Program) -> None:
        with self._lock:
            before = self._rows
            try:
                program(self.execute)
            except BaseException:
                self._rows = before
                raise


class FirstCommitterWins(Dirty):
    """Transactions work on copies. A writer that finds at its commit that the rows have changed is refused,
    or, with `again`, runs once more."""

    def __init__(self, again: bool = False) -> None:
        super().__init__()
        self._again = again

    def run(self, program: Program) -> None:
        while True:
            before = self._rows
            copy = Dirty(before)
            copy.run(program)
            if copy.rows() is before:
                return
            if self._rows is before:
                self._rows = copy.rows()
                return
            if not self._again:
                raise Refused("another transaction committed first")


class KeepsStaleReads(Dirty):
    """Transactions work on copies, and their changes are done again at the commit: but what they read may
    no longer be so."""

    def run(self, program: Program) -> None:
        copy, changes = Dirty(self._rows), []

        def execute(operation: Operation) -> Rows | None:
            if not isinstance(operation, Read):
                changes.append(operation)
            return copy.execute(operation)

        program(execute)
        for change in changes:
            self.execute(change)


class NeverEnds(Dirty):
    """A commit waits for ever."""

    def run(self, program: Program) -> None:
        super().run(program)
        threading.Event().wait()
