"""The verbs of a transaction and of a lake: one list, so that they never differ.

On a transaction a verb is one of its statements; on a lake it is a transaction of its own.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from lakevilla.engines.port import Result
from lakevilla.model import Counts
from lakevilla.sql.parsing import parse
from lakevilla.transaction import changing, defining, reading
from lakevilla.transaction.inputs import assignments, condition, merge_clauses, merge_source, table_schema
from lakevilla.transaction.outcome import Outcome
from lakevilla.transaction.running import run_statement
from lakevilla.transaction.workspace import Workspace

Statement = Callable[[Workspace], Outcome]


class Verbs(ABC):
    """What users do with tables. `_run` says in which transaction."""

    @abstractmethod
    def _run(self, statement: Statement) -> Any:
        """Run one statement and give its result."""

    def _change(self, statement: Statement) -> Counts:
        counts: Counts = self._run(statement)
        return counts

    def sql(self, text: str, /, **parameters: Any) -> Any:
        """Run one statement of Spark SQL; `:name` in the text takes the parameter of that name.

        A query gives a result, a change gives counts of rows, a definition gives None.
        """
        statement = parse(text, parameters)
        return self._run(lambda w: run_statement(w, statement))

    def read(self, name: str, *, version: int | None = None, at: Any = None) -> Result:
        """A table as it is now, or as it was at a version or a time."""
        result: Result = self._run(lambda w: reading.read(w, name, version, at))
        return result

    def append(self, name: str, data: object) -> Counts:
        """Add rows. Columns go by name."""
        return self._change(lambda w: changing.append(w, name, data))

    def overwrite(self, name: str, data: object, where: str | None = None) -> Counts:
        """Replace the rows for which `where` is true, or all rows, by the data."""
        return self._change(lambda w: changing.overwrite(w, name, data, condition(where)))

    def update(self, name: str, set: Mapping[str, Any], where: str | None = None) -> Counts:
        """Change columns of the rows for which `where` is true.

        A value that is a string is a Spark SQL expression over the row (`"balance - 50"`, `"'text'"`);
        any other value is taken as it is.
        """
        return self._change(lambda w: changing.update(w, name, assignments(set), condition(where)))

    def delete(self, name: str, where: str | None = None) -> Counts:
        """Remove the rows for which `where` is true, or all rows."""
        return self._change(lambda w: changing.delete(w, name, condition(where)))

    def merge(
        self,
        name: str,
        source: object,
        on: str,
        matched: object = None,
        not_matched: object = None,
        not_matched_by_source: object = None,
    ) -> Counts:
        """Bring `source` (data, a table's name or a query) into a table.

        Expressions call the two sides `target` and `source`. An action is a mapping of columns to
        expressions, `"update"` or `"insert"` for all columns by name, or `"delete"`; to act under
        conditions give a list of `(condition, action)`, of which the first that holds is done.
        """
        clauses = merge_clauses(on, matched, not_matched, not_matched_by_source)
        using, tables = merge_source(source)
        return self._change(lambda w: changing.merge(w, name, using, clauses, tables))

    def create(
        self,
        name: str,
        schema_or_data: object,
        *,
        format: str = "delta",
        partition_by: Sequence[str] = (),
        location: str | None = None,
        properties: Mapping[str, str] | None = None,
        comment: str | None = None,
    ) -> Counts:
        """Make a table from an Arrow schema, columns as DDL text (`"id BIGINT, day DATE"`), or data."""

        def run(workspace: Workspace) -> Outcome:
            schema, data = table_schema(workspace.engine, schema_or_data)
            return defining.create(
                workspace,
                name,
                schema,
                data=data,
                format_name=format,
                partition_by=partition_by,
                location=location,
                properties=properties,
                comment=comment,
            )

        return self._change(run)

    def register(self, name: str, location: str) -> None:
        """Give an existing table a name in this lake."""
        self._run(lambda w: defining.register(w, name, location))

    def rename(self, name: str, to: str) -> None:
        """Give a table another name; it stays where it is."""
        self._run(lambda w: defining.rename(w, name, to))

    def drop(self, name: str) -> None:
        """Remove a table from the lake. A table outside the lake's root is forgotten, not touched."""
        self._run(lambda w: defining.drop(w, name))

    def add_column(self, name: str, column: str, type: str | pa.DataType) -> None:
        """Add a nullable column; existing rows have NULL in it."""
        self._run(lambda w: defining.add_column(w, name, column, type))
