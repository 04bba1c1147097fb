"""All markers of a table, for people and for `recover`: which client holds which ticket, and which owner is
dead.

Wherever they lie: in the table's log, or outside of it.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from lakevilla.environment import Environment
from lakevilla.errors import LakeVillaError
from lakevilla.markers import log
from lakevilla.markers.lease import Leases
from lakevilla.markers.marker_objects import ReadMarker, read_markers, write_tombstone
from lakevilla.markers.records import Marker
from lakevilla.store import keys
from lakevilla.store.port import Store

# A look counts for at most half a lease time (see `Observer.is_stale`).
_LOOKS = 3
_MARGIN_SECONDS = 0.01

_log = logging.getLogger("lakevilla.markers")


@dataclass(frozen=True, slots=True)
class Seen:
    """One marker of a table. `modified_ms` is the store's clock, for people. `entries` is the log that it is
    in; None if it is outside of the log."""

    ticket: int
    marker: Marker
    etag: str
    modified_ms: int
    entries: log.Entries | None = None


def survey(store: Store, environment: Environment) -> list[Seen]:
    """All markers below this table's root, tombstones too, by ticket. One LIST, and one round of GETs."""
    modified = {}
    for meta in store.list(keys.MARKERS):
        ticket = keys.ticket_of(meta.key)
        if ticket is not None:
            modified[ticket] = meta.modified_ms
    found = read_markers(store, environment, sorted(modified))
    return [Seen(read.ticket, read.marker, read.etag, modified[read.ticket]) for read in found]


def survey_log(store: Store, environment: Environment, entries: log.Entries, latest: int) -> list[Seen]:
    """The markers in the table's log after its latest version, freed ones too. One LIST, a round of GETs."""
    modified = entries.taken(latest)
    objects = environment.fan_out([partial(store.get, entries.key(version)) for version in modified])
    found = [
        log.understand(store, entries, version, data) for version, data in zip(modified, objects, strict=True)
    ]
    return [
        Seen(read.ticket, read.marker, read.etag, modified[read.ticket], entries)
        for read in found
        if read is not None
    ]


def free_stale(
    found: Sequence[tuple[Store, Seen]],
    leases: Leases,
    environment: Environment,
    refused: Callable[[Store, Seen, LakeVillaError], None] | None = None,
) -> list[tuple[Store, Seen]]:
    """Free those of the surveyed tickets whose owner is dead, and say which.

    Takes one lease time, however many tables and tickets; no time where no ticket is live. A marker that
    has changed since the survey is left alone. `refused` is called with a marker that could not be written,
    and the others are freed all the same; without it the error is raised.
    """
    suspects = [(store, seen) for store, seen in found if seen.marker.live]
    stale = find_stale([(seen.marker.txn, seen.marker.put) for _, seen in suspects], leases, environment)
    freed = []
    for (store, seen), is_stale in zip(suspects, stale, strict=True):
        try:
            if is_stale and _free(store, environment, seen):
                freed.append((store, seen))
        except LakeVillaError as error:
            if refused is None:
                raise
            refused(store, seen, error)
    return freed


def find_stale(suspects: Sequence[tuple[str, str]], leases: Leases, environment: Environment) -> list[bool]:
    """Which of these transactions (each with a sign, see `Leases.is_stale`) are dead.

    Takes one lease time, however many there are; no time if there are none.
    """
    stale = [False] * len(suspects)
    for look in range(_LOOKS if suspects else 0):
        if look:
            environment.sleep(leases.seconds / (_LOOKS - 1) + _MARGIN_SECONDS)
        stale = environment.fan_out([partial(leases.is_stale, txn, sign) for txn, sign in suspects])
    return stale


def _free(store: Store, environment: Environment, seen: Seen) -> bool:
    read = ReadMarker(seen.ticket, seen.marker, seen.etag)
    if seen.entries is None:
        freed = write_tombstone(store, environment, read)
    else:
        freed = log.write_tombstone(store, environment, seen.entries, read)
    if freed:
        _log.warning(
            "freed ticket %d of %s: its owner, transaction %s, is dead",
            seen.ticket,
            store.url,
            seen.marker.txn,
        )
    return freed
