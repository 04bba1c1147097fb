"""What legacy clients of all formats share: requests, data files."""

import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lakevilla.store.port import Created, Object, Unanswered
from sim.checkers.tables.commits import File, rows_of
from sim.world.client import Client

Row = dict[str, Any]
Encode = Callable[[list[Row]], bytes]
Columns = Sequence[tuple[str, str]]
"""Names of columns with their types, `long` or `string`, which both formats call so."""

FIELD_ID = b"PARQUET:field_id"


class SnapshotChanged(Exception):
    """A version that a legacy client had read is another one now: a violation."""


class GaveUp(Exception):
    """The store did not answer often enough."""


def get(client: Client, key: str) -> Object | None:
    for _ in range(4):
        try:
            return client.store.get(key)
        except Unanswered:
            client.environment.sleep(0.2)
    raise GaveUp(key)


class ByFiles:
    """The part of `legacy.Dialect` that is alike where the create of an entry makes a version."""

    def __init__(self, client: Client, encode: Encode) -> None:
        self._client = client
        self._encode = encode

    def entry_key(self, root: str, version: int) -> str:
        raise NotImplementedError

    def entry(self, root: str, version: int) -> bytes | None:
        found = get(self._client, self.entry_key(root, version))
        return None if found is None else found.data

    def make(self, root: str, version: int, entry: bytes) -> int | None:
        answer = self._client.store.create(self.entry_key(root, version), entry)
        return version if isinstance(answer, Created) else None

    def taken(self, root: str, version: int, entry: bytes) -> bool:  # noqa: ARG002
        return self.entry(root, version) is not None

    def made(self, root: str, version: int, entry: bytes) -> int | None:
        return version if self.entry(root, version) == entry else None


class Fetched(Mapping[str, bytes]):
    """The objects of the store as a mapping, each asked for once."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._known: dict[str, bytes] = {}

    def __getitem__(self, key: str) -> bytes:
        if key not in self._known:
            found = get(self._client, key)
            if found is None:
                raise KeyError(key)
            self._known[key] = found.data
        return self._known[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)


def fetch_rows(client: Client, file: File) -> list[Row]:
    """The rows of a live file."""
    rows = rows_of(file, Fetched(client))
    if rows is None:
        raise SnapshotChanged(f"{client.name} finds no {file.key}, which is live")
    return rows


def encode_json(rows: list[Row]) -> bytes:
    """A data file as the row engine writes it."""
    return json.dumps(rows).encode()


def encode_parquet(rows: list[Row]) -> bytes:
    """A data file as everybody else writes it; columns are numbered in their order, as Iceberg wants it."""
    table = pa.Table.from_pylist(rows)
    fields = [
        field.with_metadata({FIELD_ID: str(number).encode()}) for number, field in enumerate(table.schema, 1)
    ]
    sink = io.BytesIO()
    pq.write_table(table.cast(pa.schema(fields)), sink)
    return sink.getvalue()
