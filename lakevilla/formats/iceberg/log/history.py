"""The versions of an Iceberg table for people, and which of them was current at a time."""

from collections.abc import Iterable, Sequence
from functools import partial

from lakevilla.answers import HistoryEntry
from lakevilla.environment import Environment
from lakevilla.formats import authorship
from lakevilla.formats.iceberg.log.footprint import changed_files, operation_and_engine
from lakevilla.formats.iceberg.log.versions import Log
from lakevilla.formats.iceberg.manifests.cache import Gone
from lakevilla.formats.iceberg.metadata.paths import metadata_name
from lakevilla.formats.iceberg.snapshot import IcebergSnapshot


def history(
    log: Log,
    environment: Environment,
    newest: IcebergSnapshot,
    limit: int | None,
    before: int | None = None,
    brief: bool = False,
) -> Sequence[HistoryEntry]:
    """The versions below `before` whose metadata still exists, newest first; unless it is brief, with the
    files that came and went, for those whose manifests still exist."""
    numbers = sorted(log.written(newest.at), reverse=True)
    wanted = [n for n in numbers if n <= newest.version and (before is None or n < before)]
    # One more than is returned: what a version did is its difference to the one before.
    some = wanted if limit is None else wanted[: limit + 1]
    read = environment.fan_out([partial(log.at, number, newest.at) for number in some])
    versions = [version for version in read if version is not None]
    snapshots = [
        newest.advance(version) if version.number != newest.version else newest for version in versions
    ]
    listed = snapshots if limit is None else snapshots[:limit]
    previous: list[IcebergSnapshot | None] = [*snapshots[1:], None]
    pairs = zip(listed, previous[: len(listed)], strict=True)
    return environment.fan_out([partial(_entry, snapshot, last, brief) for snapshot, last in pairs])


def version_at(log: Log, newest: IcebergSnapshot, timestamp_ms: int) -> int | None:
    """The newest version that was committed at or before this time, among existing metadata files."""
    if newest.timestamp_ms <= timestamp_ms:
        return newest.version
    raw = newest.raw
    for entry in reversed(raw.get("metadata-log") or ()):
        name = metadata_name(str(entry["metadata-file"]))
        if name is not None and entry["timestamp-ms"] <= timestamp_ms:
            return name.version
    return _search(log, newest, timestamp_ms)


def _search(log: Log, newest: IcebergSnapshot, timestamp_ms: int) -> int | None:
    """The same for versions that the newest does not list any more: times grow with versions."""
    numbers = [number for number in log.written(newest.at) if number < newest.version]
    low, high = 0, len(numbers)
    while low < high:
        middle = (low + high) // 2
        version = log.at(numbers[middle], newest.at)
        time = None if version is None else version.raw.get("last-updated-ms")
        if isinstance(time, int) and time <= timestamp_ms:
            low = middle + 1
        else:
            high = middle
    return numbers[low - 1] if low else None


def _entry(snapshot: IcebergSnapshot, before: IcebergSnapshot | None, brief: bool) -> HistoryEntry:
    info = snapshot.at.info
    operation, engine = operation_and_engine(before, snapshot)
    removed, added = ((), ()) if brief else _files(before, snapshot)
    return HistoryEntry(
        version=snapshot.version,
        timestamp_ms=snapshot.timestamp_ms,
        operation=operation,
        parameters=authorship.texts(info.get("parameters")),
        metrics=authorship.texts(info.get("metrics")),
        engine=engine,
        txn=authorship.txn_of(info),
        attempt=authorship.attempt_of(info),
        slot=authorship.slot_of(info),
        added=tuple(added),
        removed=tuple(removed),
    )


def _files(before: IcebergSnapshot | None, snapshot: IcebergSnapshot) -> tuple[Iterable[str], Iterable[str]]:
    if before is None:
        return (), ()
    try:
        return changed_files(before, snapshot)
    except Gone:
        # Snapshots that were expired take their manifests with them.
        return (), ()
