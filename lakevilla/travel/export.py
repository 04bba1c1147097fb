"""An instant of the lake for engines without LakeVilla: which version of which table, and SQL for it.

A reader that goes by such a list sees all tables at one instant, as our own readers do: versions of a table
never change. They stay readable as long as vacuum keeps them; tag the instant where it has to last.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from lakevilla.errors import InvalidInput
from lakevilla.store.metered import Meter
from lakevilla.tables.catalog import Catalog
from lakevilla.timestamps import iso_text
from lakevilla.travel.exported_views import ExportedView, exported_views
from lakevilla.versions.records import Head


@dataclass(frozen=True, slots=True)
class ExportedTable:
    """One table at one version. `url` is where it lies."""

    name: str
    url: str
    format: str
    version: int


@dataclass(frozen=True, slots=True)
class Export:
    """The tables of one instant: `seq` is the entry of the global log that made it.

    `unknown` are tables that the lake had then without a version of them being part of the instant; they are
    in none of the texts. `views` are the views of the instant.
    """

    lake: str
    seq: int
    time_ms: int
    tables: tuple[ExportedTable, ...]
    unknown: tuple[str, ...] = ()
    views: tuple[ExportedView, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """As values that JSON has."""
        return {
            "lake": self.lake,
            "seq": self.seq,
            "time": iso_text(self.time_ms) if self.time_ms else None,
            "tables": [
                {"name": table.name, "url": table.url, "format": table.format, "version": table.version}
                for table in self.tables
            ],
            "unknown": list(self.unknown),
            "views": [
                {
                    "name": view.name,
                    "sql": view.text,
                    "columns": [{"name": name, "type": kind} for name, kind in view.columns],
                }
                for view in self.views
            ],
        }

    def json(self) -> str:
        """As JSON text."""
        return json.dumps(self.as_dict(), indent=2, ensure_ascii=False)

    def sql(self, engine: str, *, catalog: str = "delta", schema: str = "default") -> str:
        """Statements for `duckdb`, `spark` or `trino` that make a view of each table at its version.

        DuckDB wants its `delta` and `iceberg` extensions loaded, Spark the connectors of these formats. Trino
        reads Delta tables of its own catalog: they are expected in `catalog` and `schema` under the names
        that they have here, and the views are made in the schema `lake` of that catalog.

        The lake's own views are queries in Spark SQL: Spark gets them, and a comment names those that are
        left out.
        """
        if engine not in _DIALECTS:
            raise InvalidInput(
                f"unknown engine {engine!r}; available: {', '.join(map(repr, sorted(_DIALECTS)))}"
            )
        for table in self.tables:
            if table.format not in _FORMATS[engine]:
                raise InvalidInput(
                    f"cannot write SQL of {engine!r} for table {table.name!r} of format {table.format!r}: "
                    "use export.json()",
                    table=table.name,
                )
        statements = _DIALECTS[engine](self, catalog, schema)
        about = f"-- The lake {_comment(self.lake)} at entry {self.seq}"
        when = f", {iso_text(self.time_ms)}" if self.time_ms else ""
        lines = [f"{about}{when}", *(f"{statement};" for statement in statements), *self._left_out(engine)]
        return "\n".join(lines) + "\n"

    def _left_out(self, engine: str) -> Iterator[str]:
        """Comments on the views that this engine does not get."""
        for view in self.views:
            reason = view.obstacle if engine == "spark" else "its query is Spark SQL"
            if reason:
                yield f"-- The view {_comment(repr(view.name))} is left out: {_comment(reason)}"


def export(catalog: Catalog, head: Head) -> Export:
    """The tables of an instant. No request is sent."""
    meter = Meter()
    refs = [head.tables[name] for name in sorted(head.tables)]
    known = [ref for ref in refs if ref.location in head.versions]
    return Export(
        catalog.root(meter).url,
        head.seq,
        head.time_ms,
        tuple(
            ExportedTable(
                ref.name, catalog.store_of(ref.location, meter).url, ref.format, head.versions[ref.location]
            )
            for ref in known
        ),
        tuple(ref.name for ref in refs if ref not in known),
        tuple(exported_views(head.views, {ref.name: _temporary(ref.name) for ref in known})),
    )


def _duckdb(export: Export, catalog: str, schema: str) -> list[str]:  # noqa: ARG001
    statements = [f"CREATE SCHEMA IF NOT EXISTS {_quoted(folder)}" for folder in _schemas(export)]
    for table in export.tables:
        name = ".".join(_quoted(part) for part in table.name.split(".", 1))
        scan = f"delta_scan({_text(_path(table.url))}, version => {table.version})"
        if table.format == "iceberg":
            scan = f"iceberg_scan({_text(_metadata(_path(table.url), table))})"
        statements.append(f"CREATE OR REPLACE VIEW {name} AS SELECT * FROM {scan}")
    return statements


def _spark(export: Export, catalog: str, schema: str) -> list[str]:  # noqa: ARG001
    statements = []
    for table in export.tables:
        name, path = _ticked(_temporary(table.name)), _path(table.url)
        place = f"s3a://{path[5:]}" if path.startswith("s3://") else path
        what = f"AS SELECT * FROM delta.{_ticked(place)} VERSION AS OF {table.version}"
        if table.format == "iceberg":
            what = f"USING iceberg OPTIONS (path {_text(_metadata(place, table))})"
        statements.append(f"CREATE OR REPLACE TEMPORARY VIEW {name} {what}")
    for view in export.views:
        if view.spark:
            name = _ticked(_temporary(view.name))
            statements.append(f"CREATE OR REPLACE TEMPORARY VIEW {name} AS {view.spark}")
    return statements


def _temporary(name: str) -> str:
    """A temporary view has no schema."""
    return name.replace(".", "_")


def _trino(export: Export, catalog: str, schema: str) -> list[str]:
    statements = [f"CREATE SCHEMA IF NOT EXISTS {_quoted(catalog)}.{_quoted('lake')}"]
    for table in export.tables:
        own, dot, last = table.name.rpartition(".")
        place = ".".join(_quoted(part) for part in (catalog, own if dot else schema, last))
        view = ".".join(_quoted(part) for part in (catalog, "lake", table.name.replace(".", "_")))
        source = f"{place} FOR VERSION AS OF {table.version}"
        statements.append(f"CREATE OR REPLACE VIEW {view} AS SELECT * FROM {source}")
    return statements


_DIALECTS: Mapping[str, Callable[[Export, str, str], list[str]]] = {
    "duckdb": _duckdb,
    "spark": _spark,
    "trino": _trino,
}


_FORMATS = {"duckdb": ("delta", "iceberg"), "spark": ("delta", "iceberg"), "trino": ("delta",)}
"""Trino finds versions of Iceberg tables by ids of snapshots, which the global log does not have."""


def _metadata(place: str, table: ExportedTable) -> str:
    """The metadata file of a version of an Iceberg table: engines take that for the table."""
    return f"{place}/metadata/v{table.version}.metadata.json"


def _schemas(export: Export) -> list[str]:
    return sorted({table.name.split(".", 1)[0] for table in export.tables if "." in table.name})


def _path(url: str) -> str:
    """A place as engines take it: files by their path, as they are written."""
    return unquote(url.removeprefix("file://")) if url.startswith("file://") else url


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _ticked(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _comment(value: str) -> str:
    return " ".join(value.split())
