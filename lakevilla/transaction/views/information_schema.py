"""`information_schema`: the lake's tables, columns, views and constraints as rows that queries read.

Rows are made when a statement names one of these tables, as its transaction sees the lake. The columns have
the names of the SQL standard; what a lake does not have is left out.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakevilla.engines.data import source_of
from lakevilla.engines.port import Source
from lakevilla.errors import Corrupt, InvalidInput, Unsupported
from lakevilla.formats.columns import comment_of
from lakevilla.formats.properties import CONSTRAINT
from lakevilla.sql.statements import TableName
from lakevilla.sql.types import type_name
from lakevilla.sql.words.suggestions import did_you_mean
from lakevilla.tables.pinned import Pinned
from lakevilla.transaction.views.stored import INFORMATION
from lakevilla.versions.views import View

if TYPE_CHECKING:
    from lakevilla.transaction.workspace import Workspace

CATALOG = "lake"
"""The one catalog that there is."""

Row = dict[str, Any]

_TEXT, _NUMBER = pa.string(), pa.int64()


def is_own_schema(name: str) -> bool:
    """Whether a name is one of this schema's."""
    return isinstance(name, str) and name.casefold().startswith(INFORMATION)


def information(workspace: "Workspace", tables: Iterable[TableName]) -> dict[str, Source]:
    """Those of these tables that belong to this schema, by their names in lower case."""
    found: dict[str, Source] = {}
    for table in tables:
        if not is_own_schema(table.name):
            continue
        key = table.name.casefold()
        name = key.removeprefix(INFORMATION)
        made = _TABLES.get(name)
        if made is None:
            hint = did_you_mean(name, _TABLES, f"available: {', '.join(_TABLES)}")
            error = InvalidInput(f"unknown table {table.name!r}; {hint}", table=table.name)
            error.unknown = table.name
            raise error
        if table.version is not None or table.timestamp_ms is not None:
            raise InvalidInput(
                f"{table.name!r} has no versions: query the lake at an instant, by AT (SEQ => ...) or "
                "lake.at(...)",
                table=table.name,
            )
        schema, rows = made
        found[key] = source_of(key, pa.Table.from_pylist(list(rows(workspace)), schema), workspace.engine)
    return found


def _schemata(workspace: "Workspace") -> Iterator[Row]:
    names = {_schema(name) for name in [*workspace.names(), *workspace.stored_views.all()]}
    for name in sorted({*names, "information_schema"}):
        yield {"catalog_name": CATALOG, "schema_name": name}


def _tables(workspace: "Workspace") -> Iterator[Row]:
    for name, pinned in _pinned(workspace):
        row = {**_named(name), "table_type": "BASE TABLE"}
        if pinned is not None:
            snapshot = pinned.snapshot
            row |= {
                "data_source_format": pinned.ref.format.partition(":")[0],
                "version": snapshot.version,
                "comment": snapshot.comment or None,
            }
        yield row
    for view, temporary in _views(workspace):
        kind = "TEMPORARY VIEW" if temporary else "VIEW"
        yield {**_named(view.name), "table_type": kind, "comment": view.comment or None}


def _columns(workspace: "Workspace") -> Iterator[Row]:
    for name, pinned in _pinned(workspace):
        if pinned is None:
            continue
        snapshot = pinned.snapshot
        parts = {field.source[0]: number for number, field in enumerate(snapshot.partitioning.fields, 1)}
        for number, field in enumerate(snapshot.schema, 1):
            yield {
                **_named(name),
                "column_name": field.name,
                "ordinal_position": number,
                "is_nullable": "YES" if field.nullable else "NO",
                "data_type": type_name(field.type),
                "partition_ordinal_position": parts.get(field.name),
                "comment": comment_of(field) or None,
            }
    for view, _ in _views(workspace):
        for number, column in enumerate(view.columns, 1):
            yield {
                **_named(view.name),
                "column_name": column.name,
                "ordinal_position": number,
                "is_nullable": "YES",
                "data_type": column.type,
                "comment": column.comment or None,
            }


def _view_rows(workspace: "Workspace") -> Iterator[Row]:
    for view, temporary in _views(workspace):
        yield {
            **_named(view.name),
            "view_definition": view.text,
            "is_temporary": "YES" if temporary else "NO",
        }


def _constraints(workspace: "Workspace") -> Iterator[Row]:
    for name, pinned in _pinned(workspace):
        if pinned is None:
            continue
        for rule, check in sorted(pinned.snapshot.checks.items()):
            yield {
                **_named(name),
                "constraint_name": rule,
                "constraint_type": "CHECK",
                "check_clause": check,
            }
        for field in pinned.snapshot.schema:
            if not field.nullable:
                yield {
                    **_named(name),
                    "constraint_name": f"{field.name}_not_null",
                    "constraint_type": "CHECK",
                    "check_clause": f"{field.name} IS NOT NULL",
                }


def _properties(workspace: "Workspace") -> Iterator[Row]:
    for name, pinned in _pinned(workspace):
        if pinned is None:
            continue
        for key, value in sorted(pinned.snapshot.properties.items()):
            if not key.startswith(CONSTRAINT):
                yield {**_named(name), "property_name": key, "property_value": value}


def _pinned(workspace: "Workspace") -> Iterator[tuple[str, Pinned | None]]:
    """Every table; None for one that cannot be read."""
    for name in workspace.names():
        try:
            found = workspace.find(name)
        except (Corrupt, Unsupported):
            # It is there, and SHOW TABLES lists it: what is wrong with it says a query of the table.
            yield name, None
            continue
        if found is not None:
            yield name, found


def _views(workspace: "Workspace") -> Iterator[tuple[View, bool]]:
    temporary = [found.view for found in workspace.stored_views.temporary.values()]
    for view in sorted(workspace.stored_views.all().values(), key=lambda view: view.name):
        yield view, False
    for view in sorted(temporary, key=lambda view: view.name):
        yield view, True


def _named(name: str) -> Row:
    schema = _schema(name)
    table = name.removeprefix(f"{schema}.") if "." in name else name
    return {"table_catalog": CATALOG, "table_schema": schema, "table_name": table}


def _schema(name: str) -> str:
    """What stands before the last dot of a name; `default` where nothing does."""
    before, dot, _ = name.rpartition(".")
    return before if dot else "default"


def _of(*names: str, **more: pa.DataType) -> pa.Schema:
    columns = [("table_catalog", _TEXT), ("table_schema", _TEXT), ("table_name", _TEXT)]
    return pa.schema([*columns, *((name, _TEXT) for name in names), *more.items()])


_TABLES: Mapping[str, tuple[pa.Schema, Callable[["Workspace"], Iterator[Row]]]] = {
    "schemata": (pa.schema([("catalog_name", _TEXT), ("schema_name", _TEXT)]), _schemata),
    "tables": (_of("table_type", "data_source_format", version=_NUMBER, comment=_TEXT), _tables),
    "columns": (
        _of(
            "column_name",
            ordinal_position=_NUMBER,
            is_nullable=_TEXT,
            data_type=_TEXT,
            partition_ordinal_position=_NUMBER,
            comment=_TEXT,
        ),
        _columns,
    ),
    "views": (_of("view_definition", "is_temporary"), _view_rows),
    "table_constraints": (_of("constraint_name", "constraint_type", "check_clause"), _constraints),
    "table_properties": (_of("property_name", "property_value"), _properties),
}
