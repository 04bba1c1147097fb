"""How a client that knows Iceberg's format 2, and nothing else, writes a table that is kept by files alone.

As Spark's hadoop catalog does it: version N is `metadata/v<N>.metadata.json`, its tables begin with 1, and a
hint is left that it looks at first. What it does not know of in the metadata it copies: also the property in
which LakeVilla says who wrote a version.
"""

import json
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lakevilla.store.port import Unanswered
from sim.checkers.tables.commits import File, numbered_rows
from sim.checkers.tables.iceberg import ADDED, DELETED, EXISTING, Entry, Manifest, State, log_key
from sim.legacy.avro import encode_list, encode_manifest
from sim.legacy.store import (
    FIELD_ID,
    ByFiles,
    Columns,
    Fetched,
    GaveUp,
    Row,
    SnapshotChanged,
    fetch_rows,
    get,
)
from sim.world.client import Client

_DATA, _DELETES = 0, 1
_POSITIONS = pa.schema(
    [
        pa.field("file_path", pa.string(), metadata={FIELD_ID: b"2147483546"}),
        pa.field("pos", pa.int64(), metadata={FIELD_ID: b"2147483545"}),
    ]
)

Raw = dict[str, Any]
Uploaded = Mapping[str, Any]
"""A data file as a manifest lists it, without the path of its table."""


