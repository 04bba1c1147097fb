"""Every exception that LakeVilla raises, and what the caller should do about it.

    LakeVillaError
      Aborted            nothing is visible; run the transaction again
        Conflict           another commit changed what this transaction read or wrote
        ValidationFailed   the lake moved past the instant that this transaction read
        Fenced             another client resumed this transaction
      CommitUnknown      the outcome could not be read; ask lake.outcome(txn), never rerun blindly
      Unavailable        the store cannot be reached; nothing was decided
      Unsupported        a table feature we do not implement: refused before any write
      InvalidInput       the caller's SQL, schema, name or option is wrong
      Corrupt            records contradict each other: look at the object that the message names
        Torn               part of a refused multi-table commit could not be rolled back

Messages say what failed, on what, why, and what to do next. Inside the package a lost race is a value, not an
exception (see `store.port`); exceptions appear where a transaction meets its caller.
"""


class LakeVillaError(Exception):
    """The root of all errors that LakeVilla raises on purpose."""


class Aborted(LakeVillaError):
    """Nothing of the transaction is visible. It is safe to run it again."""


class Conflict(Aborted):
    """Another commit changed what this transaction read or wrote.

    `table`, `operation` and `file` say where; `file` is empty if the whole table is concerned (for example
    by a change of its schema). `winner` names the commit that came first, and `transaction` is the id of its
    transaction, for `lake.explain`; it is empty if a legacy client wrote it.
    """

    def __init__(
        self,
        message: str,
        *,
        table: str = "",
        operation: str = "",
        file: str = "",
        winner: str = "",
        transaction: str = "",
    ) -> None:
        super().__init__(message)
        self.table = table
        self.operation = operation
        self.file = file
        self.winner = winner
        self.transaction = transaction


class ValidationFailed(Aborted):
    """The lake moved past the instant that this transaction read."""


class Fenced(Aborted):
    """Another client resumed this transaction and continues it: it is decided there.

    The only `Aborted` that must not be run again: ask `lake.outcome` for the result.
    """


class CommitUnknown(LakeVillaError):
    """The commit was sent and its outcome could not be read. Never rerun blindly."""


class Unavailable(LakeVillaError):
    """The store cannot be reached or refuses the request; nothing was decided."""


class Unsupported(LakeVillaError):
    """The table or statement needs a feature that LakeVilla does not implement."""


class InvalidInput(LakeVillaError):
    """The caller's SQL, schema, name or option is wrong."""


class Corrupt(LakeVillaError):
    """Records contradict each other, or cannot be parsed."""


class Torn(Corrupt):
    """A refused multi-table commit could not be rolled back on some tables.

    `tables` names them; `transaction` is the id of that commit's transaction, empty if it is not known.
    """

    def __init__(self, message: str, *, tables: tuple[str, ...] = (), transaction: str = "") -> None:
        super().__init__(message)
        self.tables = tables
        self.transaction = transaction
