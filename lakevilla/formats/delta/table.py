"""One Delta table behind the format port: versions and their history, found in its log."""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa

from lakevilla.answers import HistoryEntry
from lakevilla.environment import Environment
from lakevilla.errors import Corrupt, InvalidInput, LakeVillaError
from lakevilla.formats.conditional_commit import missing
from lakevilla.formats.delta.changes import (
    decode_change,
    encode_change,
    inverse,
    keys_of,
    unpublished,
    vector_keys,
)
from lakevilla.formats.delta.checkpoints.schedule import is_considered
from lakevilla.formats.delta.checkpoints.writer import delete_checkpoint, write_if_due
from lakevilla.formats.delta.definition.alter import alter
from lakevilla.formats.delta.definition.create import create_table
from lakevilla.formats.delta.definition.replace import replace_definition
from lakevilla.formats.delta.history import history_entry
from lakevilla.formats.delta.log.actions import Commit
from lakevilla.formats.delta.log.encode import is_pending
from lakevilla.formats.delta.log.expired_files import find_expired
from lakevilla.formats.delta.log.footprint import footprint_of
from lakevilla.formats.delta.log.listing import Listing, adjusted_times, list_log, newest_at
from lakevilla.formats.delta.log.load import follow, is_displaced, is_same, open_state, read_entry
from lakevilla.formats.delta.log.markers import DeltaMarkerEntries, fill
from lakevilla.formats.delta.log.publish import (
    encode_first,
    is_stale,
    publish,
    publish_first,
    publish_notice,
    retract,
)
from lakevilla.formats.delta.log.references import DeltaReferences
from lakevilla.formats.delta.log.replay import State
from lakevilla.formats.delta.restore import restore
from lakevilla.formats.delta.row_changes import shrunk_by
from lakevilla.formats.delta.row_masks import DeltaRowMasks, wants_vectors
from lakevilla.formats.delta.snapshot import DeltaSnapshot
from lakevilla.formats.delta.version_changes import changes, feed_files
from lakevilla.formats.identity import (
    Recreated,
    confirm_published,
    must_look,
    must_look_before_publish,
    recreated,
    was_slow,
)
from lakevilla.formats.port import LogMarkers, Published, Taken
from lakevilla.formats.port_parts.row_changes import VersionChange
from lakevilla.formats.urls import Opener, located
from lakevilla.model import Author, Change, DataFile, Footprint, Notice, PartitionField, Shrunk, WrittenFile
from lakevilla.sql.statements import Action
from lakevilla.store.port import Meta, Store

logger = logging.getLogger("lakevilla.delta")


