"""The metadata of the next version: what a commit adds to that of the version before, and what it drops.

A commit bounds what only records the past: `metadata-log` by the table's own property, `snapshot-log` by the
snapshots that are left. It never expires snapshots: as for other writers of Iceberg, that is maintenance
(`expiry`).
"""

from collections.abc import Iterable, Mapping
from typing import Any

from lakevilla.formats.iceberg.definition.properties import PREVIOUS_VERSIONS, whole_number
from lakevilla.formats.iceberg.metadata.document import Raw, format_version, properties
from lakevilla.formats.iceberg.snapshot import IcebergSnapshot

_KEPT_VERSIONS = 100


def metadata_after(
    base: IcebergSnapshot, raw: Raw, snapshot: Mapping[str, Any] | None, now_ms: int
) -> dict[str, Any]:
    """The metadata after `base`: `raw` with the snapshot as the current one, if there is one."""
    # Times never go back, so that a time leads to one version.
    time_ms = max(now_ms, int(base.raw.get("last-updated-ms", 0)))
    after = {**raw, "last-updated-ms": time_ms}
    if base.at.is_made:
        after["metadata-log"] = _log(base, raw)
    if snapshot is None:
        return after
    after["snapshots"] = [*(raw.get("snapshots") or ()), snapshot]
    after["current-snapshot-id"] = snapshot["snapshot-id"]
    if "first-row-id" in snapshot:
        after["next-row-id"] = snapshot["first-row-id"] + snapshot["added-rows"]
    after["snapshot-log"] = [
        *history_of(after["snapshots"], raw.get("snapshot-log") or ()),
        {"snapshot-id": snapshot["snapshot-id"], "timestamp-ms": snapshot["timestamp-ms"]},
    ]
    if format_version(raw) > 1:
        after["last-sequence-number"] = snapshot["sequence-number"]
        main = {
            **(raw.get("refs") or {}).get("main", {"type": "branch"}),
            "snapshot-id": snapshot["snapshot-id"],
        }
        after["refs"] = {**(raw.get("refs") or {}), "main": main}
    return after


def history_of(
    snapshots: Iterable[Mapping[str, Any]], log: Iterable[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """A snapshot log as far back as it has no gap, if these are the snapshots that are left.

    An entry says which snapshot was current until the time of the next one. So with an entry go all that come
    before it: a time in a gap would else lead to a snapshot that was not current then.
    """
    known = {snapshot["snapshot-id"] for snapshot in snapshots}
    kept: list[Mapping[str, Any]] = []
    for entry in log:
        if entry.get("snapshot-id") in known:
            kept.append(entry)
        else:
            kept.clear()
    return kept


def _log(base: IcebergSnapshot, raw: Raw) -> list[Mapping[str, Any]]:
    """The versions before, as far back as the table wants."""
    kept = max(1, whole_number(properties(raw), PREVIOUS_VERSIONS, _KEPT_VERSIONS))
    this = {
        "metadata-file": base.places.path_of(base.at.key),
        "timestamp-ms": int(base.raw.get("last-updated-ms", 0)),
    }
    return [*(raw.get("metadata-log") or ()), this][-kept:]
