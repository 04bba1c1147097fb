"""A transaction's places in the queues of writers of its tables (module 1).

Without competition it pays one probe, in the same round as the look for the table's newest version, and
holds no ticket. A place is taken where another client waits already, after a lost race, and for a transaction
that stays open long after its first change. Order is fairness; what may be published is decided elsewhere.

There is one more queue, for the lake itself: a client that has lost its slots to others takes a place there,
so that a crowd does not try for the same slot. It comes after all tables in the order of places, and no
client holds a place there while it redoes something: it is held for a few requests only.

Where the markers lie in the log a place is a version of the table: it is taken with the first change, and
what is published takes its place. This is the one module that knows the difference.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from lakevilla.errors import Unavailable, Unsupported
from lakevilla.formats.port import Displaced, LogMarkers, Published, Snapshot, Table, Taken
from lakevilla.markers.lease import Leases
from lakevilla.markers.log import LogQueue
from lakevilla.markers.queue import Queue
from lakevilla.markers.side import SideQueue
from lakevilla.model import Author, Change, TableRef
from lakevilla.tables.pinned import Pinned
from lakevilla.transaction.workspace import Workspace
from lakevilla.versions.log import PREMISE_SECONDS, GlobalLog

logger = logging.getLogger("lakevilla.transaction")

THE_LAKE = "\U0010ffff"
"""The location of the lake's own queue: after every table's."""
OPEN_SECONDS = 1.0
"""A transaction that is still open so long after its first change takes a place in the queue."""


class WriterQueues:
    """The queues of one transaction, by the table's location. `holder` is the attempt that its places and
    its lease name: one for all attempts of a client."""

    def __init__(self, workspace: Workspace, leases: Leases, holder: str) -> None:
        self._workspace = workspace
        self._leases = leases
        self._holder = holder
        self._queues: dict[tuple[str, bool], Queue] = {}
        self._probed: set[str] = set()
        self._since: float | None = None
        self.shifts = 0
        """How often places were given back before the end, to be taken again in order."""

    def enter(self, name: str) -> Sequence[Taken]:
        """Before a statement changes a table by what it reads: let those pass who wait for it already.

        What they committed meanwhile, if the table was pinned before; else it is pinned after them.
        """
        workspace = self._workspace
        pinned = workspace.pinned(name)
        if pinned is not None:
            return self.wait(pinned) if self.probe(pinned) else ()
        pinned, occupied = self._pin_and_probe(name)
        if occupied:
            between = self.wait(pinned)
            newest = between[-1].snapshot if between else pinned.snapshot
            # To follow the log proves nothing of what was cleaned away: the pin is as old as before.
            pinned = replace(pinned, snapshot=newest)
        workspace.keep(name, pinned)
        return ()

    def probe(self, pinned: Pinned) -> bool:
        """Ask whether another client waits for a table that is pinned already; it is asked once."""
        location = pinned.ref.location
        if location in self._probed:
            return False
        self._probed.add(location)
        seen = pinned.snapshot
        return self._of(pinned.ref, seen).probe(seen.version + 1, seen.coordination.ticket)

    def wrote(self, pinned: Pinned, blind: bool) -> None:
        """After a change: a client that stays open for long takes a place, so that others do not overtake for
        ever."""
        now = self._workspace.environment.elapsed()
        self._since = now if self._since is None else self._since
        if pinned.snapshot.coordination.markers_in_log or (not blind and now - self._since > OPEN_SECONDS):
            try:
                self.claim(pinned.ref, self._premise(pinned))
            except Unavailable as error:
                # The change is made: a missing place in the queue does not make it failed.
                logger.warning("transaction %s takes no place yet: %s", self._workspace.txn, error)

    def claim(self, ref: TableRef, seen: Snapshot) -> None:
        """Take a place, if we have none on this table."""
        queue = self._of(ref, seen)
        queue.claim(seen.version, _dead(queue, seen))

    def must_wait(self, pinned: Pinned, often_lost: bool) -> bool:
        """Whether others may have to go first, before we publish right after the pinned version."""
        queue = self._of(pinned.ref, pinned.snapshot)
        if queue.holds_versions:
            return queue.ticket != pinned.snapshot.version + 1
        return queue.ticket is not None or often_lost or self.probe(pinned)

    def publish(self, pinned: Pinned, change: Change, author: Author) -> Published | Taken | Displaced:
        """Publish right after the pinned version.

        Displaced if that takes a place which is not ours any more: then we have none.
        """
        queue = self._of(pinned.ref, pinned.snapshot)
        if not queue.holds_versions:
            return pinned.table.publish(pinned.snapshot, change, author)
        held, version = queue.held, pinned.snapshot.version + 1
        if held is None or held.ticket != version:
            queue.free()
            return Displaced(f"version {version} is not ours")
        markers = _log_markers(pinned.table, pinned.ref, pinned.snapshot)
        answer = markers.fill(change, replace(author, ticket=None), held.etag)
        if isinstance(answer, Published):
            queue.used()
        else:
            queue.free()
        return answer

    def wait(self, pinned: Pinned) -> list[Taken]:
        """Take a place and wait until it is the first; what was committed since the pinned version.

        No client waits for a table while it holds a place on one that comes after it in the order of
        locations: so no client can wait in a ring. A client that would **shifts**: it gives those places back
        first. (Attempts of `lake.run` keep their places, and may turn to other tables.)
        """
        between: list[Taken] = []

        def dead() -> int:
            newest = between[-1].snapshot if between else pinned.snapshot
            between.extend(pinned.table.since(newest))
            return _dead(queue, between[-1].snapshot if between else pinned.snapshot)

        queue = self._of(pinned.ref, pinned.snapshot)
        shift = partial(self._shift, lambda location: location > pinned.ref.location)
        if queue.ticket is None or queue.predecessors:
            shift()
        self.claim(pinned.ref, self._premise(pinned))
        queue.wait(dead, shift)
        dead()
        return between

    def line_up(self, tables: Sequence[Pinned]) -> dict[str, list[Taken]]:
        """Take a place on each of these tables and wait until it is the first there; what was committed on
        them meanwhile, by location.

        In the order of their locations, each only when we are the first on the one before. A place on a
        table that we no longer change is in others' way, and is given back.
        """
        ordered = sorted(tables, key=lambda pinned: pinned.ref.location)
        wanted = {pinned.ref.location for pinned in ordered}
        self._shift(lambda location: location not in wanted)
        return {pinned.ref.location: self.wait(pinned) for pinned in ordered}

    def wait_for_the_lake(self, log: GlobalLog) -> None:
        """Take a place in the queue for the lake's slots, if we have none, and wait until it is the first."""
        queue = self._of_the_lake()

        def dead() -> int:
            read = log.read_head()
            return 0 if read is None else read.head.ticket

        if queue.ticket is None:
            queue.claim(0, dead())
        queue.wait(dead)

    def leave_the_lake(self) -> None:
        """Give our place in the queue for the lake's slots back: we have something to do first."""
        self._of_the_lake().free()

    @property
    def lake_ticket(self) -> int | None:
        """Our place in the queue for the lake's slots, if we have one."""
        return self._of_the_lake().ticket

    def _of_the_lake(self) -> Queue:
        place = (THE_LAKE, False)
        if place not in self._queues:
            workspace = self._workspace
            store = workspace.catalog.root(workspace.meter)
            environment = workspace.environment
            self._queues[place] = SideQueue(store, self._leases, environment, workspace.txn, self._holder)
        return self._queues[place]

    def ticket(self, ref: TableRef) -> int | None:
        """Our place on a table, if we have one."""
        queues = [queue for (location, _), queue in self._queues.items() if location == ref.location]
        return next((queue.ticket for queue in queues if queue.ticket is not None), None)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """The client that waits for us sees that we are at work, however long it takes."""
        self._leases.busy(self._workspace.txn)
        try:
            yield
        finally:
            self._leases.idle(self._workspace.txn)

    def show_life(self) -> str | None:
        """Write our lease now; the attempt of another that has it, if one does (`Leases.show`)."""
        return self._leases.show(self._workspace.txn, self._holder)

    def free(self) -> None:
        """Give all places back. A client that cannot be reached now learns by our lease that we are gone."""
        try:
            self._workspace.environment.fan_out([queue.free for queue in self._queues.values()])
            self._leases.release(self._workspace.txn)
        except Unavailable as error:
            logger.warning("transaction %s could not give back its places: %s", self._workspace.txn, error)

    def _shift(self, leaves: Callable[[str], bool]) -> None:
        """Give the places back that we hold on such locations."""
        held = [(at, queue) for (at, _), queue in self._queues.items() if queue.ticket is not None]
        left = [queue for location, queue in held if leaves(location)]
        if left:
            self.shifts += 1
            logger.debug("transaction %s shifts: %d places given back", self._workspace.txn, len(left))
            self._workspace.environment.fan_out([queue.free for queue in left])

    def _premise(self, pinned: Pinned) -> Snapshot:
        """The version after which we take a place: no client may create a log entry whose number was used and
        cleaned away since we looked."""
        if not pinned.snapshot.coordination.markers_in_log:
            return pinned.snapshot
        old = self._workspace.environment.elapsed() - pinned.pinned_at > PREMISE_SECONDS
        return (pinned.table.latest() if old else None) or pinned.snapshot

    def _of(self, ref: TableRef, snapshot: Snapshot) -> Queue:
        """Our place in the queue of a table, whose markers lie where this version says."""
        place = (ref.location, snapshot.coordination.markers_in_log)
        queue = self._queues.get(place)
        if queue is None:
            queue = self._queues[place] = self._new(ref, snapshot)
        return queue

    def _new(self, ref: TableRef, snapshot: Snapshot) -> Queue:
        workspace = self._workspace
        store = workspace.catalog.store_of(ref.location, workspace.meter)
        environment, txn = workspace.environment, workspace.txn
        if not snapshot.coordination.markers_in_log:
            return SideQueue(store, self._leases, environment, txn, self._holder)
        markers = _log_markers(workspace.catalog.open(ref, workspace.meter), ref, snapshot)
        return LogQueue(store, self._leases, environment, txn, self._holder, markers.entries)

    def _pin_and_probe(self, name: str) -> tuple[Pinned, bool]:
        """The table and whether another client waits for it, asked in one round if we know it from before."""
        workspace = self._workspace
        pin = partial(workspace.catalog.pin, name, workspace.meter)
        known = workspace.catalog.known(name)
        found: list[Pinned | bool] = [pin()] if known is None else []
        if known is not None:
            ref, newest = known
            probe = partial(self._of(ref, newest).probe, newest.version + 1, newest.coordination.ticket)
            found = workspace.environment.fan_out([pin, probe])
        pinned = found[0]
        assert isinstance(pinned, Pinned)
        self._probed.add(pinned.ref.location)
        seen = pinned.snapshot
        if known is not None and (pinned.ref, seen.version) == (known[0], known[1].version):
            return pinned, bool(found[1])
        return pinned, self._of(pinned.ref, seen).probe(seen.version + 1, seen.coordination.ticket)


def _log_markers(table: Table, ref: TableRef, snapshot: Snapshot) -> LogMarkers:
    markers = table.log_markers(snapshot)
    if markers is None:
        raise Unsupported(
            f"the markers of {ref.name!r} cannot lie in its log (lakevilla.markers = 'log'): a catalog keeps "
            "the table; set lakevilla.markers to 'side'",
            table=ref.name,
        )
    return markers


def _dead(queue: Queue, seen: Snapshot) -> int:
    """The highest ticket that has been used, as this version tells."""
    return seen.version if queue.holds_versions else seen.coordination.ticket
