"""What clients and people do who know nothing of LakeVilla, and what they do to its folders.

A stranger writes a Delta table whose log may have been cleaned, and deletes a table's folder to make another
table there. It cleans logs up as Delta does (entries that are old and that a checkpoint covers) and as
Iceberg does (metadata files that are old). Folders are deleted at one moment: a client that works in the same
second loses its work, whatever it does.
"""

import io
import json
import re
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lakevilla.store.port import Created, Unanswered
from sim.checkers.history import History
from sim.checkers.lives.lives import WRECKER
from sim.checkers.tables.delta import CHECKPOINT, LOG_ENTRY, file_of, log_key
from sim.checkers.tables.logs import place_of
from sim.checkers.tables.rows import Change, first_rows
from sim.checkers.tables.vectors import name_of
from sim.legacy.client import dialect_of
from sim.legacy.delta import DeltaDialect, removed
from sim.legacy.store import GaveUp, SnapshotChanged, encode_json, fetch_rows, get
from sim.outside.plan import DAY
from sim.outside.session import Notes
from sim.world.client import Client, World
from sim.world.formats import DELTA

COLUMNS = (("k", "long"), ("v", "long"), ("items", "string"))
KEPT = 2 * DAY
"""How long log entries are kept from the clean-up."""


@dataclass
class State:
    """A Delta table as its log tells it: the newest version, its live files and those that are gone by their
    names, and its definition."""

    version: int
    live: dict[str, dict[str, Any]]
    gone: dict[str, dict[str, Any]]
    definition: dict[str, dict[str, Any]]


class Stranger:
    """One client, which writes Delta tables alone. Errors of the store end what it does, without harm, and so
    do objects that another one deletes while it reads."""

    def __init__(self, world: World, client: Client, history: History, notes: Notes) -> None:
        self._world = world
        self._client = client
        self._history = history
        self._notes = notes
        self._dialect = DeltaDialect(client, encode_json)

    def act(self, random: Random, root: str) -> None:
        """Append a row, compact, or set a property."""
        if self._client.formats.of(root) == DELTA:
            with suppress(GaveUp):
                random.choice((self.append, self.append, self.compact, self.define))(root)

    def append(self, root: str) -> None:
        elapsed = self._client.environment.elapsed
        value = 100 * (len(self._history.operations) + 1)
        op = self._history.begin(self._client.name, root, "stranger", None, value, elapsed())
        entry = self._dialect.upload(root, [Change("insert", 0, value).row], statistics=False)
        state = self._read(root)
        if state is not None and self._commit(root, state.version + 1, entry):
            op.outcome = "ok"
        op.completed = elapsed()

    def compact(self, root: str) -> None:
        """One file takes the place of all."""
        state = self._read(root)
        if state is None or not state.live:
            return
        rows: list[dict[str, Any]] = []
        files = [file_of(root, add) for add in state.live.values()]
        for file in files:
            try:
                rows += fetch_rows(self._client, file)
            except (SnapshotChanged, KeyError) as error:
                raise GaveUp(file.path) from error
        added = self._dialect.upload(root, rows, statistics=False)
        now_ms = self._client.environment.now_ms()
        gone = [{"remove": removed(file, now_ms)} for file in files]
        self._commit(root, state.version + 1, added + b"\n" + _lines(gone))

    def define(self, root: str) -> None:
        """Set a property."""
        state = self._read(root)
        if state is None:
            return
        metadata = dict(state.definition["metaData"])
        metadata["configuration"] = {**metadata["configuration"], "theirs": str(state.version)}
        self._commit(root, state.version + 1, _lines([{"metaData": metadata}]))

    def clean(self, root: str) -> None:
        """Delete what is older than two days: entries and checkpoints that lie before the newest checkpoint,
        which is made first; of an Iceberg table metadata files that are not the newest."""
        with suppress(GaveUp):
            match self._client.formats.of(root):
                case "delta":
                    self._clean(root)
                case "iceberg":
                    self._clean_metadata(root)

    def _clean_metadata(self, root: str) -> None:
        before = self._client.environment.now_ms() - KEPT * 1000
        metas = list(self._client.store.list(f"{root}/metadata/"))
        numbered = {place.version: meta for meta in metas if (place := place_of(meta.key)) is not None}
        for version, meta in sorted(numbered.items()):
            if version < max(numbered) and meta.modified_ms < before:
                self._notes.cleaned.add(root)
                self._client.store.delete(meta.key)

    def _clean(self, root: str) -> None:
        state = self._read(root)
        if state is None:
            return
        self._checkpoint(root, state)
        before = self._client.environment.now_ms() - KEPT * 1000
        metas = list(self._client.store.list(f"{root}/_delta_log/"))
        covered = max((int(m["version"]) for meta in metas if (m := CHECKPOINT.match(meta.key))), default=0)
        for meta in metas:
            entry = LOG_ENTRY.match(meta.key) or CHECKPOINT.match(meta.key)
            if entry and int(entry["version"]) < covered and meta.modified_ms < before:
                self._notes.cleaned.add(root)
                self._client.store.delete(meta.key)

    def _commit(self, root: str, version: int, entry: bytes) -> bool:
        return isinstance(self._client.store.create(log_key(root, version), entry), Created)

    def _checkpoint(self, root: str, state: State) -> None:
        rows = [{"protocol": state.definition["protocol"]}, {"metaData": state.definition["metaData"]}]
        rows += [{"add": add} for add in state.live.values()]
        rows += [{"remove": remove} for remove in state.gone.values()]
        sink = io.BytesIO()
        pq.write_table(pa.Table.from_pylist(rows, schema=_CHECKPOINT), sink)
        key = f"{root}/_delta_log/{state.version:020d}.checkpoint.parquet"
        if isinstance(self._client.store.create(key, sink.getvalue()), Created):
            hint = json.dumps({"version": state.version, "size": len(rows)}).encode()
            self._client.store.put(f"{root}/_delta_log/_last_checkpoint", hint)

    def _read(self, root: str) -> State | None:
        """The newest version, from the newest checkpoint on; None if there is no table."""
        keys = [meta.key for meta in self._client.store.list(f"{root}/_delta_log/")]
        covered = [(int(found["version"]), key) for key in keys if (found := CHECKPOINT.match(key))]
        first, checkpoint = max(covered, default=(-1, ""))
        state = State(first, {}, {}, {})
        if checkpoint:
            data = get(self._client, checkpoint)
            if data is None:
                raise GaveUp(checkpoint)
            _read_checkpoint(data.data, state)
        while (entry := get(self._client, log_key(root, state.version + 1))) is not None:
            state.version += 1
            _replay(entry.data.decode(), state)
        return state if state.definition.keys() >= {"metaData", "protocol"} else None


