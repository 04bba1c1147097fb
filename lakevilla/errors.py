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

from typing import NamedTuple, TypedDict, Unpack

NOT_NULL = "NOT NULL"
"""The `rule` of an error for a missing value."""


class Names(TypedDict, total=False):
    """The names that an error can carry, see `LakeVillaError`."""

    table: str
    column: str
    transaction: str
    version: int | None
    entry: int | None
    rule: str


class Position(NamedTuple):
    """A place in the text of a statement: from character `start` to before `end`, counted from 0. `line` and
    `column` are those of its start, counted from 1."""

    start: int
    end: int
    line: int
    column: int


class LakeVillaError(Exception):
    """The root of all errors that LakeVilla raises on purpose.

    Its attributes hold the names that the message mentions, for programs: the texts may change. Those that do
    not apply are empty, or None.

    - `table`: the table's name in the lake.
    - `column`: the column's name; the parts of a nested one are separated by dots.
    - `transaction`: the id of the transaction, for `lake.outcome` and `lake.explain`.
    - `version`: the version of the table.
    - `entry`: the entry of the global log.
    - `rule`: the rule that was broken: `R1` to `R3` of the validation, `NOT NULL`, or the name of a CHECK
      constraint.
    - `position`: the place in the SQL text that the error is about, with `line` and `column`. The message
      then ends with that line and a caret; `message` is the sentence alone.
    """

    def __init__(self, message: str = "", **names: Unpack[Names]) -> None:
        super().__init__(message)
        self.table = names.get("table", "")
        self.column = names.get("column", "")
        self.transaction = names.get("transaction", "")
        self.version = names.get("version")
        self.entry = names.get("entry")
        self.rule = names.get("rule", "")
        self.position: Position | None = None
        self.excerpt = ""
        self.span: tuple[int, int, str] | None = None
        """The place in a parsed text and the name that stands there, before the text is known."""
        self.unknown = ""
        """The name in a statement that means nothing, if that is what is wrong."""
        self.fragment = ""
        """The piece of a statement that an engine names, in the engine's spelling."""
        self.hints: list[str] = []

    @property
    def message(self) -> str:
        """What went wrong, without the place in the text and without hints."""
        return super().__str__()

    def __str__(self) -> str:
        return "\n".join(part for part in (self.message, self.excerpt, *self.hints) if part)


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
        message: str = "",
        *,
        operation: str = "",
        file: str = "",
        winner: str = "",
        **names: Unpack[Names],
    ) -> None:
        super().__init__(message, **names)
        self.operation = operation
        self.file = file
        self.winner = winner


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

    def __init__(self, message: str = "", *, tables: tuple[str, ...] = (), **names: Unpack[Names]) -> None:
        super().__init__(message, **names)
        self.tables = tables
