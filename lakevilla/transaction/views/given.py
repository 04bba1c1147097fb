"""What a statement reads under a name that is not the lake's: data, as in
`lake.sql(..., views={"df": frame})`, and temporary views of its session."""

from collections.abc import Mapping

from lakevilla.engines.data import source_of
from lakevilla.engines.port import Source
from lakevilla.errors import InvalidInput
from lakevilla.sql import statements as sql
from lakevilla.transaction.statements.dispatch import named_by, run_statement
from lakevilla.transaction.statements.effect import Effect
from lakevilla.transaction.views.stored import TemporaryView
from lakevilla.transaction.workspace import Workspace


class Views:
    """The views of one statement. Their data is read once, when the statement first runs."""

    def __init__(
        self,
        data: Mapping[str, object],
        statement: sql.Statement,
        temporary: Mapping[str, TemporaryView] | None = None,
    ) -> None:
        self._statement = statement
        # A redo means what they were when the statement first ran.
        self._temporary = dict(temporary or {})
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
        """Whether this name means data that was given."""
        return name.casefold() in self._data

    @property
    def covered(self) -> bool:
        """Whether the statement reads something that only this client has."""
        names = [table.name.casefold() for table in getattr(self._statement, "tables", ())]
        return any(name in self._data or name in self._temporary for name in names)

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables of the lake that the statement names."""
        named = named_by(self._statement)
        return tuple(n for n in named if not self.covers(n) and n.casefold() not in self._temporary)

    def run(self, workspace: Workspace) -> Effect:
        """Run the statement, with the views in the place of tables of their names."""
        for name, (given, rows) in self._data.items():
            if name not in self._sources:
                self._sources[name] = source_of(given, rows, workspace.engine)
        workspace.views, workspace.stored_views.temporary = self._sources, self._temporary
        try:
            return run_statement(workspace, self._statement)
        finally:
            workspace.views, workspace.stored_views.temporary = {}, {}
