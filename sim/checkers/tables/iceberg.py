"""A reader of Iceberg tables of its own, for those that are kept by files alone: small, slow, independent.

Knows format 2 without partitions, with position deletes. A table begins with version 1, as in Spark's hadoop
catalog, or with 0. Apart from the live files, each version shows whether it follows from the one before:
snapshots, their log and the metadata log only grow, sequence numbers rise, the parent is the snapshot before;
manifests say what the snapshot did, and everything that it left alone keeps its numbers.
"""

import io
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import fastavro

from sim.checkers.tables.commits import Commit, File, Objects, Place, deleted_rows

ENTRY = re.compile(r"^(?P<root>.*?)/?metadata/v(?P<version>\d+)\.metadata\.json$")
HINT = re.compile(r"^(?P<root>.*?)/?metadata/version-hint\.text$")
FIRST_VERSIONS = (0, 1)
OURS = "lakevilla.commit"

ADDED, EXISTING, DELETED = 1, 0, 2
_STATUSES = {ADDED: "added", EXISTING: "existing", DELETED: "deleted"}
_DEFINITION = ("schemas", "current-schema-id", "partition-specs", "default-spec-id", "format-version")
_SAME = ("table-uuid", "location", "format-version")
_GROWING = ("snapshot-log", "metadata-log", "schemas", "partition-specs")

Raw = Mapping[str, Any]


def place_of(key: str) -> Place | None:
    """Whose metadata file lies at this key; None for other objects."""
    found = ENTRY.match(key)
    return None if found is None else Place(found["root"], int(found["version"]), "iceberg")


def root_beside(key: str) -> str | None:
    """The table whose hint this is."""
    found = HINT.match(key)
    return None if found is None else found["root"]


def log_key(root: str, version: int) -> str:
    folder = f"{root}/" if root else ""
    return f"{folder}metadata/v{version}.metadata.json"


def told(version: int, data: bytes) -> dict[str, Any]:
    """What LakeVilla says of itself in the metadata of this version; a copy of another one's is not it."""
    return _ours(json.loads(data), version)


def _ours(raw: Raw, version: int) -> dict[str, Any]:
    ours = json.loads((raw.get("properties") or {}).get(OURS, "{}"))
    return ours if isinstance(ours, dict) and ours.get("version") == version else {}


@dataclass(frozen=True, slots=True)
class Entry:
    """A file as a manifest lists it, with the numbers that it inherits."""

    path: str
    status: int
    content: int
    rows: int
    size: int
    numbers: tuple[int, int, int]
    """Sequence number, sequence number of the file, snapshot."""
    record: Mapping[str, Any]

    @property
    def is_live(self) -> bool:
        return self.status != DELETED


@dataclass(frozen=True)
class Manifest:
    """A manifest: what the manifest list says of it, and its entries."""

    path: str
    record: Mapping[str, Any]
    entries: Sequence[Entry]


class State:
    """What one version holds. What cannot be read stands in `problems`, and counts as empty."""

    def __init__(self, root: str, raw: Raw, objects: Objects) -> None:
        self.raw = raw
        self.problems: list[str] = []
        self.names: dict[str, int | None] = {}
        self._root, self._objects = root, objects
        self.snapshot = _current(raw)
        self.manifests = [] if self.snapshot is None else self._manifests(self.snapshot["manifest-list"])
        self.entries: dict[str, Entry] = {}
        for entry in (e for m in self.manifests for e in m.entries if e.is_live):
            if entry.path in self.entries:
                self.problems.append(f"holds {entry.path} twice")
            self.entries[entry.path] = entry
            self.names[self.key_of(entry.path)] = entry.size

    def key_of(self, path: str) -> str:
        """The key of a file from its recorded path."""
        location = f"{self.raw['location']}/"
        if not path.startswith(location):
            self.problems.append(f"names {path}, which is not below {location}")
        return f"{self._root}/{path.removeprefix(location)}".lstrip("/")

    def files(self) -> dict[str, File]:
        """The live data files, by path and, where rows are deleted, the files that say so."""
        deletes = [entry for entry in self.entries.values() if entry.content == 1]
        found = {}
        for path, entry in self.entries.items():
            if entry.content == 0:
                keys = tuple(self.key_of(d.path) for d in deletes if self._applies(d, entry))
                found["#".join((path, *keys))] = File(self.key_of(path), path, keys)
        return found

    def shadowed(self, before: "State") -> Iterable[str]:
        """The data files that were there before to which a new delete file applies, as far as the log tells:
        without bounds of the paths in it, it may name every older file."""
        fresh = [entry for path, entry in self.entries.items() if path not in before.entries]
        unbound = [entry for entry in fresh if entry.content == 1 and not entry.record.get("lower_bounds")]
        newest = max((entry.numbers[0] for entry in unbound), default=0)
        for path, entry in before.entries.items():
            if entry.content == 0 and entry.numbers[0] <= newest:
                yield path

    def _applies(self, delete: Entry, file: Entry) -> bool:
        data = self._objects.get(self.key_of(delete.path))
        return data is not None and delete.numbers[0] >= file.numbers[0] and bool(_deleted(data, file.path))

    def _manifests(self, path: str) -> list[Manifest]:
        self.names[self.key_of(path)] = None
        found = []
        for record in self._read(path):
            self.names[self.key_of(record["manifest_path"])] = record["manifest_length"]
            entries = [_entry(entry, record) for entry in self._read(record["manifest_path"])]
            found.append(Manifest(record["manifest_path"], record, entries))
        return found

    def _read(self, path: str) -> Sequence[Mapping[str, Any]]:
        data = self._objects.get(self.key_of(path))
        if data is None:
            self.problems.append(f"names {path}, which is not there")
            return ()
        return _avro(data)


