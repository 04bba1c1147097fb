"""The lake at an earlier instant: every table at the version that it had there, for reading alone.

Nothing is validated and nothing is written: an instant is consistent and does not change. A
statement that would change something is refused before it sends anything.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from difflib import get_close_matches
from threading import Lock
from typing import Any

from lakevilla.engines.port import Engine, Target
from lakevilla.environment import Environment
from lakevilla.errors import InvalidInput
from lakevilla.model import Features
from lakevilla.sql.statements import TableName
from lakevilla.store.metered import Meter
from lakevilla.store.names import check_table_name
from lakevilla.tables.catalog import Catalog
from lakevilla.tables.pinned import Pinned
from lakevilla.transaction.guarantees import Guarantees
from lakevilla.transaction.statements.statement import Statement
from lakevilla.transaction.verbs import Verbs
from lakevilla.transaction.workspace import Workspace
from lakevilla.travel.export import Export, export
from lakevilla.versions import registry
from lakevilla.versions.records import Head


class PastLake(Verbs):
    """The lake as it was at one instant, read-only; `lake.at(...)` returns it.

        then = lake.at(tag="month-end")
        then.sql("SELECT sum(balance) FROM accounts").show()

    Tables that were dropped since are there, and those that came later are not.
    """

    def __init__(self, catalog: Catalog, engine: Engine, environment: Environment, head: Head) -> None:
        self._catalog = catalog
        self._engine = engine
        self._environment = environment
        self._head = head
        self._meter = Meter()
        self._lock = Lock()
        self._pinned: dict[str, Pinned] = {}

    def __repr__(self) -> str:
        when = f", {self.time:%Y-%m-%d %H:%M:%S}Z" if self._head.time_ms else ""
        return f"PastLake({self.url!r}, entry {self.seq}{when})"

    @property
    def url(self) -> str:
        """Where the lake lies, without secrets."""
        return self._catalog.root(self._meter).url

    @property
    def seq(self) -> int:
        """The entry of the global log that made this instant."""
        return self._head.seq

    @property
    def head(self) -> Head:
        """The record of this instant."""
        return self._head

    @property
    def time(self) -> datetime:
        """When that entry was written."""
        return datetime.fromtimestamp(self._head.time_ms / 1000, UTC)

    @property
    def versions(self) -> dict[str, int]:
        """The tables of this instant and their versions."""
        known = self._head.versions
        return {
            name: known[ref.location]
            for name, ref in sorted(self._head.tables.items())
            if ref.location in known
        }

    def tables(self) -> list[str]:
        """The names of the tables of this instant."""
        return list(self.versions)

    def views(self) -> dict[str, str]:
        """The views of this instant, with the texts of their queries."""
        return {view.name: view.text for _, view in sorted(self._head.views.items())}

    def export(self) -> Export:
        """This instant as a list of tables and versions, and as SQL for other engines."""
        return export(self._catalog, self._head)

    def pin(self, name: str) -> Pinned:
        """A table at the version of this instant."""
        check_table_name(name)
        ref = registry.find(self._head, name)
        version = None if ref is None else self._head.versions.get(ref.location)
        if ref is None or version is None:
            missing = InvalidInput(self._missing(name, ref is not None), table=name, entry=self.seq)
            missing.unknown = name
            raise missing
        with self._lock:
            known = self._pinned.get(ref.location)
        if known is None:
            try:
                known = self._catalog.at(ref, version, self._meter)
            except InvalidInput as error:
                raise InvalidInput(
                    f"version {version} of {ref.name!r}, which the lake had at entry {self.seq}, cannot be "
                    f"read any more: {error}",
                    table=ref.name,
                    version=version,
                    entry=self.seq,
                ) from error
            self._refuse_another(known)
            with self._lock:
                self._pinned[ref.location] = known
        return known

    def _refuse_another(self, pinned: Pinned) -> None:
        """InvalidInput if another table lies where the table of this instant was."""
        expected = self._head.ids.get(pinned.ref.location)
        if expected is not None and pinned.snapshot.table_id != expected:
            raise InvalidInput(
                f"the table {pinned.ref.name!r} that the lake had at entry {self.seq} cannot be read any "
                "more: it was deleted, and another table was created in its location",
                table=pinned.ref.name,
                entry=self.seq,
            )

    def refuse(self) -> InvalidInput:
        """The error for a write to an earlier instant."""
        return InvalidInput(
            f"cannot change the lake at entry {self.seq}: an earlier instant is read-only. Run the statement "
            "on the lake itself; rows that are read here can be passed to it as data",
            entry=self.seq,
        )

    def _missing(self, name: str, registered: bool) -> str:
        at = f"entry {self.seq}"
        if registered:
            return (
                f"cannot read table {name!r} at {at}: the lake had it, but no version of it was part of that "
                "instant, because no client had used it with lakevilla.I or lakevilla.CT or called "
                "lake.sync()"
            )
        names = self.tables()
        close = get_close_matches(name, names, n=3)
        hint = (
            f"did you mean {' or '.join(map(repr, close))}?"
            if close
            else f"available: {', '.join(map(repr, names)) or 'none'}"
        )
        return f"unknown table {name!r} at {at}; {hint}"

    def workspace(self) -> Workspace:
        """What a statement at this instant works with."""
        return _PastWorkspace(self, self._catalog, self._engine, self._environment)

    def _run(self, statement: Statement) -> Any:
        workspace = self.workspace()
        try:
            effect = statement.run(workspace)
        except RecursionError as error:
            raise InvalidInput("the statement is nested too deeply: split it") from error
        if effect.pending is not None:
            raise self.refuse()
        return effect.result


class _PastWorkspace(Workspace):
    """What a statement works with that sees the lake at an earlier instant. It pins nothing else, and has no
    place for new files."""

    def __init__(self, past: PastLake, catalog: Catalog, engine: Engine, environment: Environment) -> None:
        super().__init__(catalog, engine, environment, environment.new_id(), Guarantees(Features.NONE))
        self._past = past
        self.stored_views.past = past._head.views

    def pin(self, table: TableName) -> Pinned:
        if table.version is not None or table.timestamp_ms is not None:
            raise InvalidInput(
                f"cannot read another version of {table.name!r}: the lake is opened at entry "
                f"{self._past.seq}. Leave the version out, or read it from the lake itself",
                entry=self._past.seq,
            )
        return self._past.pin(table.name)

    def pin_target(self, name: str, *, blind: bool = False) -> Pinned:  # noqa: ARG002
        raise self._past.refuse()

    def find(self, name: str) -> Pinned | None:
        return self.pin(TableName(name)) if registry.find(self._past._head, name) else None

    def names(self) -> list[str]:
        return self._past.tables()

    def target(self, pinned: Pinned, operation: str = "") -> Target:  # noqa: ARG002
        raise self._past.refuse()

    def new_key(self, folder: str) -> Callable[[], str]:  # noqa: ARG002
        raise self._past.refuse()
