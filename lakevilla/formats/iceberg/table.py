"""One Iceberg table behind the format port: versions and their history, found in its log."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa

from lakevilla.answers import HistoryEntry
from lakevilla.environment import Environment
from lakevilla.errors import Corrupt, InvalidInput, Unsupported
from lakevilla.formats.conditional_commit import missing
from lakevilla.formats.iceberg import changes
from lakevilla.formats.iceberg.definition.alter import alter
from lakevilla.formats.iceberg.definition.create import create_table
from lakevilla.formats.iceberg.definition.properties import NO_MARKERS
from lakevilla.formats.iceberg.definition.replace import replace_definition
from lakevilla.formats.iceberg.log.footprint import footprint_of, footprint_of_change
from lakevilla.formats.iceberg.log.history import history, version_at
from lakevilla.formats.iceberg.log.marker_fill import fill
from lakevilla.formats.iceberg.log.markers import IcebergMarkerEntries
from lakevilla.formats.iceberg.log.publish import encode_first, publish, publish_first, publish_notice
from lakevilla.formats.iceberg.log.references import IcebergReferences
from lakevilla.formats.iceberg.log.versions import FIRST, Keeper, Log, Version
from lakevilla.formats.iceberg.manifests.cache import Gone
from lakevilla.formats.iceberg.metadata.document import current_snapshot, properties, table_id
from lakevilla.formats.iceberg.metadata.expiry import expire
from lakevilla.formats.iceberg.metadata.paths import DATA, Places, location_of
from lakevilla.formats.iceberg.restore import restore
from lakevilla.formats.iceberg.row_changes import row_changes
from lakevilla.formats.iceberg.row_masks import IcebergRowMasks, wants_deletes
from lakevilla.formats.iceberg.snapshot import IcebergSnapshot, TableContext
from lakevilla.formats.iceberg.written import keys_of
from lakevilla.formats.identity import (
    Expired,
    confirm_published,
    must_look,
    must_look_before_publish,
    recreated,
    was_slow,
)
from lakevilla.formats.port import LogMarkers, Published, Taken
from lakevilla.formats.port_parts.row_changes import VersionChange
from lakevilla.formats.properties import markers_in_log
from lakevilla.formats.urls import Opener, located
from lakevilla.model import Author, Change, DataFile, Footprint, Notice, PartitionField, Shrunk, WrittenFile
from lakevilla.sql.statements import Action
from lakevilla.store.port import Meta, Store


class IcebergTable:
    """An Iceberg table at a store's root. `log` keeps its versions; `opener` finds files elsewhere."""

    data_folder = DATA
    first_version = FIRST

    def __init__(self, log: Log, store: Store, environment: Environment, opener: Opener) -> None:
        self._log = log
        self._store = store
        self._environment = environment
        self._opener = opener

    def open(self, file: DataFile) -> tuple[Store, str]:
        return self._place(file.key)

    def latest(self, base: IcebergSnapshot | None = None) -> IcebergSnapshot | None:
        if base is not None:
            known, versions = self._follow(base)
            return known.advance(versions[-1]) if versions else known
        found = self._log.newest()
        return None if found is None else self._snapshot(found)

    def at_version(self, version: int) -> IcebergSnapshot:
        if version < 0:
            raise InvalidInput(f"a version cannot be negative; found {version}")
        try:
            top = self._newest()
        except (Corrupt, Unsupported):
            # The newest version is damaged, or needs a newer client; earlier ones may be readable.
            earlier = self._log.alone(version)
            if earlier is None:
                raise
            return self._snapshot(earlier)
        found = top.at if version == top.version else self._log.at(version, top.at)
        if found is None or version > top.version:
            raise InvalidInput(
                f"version {version} is not available: the newest is {top.version}, and metadata files of "
                "earlier ones may have been cleaned up",
                version=version,
            )
        return self._snapshot(found)

    def at_time(self, timestamp_ms: int) -> IcebergSnapshot:
        top = self._newest()
        version = version_at(self._log, top, timestamp_ms)
        if version is None:
            raise InvalidInput(
                "no version of the table is as old as this time; it is newer, or its log was cleaned up"
            )
        return top if version == top.version else self.at_version(version)

    def history(
        self, limit: int | None = None, before: int | None = None, *, brief: bool = False
    ) -> Sequence[HistoryEntry]:
        """The versions whose metadata still exists, newest first."""
        return history(self._log, self._environment, self._newest(), limit, before, brief)

    def first(
        self,
        schema: pa.Schema,
        partition_by: Sequence[PartitionField],
        properties: Mapping[str, str],
        comment: str | None,
    ) -> Change:
        if self._log.keeper is Keeper.CATALOG:
            raise Unsupported(
                "LakeVilla cannot create tables in catalogs: create it with another client of the catalog, "
                "then call lake.register(name, catalog=..., table=...)"
            )
        return create_table(
            schema,
            partition_by=partition_by,
            properties=properties,
            comment=comment,
            location=location_of(self._store.url),
            now_ms=self._environment.now_ms(),
            new_id=self._environment.new_id,
        )

    def describe(self, first: Change) -> IcebergSnapshot:
        return self._snapshot(Version.not_made(first.metadata))

    def encode_first(self, first: Change, author: Author) -> bytes:
        return encode_first(self.describe(first), first, author, self._environment)

    def publish_first(self, data: bytes, attempt: str) -> bool:
        return publish_first(self._log, self._store, self._environment, data, attempt)

    def publish_notice(self, base: int, notice: Notice, txn: str, attempt: str) -> tuple[int, str] | None:
        author = Author(txn, attempt, self._environment.new_id())
        known = self._at_or_after(base)
        return publish_notice(self._log, self._store, self._environment, known, notice, author)

    def alter(self, snapshot: IcebergSnapshot, action: Action) -> Change:
        change = alter(snapshot.raw, action)
        if self._log.keeper is Keeper.CATALOG and markers_in_log(properties(change.metadata)):
            raise Unsupported(NO_MARKERS)
        if self._log.keeper is Keeper.CATALOG and "format-version" in change.metadata:
            raise Unsupported(
                "LakeVilla does not upgrade tables in catalogs: let another client of the catalog do that"
            )
        return change

    def replace(
        self,
        snapshot: IcebergSnapshot,
        schema: pa.Schema,
        partition_by: Sequence[PartitionField],
        properties: Mapping[str, str] | None,
        comment: str | None,
    ) -> Change:
        return replace_definition(snapshot.raw, schema, partition_by, properties, comment)

    def changes(self, base: IcebergSnapshot, until: int) -> list[VersionChange]:
        return row_changes(base, [taken for taken in self.since(base) if taken.footprint.version <= until])

    def feed_files(self, snapshot: IcebergSnapshot, feed: Sequence[WrittenFile]) -> list[DataFile]:  # noqa: ARG002
        """A snapshot of Iceberg names no such files."""
        return []

    def masks(self, snapshot: IcebergSnapshot, operation: str) -> IcebergRowMasks | None:
        wanted = wants_deletes(snapshot, operation)
        return IcebergRowMasks(snapshot, self._environment) if wanted else None

    def publish(self, base: IcebergSnapshot, change: Change, author: Author) -> Published | Taken:
        looked_at = self.look(base)
        answer = publish(self._log, self._store, self._environment, looked_at, change, author)
        if isinstance(answer, Taken):
            self._looked_at(base)
        elif was_slow(self._environment, looked_at.seen_at) and base.at.is_made:
            version = answer.snapshot.version
            retract = partial(self.retract, version, author.put, displaced=True)
            has_base = partial(self._has_beside, base, version)
            confirm_published(self._store.url, base.version, version, author, has_base, retract)
        return answer

    def _has_beside(self, base: IcebergSnapshot, version: int) -> bool:
        """The same as `has`, if this version, which has the id of the table too, is ours."""
        return self.has(base) and (not self._log.is_alone(version) or self._is_intact_alone(version))

    def log_markers(self, snapshot: IcebergSnapshot) -> LogMarkers | None:
        """A catalog decides versions: no client can hold one there."""
        if snapshot.at.keeper is not Keeper.FILES:
            return None
        entries = IcebergMarkerEntries(self._store, self._environment, snapshot.at)
        return LogMarkers(entries, partial(fill, self._store, self._environment, snapshot))

    def preview(self, base: IcebergSnapshot, change: Change) -> IcebergSnapshot:
        return changes.preview(base, change)

    def footprint(self, base: IcebergSnapshot, change: Change) -> Footprint:
        return footprint_of_change(base, change)

    def shrunk(self, base: IcebergSnapshot, change: Change) -> Mapping[str, Callable[[], Shrunk]]:  # noqa: ARG002
        """None: conflicts of these tables are decided by whole files."""
        return {}

    def inverse(self, base: IcebergSnapshot, change: Change, author: Author) -> Change:  # noqa: ARG002
        return changes.inverse(base, change)

    def restore(self, now: IcebergSnapshot, then: IcebergSnapshot) -> Change:
        return restore(now, then)

    def encode_change(self, base: IcebergSnapshot, change: Change) -> Mapping[str, Any]:
        return changes.encode_change(base, change)

    def decode_change(self, record: Mapping[str, Any]) -> Change:
        return changes.decode_change(record)

    def since(self, base: IcebergSnapshot) -> list[Taken]:
        before, versions = self._follow(base)
        found = []
        for version in versions:
            after = before.advance(version)
            try:
                found.append(Taken(footprint_of(before, after), after))
            except Gone as error:
                raise Expired(
                    f"what was committed to the table at {self._store.url} after version {before.version} is "
                    f"not known any more: {error}. Nothing was changed; run the transaction again"
                ) from error
            before = after
        return found

    def look(self, snapshot: IcebergSnapshot) -> IcebergSnapshot:
        due = must_look_before_publish(self._environment, snapshot.seen_at, self._store.url)
        return self._looked_at(snapshot) if due else snapshot

    def has(self, snapshot: IcebergSnapshot) -> bool:
        return self._log.has(snapshot.at)

    def missing(self, files: Sequence[WrittenFile], published: IcebergSnapshot | None = None) -> list[str]:
        keys = [key for file in files for key in keys_of(file)]
        if published is not None:
            keys += published.metadata_keys()
        return missing(self._environment, list(dict.fromkeys(keys)), self._place)

    def retract(self, version: int, put: str | None, orphaned: bool = False, displaced: bool = False) -> bool:
        if not (orphaned or displaced) and self._is_intact_alone(version):
            return False
        return self._log.retract(version, put, orphaned, displaced)

    def _is_intact_alone(self, version: int) -> bool:
        """Whether this is the only version, with all that it needs: then earlier metadata files were cleaned
        up, and the table was not deleted."""
        found = self._log.alone(version) if self._log.is_alone(version) else None
        if found is None or current_snapshot(found.raw) is None:
            return False
        snapshot = self._snapshot(found)
        try:
            keys = [snapshot.places.key_of(manifest.path) for manifest in snapshot.manifests]
        except Gone:
            return False
        return not missing(self._environment, keys, self._place)

    def written(self) -> Mapping[int, int]:
        """In a catalog, metadata files may have the times of their writers."""
        newest = self._newest().at
        return self._log.written(newest) if newest.keeper is Keeper.FILES else {}

    def is_dropped_without(self, attempt: str, base: int) -> bool:
        return self._log.is_dropped_without(attempt, base)

    def is_stale(self, version: int) -> bool:
        newest = self.latest()
        if newest is None or newest.coordination.markers_in_log or self._is_intact_alone(version):
            return False
        return self._log.is_stale(version)

    def references(
        self, snapshot: IcebergSnapshot, since_ms: int, also: Collection[int] = ()
    ) -> IcebergReferences:
        return IcebergReferences.read(self._log, snapshot, since_ms, also)

    def expiry(self, snapshot: IcebergSnapshot, since_ms: int, also: Collection[int] = ()) -> Change | None:
        needed = set()
        if snapshot.coordination.markers_in_log:
            # That would be a commit that holds no version.
            return None
        for version in also:
            found = self._log.at(version, snapshot.at)
            current = None if found is None else current_snapshot(found.raw)
            needed |= set() if current is None else {current["snapshot-id"]}
        return expire(snapshot.raw, since_ms, needed)

    def expired_log(
        self,
        snapshot: IcebergSnapshot,  # noqa: ARG002
        now_ms: int,  # noqa: ARG002
        least_ms: int,  # noqa: ARG002
        also: Collection[int] = (),  # noqa: ARG002
    ) -> list[list[Meta]]:
        """Metadata files are data files in vacuum's eyes."""
        return []

    def maintain(self, snapshot: IcebergSnapshot) -> None:
        """The commit is valid without the hint."""
        self._log.leave_hint(snapshot.at)

    def renew_hint(self, snapshot: IcebergSnapshot) -> None:
        """Only of a table that we write."""
        if snapshot.at.keeper is Keeper.FILES and not snapshot.places.moved:
            self._log.renew_hint(snapshot.at)

    def _at_or_after(self, version: int) -> IcebergSnapshot:
        """This version, or the newest one if the metadata of this one was cleaned up."""
        newest = self._newest()
        found = self._log.at(version, newest.at)
        if newest.version < version:
            raise Corrupt(
                f"version {version} of the table in {self._store.url} is not available any more",
                version=version,
            )
        return newest if found is None else self._snapshot(found)

    def _follow(self, base: IcebergSnapshot) -> tuple[IcebergSnapshot, list[Version]]:
        """The versions after this one, in the same round as a look at it if that is due. Recreated if they
        are of another table, or it is not a version of the table here any more."""
        after = partial(self._log.follow, base.at)
        versions: list[Version]
        if must_look(self._environment, base.seen_at):
            tasks: list[Callable[[], Any]] = [after, partial(self._looked_at, base)]
            versions, base = self._environment.fan_out(tasks)
        else:
            versions = after()
        # A table that is only described has no version yet: one made there first is a conflict.
        known = base.table_id if base.at.is_made else ""
        if known and any(table_id(version.raw) != known for version in versions):
            raise recreated(self._store.url, base.version)
        return base, versions

    def _looked_at(self, base: IcebergSnapshot) -> IcebergSnapshot:
        """This version, seen once more to be one of the table here; Recreated if it is not."""
        now = self._environment.elapsed()
        if base.at.is_made and not self.has(base):
            raise recreated(self._store.url, base.version)
        return replace(base, seen_at=now)

    def _newest(self) -> IcebergSnapshot:
        found = self.latest()
        if found is None:
            raise InvalidInput(f"no Iceberg table found in {self._store.url}")
        return found

    def _snapshot(self, version: Version) -> IcebergSnapshot:
        places = Places(version.raw["location"], self._store.url)
        context = TableContext(
            self._store.url, lambda path: self._place(places.key_of(path)), self._environment
        )
        return IcebergSnapshot.of(version, context, self._environment.elapsed())

    def _place(self, key: str) -> tuple[Store, str]:
        return located(key, self._store, self._opener)
