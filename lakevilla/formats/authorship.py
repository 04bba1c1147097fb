"""Which client wrote a version of a table: our own part of it, which every format keeps in a place of its
own.

It names the transaction and the attempt by which recovery recognises a commit; the put-id makes its bytes
unique. A reader takes nothing on trust: another client may have left anything there.
"""

from collections.abc import Mapping
from dataclasses import asdict
from importlib.metadata import version as version_of
from typing import Any

from lakevilla.model import Author, Change, Notice
from lakevilla.timestamps import utc_text

ENGINE = f"LakeVilla/{version_of('lakevilla')}"
FORMAT = 1
"""The number of our part."""
FREED = "FREED MARKER"
"""The operation of a version whose marker was freed: it stays empty."""

OPTIMIZE = "OPTIMIZE"
"""The operation of a change that keeps all rows as they are, also where a change is stored."""

Ours = Mapping[str, Any]
"""Our part of a version; empty if another client wrote it."""


def keeps_rows(change: Change) -> bool:
    """Whether a change only rewrites files."""
    return change.operation == OPTIMIZE


def signed(author: Author, notice: Notice | None) -> dict[str, Any]:
    """Our part of a version that this author writes."""
    ours: dict[str, Any] = {
        "txn": author.txn,
        "attempt": author.attempt,
        "put": author.put,
        "format": FORMAT,
    }
    if notice is not None:
        ours["notice"] = asdict(notice)
    if author.ticket is not None:
        ours["ticket"] = author.ticket
    if author.slot is not None:
        ours["slot"] = author.slot
    return ours


def marked(record: Mapping[str, Any]) -> dict[str, Any]:
    """Our part of a version that is a marker (placement `log`): `live` as long as it holds its version."""
    author = Author(record["txn"], record["attempt"], record["put"])
    return {
        **signed(author, None),
        "marker": record["live"],
        "claimed_ms": record["claimed_ms"],
        "precedes": list(record["precedes"]),
    }


def marker_of(ours: Ours) -> Mapping[str, Any] | None:
    """The record of the marker that a version is, pending or freed; None for any other version."""
    match ours:
        case {
            "marker": bool(live),
            "txn": str(txn),
            "attempt": str(attempt),
            "put": str(put),
            "claimed_ms": int(claimed_ms),
            "precedes": list(predecessors),
        }:
            return {
                "txn": txn,
                "attempt": attempt,
                "put": put,
                "claimed_ms": claimed_ms,
                "live": live,
                "precedes": [str(before) for before in predecessors],
            }
    return None


def marker_operation(record: Mapping[str, Any]) -> str:
    """The operation that a marker shows, for people."""
    return "MARKER" if record["live"] else FREED


def attempt_of(ours: Ours) -> str | None:
    """The attempt that wrote the version."""
    return _text(ours.get("attempt"))


def put_of(ours: Ours) -> str | None:
    """The put-id of the version."""
    return _text(ours.get("put"))


def txn_of(ours: Ours) -> str | None:
    """The transaction that wrote the version."""
    return _text(ours.get("txn"))


def ticket_of(ours: Ours) -> int:
    """The ticket that the commit used up; 0 if it had none."""
    return _number(ours.get("ticket"))


def slot_of(ours: Ours) -> int:
    """The entry of the global log that decided the commit; 0 if none did."""
    return _number(ours.get("slot"))


def notice_of(ours: Ours) -> Notice | None:
    """What the version says of the table's name, if it is there for that."""
    match ours.get("notice"):
        case {"lake": str(lake), "seq": int(seq), "dropped": bool(dropped)}:
            return Notice(lake, seq, dropped)
    return None


def in_words(version: int, operation: str, engine: str, timestamp_ms: Any, txn: str | None) -> str:
    """A version for people; `timestamp_ms` is left out if it is not a number."""
    words = [operation or "a commit"]
    if engine:
        words.append(f"by {engine}")
    if isinstance(timestamp_ms, int):
        words.append(f"at {utc_text(timestamp_ms)}")
    return f"version {version} ({' '.join(words)}{f', transaction {txn}' if txn else ''})"


def texts(values: Any) -> dict[str, str]:
    """Parameters or metrics of an operation, as a version records them."""
    if not isinstance(values, dict):
        return {}
    return {str(name): str(value) for name, value in values.items()}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _number(value: Any) -> int:
    return value if isinstance(value, int) else 0
