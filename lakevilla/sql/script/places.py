"""Places in a user's own text: line, column, and the line itself with a caret below."""

import re
from collections.abc import Callable
from typing import TypeVar

from sqlglot import exp

from lakevilla.errors import LakeVillaError, Position

E = TypeVar("E", bound=LakeVillaError)
R = TypeVar("R")

_WIDEST = 100
_DOT = r"\s*[.]\s*"
_TABLE_FOLLOWS = ("FROM", "JOIN", "INTO", "UPDATE", "TABLE", "USING", "OVERWRITE", "FOR", "IN", "CONFLICT")


def point_at(error: E, text: str, start: int, end: int) -> E:
    """The error, which now shows this piece of the text. What already shows a place stays as it is."""
    if error.position is None:
        error.position = position_of(text, start, end)
        error.excerpt = excerpt(text, error.position)
    return error


def position_of(text: str, start: int, end: int) -> Position:
    """Line and column, counted from 1, of a piece of the text."""
    start = max(0, min(start, len(text)))
    line = text.count("\n", 0, start) + 1
    column = start - (text.rfind("\n", 0, start) + 1) + 1
    return Position(start, max(start, min(end, len(text))), line, column)


def excerpt(text: str, position: Position) -> str:
    """Line and column of a place, that line, and carets below the place. A long line is cut around it."""
    first = position.start - position.column + 1
    line = text[first:].split("\n", 1)[0].replace("\t", " ").rstrip()
    column, length = position.column - 1, max(1, position.end - position.start)
    cut = max(0, column - _WIDEST // 2) if len(line) > _WIDEST else 0
    before, after = "..." if cut else "", "..." if cut + _WIDEST < len(line) else ""
    shown = line[cut : cut + _WIDEST]
    carets = "^" * max(1, min(length, len(shown) - (column - cut)))
    blanks = " " * (2 + len(before) + column - cut)
    return f"at line {position.line}, column {position.column}:\n  {before}{shown}{after}\n{blanks}{carets}"


def move(error: LakeVillaError, text: str, by: int) -> None:
    """Let an error that shows a place show the same place of a text around it: `by` characters later."""
    if error.position is not None:
        start, end = error.position.start + by, error.position.end + by
        error.position = None
        point_at(error, text, start, end)


def mark(error: LakeVillaError, node: object) -> None:
    """Note which piece of the parsed text a node came from, if the node tells; `showing` makes a place of it.

    What is marked already stays as it is: the innermost node is the best.
    """
    if error.span is None and error.position is None:
        error.span = _span(node)


def showing(text: str, run: Callable[..., R]) -> Callable[..., R]:
    """The function, whose errors show the place of this text that they are about, where that is known."""

    def shown(*args: object) -> R:
        try:
            return run(*args)
        except LakeVillaError as error:
            show(error, text)
            raise

    return shown


def show(error: LakeVillaError, text: str) -> None:
    """Let an error show the place that it was marked with, or else that of the name that means nothing.

    Where other words stand, it was marked in another text, such as that of a constraint.
    """
    if error.position is not None:
        return
    if error.span is not None:
        start, end, name = error.span
        if name.casefold() in text[start:end].replace("``", "`").casefold():
            point_at(error, text, start, end)
            return
    if error.unknown:
        place = _place_of(error.unknown, text, is_table=error.unknown == error.table)
        if place is not None:
            point_at(error, text, *place)
            return
    if error.fragment and (spelt := _fragment(error.fragment).search(text)) is not None:
        point_at(error, text, *spelt.span())


def _fragment(text: str) -> re.Pattern[str]:
    """A piece of a statement, whatever blanks are in it, and however names are quoted."""
    parts = re.findall(r"\w+|[^\w\s`]", text)
    return re.compile(r"[\s`]*".join(map(re.escape, parts)), re.IGNORECASE)


def _place_of(name: str, text: str, *, is_table: bool) -> tuple[int, int] | None:
    """Where a text has a name that means nothing: a table behind a word that a table follows, anything else
    where it stands first without a qualifier. None in a text of another statement."""
    found = [place.span() for place in _spelled(name).finditer(text)]
    behind = [text[:start].rstrip().rpartition(" ")[2].rpartition("\n")[2].upper() for start, _ in found]
    if is_table:
        named = [at for at, word in zip(found, behind, strict=True) if word in _TABLE_FOLLOWS]
        return next(iter(named or found), None)
    alone = [(start, end) for start, end in found if not text[:start].rstrip().endswith(".")]
    return next(iter(alone or found), None)


def _spelled(name: str) -> re.Pattern[str]:
    """The name as a text may write it: its parts with or without back quotes."""
    parts = [rf"(?:`{re.escape(part)}`|{re.escape(part)})" for part in name.split(".")]
    return re.compile(rf"(?<![\w`]){_DOT.join(parts)}(?![\w`])", re.IGNORECASE)


def _span(node: object) -> tuple[int, int, str] | None:
    """Start, end and first name of what the tokenizer placed of a node: itself, or all that is inside."""
    if not isinstance(node, exp.Expr):
        return None
    placed = [node] if "start" in node.meta else [part for part in node.walk() if "start" in part.meta]
    if not placed:
        return None
    first = min(placed, key=lambda part: int(part.meta["start"]))
    return first.meta["start"], max(part.meta["end"] for part in placed) + 1, first.name
