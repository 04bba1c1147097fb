"""Which files an Iceberg table names, for vacuum: data and delete files, manifests, lists and metadata.

A snapshot that the newest metadata lists is anybody's to read, so its files are needed until it is expired.
So are those of versions that were written since the moment that was asked for, and of the one before them.
"""

import logging
from collections.abc import Collection, Iterable, Mapping
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from lakevilla.formats.iceberg.log.versions import Log
from lakevilla.formats.iceberg.manifests.cache import Gone, Manifest
from lakevilla.formats.iceberg.metadata.document import current_snapshot
from lakevilla.formats.iceberg.metadata.paths import METADATA
from lakevilla.formats.iceberg.snapshot import IcebergSnapshot
from lakevilla.formats.urls import is_absolute

logger = logging.getLogger("lakevilla.formats")


class Names:
    """Files that snapshots name. `odd` are the last segments of files outside of the root."""

    def __init__(self) -> None:
        self._keys: set[str] = set()
        self._odd: set[str] = set()
        self._seen: set[int] = set()
        self._manifests: dict[str, Manifest] = {}

    def add(self, version: IcebergSnapshot, *, may_be_gone: bool = False) -> None:
        """All that the snapshots of a version name which were not added yet.

        Of those that were expired, manifests may be gone already: then they tell nothing more.
        """
        for snapshot in version.raw.get("snapshots") or ():
            if snapshot["snapshot-id"] not in self._seen:
                self._seen.add(snapshot["snapshot-id"])
                try:
                    self._add_snapshot(version, snapshot)
                except Gone as gone:
                    if not may_be_gone:
                        raise
                    logger.info(
                        "the manifests of snapshot %s cannot be read: %s", snapshot["snapshot-id"], gone
                    )

    def add_current(self, version: IcebergSnapshot) -> None:
        """All that the current snapshot of a version names."""
        snapshot = current_snapshot(version.raw)
        if snapshot is not None and snapshot["snapshot-id"] not in self._seen:
            self._seen.add(snapshot["snapshot-id"])
            self._add_snapshot(version, snapshot)

    def _add_snapshot(self, version: IcebergSnapshot, snapshot: Mapping[str, Any]) -> None:
        manifests = version.reader.of(snapshot, self._manifests.values())
        fresh = [manifest for manifest in manifests if manifest.path not in self._manifests]
        version.reader.load(manifest for manifest in fresh if not manifest.is_empty)
        paths = [str(snapshot["manifest-list"])] if "manifest-list" in snapshot else []
        for manifest in fresh:
            self._manifests[manifest.path] = manifest
            paths.append(manifest.path)
            paths += _paths_of(manifest)
        self._add_keys(version.places.key_of(path) for path in paths)

    def _add_keys(self, keys: Iterable[str]) -> None:
        for key in keys:
            if is_absolute(key):
                self._odd.add(unquote(key.rpartition("/")[2]))
            else:
                self._keys.add(key)

    def hold(self, keys: pa.Array) -> pa.BooleanArray:
        """Which of these keys are among the files."""
        found = pc.is_in(keys, value_set=pa.array(sorted(self._keys), pa.string()))
        if self._odd:
            last = pc.replace_substring_regex(keys, "^.*/", "")
            found = pc.or_(found, pc.is_in(last, value_set=pa.array(sorted(self._odd), pa.string())))
        return found


def _paths_of(manifest: Manifest) -> list[str]:
    """The data files and delete files that a manifest lists."""
    return [entry.path for entry in manifest.entries or ()]


class IcebergReferences:
    """What `formats.port.References` promises, for one table at one moment."""

    def __init__(self, log: Log, newest: IcebergSnapshot, needed: Names, older: list[int]) -> None:
        self._log, self._newest = log, newest
        self._needed, self._removed, self._newer = needed, Names(), Names()
        self._older = older

    @staticmethod
    def read(
        log: Log,
        newest: IcebergSnapshot,
        since_ms: int,
        also: Collection[int],
    ) -> "IcebergReferences":
        """One LIST of the metadata, and every version since the moment."""
        needed = Names()
        needed.add(newest)
        written = log.written(newest.at)
        young = [number for number, modified_ms in written.items() if modified_ms >= since_ms]
        # The version that was current at the moment is the one before those that came since.
        first = min([newest.version, *young]) - 1
        wanted = {number for number in written if first <= number < newest.version} | set(also)
        for number in sorted(wanted, reverse=True):
            version = log.at(number, newest.at)
            # No client can read metadata that was deleted.
            if version is not None:
                needed.add_current(newest.advance(version))
        older = [number for number in written if number < first and number not in wanted]
        return IcebergReferences(log, newest, needed, older)

    def needed(self, keys: pa.Array) -> pa.BooleanArray:
        """Metadata files and the hint are always needed: they are the table's history."""
        history = pc.and_(pc.starts_with(keys, METADATA), pc.invert(pc.ends_with(keys, ".avro")))
        return pc.or_(history, self._needed.hold(keys))

    def removed(self, keys: pa.Array) -> pa.BooleanArray:
        """Reads older versions, newest first, until every key is found or there are no more."""
        found = self._removed.hold(keys)
        while self._older and not pc.all(found).as_py():
            version = self._log.at(self._older.pop(), self._newest.at)
            if version is not None:
                self._removed.add(self._newest.advance(version), may_be_gone=True)
                found = self._removed.hold(keys)
        return found

    def named_since(self, keys: pa.Array) -> pa.BooleanArray:
        for version in self._log.follow(self._newest.at):
            self._newest = self._newest.advance(version)
            self._newer.add(self._newest)
        return self._newer.hold(keys)
