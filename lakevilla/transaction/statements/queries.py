"""Statements that read: whole tables, queries, and the names of tables."""

from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa

from lakevilla.errors import InvalidInput
from lakevilla.sql import statements as sql
from lakevilla.sql.parser import select_from
from lakevilla.sql.statements import TableName
from lakevilla.sql.views.expansion import expanded
from lakevilla.transaction.statements.effect import Effect
from lakevilla.transaction.views.definitions import visible
from lakevilla.transaction.views.information_schema import is_own_schema
from lakevilla.transaction.workspace import Workspace


def read(workspace: Workspace, name: str, version: int | None = None, at: Any = None) -> Effect:
    """The whole table, lazily, at one version."""
    if version is not None and at is not None:
        raise InvalidInput("give a version or a time, not both")
    if version is not None and not isinstance(version, int):
        raise InvalidInput(f"version must be a number; found {version!r}")
    table = TableName(name, version, None if at is None else milliseconds(at))
    if is_own_schema(name) or workspace.stored_views.query(table, True) is not None:
        return _read_view(workspace, table)
    pinned = workspace.pin(table)
    return Effect(workspace.engine.read(workspace.source(pinned, keeps_files=True)))


def _read_view(workspace: Workspace, table: TableName) -> Effect:
    if table.version is not None or table.timestamp_ms is not None:
        raise InvalidInput(
            f"{table.name!r} is a view, and has no earlier versions: read it at an instant, by lake.at(...)",
            table=table.name,
        )
    found = expanded(select_from(table.name), workspace.stored_views.query)
    assert isinstance(found, sql.Query), "a query stays one"
    workspace.pin_all(found.tables)
    return query(workspace, found)


def query(workspace: Workspace, statement: sql.Query) -> Effect:
    """The result of a SELECT over pinned tables."""
    sources = workspace.sources(statement.tables)
    return Effect(workspace.engine.query(statement.tree, sources, workspace.now_ms))


def milliseconds(moment: Any) -> int:
    """A time as milliseconds since 1970: a datetime, a date, or ISO text; UTC where no zone is given."""
    if isinstance(moment, str):
        try:
            moment = datetime.fromisoformat(moment)
        except ValueError as error:
            raise InvalidInput(f"{moment!r} is not a time: write it like 2026-01-31T12:00Z") from error
    if isinstance(moment, date) and not isinstance(moment, datetime):
        moment = datetime(moment.year, moment.month, moment.day)
    if not isinstance(moment, datetime):
        raise InvalidInput(f"{moment!r} is not a time: give a datetime, or text like 2026-01-31T12:00Z")
    zoned = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return int(zoned.timestamp() * 1000)


def show_names(workspace: Workspace, statement: sql.ShowTables | sql.ShowViews) -> pa.Table:
    """The names of all tables and views, or of those that match the pattern, and what they are."""
    kinds = {} if isinstance(statement, sql.ShowViews) else dict.fromkeys(workspace.names(), "table")
    for name, (_, temporary) in visible(workspace).items():
        kinds[name] = "temporary view" if temporary else "view"
    names = sorted(kinds)
    if statement.schema is not None:
        names = [n for n in names if n.casefold().startswith(f"{statement.schema}.".casefold())]
    if statement.pattern is not None:
        names = [n for n in names if _matches(n, statement.pattern)]
    first = "viewName" if isinstance(statement, sql.ShowViews) else "tableName"
    text = pa.string()
    return pa.table({first: pa.array(names, text), "kind": pa.array([kinds[n] for n in names], text)})


def _matches(name: str, pattern: str) -> bool:
    """Spark's pattern of SHOW TABLES: `*` for any text, `|` between alternatives, any case."""
    return any(_fits(name.casefold(), part.strip().casefold().split("*")) for part in pattern.split("|"))


def _fits(name: str, pieces: list[str]) -> bool:
    """Whether the name is the pieces in this order, with any text between them."""
    if len(pieces) == 1:
        return name == pieces[0]
    first, *middle, last = pieces
    if not (name.startswith(first) and name.endswith(last) and len(name) >= len(first) + len(last)):
        return False
    rest = name[len(first) : len(name) - len(last)]
    for piece in middle:
        place = rest.find(piece)
        if place < 0:
            return False
        rest = rest[place + len(piece) :]
    return True