def _read_checkpoint(data: bytes, state: State) -> None:
    for row in pq.read_table(pa.BufferReader(data), use_threads=False).to_pylist():
        _take({kind: _plain(action) for kind, action in row.items() if action is not None}, state)


def _plain(action: Any) -> Any:
    """A row of a checkpoint as an entry spells it: maps are dicts, what is null is left out."""
    found = {name: value for name, value in action.items() if value is not None}
    for name in ("partitionValues", "configuration", "options"):
        if isinstance(found.get(name), list):
            found[name] = dict(found[name])
    if (vector := found.get("deletionVector")) is not None:
        found["deletionVector"] = {name: value for name, value in vector.items() if value is not None}
    if isinstance(found.get("format"), dict):
        found["format"] = {"provider": found["format"]["provider"], "options": {}}
    return found


def _replay(text: str, state: State) -> None:
    for line in text.splitlines():
        if line.strip():
            _take(json.loads(line), state)


def _take(action: dict[str, Any], state: State) -> None:
    if (add := action.get("add")) is not None:
        state.live[name_of(add)] = add
        state.gone.pop(name_of(add), None)
    elif (remove := action.get("remove")) is not None:
        state.live.pop(name_of(remove), None)
        state.gone[name_of(remove)] = remove
    state.definition |= {kind: action[kind] for kind in ("metaData", "protocol") if action.get(kind)}


def _lines(actions: list[dict[str, Any]]) -> bytes:
    return "\n".join(json.dumps(action) for action in actions).encode()


_TEXTS = pa.map_(pa.string(), pa.string())
_VECTOR = pa.struct([
    ("storageType", pa.string()),
    ("pathOrInlineDv", pa.string()),
    ("offset", pa.int32()),
    ("sizeInBytes", pa.int32()),
    ("cardinality", pa.int64()),
])  # fmt: skip
_CHECKPOINT = pa.schema(
    [
        ("protocol", pa.struct([
            ("minReaderVersion", pa.int32()),
            ("minWriterVersion", pa.int32()),
            ("readerFeatures", pa.list_(pa.string())),
            ("writerFeatures", pa.list_(pa.string())),
        ])),
        ("metaData", pa.struct([
            ("id", pa.string()),
            ("name", pa.string()),
            ("format", pa.struct([("provider", pa.string()), ("options", _TEXTS)])),
            ("schemaString", pa.string()),
            ("partitionColumns", pa.list_(pa.string())),
            ("configuration", _TEXTS),
            ("createdTime", pa.int64()),
        ])),
        ("add", pa.struct([
            ("path", pa.string()),
            ("partitionValues", _TEXTS),
            ("size", pa.int64()),
            ("modificationTime", pa.int64()),
            ("dataChange", pa.bool_()),
            ("stats", pa.string()),
            ("deletionVector", _VECTOR),
        ])),
        ("remove", pa.struct([
            ("path", pa.string()),
            ("deletionTimestamp", pa.int64()),
            ("dataChange", pa.bool_()),
            ("deletionVector", _VECTOR),
        ])),
    ]
)  # fmt: skip


def delete_folder(world: World, folder: str) -> None:
    """All objects of a folder go at one moment."""
    now = world.scheduler.now
    world.scheduler.note(WRECKER, "deletes", folder)
    for key in sorted(world.bucket.contents()):
        if key.startswith(f"{folder}/"):
            world.bucket.delete(now, WRECKER, key)


def make_anew(world: World, client: Client, root: str) -> None:
    """Another table, with an id of its own, where none is."""
    dialect = dialect_of(client, root, encode_json)
    try:
        entry = dialect.first_entry(root, COLUMNS, first_rows())
        if dialect.first == 0:
            entry = re.sub(
                rb"3f1a8c5e-0000-4000-8000-\d{12}", f"{round(world.scheduler.now):032x}".encode(), entry
            )
        client.store.create(dialect.entry_key(root, dialect.first), entry)
    except (Unanswered, GaveUp):
        return