class IcebergLog:
    """The versions of one table, see `commits.Log`."""

    def __init__(self, root: str) -> None:
        self._root = root
        self.commits: list[Commit] = []
        self.live: dict[str, File] = {}
        self._state: State | None = None

    def follows(self, version: int) -> bool:
        return version == self.commits[-1].version + 1 if self.commits else version in FIRST_VERSIONS

    def read(self, version: int, data: bytes, objects: Objects) -> Commit:
        before, raw = self._state, json.loads(data)
        state = self._state = State(self._root, raw, objects)
        live = state.files()
        known = {} if before is None else before.names
        commit = Commit(
            version,
            adds={name: file for name, file in live.items() if name not in self.live},
            removes=[name for name in self.live if name not in live],
            names={key: size for key, size in state.names.items() if key not in known},
            ours=_ours(raw, version),
            redefines=before is None or _definition(before.raw) != _definition(raw),
            shadows=frozenset(() if before is None else state.shadowed(before)),
            problems=[*state.problems, *_wrong_lists(state)],
        )
        if before is not None:
            commit.problems += [*_wrong_chain(before.raw, raw, version), *_wrong_step(before, state)]
        self.live = live
        self.commits.append(commit)
        return commit

    def beside(self, key: str, data: bytes) -> str | None:  # noqa: ARG002
        if not self.commits or int(data) > self.commits[-1].version:
            return f"the hint of {self._root} names version {int(data)}, not there yet"
        return None


def _current(raw: Raw) -> Mapping[str, Any] | None:
    wanted = raw.get("current-snapshot-id")
    found = [snapshot for snapshot in raw.get("snapshots") or () if snapshot["snapshot-id"] == wanted]
    return found[0] if found else None


def _definition(raw: Raw) -> list[Any]:
    properties = {name: text for name, text in (raw.get("properties") or {}).items() if name != OURS}
    return [*(raw.get(part) for part in _DEFINITION), properties]


def _wrong_chain(before: Raw, after: Raw, version: int) -> Iterable[str]:
    """What does not follow from the metadata of the version before. A commit that says so may remove
    snapshots."""
    if _ours(after, version).get("operation") == "EXPIRE SNAPSHOTS":
        before = _without_forgotten(before, after)
    for part in _SAME:
        if before[part] != after[part]:
            yield f"changes {part}"
    for part in _GROWING:
        old, new = before.get(part) or [], after.get(part) or []
        if new[: len(old)] != old:
            yield f"has another {part} than the version before, and not only a longer one"
    last = (after.get("metadata-log") or [{}])[-1].get("metadata-file", "")
    if not last.endswith(f"/metadata/v{version - 1}.metadata.json"):
        yield f"says that it follows {last}"
    if after["last-updated-ms"] < before["last-updated-ms"]:
        yield "goes back in time"
    if after["last-sequence-number"] < before["last-sequence-number"]:
        yield "goes back in sequence numbers"
    old, new = before.get("snapshots") or [], after.get("snapshots") or []
    if new[: len(old)] != old:
        yield "forgets snapshots"
    yield from _wrong_snapshots(before, after, new[len(old) :])


def _without_forgotten(before: Raw, after: Raw) -> Raw:
    """The metadata as it was, without the snapshots that are not there any more.

    With an entry of the snapshot log go all that come before it, as in Iceberg's reference implementation: an
    entry says which snapshot was current until the time of the next one, so a gap would tell wrong.
    """
    kept = {snapshot["snapshot-id"] for snapshot in after.get("snapshots") or ()}
    snapshots = [one for one in before.get("snapshots") or () if one["snapshot-id"] in kept]
    log = before.get("snapshot-log") or []
    forgotten = [number for number, one in enumerate(log) if one["snapshot-id"] not in kept]
    return {**before, "snapshots": snapshots, "snapshot-log": log[forgotten[-1] + 1 if forgotten else 0 :]}


