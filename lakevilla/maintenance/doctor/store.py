"""The store of a lake: whether a lake is there, conditional writes, rights and the clock."""

from collections.abc import Iterator

from lakevilla.errors import Unavailable, Unsupported
from lakevilla.maintenance.doctor.diagnosis import Check
from lakevilla.maintenance.queue_survey import LakeView
from lakevilla.store import keys
from lakevilla.store.probe import probe
from lakevilla.versions.records import Head

CLOCK_SKEW_MS = 60_000
"""A clock that is further away from the store's is worth a warning."""


def find_lake(view: LakeView, head: Head | None) -> Iterator[Check]:
    """Whether the store has a lake, and whether it lost the record of its newest instant."""
    url = view.store.url
    if head is not None:
        yield Check("store", "ok", f"{url} answers; the lake is at entry {head.seq}")
        return
    first = view.log.first_entry()
    if first is not None:
        whole = "run `lakevilla recover` (lake.recover()): it creates the record again from these entries"
        cleaned = f"restore it from a backup: the entries before {first} were cleaned away"
        yield Check(
            "store",
            "problem",
            f"{url}/{keys.HEAD}, which names the lake's tables, is missing; the global log has entries from "
            f"{first} on",
            whole if first == 1 else cleaned,
        )
    elif view.catalog.names(view.meter):
        yield Check("store", "ok", f"{url} answers; no transaction has written a global log yet")
    else:
        yield Check(
            "store",
            "note",
            f"there is no lake at {url}: no global log, and no table",
            "if tables were expected, check the URL; otherwise the first CREATE TABLE makes the lake",
        )


def try_store(view: LakeView) -> Iterator[Check]:
    """Conditional writes, rights and the clock, by objects that are deleted again."""
    try:
        probe(view.store, view.environment)
        skew = _skew_ms(view)
    except Unsupported as error:
        advice = "do not write to this lake: use a store, or a release of it, that has conditional writes"
        yield Check("conditional writes", "problem", str(error), advice)
        return
    except Unavailable as error:
        advice = (
            "grant the right to create, replace and delete objects below the lake's root, or repair what the "
            "error names; reading works without"
        )
        yield Check("rights", "warning", f"this client cannot write: {error}", advice)
        return
    yield Check("conditional writes", "ok", "create and replace hold what they promise")
    yield Check("rights", "ok", "objects can be read, listed, written and deleted")
    text = f"this machine is {abs(skew) / 1000:.1f} s {'ahead of' if skew > 0 else 'behind'} the store"
    if abs(skew) < CLOCK_SKEW_MS:
        yield Check("clock", "ok", text)
    else:
        advice = "set the clock by NTP: times in histories and TIMESTAMP AS OF go by the clocks of clients"
        yield Check("clock", "warning", text, advice)


def _skew_ms(view: LakeView) -> int:
    key = keys.probe(view.environment.new_id())
    before = view.environment.now_ms()
    try:
        view.store.put(key, b"{}")
        after, meta = view.environment.now_ms(), view.store.head(key)
    finally:
        view.store.delete(key)
    if meta is None:
        return 0
    # The store took its time somewhere between the two, and some stores count seconds.
    earliest, latest = before - meta.modified_ms - 1000, after - meta.modified_ms
    return 0 if earliest <= 0 <= latest else min((earliest, latest), key=abs)
