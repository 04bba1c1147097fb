"""The rows of a table that changed between two instants, each with the instant that has the change.

The global log says which versions of the table belong to which instant: several tables can be followed at the
same instants. A version that another client wrote belongs to the instant that adopted it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from lakevilla.engines.port import Engine, Source
from lakevilla.engines.row_feed import CHANGE_TYPE
from lakevilla.environment import Environment
from lakevilla.errors import Corrupt, InvalidInput
from lakevilla.model import DataFile
from lakevilla.store.metered import Meter
from lakevilla.tables.catalog import Catalog
from lakevilla.tables.changed_versions import all_rows, changed_versions
from lakevilla.tables.pinned import Pinned
from lakevilla.transaction.statements.sources import table_source
from lakevilla.travel.changed_rows import ChangedRows
from lakevilla.travel.past import PastLake
from lakevilla.versions.instants import Instants
from lakevilla.versions.records import Head

VERSION, TIME, SEQ, TRANSACTION = "_commit_version", "_commit_timestamp", "_commit_seq", "_transaction"
"""The columns that say in which version, and at which instant, a row changed."""

_OWN = (
    pa.field(CHANGE_TYPE, pa.string()),
    pa.field(VERSION, pa.int64()),
    pa.field(TIME, pa.timestamp("us", "UTC")),
    pa.field(SEQ, pa.int64()),
    pa.field(TRANSACTION, pa.string()),
)


@dataclass(frozen=True)
class _Moved:
    """An entry of the global log that moved the table to a version."""

    seq: int
    time_ms: int
    version: int


class TableChanges:
    """The changes of one table after one instant, up to another one."""

    def __init__(
        self,
        catalog: Catalog,
        engine: Engine,
        environment: Environment,
        name: str,
        since: Head | None,
        until: Head,
    ) -> None:
        self._catalog, self._engine = catalog, engine
        self._name, self._since, self._until = name, since, until
        self._then = PastLake(catalog, engine, environment, until)

    def rows(self) -> pa.Table:
        """The rows that changed, in the order of the versions."""
        if self._since is not None and self._since.seq > self._until.seq:
            raise InvalidInput(
                f"`since` is entry {self._since.seq} of the lake, which is later than `until`, entry "
                f"{self._until.seq}: swap them"
            )
        after = self._then.pin(self._name)
        source = table_source(after, lambda *_: None, lambda _: None)
        self._refuse_names(source.schema)
        rows = ChangedRows(self._engine, source)
        schema = pa.schema([*rows.schema, *_OWN])
        return pa.concat_tables([schema.empty_table(), *self._pieces(after, rows, schema, source)])

    def _pieces(
        self, after: Pinned, rows: ChangedRows, schema: pa.Schema, source: Source
    ) -> Iterator[pa.Table]:
        moves = self._moves(after.ref.location)
        before = None if self._since is None else self._since.versions.get(after.ref.location)
        if before is None:
            if not moves:
                return
            base = self._at(after, moves[0].version)
            changes = [all_rows(base)]
        else:
            base, changes = self._at(after, before), []
        changes += changed_versions(base, after.snapshot.version)
        for change in changes:
            moved = next(move for move in moves if move.version >= change.version)
            own = (change.version, moved.time_ms * 1000, moved.seq, change.txn)
            try:
                if change.feed is not None:
                    pieces = list(rows.of_feed(change.feed))
                else:
                    pieces = list(rows.of_files(change.removed, change.added))
            except Corrupt as error:
                self._refuse_missing(source, (*(change.feed or ()), *change.removed, *change.added), error)
                raise
            yield from (_with_own(piece, own, schema) for piece in pieces if piece.num_rows)

    def _moves(self, location: str) -> list[_Moved]:
        """The entries of the global log that moved the table, oldest first."""
        first = -1 if self._since is None else self._since.seq
        found: list[_Moved] = []
        horizon = 0
        for packed in Instants(self._catalog.log(Meter())).objects():
            horizon = max(horizon, packed.at(packed.base.seq + len(packed.steps)).horizon)
            for step in reversed(packed.steps):
                version = step.maps.get("versions", {}).get(location)
                if first < step.seq <= self._until.seq and version is not None:
                    found.append(_Moved(step.seq, step.time_ms, version))
            base = packed.base
            if base.seq <= first:
                return found[::-1]
        found = self._begun(location, base, found)[::-1]
        # What is older than the horizon may be gone: the first instant that is kept has all of it.
        old = [number for number, move in enumerate(found) if move.seq <= horizon]
        return found[old[-1] :] if old else found

    def _begun(self, location: str, oldest: Head, found: list[_Moved]) -> list[_Moved]:
        """With the oldest instant that is kept, which has all that came before it."""
        version = oldest.versions.get(location)
        if version is not None and oldest.seq <= self._until.seq:
            found.append(_Moved(oldest.seq, oldest.time_ms, version))
        return found

    def _at(self, after: Pinned, version: int) -> Pinned:
        """The table at an earlier version; InvalidInput if another table was there."""
        try:
            found = self._catalog.at(after.ref, version, Meter())
        except InvalidInput as error:
            raise InvalidInput(
                f"cannot tell what changed in table {self._name!r} since version {version}: {error}. Ask for "
                "changes since a later instant, and read the table as it was there",
                table=self._name,
                version=version,
            ) from error
        if found.snapshot.table_id != after.snapshot.table_id:
            raise InvalidInput(
                f"the table {self._name!r} was deleted since version {version}, and another one was created "
                "in its location: ask for changes since a later instant",
                table=self._name,
                version=version,
            )
        return found

    def _refuse_missing(self, source: Source, files: Sequence[DataFile], error: Corrupt) -> None:
        """InvalidInput if it was vacuum that deleted what is missing."""
        for file in files:
            store, key = source.open(file)
            if store.head(key) is None:
                raise InvalidInput(
                    f"cannot tell what changed in table {self._name!r}: the file {file.key!r} was deleted by "
                    "vacuum. Ask for changes since a later instant, and read the table as it was there",
                    table=self._name,
                ) from error

    def _refuse_names(self, schema: pa.Schema) -> None:
        taken = {name.lower() for name in schema.names} & {field.name for field in _OWN}
        if taken:
            raise InvalidInput(
                f"cannot show what changed in table {self._name!r}: its column {min(taken)!r} is named like "
                "a column that changes have; rename it",
                table=self._name,
                column=min(taken),
            )


def _with_own(rows: pa.Table, own: tuple[int, int, int, str | None], schema: pa.Schema) -> pa.Table:
    """The rows with the columns that say when they changed."""
    for field, value in zip(_OWN[1:], own, strict=True):
        rows = rows.append_column(field, pa.repeat(pa.scalar(value, field.type), rows.num_rows))
    return rows.cast(schema) if rows.schema != schema else rows
