"""How a client that knows Delta's protocol, and nothing else, writes a table."""

import json
from collections.abc import Mapping
from typing import Any

from sim.checkers.tables.commits import Commit, File
from sim.checkers.tables.delta import data_key, live_files, log_key, parse_commit
from sim.legacy.store import ByFiles, Columns, Encode, Row, fetch_rows, get
from sim.world.client import Client


class DeltaDialect(ByFiles):
    """See `legacy.Dialect`."""

    first = 0

    def __init__(self, client: Client, encode: Encode) -> None:
        super().__init__(client, encode)
        self._newest: dict[str, int] = {}

    def entry_key(self, root: str, version: int) -> str:
        return log_key(root, version)

    def live(self, root: str, entries: Mapping[int, bytes]) -> dict[str, File]:
        return live_files([parse_commit(version, data, root) for version, data in entries.items()])

    def upload(self, root: str, rows: list[Row], statistics: bool) -> bytes:
        """The lines of an entry that adds these rows; their file is put."""
        path, data = f"legacy-{self._client.environment.new_id()}.parquet", self._encode(rows)
        self._client.store.put(data_key(root, path), data)
        return _entry(path, rows, len(data), self._client.environment.now_ms(), statistics)

    def newest(self, root: str) -> int:
        newest = self._newest.get(root, -1)
        while get(self._client, log_key(root, newest + 1)) is not None:
            newest += 1
        self._newest[root] = newest
        return newest

    def appended(self, root: str, uploaded: bytes, version: int) -> bytes:  # noqa: ARG002
        return uploaded

    def compacted(self, root: str) -> tuple[int, bytes]:
        commits: list[Commit] = []
        while (found := get(self._client, log_key(root, len(commits)))) is not None:
            commits.append(parse_commit(len(commits), found.data, root))
        live = live_files(commits)
        rows = [row for file in live.values() for row in fetch_rows(self._client, file)]
        now_ms = self._client.environment.now_ms()
        added = self.upload(root, rows, statistics=False)
        gone = [{"remove": removed(file, now_ms)} for file in live.values()]
        return len(commits), added + b"\n" + "\n".join(json.dumps(action) for action in gone).encode()

    def first_entry(self, root: str, columns: Columns, rows: list[Row]) -> bytes:
        added = self.upload(root, rows, statistics=True) if rows else None
        fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in columns]
        metadata = {
            "id": "3f1a8c5e-0000-4000-8000-000000000000",
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps({"type": "struct", "fields": fields}),
            "partitionColumns": [],
            "configuration": {},
        }
        actions = [{"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, {"metaData": metadata}]
        definition = "\n".join(json.dumps(action) for action in actions).encode()
        return definition if added is None else definition + b"\n" + added

    def leave_hint(self, root: str, version: int) -> None:
        """A Delta log needs none."""


def removed(file: File, now_ms: int) -> dict[str, Any]:
    """The `remove` of a live file."""
    body: dict[str, Any] = {"path": file.path, "deletionTimestamp": now_ms, "dataChange": False}
    return body if file.vector is None else {**body, "deletionVector": dict(file.vector.told)}


def _entry(path: str, rows: list[Row], size: int, now_ms: int, statistics: bool) -> bytes:
    add: dict[str, Any] = {
        "path": path,
        "partitionValues": {},
        "size": size,
        "modificationTime": now_ms,
        "dataChange": True,
    }
    if statistics:
        columns = sorted(rows[0])
        add["stats"] = json.dumps(
            {
                "numRecords": len(rows),
                "minValues": {name: min(row[name] for row in rows) for name in columns},
                "maxValues": {name: max(row[name] for row in rows) for name in columns},
                "nullCount": dict.fromkeys(columns, 0),
            }
        )
    info = {"timestamp": now_ms, "operation": "WRITE", "engineInfo": "legacy", "isBlindAppend": True}
    return "\n".join(json.dumps(action) for action in ({"commitInfo": info}, {"add": add})).encode()