class DeltaTable:
    """A Delta table at a store's root. `opener` finds stores of data files that are elsewhere."""

    data_folder = ""
    first_version = 0

    def __init__(self, store: Store, environment: Environment, opener: Opener) -> None:
        self._store = store
        self._environment = environment
        self._opener = opener

    def open(self, file: DataFile) -> tuple[Store, str]:
        return self._locate(file.key)

    def latest(self, base: DeltaSnapshot | None = None) -> DeltaSnapshot | None:
        if base is not None:
            known, commits = self._follow(base)
            return known.advance(commits)
        now = self._environment.elapsed()
        state = open_state(self._store, self._environment)
        return None if state is None else self._snapshot(state, now)

    def at_version(self, version: int) -> DeltaSnapshot:
        if version < 0:
            raise InvalidInput(f"a version cannot be negative; found {version}")
        now = self._environment.elapsed()
        state = open_state(self._store, self._environment, version)
        if state is None:
            raise InvalidInput(f"no Delta table found in {self._store.url}")
        return self._snapshot(state, now)

    def at_time(self, timestamp_ms: int) -> DeltaSnapshot:
        newest = self.latest()
        if newest is None:
            raise InvalidInput(f"no Delta table found in {self._store.url}")
        listing = list_log(self._store)
        version = self._version_at(newest, listing, timestamp_ms)
        oldest = listing.oldest()
        if version is None or oldest is None or version < oldest:
            raise InvalidInput(
                "no version of the table is as old as this time; it is newer, or its log was cleaned up"
            )
        # Pending markers are above the newest version.
        return newest if version >= newest.version else self.at_version(version)

    def history(
        self,
        limit: int | None = None,
        before: int | None = None,
        *,
        brief: bool = False,  # noqa: ARG002
    ) -> Sequence[HistoryEntry]:
        """The versions whose entries still exist, newest first; nothing from a pending marker on."""
        commits = list_log(self._store).commits
        times = dict(adjusted_times(commits))
        versions = [v for v in sorted(commits, reverse=True) if before is None or v < before]
        found: list[HistoryEntry] = []
        while versions and (limit is None or len(found) < limit):
            some = versions if limit is None else versions[: limit - len(found)]
            versions = versions[len(some) :]
            entries = self._environment.fan_out([self._entry_task(version) for version in some])
            for version, commit in zip(some, entries, strict=True):
                if commit is not None and is_pending(commit.info):
                    found = []
                elif commit is not None:
                    found.append(history_entry(commit, times[version]))
        return found

    def first(
        self,
        schema: pa.Schema,
        partition_by: Sequence[PartitionField],
        properties: Mapping[str, str],
        comment: str | None,
    ) -> Change:
        return create_table(
            schema,
            partition_columns=_columns(partition_by),
            properties=properties,
            comment=comment,
            now_ms=self._environment.now_ms(),
            new_id=self._environment.new_id,
        )

    def describe(self, first: Change) -> DeltaSnapshot:
        return self._snapshot(State(-1, first.protocol, first.metadata), self._environment.elapsed())

    def encode_first(self, first: Change, author: Author) -> bytes:
        return encode_first(first, author)

    def publish_first(self, data: bytes, attempt: str) -> bool:
        return publish_first(self._store, data, attempt)

    def publish_notice(self, base: int, notice: Notice, txn: str, attempt: str) -> tuple[int, str] | None:
        author = Author(txn, attempt, self._environment.new_id())
        return publish_notice(self._store, self._environment, base, notice, author)

    def alter(self, snapshot: DeltaSnapshot, action: Action) -> Change:
        return alter(snapshot, action, self._environment.new_id)

    def replace(
        self,
        snapshot: DeltaSnapshot,
        schema: pa.Schema,
        partition_by: Sequence[PartitionField],
        properties: Mapping[str, str] | None,
        comment: str | None,
    ) -> Change:
        return replace_definition(
            snapshot,
            schema,
            partition_columns=_columns(partition_by),
            properties=properties,
            comment=comment,
            new_id=self._environment.new_id,
        )

    def changes(self, base: DeltaSnapshot, until: int) -> list[VersionChange]:
        return changes(self._store, self._environment, base, until)

    def feed_files(self, snapshot: DeltaSnapshot, feed: Sequence[WrittenFile]) -> list[DataFile]:
        return feed_files(snapshot, feed)

    def masks(self, snapshot: DeltaSnapshot, operation: str) -> DeltaRowMasks | None:  # noqa: ARG002
        return DeltaRowMasks(snapshot, self._environment) if wants_vectors(snapshot) else None

    def publish(self, base: DeltaSnapshot, change: Change, author: Author) -> Published | Taken:
        looked_at = self.look(base)
        answer = publish(self._store, self._environment, looked_at, change, author)
        if isinstance(answer, Taken):
            self._looked_at(base)
        elif was_slow(self._environment, looked_at.seen_at) and base.version >= 0:
            version = answer.snapshot.version
            retract = partial(self.retract, version, author.put, displaced=True)
            confirm_published(
                self._store.url, base.version, version, author, partial(self.has, base), retract
            )
        return answer

    def log_markers(self, snapshot: DeltaSnapshot) -> LogMarkers:
        filled = partial(fill, self._store, self._environment, snapshot)
        return LogMarkers(DeltaMarkerEntries(self._store), filled)

    def preview(self, base: DeltaSnapshot, change: Change) -> DeltaSnapshot:
        return base.advance([unpublished(base, change, self._environment.now_ms())])

    def footprint(self, base: DeltaSnapshot, change: Change) -> Footprint:
        return footprint_of(unpublished(base, change, self._environment.now_ms()), base)

    def shrunk(self, base: DeltaSnapshot, change: Change) -> Mapping[str, Callable[[], Shrunk]]:
        return shrunk_by(change, base)

    def inverse(self, base: DeltaSnapshot, change: Change, author: Author) -> Change:
        return inverse(base, change, self._environment.now_ms(), author)

    def restore(self, now: DeltaSnapshot, then: DeltaSnapshot) -> Change:
        return restore(now, then)

    def encode_change(self, base: DeltaSnapshot, change: Change) -> Mapping[str, Any]:
        return encode_change(base, change, self._environment.now_ms())

    def decode_change(self, record: Mapping[str, Any]) -> Change:
        return decode_change(record, self._store.url)

    def since(self, base: DeltaSnapshot) -> list[Taken]:
        before, commits = self._follow(base)
        found = []
        for commit in commits:
            after = before.advance([commit])
            found.append(Taken(footprint_of(commit, before), after))
            before = after
        return found

    def look(self, snapshot: DeltaSnapshot) -> DeltaSnapshot:
        due = must_look_before_publish(self._environment, snapshot.seen_at, self._store.url)
        return self._looked_at(snapshot) if due else snapshot

    def has(self, snapshot: DeltaSnapshot) -> bool:
        rewritten = snapshot.coordination.markers_in_log
        return is_same(self._store, self._environment, snapshot.state, rewritten=rewritten)

    def missing(self, files: Sequence[WrittenFile], published: DeltaSnapshot | None = None) -> list[str]:
        root = self._store.url
        keys = [key for file in files for key in keys_of(file, root)]
        if published is not None:
            # Vectors that were merged for this version.
            paths = {file.entry["path"] for file in files if file.entry is not None}
            merged = [add for add in published.state.added.values() if add["path"] in paths]
            keys += [key for add in merged for key in vector_keys(add, root)]
        return missing(self._environment, list(dict.fromkeys(keys)), self._locate)

    def retract(self, version: int, put: str | None, orphaned: bool = False, displaced: bool = False) -> bool:
        return retract(self._store, version, put, orphaned, displaced)

    def written(self) -> Mapping[int, int]:
        """One LIST."""
        return {version: meta.modified_ms for version, meta in list_log(self._store).commits.items()}

    def is_dropped_without(self, attempt: str, base: int) -> bool:  # noqa: ARG002 - the port's signature
        """No catalog drops it."""
        return False

    def is_stale(self, version: int) -> bool:
        newest = self.latest()
        return (
            newest is not None and not newest.coordination.markers_in_log and is_stale(self._store, version)
        )

    def references(
        self, snapshot: DeltaSnapshot, since_ms: int, also: Collection[int] = ()
    ) -> DeltaReferences:
        return DeltaReferences.read(self._store, self._environment, snapshot, since_ms, also, self.at_version)

    def expiry(self, snapshot: DeltaSnapshot, since_ms: int, also: Collection[int] = ()) -> None:
        """A Delta log holds no older state than its checkpoint."""

    def expired_log(
        self, snapshot: DeltaSnapshot, now_ms: int, least_ms: int, also: Collection[int] = ()
    ) -> list[list[Meta]]:
        own_ms = snapshot.log_retention_ms
        if own_ms is None:
            return []
        since_ms = now_ms - max(own_ms, least_ms)
        return find_expired(self._store, self._environment, snapshot, since_ms, also)

    def maintain(self, snapshot: DeltaSnapshot) -> None:
        """Write the checkpoint if this version is due. The commit is valid without it.

        A checkpoint hides every entry below it. So one that was written late is deleted again if the log is
        another table's by then.
        """
        if not is_considered(snapshot.version, snapshot.properties):
            return
        try:
            due = must_look(self._environment, snapshot.seen_at)
            seen_at = (self._looked_at(snapshot) if due else snapshot).seen_at
            key = write_if_due(self._store, self._environment, snapshot)
            late = was_slow(self._environment, seen_at)
            if key is not None and late and is_displaced(self._store, snapshot.state):
                delete_checkpoint(self._store, key)
                logger.warning("%s was deleted or recreated: %s is deleted again", self._store.url, key)
        except Recreated:
            logger.warning("%s was deleted or recreated: it gets no checkpoint", self._store.url)
        except (LakeVillaError, pa.ArrowException) as error:
            logger.warning("version %d of %s has no checkpoint: %s", snapshot.version, self._store.url, error)

    def renew_hint(self, snapshot: DeltaSnapshot) -> None:
        """Readers list the entries above the last checkpoint: they need no hint."""

    def _follow(self, base: DeltaSnapshot) -> tuple[DeltaSnapshot, list[Commit]]:
        """The entries after this version, in the same round as a look at it if that is due. Recreated if it
        is not a version of the table here any more."""
        after = partial(follow, self._store, self._environment, base.version + 1)
        if not must_look(self._environment, base.seen_at):
            # Entries of another table in the same place look like those that would follow.
            commits = after()
            return (self._looked_at(base) if commits else base), commits
        tasks: list[Callable[[], Any]] = [after, partial(self._looked_at, base)]
        found, looked_at = self._environment.fan_out(tasks)
        return looked_at, found

    def _looked_at(self, base: DeltaSnapshot) -> DeltaSnapshot:
        """This version, seen once more to be one of the table here; Recreated if it is not."""
        now = self._environment.elapsed()
        if base.version >= 0 and not self.has(base):
            raise recreated(self._store.url, base.version)
        return replace(base, seen_at=now)

    def _snapshot(self, state: State, seen_at: float) -> DeltaSnapshot:
        return replace(DeltaSnapshot.of(state, self._store, self._locate), seen_at=seen_at)

    def _locate(self, key: str) -> tuple[Store, str]:
        return located(key, self._store, self._opener)

    def _entry_task(self, version: int) -> Callable[[], Commit | None]:
        return lambda: read_entry(self._store, version)

    def _version_at(self, newest: DeltaSnapshot, listing: Listing, timestamp_ms: int) -> int | None:
        """The newest version at or before this time, by the clock that the table keeps."""
        if not newest.layout.in_commit_timestamps:
            return newest_at(adjusted_times(listing.commits), timestamp_ms)
        since = _number(newest, "delta.inCommitTimestampEnablementVersion")
        since_ms = _number(newest, "delta.inCommitTimestampEnablementTimestamp")
        if timestamp_ms < since_ms:
            older = {version: meta for version, meta in listing.commits.items() if version < since}
            return newest_at(adjusted_times(older), timestamp_ms)
        return self._search(sorted(v for v in listing.commits if v >= since), timestamp_ms)

    def _search(self, versions: list[int], timestamp_ms: int) -> int | None:
        """In-commit timestamps grow with versions, so a few entries are enough to find one."""
        low, high = 0, len(versions)
        while low < high:
            middle = (low + high) // 2
            commit = read_entry(self._store, versions[middle])
            time = None if commit is None else (commit.info or {}).get("inCommitTimestamp")
            if not isinstance(time, int):
                raise Corrupt(
                    f"entry {versions[middle]} of the Delta log has no timestamp",
                    version=versions[middle],
                )
            low, high = (middle + 1, high) if time <= timestamp_ms else (low, middle)
        return versions[low - 1] if low else None


def _columns(partition_by: Sequence[PartitionField]) -> list[str]:
    """The partition columns, or InvalidInput: Delta divides files by nothing else."""
    for field in partition_by:
        if field.transform != "identity" or len(field.source) != 1:
            raise InvalidInput(
                f"a Delta table cannot be partitioned by {field.transform} of {'.'.join(field.source)!r}, "
                "only by columns: use an Iceberg table for that"
            )
    return [field.source[0] for field in partition_by]


def _number(snapshot: DeltaSnapshot, key: str) -> int:
    text = snapshot.properties.get(key, "0")
    if not text.isdecimal():
        raise Corrupt(f"the table property {key!r} must be a number; found {text!r}")
    return int(text)
