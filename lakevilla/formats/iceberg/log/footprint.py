"""What a version did to its table, for the conflict rules and for people: the difference to the one before.

Iceberg's commits do not list what they did, and one version may hold several snapshots. So the manifests
that only one of the two versions has are compared: a file that was only brought into another manifest is in
both, and does not count as a difference. Where deletes changed, files whose deletes changed went and came
again.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lakevilla.formats import authorship
from lakevilla.formats.authorship import keeps_rows
from lakevilla.formats.iceberg.changes import entries_of, preview
from lakevilla.formats.iceberg.definition.layout import same_shape
from lakevilla.formats.iceberg.definition.properties import shown
from lakevilla.formats.iceberg.deletes.scope import only_data_file
from lakevilla.formats.iceberg.log.updates import lets_pass
from lakevilla.formats.iceberg.log.versions import Keeper
from lakevilla.formats.iceberg.manifests.cache import Manifest, unwritten
from lakevilla.formats.iceberg.manifests.entries import Entry
from lakevilla.formats.iceberg.manifests.file_pruning import matching
from lakevilla.formats.iceberg.metadata.document import Raw, format_version, properties
from lakevilla.formats.iceberg.metadata.paths import without_scheme
from lakevilla.formats.iceberg.metadata.summaries import REPLACE
from lakevilla.formats.iceberg.snapshot import IcebergSnapshot
from lakevilla.model import Change, DataFile, Footprint
from lakevilla.predicates import Predicate


@dataclass(frozen=True)
class AddedFiles:
    """The files that a version added, by identity."""

    files_by_identity: dict[str, Entry]

    snapshot: IcebergSnapshot

    def files(self, predicate: Predicate) -> Sequence[DataFile]:
        return [self.snapshot.data_file(self.files_by_identity[found]) for found in self.matching(predicate)]

    def matching(self, predicate: Predicate) -> Sequence[str]:
        identities = {entry.path: identity for identity, entry in self.files_by_identity.items()}
        found: list[str] = []
        for manifest in unwritten(self.files_by_identity.values()):
            flags = matching(manifest, predicate, self.snapshot.layout)
            entries = zip(manifest.entries or (), flags, strict=True)
            found += [identities[entry.path] for entry, chosen in entries if chosen]
        return found


def footprint_of(before: IcebergSnapshot, after: IcebergSnapshot) -> Footprint:
    """What `after` did, which is the published version that follows `before`."""
    removed, added = changed_files(before, after)
    found = replace(_footprint(before, after, removed, added), keeps_rows=_keeps_rows(before, after))
    return replace(found, metadata_changed=False) if _is_passed_over(before, after) else found


def _keeps_rows(before: IcebergSnapshot, after: IcebergSnapshot) -> bool:
    """Whether all snapshots that a version adds rewrite files, as they say."""
    summaries = _new_summaries(before, after)
    return bool(summaries) and all(summary.get("operation") == REPLACE for summary in summaries)


def footprint_of_change(before: IcebergSnapshot, change: Change) -> Footprint:
    """What a change would do that is not published."""
    after = preview(before, change)
    added = {after.unpublished(entry).identity: entry for entry in entries_of(after, change)}
    found = _footprint(before, after, [file.identity for file in change.removed], added)
    return replace(found, keeps_rows=keeps_rows(change))


def _footprint(
    before: IcebergSnapshot, after: IcebergSnapshot, removed: Iterable[str], added: dict[str, Entry]
) -> Footprint:
    info = after.at.info
    notice = authorship.notice_of(info)
    return Footprint(
        version=after.version,
        txn=authorship.txn_of(info),
        attempt=authorship.attempt_of(info),
        summary=_in_words(before, after),
        removed=frozenset(removed),
        added=AddedFiles(added, after),
        metadata_changed=not before.at.is_made or _redefined(before.raw, after.raw),
        protocol_changed=format_version(before.raw) != format_version(after.raw),
        dropped=notice is not None and notice.dropped,
    )


def changed_files(
    before: IcebergSnapshot, after: IcebergSnapshot
) -> tuple[dict[str, Entry], dict[str, Entry]]:
    """The files that went and those that came, by identity."""
    if before.raw.get("current-snapshot-id") == after.raw.get("current-snapshot-id"):
        return {}, {}
    old = {manifest.path: manifest for manifest in before.manifests if not manifest.is_empty}
    new = {manifest.path: manifest for manifest in after.manifests if not manifest.is_empty}
    went = [manifest for path, manifest in old.items() if path not in new]
    came = [manifest for path, manifest in new.items() if path not in old]
    before.reader.load(went)
    after.reader.load(came)
    shadowed = _shadowed(went, came)
    gone = _identities(before, _concerned(before, went, old.values(), shadowed))
    there = _identities(after, _concerned(after, came, new.values(), shadowed))
    removed = {identity: entry for identity, entry in gone.items() if identity not in there}
    return removed, {identity: entry for identity, entry in there.items() if identity not in gone}


def _shadowed(went: Iterable[Manifest], came: Iterable[Manifest]) -> set[str] | None:
    """The data files whose own deletes changed, by their paths without scheme; None where deletes changed
    that may concern any file."""
    old, new = (
        {entry.name: entry for manifest in side if not manifest.is_data for entry in manifest.entries or ()}
        for side in (went, came)
    )
    changed = [entry for name, entry in (*old.items(), *new.items()) if name not in old or name not in new]
    paths = {only_data_file(entry) for entry in changed}
    return None if None in paths else {path for path in paths if path is not None}


def _concerned(
    snapshot: IcebergSnapshot,
    exchanged: Iterable[Manifest],
    living: Iterable[Manifest],
    shadowed: set[str] | None,
) -> Iterator[Entry]:
    """The data files of a version that may be others, or have other deletes, than in the other
    version."""
    data = [manifest for manifest in living if manifest.is_data]
    if shadowed is None or shadowed:
        snapshot.reader.load(data)
    fresh = {manifest.path for manifest in exchanged}
    for manifest in data:
        for entry in manifest.entries or ():
            if manifest.path in fresh or shadowed is None or without_scheme(entry.path) in shadowed:
                yield entry


def _identities(snapshot: IcebergSnapshot, entries: Iterable[Entry]) -> dict[str, Entry]:
    return {snapshot.data_file(entry).identity: entry for entry in entries}


def _redefined(before: Raw, after: Raw) -> bool:
    """Whether what the table is has changed: its columns, partitioning, properties or place."""
    if not same_shape(before, after) or before.get("location") != after.get("location"):
        return True
    return shown(properties(before)) != shown(properties(after))


def _is_passed_over(before: IcebergSnapshot, after: IcebergSnapshot) -> bool:
    """Whether a catalog lets commits on `before` pass over this version. Then it is in no client's way: of
    two clients that bring the same commit there, one past it unseen, both must come to the same end."""
    return after.at.keeper is Keeper.CATALOG and lets_pass(before.raw, after.raw)


def operation_and_engine(before: IcebergSnapshot | None, after: IcebergSnapshot) -> tuple[str, str]:
    """What the version `after` says that it did, and which client did it; empty where it does not say.

    Another client's version shows it by the snapshots that it added. `before` is the version before it,
    None if that is not known.
    """
    if after.at.freed_above is not None:
        return authorship.FREED, authorship.ENGINE
    info = after.at.info
    summaries = _new_summaries(before, after)
    engines = [summary.get("engine-name") or _engine(summary) for summary in summaries]
    operations = [summary.get("operation", "") for summary in summaries]
    operation = operations[-1] if operations else ""
    if len(set(operations)) > 1:
        operation = "overwrite"
    elif not operations and before is not None and _redefined(before.raw, after.raw):
        operation = "ALTER TABLE"
    engine = engines[-1] if engines else ""
    return str(info.get("operation") or operation), str(info.get("engine") or engine)


def _new_summaries(before: IcebergSnapshot | None, after: IcebergSnapshot) -> list[dict[str, Any]]:
    known = set() if before is None else {s["snapshot-id"] for s in before.raw.get("snapshots") or ()}
    snapshots = [s for s in after.raw.get("snapshots") or () if s["snapshot-id"] not in known]
    if before is None:
        current = after.raw.get("current-snapshot-id")
        snapshots = [s for s in snapshots if s["snapshot-id"] == current]
    return [snapshot.get("summary") or {} for snapshot in snapshots]


def _engine(summary: Mapping[str, Any]) -> str:
    return "Spark" if "spark.app.id" in summary else ""


def _in_words(before: IcebergSnapshot, after: IcebergSnapshot) -> str:
    operation, engine = operation_and_engine(before, after)
    timestamp, txn = after.raw.get("last-updated-ms"), authorship.txn_of(after.at.info)
    return authorship.in_words(after.version, operation, engine, timestamp, txn)
