"""The verbs of a transaction and of a lake: one list, so that they never differ.

On a transaction a verb is one of its statements; on a lake it is a transaction of its own.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import PurePath
from typing import Any

import pyarrow as pa

from lakevilla.engines.data import readable
from lakevilla.engines.port import Result
from lakevilla.engines.row_files import is_file
from lakevilla.errors import InvalidInput
from lakevilla.model import Counts
from lakevilla.sql.parameters import plain
from lakevilla.sql.parser import parse
from lakevilla.sql.script.places import showing
from lakevilla.sql.statements import CreateView, Insert
from lakevilla.sql.tables import tables_of
from lakevilla.transaction.statements import ddl, dml, queries, replacement
from lakevilla.transaction.statements.definition import Definition
from lakevilla.transaction.statements.dispatch import defined_by, named_by, orders_rows, run_statement
from lakevilla.transaction.statements.effect import Effect
from lakevilla.transaction.statements.inputs import (
    assignments,
    condition,
    delete_text,
    merge_clauses,
    merge_source,
    partition_fields,
    refuse_where,
    table_schema,
    update_text,
    why_once,
    widens_by,
)
from lakevilla.transaction.statements.statement import Defines, Statement
from lakevilla.transaction.views.definitions import temporary_view
from lakevilla.transaction.views.given import Views
from lakevilla.transaction.views.stored import TemporaryView
from lakevilla.transaction.workspace import Workspace

_NONE: Mapping[str, Any] = {}


class Verbs(ABC):
    """What users do with tables. `_run` says in which transaction."""

    @abstractmethod
    def _run(self, statement: Statement) -> Any:
        """Run one statement and give its result."""

    def _kept(self, data: object) -> object:
        """The data for a statement that may have to run again after the client has changed its own copy."""
        return data

    def _change(self, run: Callable[[Workspace], Effect], data: object, *tables: str) -> Counts:
        """Run a change of tables; `data` are the rows that it was given."""
        counts: Counts = self._run(Statement(run, once=why_once(data), tables=tables))
        return counts

    def _name(self, run: Callable[[Workspace], Effect]) -> None:
        """Run a change of the lake's names."""
        self._run(Statement(run, defines=Defines.NAMES))

    def sql(self, text: str, /, *, views: Mapping[str, object] | None = None, **parameters: Any) -> Any:
        """Run one statement of Spark SQL; `:name` in the text takes the parameter of that name.

        `views` is data that the statement reads under names, such as `views={"df": frame}` for
        `SELECT * FROM df`; it may be whatever `append` takes. A view hides a table of its name.

        A query gives a result, a change gives counts of rows, a definition gives None.
        """
        return self._sql(text, {name: plain(value) for name, value in parameters.items()}, views or {})

    def _sql(
        self,
        text: str,
        parameters: Mapping[str, Any],
        views: Mapping[str, object] = _NONE,
        temporary: Mapping[str, TemporaryView] = _NONE,
    ) -> Any:
        """Run one statement; `temporary` are the views of its session, by names in lower case."""
        parsed = parse(text, parameters)
        defines, ordered = defined_by(parsed), orders_rows(parsed)
        if views or temporary:
            shown = Views(views, parsed, temporary)
            run = showing(text, shown.run)
            # Without its text if it reads them: a client that resumes the transaction does not have them.
            known_text = text if not shown.covered else None
            tables = shown.tables
            return self._run(
                Statement(run, known_text, parameters, defines=defines, ordered=ordered, tables=tables)
            )
        run = showing(text, partial(run_statement, statement=parsed))
        tables, blind = named_by(parsed), isinstance(parsed, Insert) and dml.is_blind(parsed)
        # Names are looked up before the statement runs.
        return showing(text, self._run)(
            Statement(run, text, parameters, defines=defines, ordered=ordered, tables=tables, blind=blind)
        )

    def _define(self, statement: CreateView, temporary: Mapping[str, TemporaryView]) -> TemporaryView:
        """The temporary view that a statement of a session makes."""
        made: list[TemporaryView] = []

        def run(workspace: Workspace) -> Effect:
            workspace.stored_views.temporary = temporary
            try:
                made.append(temporary_view(workspace, statement))
            finally:
                workspace.stored_views.temporary = {}
            return Effect(None)

        tables = tuple(table.name for table in statement.tables if table.name.casefold() not in temporary)
        self._run(Statement(run, once="it made a temporary view", tables=tables))
        return made[-1]

    def read(self, name: str, *, version: int | None = None, at: Any = None) -> Result:
        """A table as it is now, or as it was at a version or a time."""
        run: Callable[[Workspace], Effect] = lambda w: queries.read(w, name, version, at)  # noqa: E731
        result: Result = self._run(Statement(run, tables=(name,)))
        return result

    def append(self, name: str, data: object, *, schema: str | None = None) -> Counts:
        """Add rows. Columns go by name. With `schema="merge"`, columns that only the data has are added to
        the table, by the same commit.

        Data is anything with an Arrow C stream or the dataframe protocol (Arrow, pandas, polars, DuckDB),
        dicts in a list or from an iterator, a Spark DataFrame on Spark, or the path of a `.parquet` or
        `.csv` file on this machine.
        """
        rows = self._kept(readable(data))
        widens = widens_by(schema)
        run: Callable[[Workspace], Effect] = lambda w: dml.append(w, name, rows, widens)  # noqa: E731
        counts: Counts = self._run(Statement(run, once=why_once(rows), tables=(name,), blind=not widens))
        return counts

    def overwrite(
        self, name: str, data: object, where: str | None = None, *, schema: str | None = None
    ) -> Counts:
        """Replace the rows for which `where` is true, or all rows, by the data. `schema="merge"` as in
        `append`. With `schema="replace"` the columns of the data replace those of the table too; its
        partitioning, properties and constraints stay."""
        rows, replaced = self._kept(readable(data)), condition(where)
        if schema == "replace":
            refuse_where(where)
            return self._change(lambda w: replacement.overwrite(w, name, rows), rows, name)
        widens = widens_by(schema)
        return self._change(lambda w: dml.overwrite(w, name, rows, replaced, widens), rows, name)

    def update(self, name: str, set: Mapping[str, Any], where: str | None = None) -> Counts:
        """Change columns of the rows for which `where` is true.

        A value that is a string is a Spark SQL expression over the row (`"balance - 50"`, `"'text'"`);
        any other value is taken as it is.
        """
        assigned, changed = assignments(set), condition(where)
        run: Callable[[Workspace], Effect] = lambda w: dml.update(w, name, assigned, changed)  # noqa: E731
        tables = (name, *(table.name for table in tables_of(*assigned.values(), changed)))
        counts: Counts = self._run(Statement(run, update_text(name, assigned, changed), tables=tables))
        return counts

    def delete(self, name: str, where: str | None = None) -> Counts:
        """Remove the rows for which `where` is true, or all rows."""
        gone = condition(where)
        run: Callable[[Workspace], Effect] = lambda w: dml.delete(w, name, gone)  # noqa: E731
        tables = (name, *(table.name for table in tables_of(gone)))
        counts: Counts = self._run(Statement(run, delete_text(name, gone), tables=tables))
        return counts

    def merge(
        self,
        name: str,
        source: object,
        on: str | Sequence[str],
        matched: object = None,
        not_matched: object = None,
        not_matched_by_source: object = None,
    ) -> Counts:
        """Bring `source` (data, a table's name or a query) into a table.

        `on` is a condition (`"target.id = source.id"`), or a list of columns that are equal (`["id"]`).
        Expressions call the two sides `target` and `source`. An action is a mapping of columns to
        expressions, `"update"` or `"insert"` for all columns by name, or `"delete"`; to act under
        conditions give a list of `(condition, action)`, of which the first that holds is done.
        """
        clauses = merge_clauses(on, matched, not_matched, not_matched_by_source)
        if not isinstance(source, str) or is_file(source):
            source = readable(source)
        using, tables = merge_source(self._kept(source))
        named = (name, *(table.name for table in tables))
        return self._change(lambda w: dml.merge(w, name, using, clauses, tables), source, *named)

    def create(
        self,
        name: str,
        schema_or_data: object,
        *,
        format: str | None = None,
        partition_by: Sequence[str] = (),
        location: str | None = None,
        properties: Mapping[str, str] | None = None,
        comment: str | None = None,
        replace: bool = False,
    ) -> Counts:
        """Make a table from an Arrow schema, columns as DDL text (`"id BIGINT, day DATE"`), or data.

        `format` is `"delta"` or `"iceberg"`; left out, it is the lake's `default_format`. With `replace=True`
        a table of this name may exist: its next version has these columns, properties and rows, and nothing
        of what it had. Earlier versions stay readable. Its format stays.
        """
        given = self._kept(readable(schema_or_data))
        once = "" if isinstance(given, pa.Schema) else why_once(given)

        def run(workspace: Workspace) -> Effect:
            schema, data = table_schema(workspace.engine, given)
            definition = Definition(
                name,
                schema,
                format=format,
                partition_by=partition_fields(partition_by, schema),
                location=location,
                properties=dict(properties or {}),
                comment=comment,
            )
            make = replacement.create_or_replace if replace else ddl.create
            return make(workspace, definition, data)

        counts: Counts = self._run(Statement(run, once=once, defines=Defines.TABLES))
        return counts

    def register(
        self,
        name: str,
        location: str | PurePath | None = None,
        *,
        catalog: str | None = None,
        table: str | None = None,
    ) -> None:
        """Give an existing table a name in this lake: one at a location, or an Iceberg table that a catalog
        keeps (`catalog="prod", table="sales.orders"`).

        A location is a URL (`s3://bucket/orders`, `file:///data/orders`) or a path on this machine, absolute,
        below a home (`~/orders`), or relative to the working directory. A relative path in which there is no
        table may also be a folder of the lake; where the lake is on an object store, it always is one, unless
        it begins with a dot.
        """
        if location is not None and catalog is None and table is None:
            place = os.path.join(".", location) if isinstance(location, PurePath) else location
            self._name(lambda w: ddl.register(w, name, place))
        elif location is None and catalog is not None and table is not None:
            self._name(lambda w: ddl.register_in_catalog(w, name, catalog, table))
        else:
            raise InvalidInput("register needs either a location, or the names of a catalog and of its table")

    def rename(self, name: str, to: str) -> None:
        """Give a table another name; it stays where it is."""
        self._name(lambda w: ddl.rename(w, name, to))

    def drop(self, name: str) -> None:
        """Remove a table from the lake. A table outside the lake's root is forgotten, not touched."""
        self._run(Statement(lambda w: ddl.drop(w, name), defines=Defines.TABLES))

    def add_column(self, name: str, column: str, type: str | pa.DataType) -> None:
        """Add a nullable column; existing rows have NULL in it."""
        self._run(Statement(lambda w: ddl.add_column(w, name, column, type), tables=(name,)))
