"""A text of several statements, cut at the semicolons between them.

Semicolons inside strings, quoted names and comments separate nothing. `BEGIN ATOMIC ... END` is one
statement that holds others.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from lakevilla.errors import InvalidInput
from lakevilla.sql.script.lexer import Lexeme, Unclosed, lex
from lakevilla.sql.script.places import point_at


@dataclass(frozen=True, slots=True)
class Piece:
    """One statement of a text: its own text, and where that starts in the whole one.

    The places of `lexemes` are those in the whole text. `closed` says that a semicolon follows, or END.
    `body` are the statements inside of BEGIN ATOMIC.
    """

    text: str
    start: int
    lexemes: tuple[Lexeme, ...] = field(repr=False)
    closed: bool = True
    body: tuple["Piece", ...] = ()
    atomic: bool = False

    @property
    def words(self) -> list[str]:
        """Its words in capital letters; anything else is an empty text."""
        return [lexeme.word for lexeme in self.lexemes]

    @property
    def parameters(self) -> set[str]:
        """The names of the parameters in it."""
        return {lexeme.value for lexeme in self.lexemes if lexeme.kind == "parameter"}


def split(text: str) -> list[Piece]:
    """The statements of a text, in order; Unclosed if a quote, a comment or BEGIN ATOMIC is left open."""
    pieces, lexemes = [], lex(text)
    at = 0
    while at < len(lexemes):
        if _is_end(lexemes[at]):
            at += 1
        elif [lexeme.word for lexeme in lexemes[at : at + 2]] == ["BEGIN", "ATOMIC"]:
            piece, at = _block(text, lexemes, at)
            pieces.append(piece)
        else:
            piece, at = _statement(text, lexemes, at)
            pieces.append(piece)
    return pieces


def is_complete(text: str) -> bool:
    """Whether a text that is typed line by line can run: nothing is open, and its last statement is closed
    by a semicolon."""
    try:
        pieces = split(text)
    except Unclosed:
        return False
    return not pieces or pieces[-1].closed


def only_piece(text: str) -> Piece:
    """The one statement of a text; InvalidInput if there are none or several."""
    pieces = split(text)
    if len(pieces) == 1:
        return pieces[0]
    if not pieces:
        raise InvalidInput("the text has no statement")
    error = InvalidInput(
        f"the text has {len(pieces)} statements, and this call runs one: use lake.session().sql(...) for "
        "several"
    )
    raise point_at(error, text, pieces[1].start, pieces[1].lexemes[0].end)


def _statement(text: str, lexemes: Sequence[Lexeme], at: int) -> tuple[Piece, int]:
    end = next((i for i in range(at, len(lexemes)) if _is_end(lexemes[i])), len(lexemes))
    closed = end < len(lexemes)
    return _piece(text, lexemes[at:end], closed), end + closed


def _block(text: str, lexemes: Sequence[Lexeme], begin: int) -> tuple[Piece, int]:
    """BEGIN ATOMIC and what follows, up to the END that stands where a statement would start."""
    body: list[Piece] = []
    at = begin + 2
    while at < len(lexemes):
        if _is_end(lexemes[at]):
            at += 1
        elif lexemes[at].word == "END":
            after = at + 1
            if after < len(lexemes) and not _is_end(lexemes[after]):
                error = InvalidInput("expected a semicolon after the END of BEGIN ATOMIC")
                raise point_at(error, text, lexemes[after].start, lexemes[after].end)
            return _piece(text, lexemes[begin:after], True, tuple(body), atomic=True), after
        else:
            piece, at = _statement(text, lexemes, at)
            body.append(piece)
    error = Unclosed("BEGIN ATOMIC is not closed: write END after its last statement")
    raise point_at(error, text, lexemes[begin].start, lexemes[begin + 1].end)


def _piece(
    text: str, lexemes: Sequence[Lexeme], closed: bool, body: tuple[Piece, ...] = (), atomic: bool = False
) -> Piece:
    start = lexemes[0].start
    return Piece(text[start : lexemes[-1].end], start, tuple(lexemes), closed, body, atomic)


def _is_end(lexeme: Lexeme) -> bool:
    return lexeme.text == ";"
