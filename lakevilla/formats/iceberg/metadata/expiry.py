"""Snapshots that are not needed any more leave the table's metadata, before vacuum takes their files.

Kept are the current snapshot, those of branches and tags, those younger than the retention, and the one that
was current when the retention began; and as many as the table itself wants to keep.
"""

from collections.abc import Collection

from lakevilla.formats.iceberg.definition.properties import whole_number
from lakevilla.formats.iceberg.metadata.document import Raw, properties
from lakevilla.formats.iceberg.versions import history_of
from lakevilla.model import Change

_AT_LEAST = "history.expire.min-snapshots-to-keep"


def expire(raw: Raw, since_ms: int, also: Collection[int]) -> Change | None:
    """The change that forgets earlier snapshots; None if there is nothing to forget. `also` are the ids of
    snapshots that are still needed."""
    snapshots = list(raw.get("snapshots") or ())
    kept = {raw.get("current-snapshot-id"), *also}
    kept |= {ref["snapshot-id"] for ref in (raw.get("refs") or {}).values()}
    by_age = sorted(snapshots, key=lambda snapshot: snapshot["timestamp-ms"])
    kept |= {one["snapshot-id"] for one in by_age if one["timestamp-ms"] >= since_ms}
    kept |= {one["snapshot-id"] for one in [s for s in by_age if s["timestamp-ms"] < since_ms][-1:]}
    fewest = whole_number(properties(raw), _AT_LEAST, 1)
    kept |= {one["snapshot-id"] for one in by_age[-fewest:]} if fewest else set()
    if all(snapshot["snapshot-id"] in kept for snapshot in snapshots):
        return None
    left = [snapshot for snapshot in snapshots if snapshot["snapshot-id"] in kept]
    metadata = {
        "snapshots": left,
        "snapshot-log": history_of(left, raw.get("snapshot-log") or ()),
    }
    for key in ("statistics", "partition-statistics"):
        if key in raw:
            metadata[key] = [one for one in raw[key] if one["snapshot-id"] in kept]
    return Change("EXPIRE SNAPSHOTS", {"expired": str(len(snapshots) - len(left))}, metadata=metadata)
