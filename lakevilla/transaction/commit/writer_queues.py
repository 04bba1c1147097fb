"""A transaction's tickets in the writer queues of its tables (module 1).

An uncontended transaction sends one probe, in the same round as the look for the table's newest version, and
holds no ticket. A ticket is claimed where another client waits already, after a lost race, and for a
transaction that stays open long after its first change. Order is fairness; what may be published is decided
elsewhere.

There is one more queue, for the lake itself: a client that has lost its slots to others claims a ticket
there, so that a crowd does not try for the same slot. It comes after all tables in the order of claims, and
no client holds a ticket there while it redoes something: it is held for a few requests only.

Where the markers lie in the log a ticket is a version of the table: it is claimed with the first change, and
the published version replaces its marker. This is the one module that knows the difference.
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
"""A transaction that is still open so long after its first change claims a ticket."""


class WriterQueues:
    """The queues of one transaction, by the table's location. `holder` is the attempt that its markers and
    its lease name: one for all attempts of a client."""

    def __init__(self, workspace: Workspace, leases: Leases, holder: str) -> None:
        self._workspace = workspace
        self._leases = leases
        self._holder = holder
        self._queues: dict[tuple[str, bool], Queue] = {}
        self._probed: set[str] = set()
        self._since: float | None = None
        self.shifts = 0
        """How often tickets were released before the end, to be claimed again in order."""

    def enter(self, name: str) -> Sequence[Taken]:
        """Before a statement changes a table by what it reads: wait for the clients that queue for it.

        Returns what they committed meanwhile, if the table was pinned before; else it is pinned after them.
        """
        workspace = self._workspace
        pinned = workspace.pinned(name)
        if pinned is not None:
            return self.wait(pinned) if self.probe(pinned) else ()
        pinned, occupied = self._pin_and_probe(name)
        if occupied:
            between = self.wait(pinned)
            newest = between[-1].snapshot if between else pinned.snapshot
            # To follow the log does not show which entries were deleted: the pin is as old as before.
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
        """After a change: a transaction that stays open for long claims a ticket, so that others do not
        overtake it forever."""
        now = self._workspace.environment.elapsed()
        self._since = now if self._since is None else self._since
        if pinned.snapshot.coordination.markers_in_log or (not blind and now - self._since > OPEN_SECONDS):
            try:
                self.claim(pinned.ref, self._premise(pinned))
            except Unavailable as error:
                # The change is made: a missing ticket is not a failure of the statement.
                logger.warning("transaction %s claims no ticket yet: %s", self._workspace.txn, error)

    def claim(self, ref: TableRef, seen: Snapshot) -> None:
        """Claim a ticket, if we have none on this table."""
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

        Displaced if that needs a ticket which is not ours any more: then we have none.
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
        """Claim a ticket and wait until it is the first; what was committed since the pinned version.

        No client waits for a table while it holds a ticket on one that comes after it in the order of
        locations: so there is no deadlock. A transaction that would violate this order **shifts**: it
        releases its later tickets first. (Attempts of `lake.run` keep their tickets, and may use other
        tables.)
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

    def queue_up(self, tables: Sequence[Pinned]) -> dict[str, list[Taken]]:
        """Claim a ticket on each of these tables and wait until it is the first there; what was committed on
        them meanwhile, by location.

        In the order of their locations, each only when we are the first on the one before. A ticket on a
        table that we no longer change delays others, and is released.
        """
        ordered = sorted(tables, key=lambda pinned: pinned.ref.location)
        wanted = {pinned.ref.location for pinned in ordered}
        self._shift(lambda location: location not in wanted)
        return {pinned.ref.location: self.wait(pinned) for pinned in ordered}

    def wait_for_the_lake(self, log: GlobalLog) -> None:
        """Claim a ticket in the queue for the lake's slots, if we have none; wait until it is the first."""
        queue = self._of_the_lake()

        def dead() -> int:
            read = log.read_head()
            return 0 if read is None else read.head.ticket

        if queue.ticket is None:
            queue.claim(0, dead())
        queue.wait(dead)

    def leave_the_lake(self) -> None:
        """Release our ticket in the queue for the lake's slots: we have something to do first."""
        self._of_the_lake().free()

    @property
    def lake_ticket(self) -> int | None:
        """Our ticket in the queue for the lake's slots, if we have one."""
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
        """Our ticket on a table, if we have one."""
        queues = [queue for (location, _), queue in self._queues.items() if location == ref.location]
        return next((queue.ticket for queue in queues if queue.ticket is not None), None)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Renew the lease while we work, so that clients which wait for us see that we are alive."""
        self._leases.busy(self._workspace.txn)
        try:
            yield
        finally:
            self._leases.idle(self._workspace.txn)

    def write_lease(self) -> str | None:
        """Write our lease now; the attempt of another client that holds it, if one does (`Leases.show`)."""
        return self._leases.show(self._workspace.txn, self._holder)

    def free(self, *, unknown: bool = False) -> None:
        """Release all tickets. If the store does not answer, other clients release them when our lease has
        expired. While the outcome is `unknown` the lease stays where it is: a late copy of the commit names
        what we uploaded."""
        try:
            self._workspace.environment.fan_out([queue.free for queue in self._queues.values()])
            self._leases.release(self._workspace.txn, stays=unknown)
        except Unavailable as error:
            logger.warning("transaction %s could not release its tickets: %s", self._workspace.txn, error)

    def _shift(self, leaves: Callable[[str], bool]) -> None:
        """Release the tickets that we hold on such locations."""
        held = [(at, queue) for (at, _), queue in self._queues.items() if queue.ticket is not None]
        left = [queue for location, queue in held if leaves(location)]
        if left:
            self.shifts += 1
            logger.debug("transaction %s shifts: %d tickets released", self._workspace.txn, len(left))
            self._workspace.environment.fan_out([queue.free for queue in left])

    def _premise(self, pinned: Pinned) -> Snapshot:
        """The version after which we claim a ticket: no client may create a log entry whose number was used
        and cleaned up since we looked."""
        if not pinned.snapshot.coordination.markers_in_log:
            return pinned.snapshot
        old = self._workspace.environment.elapsed() - pinned.pinned_at > PREMISE_SECONDS
        return (pinned.table.latest() if old else None) or pinned.snapshot

    def _of(self, ref: TableRef, snapshot: Snapshot) -> Queue:
        """Our place in the writer queue of a table, whose markers are where this version says."""
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
            f"table {ref.name!r} cannot have its markers in its log (lakevilla.markers = 'log'), because a "
            "catalog keeps it: set lakevilla.markers to 'side'",
            table=ref.name,
        )
    return markers


def _dead(queue: Queue, seen: Snapshot) -> int:
    """The highest ticket that has been used, as this version records it."""
    return seen.version if queue.holds_versions else seen.coordination.ticket
