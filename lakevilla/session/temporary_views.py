"""The temporary views of a session: queries under names that no other session sees.

They are not part of a transaction: ROLLBACK leaves them. A temporary view hides a table of its name.
"""

from collections.abc import Callable, Mapping
from typing import Any

from lakevilla.errors import InvalidInput
from lakevilla.sql.parser import parse
from lakevilla.sql.script.splitter import Piece
from lakevilla.sql.statements import CreateView, DropView
from lakevilla.sql.views.statements import is_about_views
from lakevilla.transaction.views.stored import TemporaryView

Define = Callable[[CreateView], TemporaryView]


class TemporaryViews:
    """Views by their names in lower case."""

    def __init__(self) -> None:
        self._views: dict[str, TemporaryView] = {}

    @property
    def views(self) -> Mapping[str, TemporaryView]:
        return self._views

    def run(self, piece: Piece, parameters: Mapping[str, Any], define: Define) -> str | None:
        """Run a statement that makes or drops a temporary view, and say what it did; None for any other."""
        if not is_about_views(piece):
            return None
        match parse(piece.text, parameters):
            case CreateView(temporary=True) as statement:
                return self._create(statement, define)
            case DropView(name=name) if name.casefold() in self._views:
                del self._views[name.casefold()]
                return f"temporary view {name!r} was dropped"
        return None

    def _create(self, statement: CreateView, define: Define) -> str:
        key = statement.name.casefold()
        if key in self._views and statement.if_not_exists:
            return f"temporary view {statement.name!r} exists already"
        if key in self._views and not statement.replace:
            raise InvalidInput(
                f"temporary view {statement.name!r} already exists: write CREATE OR REPLACE TEMPORARY VIEW, "
                "or choose another name",
                table=statement.name,
            )
        self._views[key] = define(statement)
        return f"temporary view {statement.name!r} is there until the session ends"


def refuse_inside(piece: Piece) -> None:
    """InvalidInput for a temporary view inside of BEGIN ATOMIC, which may run several times."""
    if is_about_views(piece) and {"TEMP", "TEMPORARY"} & set(piece.words[:5]):
        raise InvalidInput("CREATE TEMPORARY VIEW cannot stand inside of BEGIN ATOMIC: write it before that")
