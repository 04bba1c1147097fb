"""A table with a marker in its log, of either format, driven without an engine. For tests."""

from typing import Any

import pyarrow as pa

from lakevilla.environment import Environment, SystemEnvironment
from lakevilla.files.reader import read_files
from lakevilla.files.writer import write_files
from lakevilla.formats.port import Displaced, Published, Snapshot, Table
from lakevilla.formats.registry import open_table
from lakevilla.model import Author, Change, WrittenFile
from lakevilla.predicates import ANYTHING
from lakevilla.store.faulty import Faulty, Plan
from lakevilla.store.open import open_store
from lakevilla.store.port import Created, Object, Replaced, Store
from lakevilla.store.retry import Retrying
from tests.unit.store.clocked import Clocked

SCHEMA = pa.schema([("id", pa.int64())])
OURS = Author("ours", "a1", "p1")


def record(txn: str = "ours", live: bool = True, put: str = "m1") -> dict[str, Any]:
    return {"txn": txn, "attempt": txn, "put": put, "claimed_ms": 5, "live": live, "precedes": []}


class Log:
    """A table with one row, and a marker of ours as its next version, `ours`."""

    def __init__(self, table_format: str) -> None:
        self.format = table_format
        self.store = open_store("memory://")
        self.table = self.client(self.store)
        first = self.table.first(SCHEMA, (), {"lakevilla.markers": "log"}, None)
        added = self.write(self.table.describe(first), 1)
        first = Change("CREATE", added=added, metadata=first.metadata, protocol=first.protocol)
        author = Author("first", "first", "p")
        assert self.table.publish_first(self.table.encode_first(first, author), "first")
        self.base = self.latest()
        self.ours = self.base.version + 1
        self.change = Change("WRITE", added=self.write(self.base, 2))
        self.entries = self.table.log_markers(self.base).entries
        self.etag = self.mark()

    def client(self, store: Store, environment: Environment | None = None) -> Table:
        return open_table(self.format, store, environment or SystemEnvironment(), open_store)

    def write(self, snapshot: Snapshot, number: int) -> tuple[WrittenFile, ...]:
        return write_files(
            [pa.table({"id": [number]})],
            schema=snapshot.schema,
            partitioning=snapshot.partitioning,
            store=self.store,
            new_key=lambda: f"{self.table.data_folder}part-{number}.parquet",
            now_ms=lambda: 0,
        )

    def latest(self) -> Snapshot:
        found = self.table.latest()
        assert found is not None
        return found

    def ids(self, snapshot: Snapshot | None = None) -> list[int]:
        newest = snapshot or self.latest()
        files, schema = newest.files(ANYTHING), newest.schema
        pieces = read_files(SystemEnvironment(), self.table.open, files, schema, (), ANYTHING)
        return sorted(pa.concat_tables(pieces)["id"].to_pylist())

    def key(self, above: int = 0) -> str:
        """The key of the entry so many versions above our marker."""
        return self.entries.key(self.ours + above)

    def found(self, above: int = 0) -> Object:
        found = self.store.get(self.key(above))
        assert found is not None
        return found

    def mark(self, above: int = 0, txn: str = "ours") -> str:
        data = self.entries.encode(self.ours + above, record(txn))
        answer = self.store.create(self.key(above), data)
        assert isinstance(answer, Created)
        return answer.etag

    def rewrite(self, marker: dict[str, Any], above: int = 0) -> None:
        data = self.entries.encode(self.ours + above, marker)
        assert isinstance(self.store.replace(self.key(above), data, self.found(above).etag), Replaced)

    def fill(self, store: Store | None = None) -> Published | Displaced:
        table = self.table if store is None else self.client(store, Clocked())
        return table.log_markers(self.base).fill(self.change, OURS, self.etag)

    def shaky(self, plan: Plan) -> Store:
        return Retrying(Faulty(self.store, plan), Clocked())
