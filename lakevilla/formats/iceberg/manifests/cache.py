"""The manifests of a snapshot: read once, kept as long as a version needs them, never read again.

A manifest never changes, so the next version of a table shares those that it kept: what a client reads of a
new version grows with what changed, not with the table.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from lakevilla.environment import Environment
from lakevilla.errors import Corrupt
from lakevilla.formats.iceberg.definition.specs import Spec
from lakevilla.formats.iceberg.manifests.avro import Record, entries_of, read_records
from lakevilla.formats.iceberg.manifests.entries import DATA, Entry
from lakevilla.store.port import Store

Locate = Callable[[str], tuple[Store, str]]
"""From a recorded path to the store and the key of the file."""


class Gone(Corrupt):
    """What a snapshot needs is not there any more."""


class Manifest:
    """One manifest. `record` is what the manifest list says of it; `entries` are None until it is read."""

    def __init__(self, record: Record, entries: Sequence[Entry] | None = None) -> None:
        self.record = record
        self.entries = entries
        self.notes: dict[Any, Any] = {}
        """What readers have made of the entries, to be used again."""

    @property
    def path(self) -> str:
        return str(self.record["manifest_path"])

    @property
    def content(self) -> int:
        """DATA or DELETES."""
        return int(self.record.get("content") or DATA)

    @property
    def is_data(self) -> bool:
        return self.content == DATA

    @property
    def is_empty(self) -> bool:
        """Whether the manifest surely has no live file: it is there for what a snapshot removed."""
        if self.entries is not None:
            return not self.entries
        counts = (self.record.get("added_files_count"), self.record.get("existing_files_count"))
        return counts == (0, 0)


def unwritten(entries: Iterable[Entry]) -> list[Manifest]:
    """These files as manifests that no client has written, one for each partition spec."""
    by_spec: dict[int, list[Entry]] = {}
    for entry in entries:
        by_spec.setdefault(entry.spec_id, []).append(entry)
    return [Manifest({"partition_spec_id": spec_id}, found) for spec_id, found in by_spec.items()]


def _known(manifest: Manifest | None, record: Record) -> Manifest:
    """The manifest of this record: the one that is known, unless a snapshot gave it row ids since."""
    if manifest is not None and manifest.record.get("first_row_id") == record.get("first_row_id"):
        return manifest
    return Manifest(record)


class Manifests:
    """Reads manifests of one table."""

    def __init__(self, locate: Locate, environment: Environment, specs: Mapping[int, Spec]) -> None:
        self._locate = locate
        self._environment = environment
        self._specs = specs

    def of(self, snapshot: Mapping[str, Any] | None, known: Iterable[Manifest]) -> tuple[Manifest, ...]:
        """The manifests of a snapshot, in their order; those that are known are taken as they are."""
        if snapshot is None:
            return ()
        have = {manifest.path: manifest for manifest in known}
        records = self._records(snapshot)
        return tuple(_known(have.get(record["manifest_path"]), record) for record in records)

    def load(self, manifests: Iterable[Manifest]) -> None:
        """Read those of these manifests that were not read yet, in one round."""
        missing = [manifest for manifest in manifests if manifest.entries is None]
        found = self._environment.fan_out([self._reading(manifest) for manifest in missing])
        for manifest, entries in zip(missing, found, strict=True):
            manifest.entries = entries

    def _records(self, snapshot: Mapping[str, Any]) -> list[Record]:
        if "manifest-list" not in snapshot:
            # Format 1 may name the manifests in the snapshot itself.
            return [_bare(path, snapshot) for path in snapshot.get("manifests") or ()]
        path = str(snapshot["manifest-list"])
        return list(read_records(self._get(path), path))

    def _reading(self, manifest: Manifest) -> Callable[[], list[Entry]]:
        def read() -> list[Entry]:
            spec = self._specs.get(manifest.record["partition_spec_id"])
            if spec is None:
                raise Corrupt(f"{manifest.path} is of a partition spec that the table does not have")
            return entries_of(read_records(self._get(manifest.path), manifest.path), manifest.record, spec)

        return read

    def _get(self, path: str) -> bytes:
        store, key = self._locate(path)
        found = store.get(key)
        if found is None:
            raise Gone(
                f"{path} is missing: the snapshot was expired by another client, or the table is damaged"
            )
        return found.data


def _bare(path: str, snapshot: Mapping[str, Any]) -> Record:
    return {
        "manifest_path": path,
        "manifest_length": 0,
        "partition_spec_id": 0,
        "added_snapshot_id": snapshot["snapshot-id"],
    }
