"""A SQL session: texts of several statements, transactions by statements, settings.

Scripts, the shell and Python run the same session. It keeps the open transaction and the settings, and
nothing else; everything is done by calls of the lake and of its transactions.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import Any, Literal, Self, TypeVar

from lakevilla.answers import Receipt
from lakevilla.errors import Aborted, CommitUnknown, InvalidInput, LakeVillaError
from lakevilla.session.answer import Answer, receipt_text
from lakevilla.session.lake_commands import run_lake_command, setting_rows
from lakevilla.session.port import SessionLake
from lakevilla.session.settings import Settings
from lakevilla.session.temporary_views import TemporaryViews, refuse_inside
from lakevilla.sql.parameters import plain
from lakevilla.sql.parser import parse
from lakevilla.sql.script import commands as c
from lakevilla.sql.script.command_parser import command_of
from lakevilla.sql.script.options import option
from lakevilla.sql.script.places import move, point_at, showing
from lakevilla.sql.script.splitter import Piece, split
from lakevilla.sql.statements import CreateView
from lakevilla.transaction.transaction import Transaction
from lakevilla.transaction.views.stored import TemporaryView

R = TypeVar("R")

State = Literal["idle", "open", "aborted"]

_REFUSED = (
    "the transaction is aborted: nothing of it is visible. ROLLBACK leaves it; then run it again from BEGIN"
)
_OPEN = (
    "the statement was undone; the transaction is still open: go on, ROLLBACK, or COMMIT what came before it"
)
_ABORTED = "the transaction is aborted: write ROLLBACK, then run it again from BEGIN"
_ENDED = "the transaction has ended, and the session has none"
_UNKNOWN = "the session has left the transaction; ask for its outcome before you run it again"


class Session:
    """SQL with transactions by statements; `lake.session()` gives one.

        with lake.session() as session:
            session.sql('''
                BEGIN;
                UPDATE accounts SET balance = balance - 10 WHERE id = 1;
                UPDATE savings SET balance = balance + 10 WHERE id = 1;
                COMMIT
            ''')

    Outside of a transaction each statement is a transaction of its own. After BEGIN the statements run in one
    until COMMIT or ROLLBACK. If a statement fails there, it is undone and the transaction stays open
    (`state` is `open`); if another commit has made it impossible to go on, the transaction is aborted
    (`state` is `aborted`), and every statement is refused until ROLLBACK. A COMMIT that fails ends the
    transaction. The error says which of them is the case.

    For one thread at a time. Leaving the `with` block rolls an open transaction back, with a
    `ResourceWarning`.
    """

    def __init__(self, lake: SessionLake, settings: Settings) -> None:
        self._lake = lake
        self._settings = settings
        self._transaction: Transaction | None = None
        self._is_aborted = False
        self._temporary = TemporaryViews()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.close() and kind is None:
            warnings.warn(
                "a session ended with an open transaction, which was rolled back: end it with COMMIT",
                ResourceWarning,
                stacklevel=2,
            )

    @property
    def state(self) -> State:
        """`idle` without a transaction, `open` in one, `aborted` in one that can only be rolled back."""
        if self._is_aborted:
            return "aborted"
        return "idle" if self._transaction is None else "open"

    @property
    def transaction(self) -> Transaction | None:
        """The open transaction."""
        return self._transaction

    @property
    def temporary_views(self) -> dict[str, list[str]]:
        """The temporary views of this session, with their columns."""
        views = [temporary.view for temporary in self._temporary.views.values()]
        return {view.name: [column.name for column in view.columns] for view in views}

    @property
    def settings(self) -> dict[str, str]:
        """What SET has set, as text."""
        return self._settings.as_text()

    def sql(self, text: str, /, **parameters: Any) -> Any:
        """Run the statements of a text in order; the result of the last one.

        A query gives rows, a change counts of rows, COMMIT and BEGIN ATOMIC a receipt, others None. All
        statements are parsed before the first one runs. The first one that fails ends the text.
        """
        result = None
        for answer in self.run(text, parameters):
            result = answer.result
        return result

    def run(self, text: str, parameters: Mapping[str, Any] | None = None) -> Iterator[Answer]:
        """Run the statements of a text one by one, each when its answer is asked for."""
        given = {name: plain(value) for name, value in (parameters or {}).items()}
        pieces = split(text)
        _refuse_unused(pieces, given)
        for piece in pieces:
            with _placed(text, piece):
                self._check(piece, given)
        return self._answers(text, pieces, given)

    def script(self, text: str, parameters: Mapping[str, Any] | None = None) -> Iterator[Answer]:
        """Like `run`, for a text that is a whole: a transaction that it leaves open is rolled back, also when
        a statement fails. InvalidInput if it ends without COMMIT."""
        try:
            yield from self.run(text, parameters)
        except LakeVillaError as error:
            if self.close():
                error.hints = ["the transaction was rolled back: nothing of it is visible"]
            raise
        finally:
            left = self.close()
        if left:
            raise InvalidInput(
                "the script ended with an open transaction, which was rolled back: end it with COMMIT"
            )

    def set(self, name: str, value: str) -> None:
        """Change a setting, as SET does."""
        self._settings = self._settings.changed(**{name.lower(): option(name, value)})

    def close(self) -> bool:
        """Roll an open transaction back; whether there was one."""
        had = self._transaction is not None or self._is_aborted
        self._roll_back()
        return had

    def _answers(self, text: str, pieces: list[Piece], given: Mapping[str, Any]) -> Iterator[Answer]:
        for piece in pieces:
            with _placed(text, piece):
                answer = self._answer(piece, given)
            yield answer

    def _check(self, piece: Piece, given: Mapping[str, Any]) -> None:
        """Parse a statement, so that a mistake in it is found before anything has run."""
        for inner in piece.body:
            if command_of(inner, given) is not None:
                error = InvalidInput(f"{inner.words[0]} cannot stand inside of BEGIN ATOMIC")
                raise point_at(
                    error, piece.text, inner.start - piece.start, inner.lexemes[0].end - piece.start
                )
            with _placed(piece.text, inner, piece.start):
                refuse_inside(inner)
                parse(inner.text, _own(inner, given))
        found = command_of(piece, given)
        if found is None:
            parse(piece.text, _own(piece, given))
        elif isinstance(found, c.AtQuery):
            parse(found.text, _own(piece, given, found))

    def _answer(self, piece: Piece, given: Mapping[str, Any]) -> Answer:
        found = command_of(piece, given)
        if self._is_aborted and not isinstance(found, c.Rollback):
            raise InvalidInput(_REFUSED)
        match found:
            case None:
                return self._statement(piece, given)
            case c.Atomic():
                return self._atomic(piece, given)
            case c.Begin():
                return self._begin(piece, found)
            case c.Commit():
                return self._commit(piece)
            case c.Rollback():
                return self._rollback(piece)
            case c.Savepoint(name=name):
                self._opened(piece).savepoint(name)
                return Answer(piece.text, None, f"savepoint {name!r}")
            case c.RollbackTo(name=name):
                self._opened(piece).rollback_to(name)
                return Answer(piece.text, None, f"rolled back to savepoint {name!r}")
            case c.SetOption(name=name, value=value):
                self._settings = self._settings.changed(**{name: value})
                later = "; the open transaction keeps its own" if self._transaction else ""
                return Answer(piece.text, None, f"{name} = {self.settings[name]}{later}")
            case c.ShowSettings():
                return Answer(piece.text, setting_rows(self.settings))
        if isinstance(found, c.Restore | c.Optimize) and self._transaction is not None:
            word = "RESTORE" if isinstance(found, c.Restore) else "OPTIMIZE"
            raise InvalidInput(f"{word} is a transaction of its own: COMMIT or ROLLBACK the open one first")
        own = _own(piece, given, found) if isinstance(found, c.AtQuery) else {}
        run = showing(piece.text, run_lake_command)
        return run(self._lake, found, piece.text, own, self._temporary.views)

    def _statement(self, piece: Piece, given: Mapping[str, Any]) -> Answer:
        """A statement of Spark SQL, in the open transaction or in one of its own."""
        own = _own(piece, given)
        told = showing(piece.text, self._temporary.run)(piece, own, self._defined)
        if told is not None:
            return Answer(piece.text, None, told)
        temporary = self._temporary.views
        result = self._in_transaction(lambda tx: tx._sql(piece.text, own, temporary=temporary))
        return Answer(piece.text, result, "done" if result is None else "")

    def _in_transaction(self, work: Callable[[Transaction], R]) -> R:
        """Work in the open transaction, or in one of its own."""
        if self._transaction is not None:
            with self._failing(self._transaction):
                return work(self._transaction)
        with self._new() as tx:
            return work(tx)

    def _defined(self, statement: CreateView) -> TemporaryView:
        return self._in_transaction(lambda tx: tx._define(statement, self._temporary.views))

    def _atomic(self, piece: Piece, given: Mapping[str, Any]) -> Answer:
        """BEGIN ATOMIC: one transaction, which runs again if a value that it read has changed."""
        if self._transaction is not None:
            raise InvalidInput(
                "BEGIN ATOMIC is a transaction of its own: COMMIT or ROLLBACK the open one first"
            )

        def work(tx: Transaction) -> None:
            for inner in piece.body:
                with _placed(piece.text, inner, piece.start):
                    tx._sql(inner.text, _own(inner, given), temporary=self._temporary.views)

        s = self._settings
        receipt = self._lake.run(work, features=s.features, isolation=s.isolation, slack=s.slack)
        return Answer(piece.text, receipt, receipt_text(receipt))

    def _begin(self, piece: Piece, begin: c.Begin) -> Answer:
        if self._transaction is not None:
            raise InvalidInput(
                f"transaction {self._transaction.id} is open: COMMIT or ROLLBACK it first",
                transaction=self._transaction.id,
            )
        self._transaction = self._new(begin.options)
        return Answer(piece.text, None, f"transaction {self._transaction.id} is open")

    def _commit(self, piece: Piece) -> Answer:
        transaction = self._opened(piece)
        try:
            receipt: Receipt = transaction.commit()
        except LakeVillaError as error:
            error.hints.append(_UNKNOWN if isinstance(error, CommitUnknown) else _ENDED)
            raise
        finally:
            self._transaction = None
        return Answer(piece.text, receipt, receipt_text(receipt))

    def _rollback(self, piece: Piece) -> Answer:
        if not self._is_aborted:
            self._opened(piece)
        self._roll_back()
        return Answer(piece.text, None, "rolled back: nothing was changed")

    def _roll_back(self) -> None:
        transaction, self._transaction, self._is_aborted = self._transaction, None, False
        if transaction is not None:
            transaction.abort()

    def _opened(self, piece: Piece) -> Transaction:
        if self._transaction is None:
            raise InvalidInput(f"{piece.words[0]}: no transaction is open; BEGIN starts one")
        return self._transaction

    def _new(self, options: Mapping[str, Any] | None = None) -> Transaction:
        s = self._settings.changed(**(options or {}))
        return self._lake.transaction(s.features, isolation=s.isolation, slack=s.slack)

    def _failing(self, transaction: Transaction) -> "_Failing":
        return _Failing(self, transaction)

    def abort(self, transaction: Transaction) -> None:
        """End a transaction that cannot go on; the session waits for ROLLBACK."""
        transaction.abort()
        self._transaction, self._is_aborted = None, True


class _Failing:
    """While a statement runs in an open transaction: an error says whether the transaction stays open."""

    def __init__(self, session: Session, transaction: Transaction) -> None:
        self._session, self._transaction = session, transaction

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, Aborted):
            self._session.abort(self._transaction)
            error.hints.append(_ABORTED)
        elif isinstance(error, LakeVillaError):
            error.hints.append(_OPEN)


class _placed:
    """An error about a piece shows its place in the whole text; `base` is where that text starts."""

    def __init__(self, text: str, piece: Piece, base: int = 0) -> None:
        self._text, self._by = text, piece.start - base

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, LakeVillaError) and self._by:
            move(error, self._text, self._by)


def _own(piece: Piece, given: Mapping[str, Any], at: c.AtQuery | None = None) -> dict[str, Any]:
    """The parameters that a statement names, without those of its AT clause."""
    names = piece.parameters
    if at is not None:
        end = piece.start + len(at.text)
        names = {one.value for one in piece.lexemes if one.kind == "parameter" and one.start < end}
    return {name: given[name] for name in names if name in given}


def _refuse_unused(pieces: list[Piece], given: Mapping[str, Any]) -> None:
    unused = set(given).difference(*(piece.parameters for piece in pieces))
    if unused:
        raise InvalidInput(f"the text has no parameter :{', :'.join(sorted(unused))}")