def _wrong_snapshots(before: Raw, after: Raw, fresh: Sequence[Raw]) -> Iterable[str]:
    current, sequence = before.get("current-snapshot-id"), before["last-sequence-number"]
    for snapshot in fresh:
        parent = snapshot.get("parent-snapshot-id")
        if parent != (None if current == -1 else current):
            yield f"has a snapshot whose parent is {parent}, and the one before is {current}"
        if snapshot["sequence-number"] <= sequence:
            yield f"has a snapshot with sequence number {snapshot['sequence-number']} after {sequence}"
        current, sequence = snapshot["snapshot-id"], snapshot["sequence-number"]
    if after.get("current-snapshot-id") != current:
        yield f"has the current snapshot {after.get('current-snapshot-id')}, and the newest is {current}"
    if after["last-sequence-number"] != sequence:
        yield f"ends with sequence number {after['last-sequence-number']}, its newest snapshot is {sequence}"
    logged = [entry["snapshot-id"] for entry in after.get("snapshot-log") or ()]
    if fresh and logged[-1:] != [current]:
        yield f"does not have its snapshot {current} in the snapshot log"
    main = (after.get("refs") or {}).get("main", {}).get("snapshot-id")
    if main not in (None, current):
        yield f"has its main branch at {main}, and the newest snapshot is {current}"


def _wrong_step(before: State, after: State) -> Iterable[str]:
    """What manifests say of the snapshot, against what is live before and after it."""
    snapshot = after.snapshot
    if snapshot is None or (before.snapshot or {}).get("snapshot-id") == snapshot["snapshot-id"]:
        return
    known = {manifest.path for manifest in before.manifests}
    fresh = [manifest for manifest in after.manifests if manifest.path not in known]
    for manifest in fresh:
        if manifest.record["added_snapshot_id"] != snapshot["snapshot-id"]:
            yield f"has {manifest.path} of another snapshot, and the version before does not have it"
    expected = dict(before.entries)
    for entry in (entry for manifest in fresh for entry in manifest.entries):
        here = before.entries.get(entry.path)
        if entry.status == ADDED:
            if here is not None:
                yield f"adds {entry.path}, which is live"
            expected[entry.path] = entry
        elif here is None:
            yield f"lists {entry.path} as {_STATUSES[entry.status]}, which is not live"
        elif entry.status == DELETED:
            expected.pop(entry.path, None)
        elif here.numbers != entry.numbers:
            yield f"gives {entry.path} the numbers {entry.numbers}, it has {here.numbers}"
    if expected.keys() != after.entries.keys():
        lost, more = expected.keys() - after.entries.keys(), after.entries.keys() - expected.keys()
        yield f"loses {sorted(lost)} without a word, or holds {sorted(more)}"


def _wrong_lists(state: State) -> Iterable[str]:
    """What the manifest list and the summary say, against what manifests hold."""
    for manifest in state.manifests:
        record = manifest.record
        for status, name in _STATUSES.items():
            rows = [entry.rows for entry in manifest.entries if entry.status == status]
            counts = record[f"{name}_files_count"], record[f"{name}_rows_count"]
            if counts != (len(rows), sum(rows)):
                yield f"says that {manifest.path} has {counts} {name}"
        least = min((e.numbers[0] for e in manifest.entries if e.is_live), default=record["sequence_number"])
        if record["min_sequence_number"] > least:
            yield f"says that {manifest.path} begins with {record['min_sequence_number']}, and not {least}"
    if state.snapshot is None:
        return
    if state.raw["last-sequence-number"] < max((e.numbers[0] for e in state.entries.values()), default=0):
        yield "holds files with sequence numbers beyond its own"
    data = [entry for entry in state.entries.values() if entry.content == 0]
    totals = {"total-data-files": len(data), "total-records": sum(entry.rows for entry in data)}
    for name, number in totals.items():
        if int(state.snapshot["summary"].get(name, number)) != number:
            yield f"says {name} is {state.snapshot['summary'][name]}, and it is {number}"


def _entry(record: Mapping[str, Any], manifest: Mapping[str, Any]) -> Entry:
    file = record["data_file"]
    inherited = (manifest["sequence_number"], manifest["sequence_number"], manifest["added_snapshot_id"])
    given = (record["sequence_number"], record["file_sequence_number"], record["snapshot_id"])
    sequence, file_sequence, snapshot = (b if a is None else a for a, b in zip(given, inherited, strict=True))
    return Entry(
        file["file_path"],
        record["status"],
        file["content"],
        file["record_count"],
        file["file_size_in_bytes"],
        (sequence, file_sequence, snapshot),
        file,
    )


@lru_cache(maxsize=4096)
def _avro(data: bytes) -> Sequence[Mapping[str, Any]]:
    return list(fastavro.reader(io.BytesIO(data)))  # type: ignore[arg-type]


@lru_cache(maxsize=1024)
def _deleted(data: bytes, path: str) -> frozenset[int]:
    return frozenset(deleted_rows(data, path))
