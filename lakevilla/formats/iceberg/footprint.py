"""What a version did to its table, for the conflict rules and for people: the difference to the one before.

Iceberg's commits do not list what they did, and one version may hold several snapshots. So the manifests
that only one of the two versions has are compared: a file that was only brought into another manifest is in
both, and is no difference. Where deletes changed, files whose deletes changed went and came again.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from lakevilla.formats.iceberg import commits
from lakevilla.formats.iceberg.entries import Entry
from lakevilla.formats.iceberg.layout import Layout, same_shape
from lakevilla.formats.iceberg.manifests import Manifest
from lakevilla.formats.iceberg.metadata import Raw, current_snapshot, format_version, properties
from lakevilla.formats.iceberg.properties import shown
from lakevilla.formats.iceberg.pruning import matching
from lakevilla.formats.iceberg.snapshot import IcebergSnapshot
from lakevilla.model import Footprint
from lakevilla.predicates import Predicate


@dataclass(frozen=True)
class AddedFiles:
    """The files that a version added, by identity."""

    files: dict[str, Entry]
    layout: Layout

    def matching(self, predicate: Predicate) -> Sequence[str]:
        by_spec: dict[int, list[tuple[str, Entry]]] = {}
        for identity, entry in self.files.items():
            by_spec.setdefault(entry.spec_id, []).append((identity, entry))
        found: list[str] = []
        for spec_id, files in by_spec.items():
            manifest = Manifest({"partition_spec_id": spec_id}, [entry for _, entry in files])
            chosen = np.flatnonzero(matching(manifest, predicate, self.layout))
            found += [files[int(at)][0] for at in chosen]
        return found


def footprint_of(before: IcebergSnapshot, after: IcebergSnapshot) -> Footprint:
    """What `after` did, which is the version that follows `before`, published or not."""
    removed, added = _difference(before, after)
    info = commits.info_of(after.raw, after.version)
    notice = commits.notice_of(info)
    return Footprint(
        version=after.version,
        txn=commits.txn_of(info),
        attempt=commits.attempt_of(info),
        summary=summary(after.raw, after.version),
        removed=frozenset(removed),
        added=AddedFiles(added, after.layout),
        metadata_changed=_redefined(before.raw, after.raw),
        protocol_changed=format_version(before.raw) != format_version(after.raw),
        dropped=notice is not None and notice.dropped,
    )


def changed_files(
    before: IcebergSnapshot, after: IcebergSnapshot
) -> tuple[dict[str, Entry], dict[str, Entry]]:
    """The files that went and those that came, by identity."""
    return _difference(before, after)


def _difference(before: IcebergSnapshot, after: IcebergSnapshot) -> tuple[dict[str, Entry], dict[str, Entry]]:
    if before.raw.get("current-snapshot-id") == after.raw.get("current-snapshot-id"):
        return {}, {}
    old = {manifest.path: manifest for manifest in before.manifests if not manifest.is_empty}
    new = {manifest.path: manifest for manifest in after.manifests if not manifest.is_empty}
    went = [manifest for path, manifest in old.items() if path not in new]
    came = [manifest for path, manifest in new.items() if path not in old]
    if not all(manifest.is_data for manifest in (*went, *came)):
        went, came = list(old.values()), list(new.values())
    before.reader.load(went)
    after.reader.load(came)
    gone, there = _identities(before, went), _identities(after, came)
    removed = {identity: entry for identity, entry in gone.items() if identity not in there}
    return removed, {identity: entry for identity, entry in there.items() if identity not in gone}


def _identities(snapshot: IcebergSnapshot, manifests: Iterable[Manifest]) -> dict[str, Entry]:
    entries = [entry for manifest in manifests if manifest.is_data for entry in manifest.entries or ()]
    return {snapshot.data_file(entry).identity: entry for entry in entries}


def _redefined(before: Raw, after: Raw) -> bool:
    """Whether what the table is has changed: its columns, partitioning, properties or place."""
    if not same_shape(before, after) or before.get("location") != after.get("location"):
        return True
    return shown(properties(before)) != shown(properties(after))


def summary(raw: Raw, version: int) -> str:
    """A version in words."""
    info = commits.info_of(raw, version)
    snapshot = current_snapshot(raw) or {}
    told = snapshot.get("summary") or {}
    engine = info.get("engine") or told.get("engine-name") or ("Spark" if "spark.app.id" in told else "")
    words = [str(info.get("operation") or told.get("operation") or "a commit")]
    if engine:
        words.append(f"by {engine}")
    timestamp = raw.get("last-updated-ms")
    if isinstance(timestamp, int):
        words.append(f"at {datetime.fromtimestamp(timestamp / 1000, UTC).isoformat(timespec='milliseconds')}")
    txn = commits.txn_of(info)
    return f"version {version} ({' '.join(words)}{f', transaction {txn}' if txn else ''})"
