"""The views of the lake as one transaction sees them, with its own changes.

What a name meant stays so in the transaction, and is part of what it has read: its commit is refused if a
view that it used is another one by then. No statement runs again for that.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from lakevilla.errors import Conflict, InvalidInput
from lakevilla.sql.parser import parse
from lakevilla.sql.statements import Query, TableName
from lakevilla.sql.views.expansion import ViewQuery
from lakevilla.store.names import may_be_table
from lakevilla.versions import registry
from lakevilla.versions.views import View, Views, decode_view, encode_view, find_view, with_changes

if TYPE_CHECKING:
    from lakevilla.transaction.workspace import Workspace

INFORMATION = "information_schema."


@dataclass(frozen=True, slots=True)
class TemporaryView:
    """A view of a session. `tree` is its query, with those of other temporary views in the place of their
    names."""

    view: View
    tree: exp.Query

    def query(self) -> ViewQuery:
        """The view as statements read it."""
        return view_query(self.view, self.tree, temporary=True)


class StoredViews:
    """The views of one transaction. `seen` are those that it used, by their names in lower case; None for a
    name that was free. `temporary` are those of the session in which the statement runs, by the same."""

    def __init__(self, workspace: "Workspace") -> None:
        self._workspace = workspace
        self.seen: dict[str, tuple[str, View | None]] = {}
        self.temporary: Mapping[str, TemporaryView] = {}
        self.past: Views | None = None
        """Those of an earlier instant, for a workspace that sees one."""
        if workspace.instant is not None:
            workspace.instant.allows = lambda head: self._changed(head.views) is None

    def find(self, name: str) -> View | None:
        """The view of this name, from now on the same; None if there is none, or if it is a table's name."""
        if not self._may_be(name):
            return None
        own = self._workspace.own.views.get(name.casefold())
        if own is not None:
            return own.view
        known = self.seen.get(name.casefold())
        if known is not None:
            return known[1]
        found = find_view(self._views(name), name)
        if found is not None:
            self.note(name, found)
        return found

    def note(self, name: str, found: View | None) -> None:
        """The transaction depends on what this name means."""
        if name.casefold() not in self._workspace.own.views:
            self.seen.setdefault(name.casefold(), (name, found))

    def all(self) -> Views:
        """Every view that there is for the transaction."""
        return with_changes(self._views(None), self._workspace.own.views.values())

    def query(self, table: TableName, temporary: bool) -> ViewQuery | None:
        """What a name in a FROM clause means, if that is a view."""
        if table.name.casefold().startswith(INFORMATION):
            return None
        if temporary:
            # Data that was given for the statement comes first.
            if table.name.casefold() in self._workspace.views:
                return None
            own = self.temporary.get(table.name.casefold())
            if own is not None:
                return own.query()
        found = self.find(table.name)
        return None if found is None else view_query(found, _parsed(found.text).tree)

    def refuse(self, name: str, verb: str = "changed") -> None:
        """InvalidInput if the name is a view's, where a table is needed."""
        if name.casefold() in self.temporary or self.find(name) is not None:
            error = InvalidInput(f"{name!r} is a view and cannot be {verb}: name a table", table=name)
            error.unknown = name
            raise error

    def refuse_changed(self, views: Views) -> None:
        """Conflict if a view that the transaction depends on is another one in these."""
        only = None if self._workspace.reads_count else self._workspace.own.views
        name = self._changed(views, only)
        if name is not None:
            raise Conflict(
                f"view {name!r} was created, replaced or dropped by another client after the transaction "
                "had used its name. Nothing was changed; run the transaction again",
                table=name,
            )

    def _changed(self, views: Views, only: Collection[str] | None = None) -> str | None:
        """A view that the transaction has seen and that is another one in these, of those of these names."""
        for key, (name, seen) in self.seen.items():
            if (only is None or key in only) and find_view(views, name) != seen:
                return name
        return None

    def encoded(self) -> dict[str, Mapping[str, Any] | None]:
        """What was seen, for the records of the transaction."""
        return {name: None if view is None else encode_view(view) for name, view in self.seen.values()}

    def restore(self, seen: Mapping[str, Mapping[str, Any] | None]) -> None:
        """What another client had seen in this transaction."""
        for name, record in seen.items():
            self.seen[name.casefold()] = (name, None if record is None else decode_view(name, record))

    def _may_be(self, name: str) -> bool:
        workspace = self._workspace
        if not isinstance(name, str) or not may_be_table(name) or name.casefold().startswith(INFORMATION):
            return False
        if workspace.own.find(name) is not None:
            return False
        if name.casefold() in workspace.own.views:
            return True
        return workspace.pinned(name) is None

    def _views(self, name: str | None) -> Views:
        """The lake's views, as new as they have to be to say what this name means."""
        workspace = self._workspace
        if self.past is not None:
            return self.past
        if workspace.instant is not None:
            workspace.pin_instant(())
            return workspace.instant.head.views
        catalog, meter = workspace.catalog, workspace.meter
        if name is not None:
            if catalog.known(name) is not None:
                return {}
            head = catalog.head(meter)
            if registry.find(head, name) is not None:
                return {}
        head = catalog.head(meter, fresh=True)
        return {} if head is None else head.views


def view_query(view: View, tree: exp.Query, *, temporary: bool = False) -> ViewQuery:
    """A view as statements read it."""
    names = tuple(column.name for column in view.columns)
    sources = tuple(column.source for column in view.columns)
    return ViewQuery(view.name, tree, names, sources, temporary)


@lru_cache(maxsize=256)
def _parsed(text: str) -> Query:
    """The query of a view. Shared: it is copied before it is changed."""
    parsed = parse(text)
    if not isinstance(parsed, Query):
        raise InvalidInput(f"the query of a view cannot be read: {text[:80]}")
    return parsed
