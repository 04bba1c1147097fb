"""Which instants of the lake vacuum keeps, and what of the global log no client needs any more.

An instant is kept if it was current within the retention, or has a tag. Its entry in the global log and the
files of its tables go together, in this order:

1. The slots tell by the store's clock when each instant ended. The first that is kept becomes the
   **horizon**, by an entry of the global log. From then on older instants can neither be read nor tagged.
2. The HEAD after that entry knows every tag that counts: a client that tags later is refused what was
   deleted.
3. Files go that no version of a kept instant needs; then slots and states that no kept instant needs.

**Why the versions of the horizon and of tags are enough.** A later instant differs from the horizon by
versions that entries brought. Those were the newest when their slot was created, or at most an hour before
(no client builds on older premises). So what they lost since, they lost within the retention, if the horizon
is some hours younger than that; and such files stay whatever the instants are.

**Why no entry is decided while its uploads are deleted.** A client that was suspended right before it created
its slot has read a HEAD that is at most an hour younger than its uploads. If those are old enough to go, that
HEAD is before the horizon, and the entry that moved the horizon, or a later one, has the client's slot.

**Why a slot may go.** A client that would create it anew has a HEAD of days ago, and
`GlobalLog.create_slot` detects that.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from lakevilla.maintenance.queue_survey import LakeView
from lakevilla.maintenance.reports import Leftovers
from lakevilla.maintenance.retention import FLOOR_MS, HOUR_MS
from lakevilla.model import Author
from lakevilla.store import keys
from lakevilla.store.port import Meta
from lakevilla.versions.instants import Instants
from lakevilla.versions.log import ReadHead
from lakevilla.versions.records import Head
from lakevilla.versions.tags import Expire

MARGIN_MS = 2 * HOUR_MS
SLOTS_KEPT = 16
"""However old they are."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What the instants need that are kept: versions by location, and by location the tags that need it.

    `horizon` is the first instant that is kept without a tag.
    """

    horizon: int = 0
    versions: Mapping[str, frozenset[int]] = field(default_factory=dict)
    tagged: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def versions_at(self, place_of: Callable[[str], str], location: str) -> frozenset[int]:
        """The versions that are needed of the table at this location, under any spelling of it: instants name
        the one that the table was registered with at their time."""
        place = place_of(location)
        return frozenset().union(*(found for at, found in self.versions.items() if place_of(at) == place))


def keep_instants(view: LakeView, since_ms: int, dry_run: bool) -> Kept:
    """Move the horizon, unless this is a dry run, and return what has to stay. `since_ms` is where the
    retention begins, by the store's clock."""
    read = view.log.read_head()
    if read is None:
        return Kept()
    horizon = decide_horizon(read.head, _slots(view), since_ms + MARGIN_MS)
    head = read.head
    if horizon > head.horizon and not dry_run:
        txn = view.environment.new_id()
        author = Author(txn, txn, view.environment.new_id())
        head = view.catalog.decide(lambda _: Expire(horizon), author, view.meter).read.head
    return _kept(view, head, max(horizon, head.horizon))


def find_leftovers(view: LakeView, kept: Kept, since_ms: int) -> Leftovers:
    """Entries and states that neither a kept instant needs nor a client that asks for the outcome of a
    transaction."""
    read = view.log.read_head()
    if read is None:
        return Leftovers()
    before_ms = since_ms - FLOOR_MS
    states = {
        seq: meta for meta in view.store.list(keys.HEADS) if (seq := keys.past_seq_of(meta.key)) is not None
    }
    return Leftovers(
        decide_entries(read.head, kept.horizon, _slots(view), before_ms),
        decide_states(read, kept.horizon, states, before_ms),
    )


def decide_horizon(head: Head, slots: Mapping[int, Meta], since_ms: int) -> int:
    """The first instant that was current at this time or later: the one before the first entry since.

    Looked for from HEAD down. Slots that are not there any more are older than those that are; and one below
    them was cleaned up and created again, by a client that was suspended: its age says nothing.
    """
    first = head.seq
    while first in slots and slots[first].modified_ms >= since_ms:
        first -= 1
    return max(head.horizon, first)


def decide_entries(head: Head, horizon: int, slots: Mapping[int, Meta], before_ms: int) -> tuple[int, ...]:
    """The slots that may go: settled, before the horizon, old, and not among the newest."""
    last = min(horizon, head.seq - SLOTS_KEPT + 1)
    return tuple(sorted(seq for seq, meta in slots.items() if seq < last and meta.modified_ms < before_ms))


def decide_states(
    read: ReadHead, horizon: int, states: Mapping[int, Meta], before_ms: int
) -> tuple[int, ...]:
    """The numbers of earlier states that may go: old, not of a kept instant, nor what HEAD is built on."""
    needed = {read.packed.base.seq, max(states, default=0)}
    for seq in read.head.tags.values():
        needed.add(min((number for number in states if number >= seq), default=0))
    return tuple(
        number
        for number, meta in sorted(states.items())
        if number < horizon and number not in needed and meta.modified_ms < before_ms
    )


def _slots(view: LakeView) -> dict[int, Meta]:
    found = ((keys.seq_of(meta.key), meta) for meta in view.store.list(keys.GLOBAL_LOG))
    return {seq: meta for seq, meta in found if seq is not None}


def _kept(view: LakeView, head: Head, horizon: int) -> Kept:
    instants = Instants(view.log)
    tagged = {name: instants.at_tag(name) for name in head.tags if name in instants.tags}
    versions: dict[str, set[int]] = {}
    for instant in (instants.earliest(horizon), head, *tagged.values()):
        for location, version in instant.versions.items():
            versions.setdefault(location, set()).add(version)
    needing: dict[str, list[str]] = {}
    for name, instant in tagged.items():
        for location in instant.versions:
            needing.setdefault(location, []).append(name)
    return Kept(
        horizon,
        {location: frozenset(found) for location, found in versions.items()},
        {location: tuple(names) for location, names in needing.items()},
    )
