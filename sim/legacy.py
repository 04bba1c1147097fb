"""Clients that have never heard of LakeVilla: a writer and a reader of plain Delta logs.

Contract: they know the Delta protocol and nothing else, with code of their own, as another project's
library would have. The writer commits by an atomic create of the next version. The reader reads every
entry each time, and fails if a version that it saw before is not the same any more.
"""

import hashlib
import io
import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lakevilla.store.port import Created, Object, Unanswered
from sim.checkers.delta import Commit, data_key, live_files, log_key, parse_commit, parse_rows
from sim.checkers.history import History, Operation
from sim.world import Client

Row = dict[str, Any]


class SnapshotChanged(Exception):
    """A version that a legacy client had read is another one now: a violation."""


class GaveUp(Exception):
    """The store did not answer often enough."""


def _get(client: Client, key: str) -> Object | None:
    for _ in range(4):
        try:
            return client.store.get(key)
        except Unanswered:
            client.environment.sleep(0.2)
    raise GaveUp(key)


class LegacyReader:
    """Reads tables from version 0 on, and remembers what each version was."""

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
        commits: list[Commit] = []
        while (found := _get(self._client, log_key(root, len(commits)))) is not None:
            digest = hashlib.sha256(found.data).hexdigest()
            if self._seen.setdefault((root, len(commits)), digest) != digest:
                raise SnapshotChanged(f"{self._client.name} finds version {len(commits)} of {root} changed")
            commits.append(parse_commit(len(commits), found.data))
        newest = len(commits) - 1
        if (root, newest + 1) in self._seen:
            raise SnapshotChanged(f"{self._client.name} finds version {newest + 1} of {root} gone")
        rows: list[Row] = []
        for path in live_files(commits):
            data = _get(self._client, data_key(root, path))
            if data is None:
                raise SnapshotChanged(
                    f"{self._client.name} finds no {path}, live in version {newest} of {root}"
                )
            rows.extend(parse_rows(data.data))
        return rows


def encode_json(rows: list[Row]) -> bytes:
    """A data file as the row engine writes it."""
    return json.dumps(rows).encode()


def encode_parquet(rows: list[Row]) -> bytes:
    """A data file as everybody else writes it."""
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), sink)
    return sink.getvalue()


class LegacyWriter:
    """Appends rows, and makes one file of all, by plain optimistic commits; `encode` makes its data files."""

    def __init__(self, client: Client, history: History, encode: Callable[[list[Row]], bytes]) -> None:
        self._client = client
        self._history = history
        self._encode = encode
        self._newest: dict[str, int] = {}

    def append(self, table: str, root: str, rows: list[Row], *, statistics: bool) -> Operation:
        elapsed = self._client.environment.elapsed
        op = self._history.begin(self._client.name, table, "append", None, rows, elapsed())
        try:
            path = f"legacy-{self._client.environment.new_id()}.parquet"
            data = self._encode(rows)
            self._client.store.put(data_key(root, path), data)
            entry = _entry(path, rows, len(data), self._client.environment.now_ms(), statistics)
            version = self._find_newest(root) + 1
        except (GaveUp, Unanswered) as error:
            op.outcome, op.error, op.completed = "failed", str(error), elapsed()
            return op
        try:
            op.version = self._commit(root, version, entry)
            op.outcome = "ok"
        except GaveUp as error:
            op.outcome, op.error = "unknown", str(error)
        op.completed = elapsed()
        return op

    def first_entry(self, root: str, definition: bytes, rows: list[Row]) -> bytes:
        """The first entry of a table that has these rows from the beginning; their file is put."""
        path, data = f"legacy-{self._client.environment.new_id()}.parquet", self._encode(rows)
        self._client.store.put(data_key(root, path), data)
        added = _entry(path, rows, len(data), self._client.environment.now_ms(), statistics=True)
        return definition + b"\n" + added

    def compact(self, root: str) -> None:
        """One file for all rows, if nobody comes between: everything that was on its way is built upon."""
        elapsed = self._client.environment.elapsed
        op = self._history.begin(self._client.name, "", "compact", root, None, elapsed())
        try:
            commits: list[Commit] = []
            while (found := _get(self._client, log_key(root, len(commits)))) is not None:
                commits.append(parse_commit(len(commits), found.data))
            version, entry = len(commits), self._compacted(root, commits)
        except (GaveUp, Unanswered) as error:
            op.outcome, op.error, op.completed = "failed", str(error), elapsed()
            return
        try:
            done = isinstance(self._client.store.create(log_key(root, version), entry), Created)
            op.outcome = "ok" if done else "failed"
        except Unanswered as error:
            op.error = str(error)
        op.completed = elapsed()

    def _compacted(self, root: str, commits: list[Commit]) -> bytes:
        live, rows = live_files(commits), list[Row]()
        for path in live:
            found = _get(self._client, data_key(root, path))
            if found is None:
                raise SnapshotChanged(f"{self._client.name} finds no {path} of {root}")
            rows += parse_rows(found.data)
        now_ms = self._client.environment.now_ms()
        path = f"legacy-{self._client.environment.new_id()}.parquet"
        data = self._encode(rows)
        self._client.store.put(data_key(root, path), data)
        gone = [{"remove": {"path": old, "deletionTimestamp": now_ms, "dataChange": False}} for old in live]
        removes = "\n".join(json.dumps(action) for action in gone).encode()
        return _entry(path, rows, len(data), now_ms, statistics=False) + b"\n" + removes

    def _find_newest(self, root: str) -> int:
        newest = self._newest.get(root, -1)
        while _get(self._client, log_key(root, newest + 1)) is not None:
            newest += 1
        self._newest[root] = newest
        return newest

    def _commit(self, root: str, version: int, entry: bytes) -> int:
        """The version under which the entry was published. An entry of its own is known by its bytes."""
        while True:
            try:
                if isinstance(self._client.store.create(log_key(root, version), entry), Created):
                    return version
            except Unanswered as error:
                # Nothing there may mean that it comes later: only a foreign entry decides.
                if _get(self._client, log_key(root, version)) is None:
                    raise GaveUp(f"version {version} of {root}") from error
            found = _get(self._client, log_key(root, version))
            if found is not None and found.data == entry:
                return version
            version += 1


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
