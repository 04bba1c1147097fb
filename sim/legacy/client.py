"""Legacy clients, which do not know LakeVilla: a writer and a reader of plain Delta and Iceberg tables.

Contract: they know their format and nothing else, with code of their own, as another project's library would
have. The writer commits by an atomic create of the next version. The reader reads every entry each time, and
fails if a version that it saw before is not the same any more.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import count
from typing import Any, Protocol

from lakevilla.store.port import Created, Unanswered
from sim.checkers.history import History, Operation
from sim.checkers.tables.commits import File
from sim.legacy.cataloged import CatalogedDialect
from sim.legacy.delta import DeltaDialect
from sim.legacy.iceberg import IcebergDialect
from sim.legacy.store import Columns, Encode, GaveUp, Row, SnapshotChanged, encode_json, fetch_rows
from sim.world import formats
from sim.world.client import Client, World


class Dialect(Protocol):
    """How a client that knows one format finds the versions of a table, and what it writes for the next.

    What asks the store may raise `GaveUp` or `Unanswered`: then no version was made.
    """

    first: int
    """The version with which a table begins that this client makes."""

    def entry_key(self, root: str, version: int) -> str: ...

    def entry(self, root: str, version: int) -> bytes | None:
        """The entry of a version; None if it is not there."""
        ...

    def make(self, root: str, version: int, entry: bytes) -> int | None:
        """Make a version of this entry, and say which; None if another one came first."""
        ...

    def taken(self, root: str, version: int, entry: bytes) -> bool:
        """Whether this entry is there, or cannot come any more because another one came first."""
        ...

    def made(self, root: str, version: int, entry: bytes) -> int | None:
        """The version that holds this entry, if one does."""
        ...

    def live(self, root: str, entries: Mapping[int, bytes]) -> dict[str, File]:
        """The files of the last of these versions, which are all that there are, by number."""
        ...

    def newest(self, root: str) -> int:
        """The newest version; -1 if there is no table."""
        ...

    def upload(self, root: str, rows: list[Row], statistics: bool) -> Any:
        """A data file with these rows, which is put, and will be known as this."""
        ...

    def appended(self, root: str, uploaded: Any, version: int) -> bytes:
        """The entry of a version that adds an uploaded file."""
        ...

    def compacted(self, root: str) -> tuple[int, bytes]:
        """The next version, and an entry by which one file takes the place of all."""
        ...

    def first_entry(self, root: str, columns: Columns, rows: list[Row]) -> bytes:
        """The first entry of a table that has these rows from the beginning; their file is put."""
        ...

    def leave_hint(self, root: str, version: int) -> None:
        """Tell others where the newest version is, if the format has a place for that."""
        ...


def dialect_of(client: Client, root: str, encode: Encode) -> Dialect:
    """How this client works with a table."""
    match client.formats.of(root):
        case formats.DELTA:
            return DeltaDialect(client, encode)
        case formats.CATALOGED:
            return CatalogedDialect(client, encode)
    return IcebergDialect(client, encode)


def place_table(
    client: Client,
    root: str,
    columns: Columns,
    rows: list[Row] | None = None,
    *,
    encode: Encode = encode_json,
) -> bool:
    """Make a table; False if it may not be there."""
    dialect = dialect_of(client, root, encode)
    try:
        entry = dialect.first_entry(root, columns, rows or [])
        key = dialect.entry_key(root, dialect.first)
        return isinstance(client.store.create(key, entry), Created)
    except (Unanswered, GaveUp):
        return False


class LegacyReader:
    """Reads tables from their first version on, and remembers what each version was."""

    def __init__(self, client: Client, history: History) -> None:
        self._client = client
        self._history = history
        self._seen: dict[tuple[str, int], str] = {}

    def read(self, table: str, root: str) -> None:
        op = self._history.begin(
            self._client.name, table, "read", None, None, self._client.environment.elapsed()
        )
        try:
            op.result = self._rows(root)
            op.outcome = "ok"
        except GaveUp as error:
            op.outcome, op.error = "failed", str(error)
        op.completed = self._client.environment.elapsed()

    def _rows(self, root: str) -> list[Row]:
        dialect = dialect_of(self._client, root, encode_json)
        live = dialect.live(root, self._entries(dialect, root))
        return [row for file in live.values() for row in fetch_rows(self._client, file)]

    def _entries(self, dialect: Dialect, root: str) -> dict[int, bytes]:
        entries: dict[int, bytes] = {}
        for version in count():
            found = dialect.entry(root, version)
            if found is not None:
                digest = hashlib.sha256(found).hexdigest()
                if self._seen.setdefault((root, version), digest) != digest:
                    raise SnapshotChanged(f"{self._client.name} finds version {version} of {root} changed")
                entries[version] = found
                continue
            if (root, version) in self._seen:
                raise SnapshotChanged(f"{self._client.name} finds version {version} of {root} gone")
            if version >= dialect.first:
                break
        return entries


class LegacyWriter:
    """Appends rows, and makes one file of all, by plain optimistic commits; `encode` makes its data files."""

    def __init__(self, client: Client, history: History, encode: Encode) -> None:
        self._client = client
        self._history = history
        self._encode = encode
        self._dialects: dict[str, Dialect] = {}

    def append(self, table: str, root: str, rows: list[Row], *, statistics: bool) -> Operation:
        dialect, elapsed = self._dialect(root), self._client.environment.elapsed
        op = self._history.begin(self._client.name, table, "append", None, rows, elapsed())
        try:
            uploaded = dialect.upload(root, rows, statistics)
            version = dialect.newest(root) + 1
        except (GaveUp, Unanswered) as error:
            op.outcome, op.error, op.completed = "failed", str(error), elapsed()
            return op
        self._publish(op, root, version, partial(dialect.appended, root, uploaded))
        return op

    def delete(self, table: str, root: str, column: str, value: int) -> Operation:
        """Delete rows of an Iceberg table by a file that names them."""
        dialect, elapsed = self._dialect(root), self._client.environment.elapsed
        assert isinstance(dialect, IcebergDialect)
        op = self._history.begin(self._client.name, table, "delete", value, None, elapsed())
        try:
            version = dialect.newest(root) + 1
        except (GaveUp, Unanswered) as error:
            op.outcome, op.error, op.completed = "failed", str(error), elapsed()
            return op
        self._publish(op, root, version, partial(dialect.deleted, root, column, value))
        return op

    def compact(self, root: str) -> None:
        """One file for all rows, unless another client commits first: the append is then built on the newest
        version, after all transactions that were open."""
        dialect, elapsed = self._dialect(root), self._client.environment.elapsed
        op = self._history.begin(self._client.name, "", "compact", root, None, elapsed())
        try:
            version, entry = dialect.compacted(root)
        except (GaveUp, Unanswered) as error:
            op.outcome, op.error, op.completed = "failed", str(error), elapsed()
            return
        try:
            op.outcome = "failed" if dialect.make(root, version, entry) is None else "ok"
        except Unanswered as error:
            op.error = str(error)
        op.completed = elapsed()

    def _dialect(self, root: str) -> Dialect:
        if root not in self._dialects:
            self._dialects[root] = dialect_of(self._client, root, self._encode)
        return self._dialects[root]

    def _publish(self, op: Operation, root: str, version: int, make: Callable[[int], bytes | None]) -> None:
        """Commit what `make` makes for a version, and write down what came of it."""
        try:
            op.version = self._commit(root, version, make)
            op.outcome = "ok"
        except (GaveUp, Unanswered) as error:
            op.outcome, op.error = "unknown", str(error)
        op.completed = self._client.environment.elapsed()
        if op.version is not None:
            self._dialect(root).leave_hint(root, op.version)

    def _commit(self, root: str, version: int, make: Callable[[int], bytes | None]) -> int | None:
        """The version under which the entry was published; None if there is nothing to do. An entry of its
        own is known by its bytes."""
        dialect = self._dialect(root)
        while True:
            entry = make(version)
            if entry is None:
                return None
            made = None
            try:
                made = dialect.make(root, version, entry)
            except Unanswered as error:
                # Nothing there may mean that it comes later: only a foreign entry decides.
                if not dialect.taken(root, version, entry):
                    raise GaveUp(f"version {version} of {root}") from error
            if made is None:
                made = dialect.made(root, version, entry)
            if made is not None:
                return made
            version += 1


CHANGES = 12
"""How many properties an administrator changes."""


def start_administrator(world: World, history: History, tables: Sequence[str]) -> None:
    """Changes properties of tables in catalogs, which let commits pass over that; nothing where none are."""
    kept = [table for table in tables if world.formats.catalog_of(table) is not None]
    if not kept:
        return
    client = world.client("administrator")
    dialect, elapsed = CatalogedDialect(client, encode_json), client.environment.elapsed

    def change() -> None:
        for _ in range(CHANGES):
            table = world.random.choice(kept)
            op = history.begin(client.name, table, "set-properties", None, None, elapsed())
            try:
                op.version = dialect.set_property(table, f"theirs-{op.number}")
                op.outcome = "ok"
            except Unanswered as error:
                op.error = str(error)
            op.completed = elapsed()
            client.environment.sleep(world.random.expovariate(1 / 0.1))

    world.start(client, change)
