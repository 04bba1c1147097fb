"""A transaction's places in the queues of writers of its tables (module 1).

Who competes with nobody pays one probe, in the same round as the look for the table's newest version, and
holds no ticket. A place is taken where somebody waits already, after a lost race, and for a transaction that
stays open long after its first change. Order is fairness; what may be published is decided elsewhere.
"""

import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from lakevilla.errors import Unavailable
from lakevilla.formats.port import Snapshot, Taken
from lakevilla.markers.lease import Leases
from lakevilla.markers.side import SideQueue
from lakevilla.model import TableRef
from lakevilla.transaction.catalog import Pinned
from lakevilla.transaction.workspace import Workspace

logger = logging.getLogger("lakevilla.transaction")

OPEN_SECONDS = 1.0
"""A transaction that is still open so long after its first change takes a place in the queue."""


class Turns:
    """The queues of one transaction, by the table's location. `holder` is the attempt that its places and
    its lease name: one for all attempts of a client."""

    def __init__(self, workspace: Workspace, leases: Leases, holder: str) -> None:
        self._workspace = workspace
        self._leases = leases
        self._holder = holder
        self._queues: dict[str, SideQueue] = {}
        self._probed: set[str] = set()
        self._since: float | None = None

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
            pinned = replace(pinned, snapshot=newest, pinned_at=workspace.environment.elapsed())
        workspace.keep(name, pinned)
        return ()

    def probe(self, pinned: Pinned) -> bool:
        """Ask whether somebody waits for a table that is pinned already; it is asked once."""
        location = pinned.ref.location
        if location in self._probed:
            return False
        self._probed.add(location)
        return self.of(pinned.ref).probe(pinned.snapshot.version + 1, pinned.snapshot.ticket)

    def wrote(self, pinned: Pinned, blind: bool) -> None:
        """After a change: who stays open for long takes a place, so that others do not overtake for ever."""
        now = self._workspace.environment.elapsed()
        self._since = now if self._since is None else self._since
        if not blind and now - self._since > OPEN_SECONDS:
            try:
                self.claim(pinned.ref, pinned.snapshot)
            except Unavailable as error:
                # The change is made: a place in the queue is no reason to call it failed.
                logger.warning("transaction %s takes no place yet: %s", self._workspace.txn, error)

    def claim(self, ref: TableRef, seen: Snapshot) -> None:
        """Take a place, if we have none on this table."""
        self.of(ref).claim(seen.version, seen.ticket)

    def wait(self, pinned: Pinned) -> list[Taken]:
        """Take a place and wait until it is the first; what was committed since the pinned version."""
        between: list[Taken] = []

        def dead() -> int:
            newest = between[-1].snapshot if between else pinned.snapshot
            between.extend(pinned.table.since(newest))
            return between[-1].snapshot.ticket if between else pinned.snapshot.ticket

        self.claim(pinned.ref, pinned.snapshot)
        self.of(pinned.ref).wait(dead)
        dead()
        return between

    def ticket(self, ref: TableRef) -> int | None:
        """Our place on a table, if we have one."""
        queue = self._queues.get(ref.location)
        return None if queue is None else queue.ticket

    def free(self) -> None:
        """Give all places back. Who cannot be reached now learns by our lease that we are gone."""
        try:
            self._workspace.environment.fan_out([queue.free for queue in self._queues.values()])
            self._leases.release(self._workspace.txn)
        except Unavailable as error:
            logger.warning("transaction %s could not give back its places: %s", self._workspace.txn, error)

    def of(self, ref: TableRef) -> SideQueue:
        """Our place in the queue of a table."""
        workspace = self._workspace
        queue = self._queues.get(ref.location)
        if queue is None:
            store = workspace.catalog.store_of(ref.location, workspace.meter)
            queue = SideQueue(store, self._leases, workspace.environment, workspace.txn, self._holder)
            self._queues[ref.location] = queue
        return queue

    def _pin_and_probe(self, name: str) -> tuple[Pinned, bool]:
        """The table and whether somebody waits for it, asked in one round if we know it from before."""
        workspace = self._workspace
        pin = partial(workspace.catalog.pin, name, workspace.meter)
        known = workspace.catalog.known(name)
        found: list[Pinned | bool] = [pin()] if known is None else []
        if known is not None:
            ref, version, ticket = known
            found = workspace.environment.fan_out([pin, partial(self.of(ref).probe, version + 1, ticket)])
        pinned = found[0]
        assert isinstance(pinned, Pinned)
        self._probed.add(pinned.ref.location)
        if known is not None and (pinned.ref, pinned.snapshot.version) == known[:2]:
            return pinned, bool(found[1])
        return pinned, self.of(pinned.ref).probe(pinned.snapshot.version + 1, pinned.snapshot.ticket)
