"""CREATE VIEW, DROP VIEW and SHOW VIEWS: queries that get names in the lake's registry."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from lakevilla.errors import InvalidInput
from lakevilla.formats.columns import comment_of
from lakevilla.sql import statements as sql
from lakevilla.sql.letters import refuse_surrogates_in
from lakevilla.sql.tables import sql_name
from lakevilla.sql.types import type_name
from lakevilla.sql.views.expansion import Expansion, Find, ViewQuery, expanded
from lakevilla.sql.words.suggestions import did_you_mean
from lakevilla.store.names import check_table_name
from lakevilla.transaction.statements.effect import Effect, LakeChange
from lakevilla.transaction.views.stored import INFORMATION, TemporaryView
from lakevilla.transaction.workspace import Workspace
from lakevilla.versions.commits import Commit
from lakevilla.versions.records import Head
from lakevilla.versions.registry import refuse_view
from lakevilla.versions.views import View, ViewChange, ViewColumn, find_view


def create_view(workspace: Workspace, statement: sql.CreateView) -> Effect:
    """A view of the lake. Its query is analysed now, and not run."""
    name = check_table_name(statement.name)
    if statement.temporary:
        raise InvalidInput(
            f"a temporary view belongs to a session: run CREATE TEMPORARY VIEW {sql_name(name)} by "
            "lake.session(), or leave out TEMPORARY"
        )
    if name.casefold().startswith(INFORMATION):
        raise InvalidInput(f"{name!r} cannot be a view: the schema information_schema is the lake's own")
    _refuse_table(workspace, name)
    known = workspace.stored_views.find(name)
    if known is not None and statement.if_not_exists:
        return Effect(None)
    if known is not None and not statement.replace:
        refuse_view({known.name: known}, name)
    if not statement.replace:
        workspace.stored_views.note(name, None)
    # In the old one's spelling, and never reading itself.
    view = defined(workspace, statement, name if known is None else known.name)
    change = ViewChange(view.name, view)
    if workspace.by_slots:
        return Effect(None, change)
    return Effect(None, LakeChange(_Proposal(change, statement.replace).propose))


def drop_view(workspace: Workspace, statement: sql.DropView) -> Effect:
    """A view loses its name."""
    name = check_table_name(statement.name)
    known = workspace.stored_views.find(name)
    if known is None:
        if statement.if_exists:
            return Effect(None)
        if workspace.find(name) is not None:
            raise InvalidInput(f"{name!r} is a table, not a view: use DROP TABLE", table=name)
        views = list(workspace.stored_views.all())
        hint = did_you_mean(name, views, f"available: {', '.join(map(repr, views)) or 'none'}")
        raise InvalidInput(f"unknown view {name!r}; {hint}", table=name)
    change = ViewChange(known.name, None)
    if workspace.by_slots:
        return Effect(None, change)
    return Effect(None, LakeChange(_Proposal(change, replace=True).propose))


def restore_view(workspace: Workspace, view: View) -> Effect:
    """A view as it was at an earlier instant. What it reads is not looked at: it may be restored with it."""
    _refuse_table(workspace, view.name)
    workspace.stored_views.note(view.name, workspace.stored_views.find(view.name))
    return Effect(None, ViewChange(view.name, view))


@dataclass(frozen=True)
class _Proposal:
    """A change of a view in a transaction of its own."""

    change: ViewChange
    replace: bool

    def propose(self, head: Head) -> Commit:
        known = find_view(head.views, self.change.name)
        if self.change.view is None and known is None:
            raise InvalidInput(f"view {self.change.name!r} was dropped by another client")
        if not self.replace:
            refuse_view(head.views, self.change.name)
        return Commit((), views=(self.change,))


LONGEST_BYTES = 64 * 1024
"""The text of a view is stored in HEAD, which every client reads."""


def defined(workspace: Workspace, statement: sql.CreateView, name: str) -> View:
    """The view that a statement makes; InvalidInput for a query that cannot be one."""
    refuse_surrogates_in([name, statement.comment, *(comment for _, comment in statement.columns)], "a view")
    if len(statement.text.encode()) > LONGEST_BYTES:
        raise InvalidInput(
            f"the query of view {name!r} is too long: at most {LONGEST_BYTES:,} bytes are allowed; divide it "
            "into several views",
            table=name,
        )
    body = sql.Query(statement.query, statement.tables)
    if not statement.temporary:
        _refuse_outside(workspace, statement)
    found = expanded(body, _without(workspace, name, temporary=statement.temporary))
    assert isinstance(found, sql.Query), "a query stays one"
    workspace.pin_all(found.tables)
    sources = workspace.sources(found.tables)
    schema = workspace.engine.columns_of(found.tree, sources, workspace.now_ms)
    return View(name, statement.text, _columns(statement, schema), statement.comment)


def temporary_view(workspace: Workspace, statement: sql.CreateView) -> TemporaryView:
    """A view of the session in which the statement runs."""
    view = defined(workspace, statement, check_table_name(statement.name))
    known = workspace.stored_views.temporary

    def find(table: sql.TableName, of_session: bool) -> ViewQuery | None:
        own = known.get(table.name.casefold()) if of_session else None
        return None if own is None or table.name.casefold() == view.name.casefold() else own.query()

    return TemporaryView(view, Expansion(find).query(statement.query))


def _columns(statement: sql.CreateView, schema: pa.Schema) -> tuple[ViewColumn, ...]:
    given = statement.columns
    if given and len(given) != len(schema):
        raise InvalidInput(f"the view names {len(given)} columns, and its query has {len(schema)}")
    seen: set[str] = set()
    for field in schema:
        if field.name.casefold() in seen:
            raise InvalidInput(
                f"the query of the view has two columns {field.name!r}: name them apart with AS",
                column=field.name,
            )
        seen.add(field.name.casefold())
    named = given or [(field.name, comment_of(field)) for field in schema]
    return tuple(
        ViewColumn(name, field.name, type_name(field.type), comment)
        for (name, comment), field in zip(named, schema, strict=True)
    )


def _without(workspace: Workspace, name: str, *, temporary: bool) -> Find:
    """What names mean in the query of the view that is defined: the view itself is none of them."""
    views = workspace.stored_views

    def find(table: sql.TableName, of_session: bool) -> ViewQuery | None:
        if table.name.casefold() != name.casefold():
            return views.query(table, of_session and temporary)
        if temporary:
            return views.query(table, False)
        raise InvalidInput(f"view {name!r} reads itself: {name} -> {name}", table=name)

    return find


def _refuse_outside(workspace: Workspace, statement: sql.CreateView) -> None:
    """A view of the lake means the same for every client: it reads what the lake has."""
    for table in statement.tables:
        if table.name.casefold() in {*workspace.views, *workspace.stored_views.temporary}:
            raise InvalidInput(
                f"a view of the lake cannot read {table.name!r}, which only this session has: make the view "
                "TEMPORARY",
                table=table.name,
            )
        if workspace.reads_outside(table.name):
            raise InvalidInput(
                f"a view of the lake cannot read {table.name!r}, which is not a table of the lake: make the "
                "view TEMPORARY, or register the table",
                table=table.name,
            )


def _refuse_table(workspace: Workspace, name: str) -> None:
    if workspace.find(name) is not None:
        raise InvalidInput(
            f"table {name!r} already exists: choose another name for the view, or drop the table first",
            table=name,
        )


_PLAIN = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def create_text(view: View, *, temporary: bool = False) -> str:
    """The statement that makes the view."""
    kind = "TEMPORARY VIEW" if temporary else "VIEW"
    parts = [f"CREATE {kind} {sql_name(view.name)}"]
    if any(column.name != column.source or column.comment for column in view.columns):
        parts[0] += f" ({', '.join(_column_text(column) for column in view.columns)})"
    if view.comment:
        parts.append(f"COMMENT {literal(view.comment)}")
    return "\n".join([*parts, f"AS {view.text}"])


def _column_text(column: ViewColumn) -> str:
    name = column.name if _PLAIN.fullmatch(column.name) else "`" + column.name.replace("`", "``") + "`"
    return f"{name} COMMENT {literal(column.comment)}" if column.comment else name


def literal(text: str) -> str:
    """A string as a statement writes it."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    return f"'{escaped}'"


def visible(workspace: Workspace) -> Mapping[str, tuple[View, bool]]:
    """Every view that a statement can read, by name, and whether it is temporary."""
    temporary = workspace.stored_views.temporary
    lake = {v.name: (v, False) for v in workspace.stored_views.all().values()}
    own = {found.view.name: (found.view, True) for found in temporary.values()}
    return dict(sorted({**lake, **own}.items()))
