"""The process that began a transaction: only that process may continue it, and it should end it."""

import os
import warnings

from lakevilla.errors import InvalidInput


class OwnProcess:
    """The process in which a transaction began. Another one has a copy of it after a fork."""

    def __init__(self, txn: str) -> None:
        self._txn = txn
        self._pid = os.getpid()

    @property
    def is_forked(self) -> bool:
        """Whether this is a copy in a child of the process that began the transaction, which has it too."""
        return self._pid != os.getpid()

    def refuse_forked(self) -> None:
        """InvalidInput in such a child."""
        if self.is_forked:
            raise InvalidInput(
                f"transaction {self._txn} cannot be used in this process, a fork of process {self._pid} "
                "which began it: start another transaction here",
                transaction=self._txn,
            )

    def warn_of_loss(self, transaction: object, statements: int) -> None:
        """Warn that the program lost a transaction that is open. It sends no request: the garbage collector
        may run anywhere, also while a lock is held. What the transaction holds is released when its lease
        has expired, as if its client had died; nothing of it is visible."""
        if statements and not self.is_forked:
            warnings.warn(
                f"transaction {self._txn} was neither committed nor aborted, and no variable refers to it "
                "any more: nothing of it is visible; use it in a `with` block",
                ResourceWarning,
                stacklevel=3,
                source=transaction,
            )
