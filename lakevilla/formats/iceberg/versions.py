"""The metadata of the next version: what a commit adds to that of the version before."""

from collections.abc import Mapping
from typing import Any

from lakevilla.formats.iceberg.metadata import Raw, format_version, properties
from lakevilla.formats.iceberg.properties import PREVIOUS_VERSIONS, whole_number
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
    after["snapshot-log"] = [
        *(raw.get("snapshot-log") or ()),
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


def _log(base: IcebergSnapshot, raw: Raw) -> list[Mapping[str, Any]]:
    """The versions before, as far back as the table wants."""
    kept = max(1, whole_number(properties(raw), PREVIOUS_VERSIONS, _KEPT_VERSIONS))
    this = {
        "metadata-file": base.places.path_of(base.at.key),
        "timestamp-ms": int(base.raw.get("last-updated-ms", 0)),
    }
    return [*(raw.get("metadata-log") or ()), this][-kept:]