class IcebergDialect(ByFiles):
    """See `legacy.Dialect`."""

    first = 1

    def entry_key(self, root: str, version: int) -> str:
        return log_key(root, version)

    def live(self, root: str, entries: Mapping[int, bytes]) -> dict[str, File]:
        return {} if not entries else self._state(root, json.loads(entries[max(entries)])).files()

    def upload(self, root: str, rows: list[Row], statistics: bool) -> Uploaded:
        return self._upload(root, self._encode(rows), rows, _DATA, statistics)

    def newest(self, root: str) -> int:
        """From the hint on, or where there is none by a listing."""
        hint = get(self._client, f"{root}/metadata/version-hint.text")
        newest = self._listed(root) if hint is None else int(hint.data)
        while get(self._client, log_key(root, newest + 1)) is not None:
            newest += 1
        return newest

    def appended(self, root: str, uploaded: Uploaded, version: int) -> bytes:
        base = self._base(root, version - 1)
        return self._next(root, base, version, "append", {_DATA: [uploaded]}, ())

    def compacted(self, root: str) -> tuple[int, bytes]:
        version = self.newest(root) + 1
        base = self._base(root, version - 1)
        rows = [row for file in base.files().values() for row in fetch_rows(self._client, file)]
        added = self.upload(root, rows, statistics=False)
        return version, self._next(root, base, version, "replace", {_DATA: [added]}, base.entries)

    def deleted(self, root: str, column: str, value: Any, version: int) -> bytes | None:
        """The entry of a version without these rows, which a new file names; None if there are none."""
        base, objects = self._base(root, version - 1), Fetched(self._client)
        positions = [
            {"file_path": file.path, "pos": position}
            for file in base.files().values()
            for position, row in numbered_rows(file, objects)
            if row[column] == value
        ]
        if not positions:
            return None
        sink = pa.BufferOutputStream()
        pq.write_table(pa.Table.from_pylist(positions, _POSITIONS), sink)
        added = self._upload(root, sink.getvalue().to_pybytes(), positions, _DELETES, False)
        return self._next(root, base, version, "delete", {_DELETES: [added]}, ())

    def first_entry(self, root: str, columns: Columns, rows: list[Row]) -> bytes:
        if self.newest(root) >= 0:
            raise GaveUp(f"there is a table in {root}")
        fields = [
            {"id": number, "name": name, "type": kind, "required": False}
            for number, (name, kind) in enumerate(columns, 1)
        ]
        raw: Raw = {
            "format-version": 2,
            "table-uuid": "3f1a8c5e-0000-4000-8000-000000000000",
            "location": f"{self._client.store.url}/{root}",
            "last-sequence-number": 0,
            "last-updated-ms": self._client.environment.now_ms(),
            "last-column-id": len(fields),
            "current-schema-id": 0,
            "schemas": [{"type": "struct", "schema-id": 0, "fields": fields}],
            "default-spec-id": 0,
            "partition-specs": [{"spec-id": 0, "fields": []}],
            "last-partition-id": 999,
            "default-sort-order-id": 0,
            "sort-orders": [{"order-id": 0, "fields": []}],
            "properties": {"owner": "legacy"},
            "current-snapshot-id": -1,
            "refs": {},
            "snapshots": [],
            "statistics": [],
            "snapshot-log": [],
            "metadata-log": [],
        }
        if not rows:
            return json.dumps(raw).encode()
        added = self.upload(root, rows, statistics=True)
        return self._next(root, self._state(root, raw), self.first, "append", {_DATA: [added]}, ())

    def leave_hint(self, root: str, version: int) -> None:
        try:
            self._client.store.put(f"{root}/metadata/version-hint.text", str(version).encode())
        except Unanswered:
            # A hint is a hint.
            return

    def _listed(self, root: str) -> int:
        try:
            keys = [meta.key for meta in self._client.store.list(f"{root}/metadata/v")]
        except Unanswered as error:
            raise GaveUp(root) from error
        numbers = [key.rpartition("/v")[2].partition(".")[0] for key in keys]
        return max((int(number) for number in numbers if number.isdecimal()), default=-1)

    def _base(self, root: str, version: int) -> State:
        found = get(self._client, log_key(root, version))
        if found is None:
            raise SnapshotChanged(f"{self._client.name} finds version {version} of {root} gone")
        return self._state(root, json.loads(found.data))

    def _state(self, root: str, raw: Raw) -> State:
        state = State(root, raw, Fetched(self._client))
        if state.problems:
            raise SnapshotChanged(f"{self._client.name}: {root} {state.problems[0]}")
        return state

    def _upload(self, root: str, data: bytes, rows: list[Row], content: int, statistics: bool) -> Uploaded:
        path = f"data/legacy-{self._client.environment.new_id()}.parquet"
        self._client.store.put(f"{root}/{path}", data)
        return {
            "content": content,
            "file_path": path,
            "file_format": "PARQUET",
            "partition": {},
            "record_count": len(rows),
            "file_size_in_bytes": len(data),
            **(_statistics(rows) if statistics else {}),
        }

    def _next(
        self,
        root: str,
        base: State,
        version: int,
        operation: str,
        added: Mapping[int, Sequence[Uploaded]],
        gone: Iterable[str],
    ) -> bytes:
        """The metadata of a version with a snapshot that adds and removes files; manifests are put."""
        work = _Snapshot(self._client, root, base)
        gone = set(gone)
        kept = [work.without(manifest, gone) for manifest in base.manifests]
        fresh = [work.adding(content, files) for content, files in added.items()]
        listed = work.put("snap", encode_list([*fresh, *kept]))
        now_ms = max(self._client.environment.now_ms(), base.raw["last-updated-ms"])
        snapshot = {
            "sequence-number": work.sequence,
            "snapshot-id": work.id,
            "timestamp-ms": now_ms,
            "summary": {"operation": operation, "engine-name": "legacy"},
            "manifest-list": listed,
            "schema-id": 0,
        }
        current = base.raw.get("current-snapshot-id")
        if current not in (None, -1):
            snapshot["parent-snapshot-id"] = current
        logged = {"snapshot-id": work.id, "timestamp-ms": now_ms}
        raw = {
            **base.raw,
            "last-sequence-number": work.sequence,
            "last-updated-ms": now_ms,
            "current-snapshot-id": work.id,
            "refs": {**base.raw.get("refs", {}), "main": {"snapshot-id": work.id, "type": "branch"}},
            "snapshots": [*(base.raw.get("snapshots") or ()), snapshot],
            "snapshot-log": [*(base.raw.get("snapshot-log") or ()), logged],
        }
        if version > self.first or current not in (None, -1):
            file = f"{base.raw['location']}/metadata/v{version - 1}.metadata.json"
            last = {"metadata-file": file, "timestamp-ms": base.raw["last-updated-ms"]}
            raw["metadata-log"] = [*(base.raw.get("metadata-log") or ()), last]
        return json.dumps(raw).encode()


