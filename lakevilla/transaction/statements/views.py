"""Data that a statement reads under a name, as if it were a table: `lake.sql(..., views={"df": frame})`."""

from collections.abc import Mapping

from lakevilla.engines.data import source_of
from lakevilla.engines.port import Source
from lakevilla.errors import InvalidInput
from lakevilla.sql import statements as sql
from lakevilla.transaction.statements.dispatch import named_by, run_statement
from lakevilla.transaction.statements.effect import Effect
from lakevilla.transaction.workspace import Workspace


class Views:
    """The views of one statement. Their data is read once, when the statement first runs."""

    def __init__(self, data: Mapping[str, object], statement: sql.Statement) -> None:
        self._statement = statement
        self._data = {name.casefold(): (name, rows) for name, rows in data.items()}
        self._sources: dict[str, Source] = {}
        if len(self._data) != len(data):
            raise InvalidInput("two views have the same name: names of views match in any case")
        target = getattr(statement, "table", None) or getattr(statement, "name", None)
        if isinstance(target, str) and self.covers(target):
            raise InvalidInput(
                f"{target!r} is a view, given as data, and cannot be changed or described: give the view "
                "another name if you mean the table",
                table=target,
            )

        for table in getattr(statement, "tables", ()):
            if self.covers(table.name) and table.key != table.name:
                raise InvalidInput(f"{table.name!r} is a view, and has no earlier versions", table=table.name)

    def covers(self, name: str) -> bool:
        """Whether this name means a view."""
        return name.casefold() in self._data

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables of the lake that the statement names."""
        return tuple(name for name in named_by(self._statement) if not self.covers(name))

    def run(self, workspace: Workspace) -> Effect:
        """Run the statement, with the views in the place of tables of their names."""
        for name, (given, rows) in self._data.items():
            if name not in self._sources:
                self._sources[name] = source_of(given, rows, workspace.engine)
        workspace.views = self._sources
        try:
            return run_statement(workspace, self._statement)
        finally:
            workspace.views = {}
