"""Who wrote a version of an Iceberg table: our part of its metadata.

The table property `lakevilla.commit` holds a JSON object with the attempt by which recovery recognises a
commit. Clients that know nothing of it copy it into the versions that they write, so it names the version
that it belongs to: in any other it tells only what stays true, the newest ticket, slot and notice.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict
from importlib.metadata import version as version_of
from typing import Any

from lakevilla.formats.iceberg.metadata import Raw, properties
from lakevilla.model import Author, Change, Notice

COMMIT = "lakevilla.commit"
ENGINE = f"LakeVilla/{version_of('lakevilla')}"
FORMAT = 1

Info = Mapping[str, Any]


def told(raw: Raw) -> Info:
    """What the metadata says of our commits, of whichever version; empty if nothing."""
    text = properties(raw).get(COMMIT)
    if text is None:
        return {}
    try:
        info = json.loads(text)
    except ValueError:
        # Somebody else's property of that name says nothing to us.
        return {}
    return info if isinstance(info, dict) else {}


def make_info(
    change: Change,
    author: Author,
    version: int,
    before: Raw | None,
    now_ms: int,
    snapshot_id: int | None = None,
) -> str:
    """The property's text for a version that makes this change; `before` is the version before it, and
    `snapshot_id` tells the snapshot that it brings, if it does."""
    info: dict[str, Any] = {
        "format": FORMAT,
        "version": version,
        "txn": author.txn,
        "attempt": author.attempt,
        "put": author.put,
        "timestamp": now_ms,
        "operation": change.operation,
        "parameters": dict(change.parameters),
        "metrics": {name: str(value) for name, value in change.metrics.items()},
        "engine": ENGINE,
    }
    if snapshot_id is not None:
        info["snapshot"] = snapshot_id
    known = {} if before is None else told(before)
    newest = {
        "ticket": author.ticket if author.ticket is not None else newest_ticket(known),
        "slot": author.slot if author.slot is not None else newest_slot(known),
    }
    notice = asdict(change.notice) if change.notice is not None else _newest(known).get("notice")
    if author.ticket is not None:
        info["ticket"] = author.ticket
    if author.slot is not None:
        info["slot"] = author.slot
    if change.notice is not None:
        info["notice"] = notice
    info["newest"] = newest if notice is None else {**newest, "notice": notice}
    return json.dumps(info, separators=(",", ":"))


def attempt_of(info: Info) -> str | None:
    """The attempt that wrote the version; None for markers, and for anybody else's commit."""
    attempt = None if marker_of(info) is not None else info.get("attempt")
    return attempt if isinstance(attempt, str) else None


def txn_of(info: Info) -> str | None:
    """The transaction that wrote the version; None for markers, and for anybody else's commit."""
    txn = None if marker_of(info) is not None else info.get("txn")
    return txn if isinstance(txn, str) else None


def ticket_of(info: Info) -> int:
    """The ticket that the commit used up; 0 if it had none."""
    return _number(info.get("ticket"))


def slot_of(info: Info) -> int:
    """The entry of the global log that decided the commit; 0 if none did."""
    return _number(info.get("slot"))


def newest_ticket(info: Info) -> int:
    return _number(_newest(info).get("ticket"))


def newest_slot(info: Info) -> int:
    return _number(_newest(info).get("slot"))


def notice_of(info: Info) -> Notice | None:
    """What the version says of the table's name, if it is there for that."""
    return _notice(info.get("notice"))


def newest_notice(info: Info) -> Notice | None:
    return _notice(_newest(info).get("notice"))


def marker_of(info: Info) -> Mapping[str, Any] | None:
    """The record of the marker that a version is, pending or freed; None for any other version."""
    match info:
        case {
            "marker": bool(live),
            "txn": str(txn),
            "attempt": str(attempt),
            "put": str(put),
            "claimed_ms": int(claimed_ms),
            "precedes": list(precedes),
        }:
            return {
                "txn": txn,
                "attempt": attempt,
                "put": put,
                "claimed_ms": claimed_ms,
                "live": live,
                "precedes": [str(before) for before in precedes],
            }
    return None


def is_pending(info: Info) -> bool:
    """Whether the version is a marker that still holds its place: nobody reads it, nor what comes after."""
    marker = marker_of(info)
    return marker is not None and bool(marker["live"])


def _newest(info: Info) -> Mapping[str, Any]:
    newest = info.get("newest")
    return newest if isinstance(newest, dict) else {}


def _number(value: Any) -> int:
    return value if isinstance(value, int) else 0


def _notice(value: Any) -> Notice | None:
    match value:
        case {"lake": str(lake), "seq": int(seq), "dropped": bool(dropped)}:
            return Notice(lake, seq, dropped)
    return None
