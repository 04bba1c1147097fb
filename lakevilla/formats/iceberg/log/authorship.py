"""Which client wrote a version of an Iceberg table: our part of its metadata.

The table property `lakevilla.commit` holds a JSON object with the attempt by which recovery recognises a
commit. Legacy clients copy it into the versions that they write, so it names the version that it belongs to:
in later versions only the newest ticket, slot and notice are still true.

A marker (placement `log`) is a version with the state of an earlier one, where this property says so.
"""

import json
from collections.abc import Mapping
from typing import Any

from lakevilla.formats.authorship import ENGINE, Ours, marked, marker_operation, signed
from lakevilla.formats.iceberg.metadata.document import Raw, properties
from lakevilla.model import Author, Change

COMMIT = "lakevilla.commit"
_STAYS = ("ticket", "slot", "notice")

Info = Ours


def commit_info(raw: Raw) -> Info:
    """What the metadata says about our commits, of this or an earlier version; empty if nothing."""
    text = properties(raw).get(COMMIT)
    if text is None:
        return {}
    try:
        info = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        # It is another client's property of the same name.
        return {}
    return info if isinstance(info, dict) else {}


def newest(info: Info) -> Info:
    """The newest ticket, slot and notice of the table, which stay true in versions of others."""
    found = info.get("newest")
    return found if isinstance(found, dict) else {}


def make_info(
    change: Change,
    author: Author,
    version: int,
    before: Raw | None,
    now_ms: int,
    snapshot_id: int | None = None,
) -> str:
    """The property's text for a version that makes this change; `before` is the version before it, and
    `snapshot_id` is the snapshot that it adds, if it adds one."""
    ours = signed(author, change.notice)
    info: dict[str, Any] = {
        "version": version,
        **ours,
        "timestamp": now_ms,
        "operation": change.operation,
        "parameters": dict(change.parameters),
        "metrics": {name: str(value) for name, value in change.metrics.items()},
        "engine": ENGINE,
    }
    if snapshot_id is not None:
        info["snapshot"] = snapshot_id
    known = {} if before is None else newest(commit_info(before))
    stays = {name: value for name, value in {**known, **ours}.items() if name in _STAYS}
    return json.dumps({**info, "newest": {"ticket": 0, "slot": 0, **stays}}, separators=(",", ":"))


def as_marker(record: Mapping[str, Any], version: int, state: Raw, state_of: int) -> Raw:
    """The metadata of a version that is this marker: all that it shows is the state of version `state_of`,
    whose metadata is `state`."""
    info = {
        "version": version,
        **marked(record),
        "state_of": state_of,
        "timestamp": record["claimed_ms"],
        "operation": marker_operation(record),
        "engine": ENGINE,
        "newest": {"ticket": 0, "slot": 0, **newest(commit_info(state))},
    }
    return {**state, "properties": {**properties(state), COMMIT: json.dumps(info, separators=(",", ":"))}}


def state_shown(info: Info) -> int:
    """Of which version a marker shows the state; -1 if it does not say."""
    found = info.get("state_of")
    return found if isinstance(found, int) else -1
