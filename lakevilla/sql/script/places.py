"""Places in a user's own text: line, column, and the line itself with a caret below."""

import re
from collections.abc import Callable
from typing import TypeVar

from sqlglot import exp

from lakevilla.errors import LakeVillaError, Position

E = TypeVar("E", bound=LakeVillaError)
R = TypeVar("R")

_WIDEST = 100


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

    Nothing if other words stand there: then it was marked in another text, such as that of a constraint; and
    nothing if the name stands in several places.
    """
    if error.position is not None:
        return
    if error.span is not None:
        start, end, name = error.span
        if name.casefold() in text[start:end].replace("``", "`").casefold():
            point_at(error, text, start, end)
    elif error.unknown:
        found = [place.span() for place in _spelled(error.unknown).finditer(text)]
        if len(found) == 1:
            point_at(error, text, *found[0])


def _spelled(name: str) -> re.Pattern[str]:
    """The name as a text may write it: its parts with or without back quotes."""
    parts = [rf"(?:`{re.escape(part)}`|{re.escape(part)})" for part in name.split(".")]
    return re.compile(rf"(?<![\w`]){'[.]'.join(parts)}(?![\w`])", re.IGNORECASE)


def _span(node: object) -> tuple[int, int, str] | None:
    """Start, end and first name of what the tokenizer placed of a node: itself, or all that is inside."""
    if not isinstance(node, exp.Expr):
        return None
    placed = [node] if "start" in node.meta else [part for part in node.walk() if "start" in part.meta]
    if not placed:
        return None
    first = min(placed, key=lambda part: int(part.meta["start"]))
    return first.meta["start"], max(part.meta["end"] for part in placed) + 1, first.name
