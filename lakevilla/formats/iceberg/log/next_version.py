"""What a change becomes in the version that publishes it: manifests, a manifest list, the next metadata.

Files that stay keep their manifests, also where more of their rows are deleted: deletes have manifests of
their own. A manifest that loses a file is written again without it, says so, and
takes in what is added; else that gets a manifest of its own. Many small manifests are gathered into one, so
that a table that is written often stays quick to open.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lakevilla.environment import Environment
from lakevilla.errors import Corrupt
from lakevilla.formats.iceberg.definition.properties import whole_number
from lakevilla.formats.iceberg.log.authorship import COMMIT, make_info
from lakevilla.formats.iceberg.log.versions import Keeper
from lakevilla.formats.iceberg.manifests.avro import encode_manifest, encode_manifest_list, record_of
from lakevilla.formats.iceberg.manifests.cache import Manifest
from lakevilla.formats.iceberg.manifests.entries import ADDED, DATA, DELETED, DELETES, EXISTING, Entry
from lakevilla.formats.iceberg.manifests.file_changes import FileChanges, Moves
from lakevilla.formats.iceberg.manifests.row_ids import FIRST_ROW_ID, numbered
from lakevilla.formats.iceberg.metadata.document import Raw, format_version, properties
from lakevilla.formats.iceberg.metadata.paths import manifest_key, manifest_list_key
from lakevilla.formats.iceberg.metadata.summaries import batch_summary, partition_summaries, summary_of
from lakevilla.formats.iceberg.snapshot import IcebergSnapshot
from lakevilla.formats.iceberg.versions import metadata_after
from lakevilla.formats.iceberg.written import entry_of, removed_entry
from lakevilla.model import Author, Change

_GATHER_FROM = "commit.manifest.min-count-to-merge"
_GATHER_UP_TO = "commit.manifest.target-size-bytes"
_MERGES = "commit.manifest-merge.enabled"
_SNAPSHOT_BITS = 63
_ASKED = (
    "content",
    "sequence_number",
    "min_sequence_number",
    *(f"{kind}_{what}_count" for kind in ("added", "existing", "deleted") for what in ("files", "rows")),
)
"""What format 2 asks of every manifest in a list."""
ROW_IDS_FROM = 3
"""The format from which on rows have ids."""


_Status = tuple[Entry, int]
"""A file in a manifest, and its status."""


@dataclass
class NextVersion:
    """The next version of a table, not yet published: its metadata, and the objects that it needs first."""

    raw: Raw
    objects: dict[str, bytes] = field(default_factory=dict)
    manifests: tuple[Manifest, ...] = ()


def make_next(base: IcebergSnapshot, change: Change, author: Author, environment: Environment) -> NextVersion:
    """The version after `base` with this change.

    In a catalog every version brings a snapshot, because that is what the catalog compares.
    """
    now_ms = environment.now_ms()
    raw = {**base.raw, **(change.metadata or {})}
    if change.added or change.removed or base.at.keeper is Keeper.CATALOG:
        return _Work(base, raw, author, environment).make(change, now_ms)
    raw["properties"] = {**properties(raw), COMMIT: _info(base, change, author, now_ms)}
    return NextVersion(
        metadata_after(base, raw, None, now_ms), manifests=base.manifests if base.at.is_made else ()
    )


def _info(
    base: IcebergSnapshot, change: Change, author: Author, now_ms: int, snapshot_id: int | None = None
) -> str:
    before = base.raw if base.at.is_made else None
    return make_info(change, author, base.at.next_number, before, now_ms, snapshot_id)


class _Work:
    """The next version of a table, made from a change by a snapshot."""

    def __init__(self, base: IcebergSnapshot, raw: Raw, author: Author, environment: Environment) -> None:
        self._base, self._raw, self._author = base, raw, author
        self._layout = base.layout_of(raw)
        self._format = format_version(raw)
        self._unique = environment.new_id()
        self._snapshot_id = (int(self._unique, 16) & ((1 << _SNAPSHOT_BITS) - 1)) or 1
        self._sequence = int(raw.get("last-sequence-number", 0)) + 1 if self._format > 1 else 0
        self._objects: dict[str, bytes] = {}

    def make(self, change: Change, now_ms: int) -> NextVersion:
        files = FileChanges.of(
            [entry_of(file, self._layout, self._raw) for file in change.added],
            [removed_entry(file) for file in change.removed],
        )
        self._find(files)
        manifests = self._gathered([*self._changed(DATA, files.data), *self._changed(DELETES, files.deletes)])
        key = manifest_list_key(self._author.txn, self._unique, self._snapshot_id)
        snapshot: dict[str, Any] = {
            "snapshot-id": self._snapshot_id,
            "timestamp-ms": max(now_ms, int(self._base.raw.get("last-updated-ms", 0))),
            "summary": summary_of(self._base.raw, change.operation, files) | batch_summary(change.once),
            "manifest-list": self._base.places.path_of(key),
            "schema-id": self._layout.model.schema_id,
        }
        parent = self._base.raw.get("current-snapshot-id")
        if parent is not None and parent != -1:
            snapshot["parent-snapshot-id"] = parent
        if self._format > 1:
            snapshot["sequence-number"] = self._sequence
        manifests = [self._complete(manifest) for manifest in manifests]
        if self._format >= ROW_IDS_FROM:
            first = int(self._raw.get("next-row-id", 0))
            manifests, following = with_row_ids(manifests, first)
            snapshot |= {"first-row-id": first, "added-rows": following - first}
        records = [manifest.record for manifest in manifests]
        self._objects[key] = encode_manifest_list(self._format, records, snapshot)
        info = _info(self._base, change, self._author, now_ms, self._snapshot_id)
        raw = {**self._raw, "properties": {**properties(self._raw), COMMIT: info}}
        raw = metadata_after(self._base, raw, snapshot, now_ms)
        return NextVersion(raw, self._objects, tuple(manifests))

    def _living(self, content: int) -> list[Manifest]:
        """Entries that earlier snapshots removed are listed there, not again here."""
        return [m for m in self._base.manifests if not m.is_empty and m.content == content]

    def _changed(self, content: int, moves: Moves) -> list[Manifest]:
        """The manifests of this content with what comes, and without what goes."""
        gone = {entry.name for entry in moves.gone}
        new: dict[int, list[_Status]] = {}
        for entry in moves.come:
            new.setdefault(entry.spec_id, []).append((entry, ADDED))
        changed, kept = [], []
        for manifest in self._living(content):
            if any(entry.name in gone for entry in manifest.entries or ()):
                fresh = new.pop(manifest.record["partition_spec_id"], ())
                changed.append(self._rewritten(manifest, gone, fresh))
            else:
                kept.append(manifest)
        return [*(self._write(spec_id, fresh, content) for spec_id, fresh in new.items()), *changed, *kept]

    def _rewritten(
        self, manifest: Manifest, gone: set[tuple[str, int | None]], fresh: Iterable[_Status]
    ) -> Manifest:
        """The manifest with the added files, and without the removed ones."""
        entries = manifest.entries or ()
        statuses = [(entry, DELETED if entry.name in gone else EXISTING) for entry in entries]
        return self._write(manifest.record["partition_spec_id"], [*fresh, *statuses], manifest.content)

    def _find(self, files: FileChanges) -> None:
        """Read the manifests that name what goes, or the data files that get other deletes.

        As a rule they are read, because the transaction found the files there, and no other one is read for
        it.
        """
        data = {entry.name for entry in (*files.data.gone, *files.staying)}
        for content, wanted in ((DATA, data), (DELETES, {entry.name for entry in files.deletes.gone})):
            living = self._living(content)
            if missing := wanted - _named(living):
                self._base.reader.load(living)
                missing -= _named(living)
            if missing:
                raise Corrupt(f"cannot remove {min(missing)[0]}: it is not a file of the table any more")

    def _gathered(self, manifests: list[Manifest]) -> list[Manifest]:
        """Small manifests together, once there are many of them: those of data files, and those of
        deletes."""
        given = properties(self._raw)
        if given.get(_MERGES, "true").lower() == "false":
            return manifests
        least = max(2, whole_number(given, _GATHER_FROM, 100))
        target = whole_number(given, _GATHER_UP_TO, 8 * 1024 * 1024)
        old: list[Manifest] = []
        for content in (DATA, DELETES):
            mine = [m for m in manifests if m.content == content]
            small = [m for m in mine if m.record["manifest_length"] < target // 2]
            if len(small) >= least:
                old += [m for m in small if m.record["added_snapshot_id"] != self._snapshot_id]
        if not old:
            return manifests
        self._base.reader.load(old)
        together: dict[tuple[int, int], list[_Status]] = {}
        for manifest in old:
            statuses = [(entry, EXISTING) for entry in manifest.entries or ()]
            place = manifest.content, manifest.record["partition_spec_id"]
            together.setdefault(place, []).extend(statuses)
        paths = {manifest.path for manifest in old}
        written = [self._write(spec_id, entries, content) for (content, spec_id), entries in together.items()]
        return [m for m in manifests if m.path not in paths] + written

    def _write(self, spec_id: int, statuses: Sequence[_Status], content: int) -> Manifest:
        """A manifest of this snapshot, to be uploaded before the snapshot is."""
        spec, model = self._layout.specs[spec_id], self._layout.model
        key = manifest_key(self._author.txn, self._unique, len(self._objects))
        records = [record_of(entry, status, self._snapshot_id, spec) for entry, status in statuses]
        data = self._objects[key] = encode_manifest(self._format, spec, model, records, content)
        living = [self._numbered(entry, status) for entry, status in statuses if status != DELETED]
        record: dict[str, Any] = {
            "manifest_path": self._base.places.path_of(key),
            "manifest_length": len(data),
            "partition_spec_id": spec_id,
            "content": content,
            "sequence_number": self._sequence,
            "min_sequence_number": min((e.sequence for e in living), default=self._sequence),
            "added_snapshot_id": self._snapshot_id,
            "partitions": partition_summaries(spec, [entry for entry, _ in statuses]),
        }
        for name, wanted in (("added", ADDED), ("existing", EXISTING), ("deleted", DELETED)):
            rows = [entry.rows for entry, status in statuses if status == wanted]
            record[f"{name}_files_count"], record[f"{name}_rows_count"] = len(rows), sum(rows)
        return Manifest(record, living)

    def _complete(self, manifest: Manifest) -> Manifest:
        """The manifest as the list has it; earlier writers left out what later formats ask for."""
        record = manifest.record
        if self._format == 1 or all(record.get(name) is not None for name in _ASKED):
            return manifest
        self._base.reader.load([manifest])
        entries = manifest.entries or ()
        counts = {f"{kind}_{what}_count": 0 for kind in ("added", "deleted") for what in ("files", "rows")}
        complete = {
            "content": DATA,
            "sequence_number": 0,
            "min_sequence_number": 0,
            **counts,
            "existing_files_count": len(entries),
            "existing_rows_count": sum(entry.rows for entry in entries),
            **{name: value for name, value in record.items() if value is not None},
        }
        return Manifest(complete, manifest.entries)

    def _numbered(self, entry: Entry, status: int) -> Entry:
        """The entry as a reader of the manifest sees it."""
        entry = replace(entry, masks=()) if entry.masks else entry
        if status != ADDED:
            return entry
        sequence = entry.sequence if entry.sequence >= 0 else self._sequence
        return entry.with_numbers(sequence, self._sequence, self._snapshot_id)


def with_row_ids(manifests: Sequence[Manifest], first: int) -> tuple[list[Manifest], int]:
    """The manifests of a snapshot, where each of data files has a first id, and the next id after all of
    them. Ids that a manifest does not use up, because its files name their own, are skipped."""
    found = []
    for manifest in manifests:
        record = manifest.record
        if manifest.is_data and record.get(FIRST_ROW_ID) is None:
            entries = None if manifest.entries is None else numbered(manifest.entries, first)
            manifest = Manifest({**record, FIRST_ROW_ID: first}, entries)
            first += record["added_rows_count"] + record["existing_rows_count"]
        found.append(manifest)
    return found, first


def _named(manifests: Iterable[Manifest]) -> set[tuple[str, int | None]]:
    """The files that these manifests name, of those that were read."""
    return {entry.name for manifest in manifests for entry in manifest.entries or ()}
