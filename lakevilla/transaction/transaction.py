"""A transaction as users hold it: statements, then commit or abort.

Statements run when they are called and are visible to nobody else before the commit. With features NONE a
transaction is one statement on one table, as the plain format has it.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from lakevilla.engines.port import Engine, Result
from lakevilla.environment import Environment
from lakevilla.errors import CommitUnknown, InvalidInput, LakeVillaError, Unsupported
from lakevilla.formats.port import Snapshot
from lakevilla.model import Counts, Features, Receipt
from lakevilla.sql.parsing import parse
from lakevilla.transaction import changing, defining, reading
from lakevilla.transaction.catalog import Catalog
from lakevilla.transaction.committing import commit_change
from lakevilla.transaction.inputs import assignments, condition, merge_clauses, merge_source, table_schema
from lakevilla.transaction.outcome import LakeChange, Outcome, TableChange
from lakevilla.transaction.running import run_statement
from lakevilla.transaction.state import State, may_follow
from lakevilla.transaction.workspace import Workspace

logger = logging.getLogger("lakevilla.transaction")


class Transaction:
    """One unit of work. Use it as `with lake.transaction() as tx:`; leaving the block commits, an
    exception aborts. After the commit `tx.receipt` says what was done."""

    def __init__(
        self, catalog: Catalog, engine: Engine, environment: Environment, features: Features
    ) -> None:
        if features != Features.NONE:
            raise Unsupported(
                f"{features!r} is not in this release: use lakevilla.NONE, one statement per transaction"
            )
        self.id = environment.new_id()
        self.receipt: Receipt | None = None
        self._workspace = Workspace(catalog, engine, environment, self.id)
        self._state = State.OPEN
        self._statements = 0
        self._pending: TableChange | LakeChange | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._state is not State.OPEN:
            return
        if kind is None:
            self.commit()
        else:
            self.abort()

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

    def commit(self) -> Receipt:
        """Make the transaction visible. Raises Conflict if another commit came first and concerns it."""
        self._move(State.COMMITTING)
        try:
            seq, snapshot = self._publish()
        except CommitUnknown:
            self._move(State.UNKNOWN)
            raise
        except LakeVillaError:
            self._move(State.ABORTED)
            raise
        except BaseException:
            # Interrupted between sending and hearing: nobody knows whether the commit applied.
            self._move(State.UNKNOWN)
            logger.warning("transaction %s was interrupted in its commit: its outcome is unknown", self.id)
            raise
        self._move(State.COMMITTED)
        versions = self._keep(snapshot)
        self.receipt = Receipt(self.id, seq, versions, requests=self._workspace.meter.snapshot())
        return self.receipt

    def abort(self) -> None:
        """End the transaction; nothing of it was or will be visible. Uploaded files are left to vacuum."""
        if self._state is not State.ABORTED:
            self._move(State.ABORTED)

    def _publish(self) -> tuple[int | None, Snapshot | None]:
        """The entry of the global log or the version of the table that the commit became."""
        match self._pending:
            case TableChange() as pending:
                return None, commit_change(self._workspace.environment, pending, self.id)
            case LakeChange() as change:
                return defining.decide(self._workspace, change), None
            case None:
                return None, None

    def _keep(self, snapshot: Snapshot | None) -> dict[str, int]:
        """What comes after a commit: the next transaction starts here, and a checkpoint may be due."""
        if snapshot is None or not isinstance(self._pending, TableChange):
            return {}
        pinned, workspace = self._pending.pinned, self._workspace
        workspace.catalog.remember(pinned.ref, snapshot, workspace.environment.elapsed())
        pinned.table.maintain(snapshot)
        return {pinned.ref.name: snapshot.version}

    def _change(self, statement: Callable[[Workspace], Outcome]) -> Counts:
        counts: Counts = self._run(statement)
        return counts

    def _run(self, statement: Callable[[Workspace], Outcome]) -> Any:
        if self._state is not State.OPEN:
            raise InvalidInput(f"the transaction is {self._state.value}: start a new one")
        if self._statements:
            raise InvalidInput(
                "a transaction with features NONE is one statement: start another one for the next statement"
            )
        self._statements += 1
        outcome = statement(self._workspace)
        self._pending = outcome.pending
        return outcome.result

    def _move(self, after: State) -> None:
        if not may_follow(self._state, after):
            raise InvalidInput(f"the transaction is {self._state.value}: it cannot become {after.value}")
        self._state = after
