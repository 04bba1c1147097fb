"""What vacuum may delete, decided over columns without I/O.

**Why nothing that is still needed is deleted.** A file goes only if it is older than the retention, by
the store's own clock, and the retention is at least a day. The files are listed before the newest version is
read: what was committed between the two is in that version, and what was uploaded after the listing is not
in it. (The other order would be safe too: a commit that is published between names files that were uploaded
at least a day before, and the client that commits on a premise older than an hour looks first whether its
files are still there.) Right before files are deleted the log is asked once more.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from lakevilla.errors import InvalidInput
from lakevilla.markers.survey import Seen
from lakevilla.store import keys

HOUR_MS = 3_600_000
FLOOR_MS = 24 * HOUR_MS
"""Nothing that a premise may name is deleted within a day (docs/protocol.md, section 1)."""
DEFAULT_MS = 7 * FLOOR_MS


@dataclass(frozen=True, slots=True)
class Sorted:
    """The files that no version needs, by why they are there; tables of `file_listing.FILES`.

    `orphans` have one column more, `txn`.
    """

    expired: pa.Table
    orphans: pa.Table
    foreign: pa.Table


def retention_ms(hours: float | None) -> int | None:
    """A retention that the caller gave, in milliseconds; InvalidInput if it is not valid."""
    if hours is None:
        return None
    if not isinstance(hours, int | float) or isinstance(hours, bool) or not 0 <= hours < 24 * 365 * 1000:
        raise InvalidInput(f"retention_hours must be a number of hours; found {hours!r}")
    if hours * HOUR_MS < FLOOR_MS:
        raise InvalidInput(
            f"retention_hours must be at least 24; found {hours:g}: a running statement or reader may need "
            "files that are younger than a day"
        )
    return int(hours * HOUR_MS)


def sort_files(files: pa.Table, removed: pa.BooleanArray) -> Sorted:
    """Sort files that no version needs. `removed` says which of them the log names."""
    txns = pc.struct_field(pc.extract_regex(files.column("key"), keys.DATA_FILE), "txn")
    ours = pc.is_valid(txns)
    known = files.append_column("txn", txns)
    return Sorted(
        files.filter(removed),
        known.filter(pc.and_not(ours, removed)),
        files.filter(pc.invert(pc.or_(ours, removed))),
    )


def of_transactions(orphans: pa.Table, txns: Iterable[str]) -> pa.BooleanArray:
    """Which of the orphans belong to these transactions."""
    return pc.is_in(orphans.column("txn"), value_set=pa.array(sorted(set(txns)), pa.string()))


def decide_tickets(found: Iterable[Seen], since_ms: int) -> list[int]:
    """The tickets whose markers may go: tombstones that are older than this, but never the highest ticket.

    A client that claims takes the number after the highest that it finds, so no number is used twice as long
    as that one stays. A client that found one of the others free did so before it was first taken, more than
    a day ago, and reads again before it creates anything.
    """
    seen = list(found)
    highest = max((marker.ticket for marker in seen), default=0)
    return [
        marker.ticket
        for marker in seen
        if not marker.marker.live and marker.modified_ms < since_ms and marker.ticket != highest
    ]