class _Snapshot:
    """A snapshot in the making: its id, its manifests."""

    def __init__(self, client: Client, root: str, base: State) -> None:
        self._client, self._root, self._base = client, root, base
        self._name = client.environment.new_id()
        self.id = int(self._name, 16) % (1 << 62)
        self.sequence = base.raw["last-sequence-number"] + 1

    def put(self, name: str, data: bytes) -> str:
        """The path of a new object in the metadata folder."""
        path = f"metadata/{name}-legacy-{self._name}.avro"
        self._client.store.put(f"{self._root}/{path}", data)
        return f"{self._base.raw['location']}/{path}"

    def adding(self, content: int, files: Sequence[Uploaded]) -> dict[str, Any]:
        """The record of a manifest that adds these files."""
        location = self._base.raw["location"]
        records = [
            {
                "status": ADDED,
                "snapshot_id": self.id,
                "sequence_number": None,
                "file_sequence_number": None,
                "data_file": {**file, "file_path": f"{location}/{file['file_path']}"},
            }
            for file in files
        ]
        return self._manifest("m-new", content, records, self.sequence)

    def without(self, manifest: Manifest, gone: set[str]) -> Mapping[str, Any]:
        """The record of a manifest without these files; the one that it has if it holds none of them."""
        living = [entry for entry in manifest.entries if entry.is_live]
        if not any(entry.path in gone for entry in living):
            return manifest.record
        records = [self._kept(entry, DELETED if entry.path in gone else EXISTING) for entry in living]
        least = min((e.numbers[0] for e in living if e.path not in gone), default=self.sequence)
        name = manifest.path.rpartition("/")[2].removesuffix(".avro")
        return self._manifest(f"again-{name}", manifest.record["content"], records, least)

    def _kept(self, entry: Entry, status: int) -> dict[str, Any]:
        sequence, file_sequence, snapshot = entry.numbers
        return {
            "status": status,
            "snapshot_id": self.id if status == DELETED else snapshot,
            "sequence_number": sequence,
            "file_sequence_number": file_sequence,
            "data_file": entry.record,
        }

    def _manifest(
        self, name: str, content: int, records: Sequence[Mapping[str, Any]], least: int
    ) -> dict[str, Any]:
        schema = json.dumps(self._base.raw["schemas"][-1])
        data = encode_manifest(records, "data" if content == _DATA else "deletes", schema)
        counts: dict[str, int] = {}
        for number, status in ((ADDED, "added"), (EXISTING, "existing"), (DELETED, "deleted")):
            rows = [r["data_file"]["record_count"] for r in records if r["status"] == number]
            counts |= {f"{status}_files_count": len(rows), f"{status}_rows_count": sum(rows)}
        return {
            "manifest_path": self.put(name, data),
            "manifest_length": len(data),
            "partition_spec_id": 0,
            "content": content,
            "sequence_number": self.sequence,
            "min_sequence_number": least,
            "added_snapshot_id": self.id,
            **counts,
        }


def _statistics(rows: list[Row]) -> dict[str, Any]:
    """Bounds by the number of the column, as single values are written."""
    columns = list(enumerate(rows[0], 1))

    def pairs(make: Callable[[str], Any]) -> list[dict[str, Any]]:
        return [{"key": number, "value": make(name)} for number, name in columns]

    return {
        "value_counts": pairs(lambda _: len(rows)),
        "null_value_counts": pairs(lambda _: 0),
        "lower_bounds": pairs(lambda name: _bytes(min(row[name] for row in rows))),
        "upper_bounds": pairs(lambda name: _bytes(max(row[name] for row in rows))),
    }


def _bytes(value: Any) -> bytes:
    return struct.pack("<q", value) if isinstance(value, int) else str(value).encode()
