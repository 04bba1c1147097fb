"""Views in the lake's registry: queries that have names, as HEAD and the global log keep them.

A view is part of the lake's instant like the name of a table. It holds the text of its query and the columns
that the query gave when the view was made.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from lakevilla.store.records import text


@dataclass(frozen=True, slots=True)
class ViewColumn:
    """A column of a view: its name, that of the query's column, its type in Spark SQL, and its comment."""

    name: str
    source: str
    type: str
    comment: str = ""


@dataclass(frozen=True, slots=True)
class View:
    """A query under a name. `text` is Spark SQL."""

    name: str
    text: str
    columns: tuple[ViewColumn, ...]
    comment: str = ""


@dataclass(frozen=True, slots=True)
class ViewChange:
    """A view gets a definition; None if it loses its name."""

    name: str
    view: View | None


Views = Mapping[str, View]


def find_view(views: Views, name: str) -> View | None:
    """The view of this name: exactly, else in any case."""
    exact = views.get(name)
    if exact is not None or not views:
        return exact
    folded = name.casefold()
    return next((view for known, view in views.items() if known.casefold() == folded), None)


def with_changes(views: Views, changes: Iterable[ViewChange]) -> Views:
    """The views after these changes, in order."""
    after = dict(views)
    for change in changes:
        old = find_view(after, change.name)
        if old is not None:
            del after[old.name]
        if change.view is not None:
            after[change.view.name] = change.view
    return after


def encode_view(view: View) -> dict[str, Any]:
    columns = [[column.name, column.source, column.type, column.comment] for column in view.columns]
    return {
        "text": view.text,
        "columns": columns,
        **({"comment": view.comment} if view.comment else {}),
    }


def decode_view(name: str, record: Mapping[str, Any]) -> View:
    columns = tuple(ViewColumn(*map(text, column)) for column in record["columns"])
    return View(name, text(record["text"]), columns, text(record.get("comment", "")))


def encode_view_change(change: ViewChange) -> dict[str, Any]:
    return {"name": change.name, "view": None if change.view is None else encode_view(change.view)}


def decode_view_change(record: Mapping[str, Any]) -> ViewChange:
    name = text(record["name"])
    return ViewChange(name, None if record["view"] is None else decode_view(name, record["view"]))
