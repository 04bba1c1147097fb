"""The writer queue of one table, wherever its markers are (module 1; docs/protocol.md, section 3).

A marker at ticket k says that its owner wants to publish after the owners of all live tickets below k. Where
markers lie, in the table's log or outside of it, is up to the subclasses. These errors leave a queue:

- `Unavailable`: the store cannot be reached; nothing was decided. `free` logs it instead, because it runs
  after a commit or while an error propagates: others free the ticket when its owner's lease is stale.
- `Unsupported`: a marker of a newer record format; this client refuses.
- `Fenced`: a beat of our lease found that another client resumed the transaction.

A lost race is not an error. A ticket is never reused: freeing writes a tombstone.
"""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lakevilla.environment import Environment
from lakevilla.errors import Fenced, Unavailable
from lakevilla.markers.lease import Leases
from lakevilla.markers.marker_objects import ReadMarker
from lakevilla.markers.records import Marker
from lakevilla.store.port import Ambiguous, Created, Exists, Object, Replaced, Store

_FIRST_PAUSE_SECONDS = 0.005
_LONGEST_NEAR_SECONDS = 0.1
_LONGEST_FAR_SECONDS = 1.0
"""A client that is not next looks at least so often."""

# How long a predecessor is watched before its owner's lease is looked at, in lease times.
_FIRST_LOOK = 0.1
_NEXT_LOOK = 0.25

_log = logging.getLogger("lakevilla.markers")


class Queue(ABC):
    """One transaction's place in the writer queue of one table. For one thread at a time.

    `store` is the table's root. `claim` makes the transaction hold a lease; a client that ends the
    transaction releases it.
    """

    holds_versions: bool
    """Whether a ticket is a version of the table, which only its holder can publish."""

    def __init__(
        self, store: Store, leases: Leases, environment: Environment, txn: str, attempt: str
    ) -> None:
        self._store = store
        self._leases = leases
        self._environment = environment
        self._txn = txn
        self._attempt = attempt
        self._held: ReadMarker | None = None
        self._confirmed = 0.0
        self._dead = 0
        self._ahead: dict[int, str] = {}

    @property
    def ticket(self) -> int | None:
        """Our place, if we hold one."""
        return None if self._held is None else self._held.ticket

    @property
    def predecessors(self) -> tuple[str, ...]:
        """The transactions that are believed to precede us, the first in the queue first."""
        return tuple(dict.fromkeys(self._ahead[ticket] for ticket in sorted(self._ahead)))

    @property
    def held(self) -> ReadMarker | None:
        """Our marker as it was written last, if we hold a place."""
        return self._held

    @abstractmethod
    def probe(self, version: int, dead: int = 0) -> bool:
        """Whether another client waits to publish this version; `dead` as in `claim`."""

    def claim(self, latest: int, dead: int) -> None:
        """Take the next place in the queue, unless we hold one.

        `latest` is the table's latest version, `dead` the highest ticket that a published entry named (0 if
        unknown): no ticket up to it counts.
        """
        if self._held is not None:
            return
        self._refuse_if_fenced()
        self._leases.hold(self._txn, self._attempt)
        self._dead = max(self._dead, dead)
        self._ahead = {}
        self._search(latest)

    def wait(self, dead: Callable[[], int], lost: Callable[[], None] = lambda: None) -> None:
        """Return when no live ticket of another transaction precedes ours; at once if we hold none.

        `dead` follows the table's log and gives the highest ticket that a published entry named. Each look
        costs one GET: of the log, which says how far the queue has come, or of the nearest predecessor's
        marker, which says whether it was given up. A client that is next looks often, one that is far behind
        less so. A ticket whose owner's lease is stale is freed. If another client freed ours, because we
        slept, `lost` is called and we claim again, behind all others.
        """
        if self._held is None:
            return
        self._leases.busy(self._txn)
        try:
            watch = None
            while self._keep_place(lost):
                now, nearest = self._environment.elapsed(), max(self._ahead)
                if watch is None or watch.ticket != nearest:
                    turn = 0.0 if watch is None else watch.turn
                    first = 0.0 if self._leases.was_dead(self._ahead[nearest]) else _FIRST_LOOK
                    watch = _Watch(nearest, now, now + first * self._leases.seconds, turn)
                ahead = len(self._ahead)
                self._look(watch, dead)
                if len(self._ahead) < ahead:
                    watch.passed(ahead - len(self._ahead), self._environment.elapsed())
                else:
                    watch.pause(ahead, self._environment)
        finally:
            self._leases.idle(self._txn)

    def free(self) -> None:
        """Give our place up, by a tombstone (one replace). Nothing if we hold none, or if another client
        freed it.

        Also after the commit was published, so that waiting clients need not look at the log.
        """
        held = self.used()
        if held is None:
            return
        try:
            self._bury(held)
        except Unavailable as failure:
            _log.warning("ticket %d of %s could not be freed: %s", held.ticket, self._txn, failure)

    def used(self) -> ReadMarker | None:
        """Forget our place: what we published took it. Asks nothing of the store."""
        held, self._held, self._ahead = self._held, None, {}
        return held

    # Where the markers are.

    @abstractmethod
    def _key(self, ticket: int) -> str: ...

    @abstractmethod
    def _encode(self, ticket: int, marker: Marker) -> bytes: ...

    @abstractmethod
    def _understand(self, ticket: int, found: Object | None) -> ReadMarker | None:
        """The marker in this object, if it is one."""

    @abstractmethod
    def _read(self, ticket: int) -> ReadMarker | None:
        """One GET."""

    @abstractmethod
    def _read_all(self, tickets: Sequence[int]) -> list[ReadMarker]:
        """Those of these tickets that have a marker, in their order, read in one round."""

    @abstractmethod
    def _bury(self, read: ReadMarker) -> bool:
        """Put the tombstone over a marker if no client has changed it since it was read."""

    @abstractmethod
    def _listed(self) -> list[int]:
        """The numbers after `_dead` that are taken, in their order. One LIST."""

    # Claiming.

    def _search(self, latest: int) -> None:
        """Find our place. One LIST, the markers found in one round, one create."""
        listed = self._listed()
        for found in self._read_all(listed):
            if self._precedes(found):
                self._ahead[found.ticket] = found.marker.txn
            elif found.marker.live and self._adopt(found):
                return
        self._take(max([latest, self._dead, *listed]) + 1)

    def _precedes(self, found: ReadMarker) -> bool:
        """Tickets of the same transaction never precede, whichever attempt holds them."""
        return found.marker.live and found.marker.txn != self._txn

    def _adopt(self, found: ReadMarker) -> bool:
        """Continue with the ticket of an earlier attempt of this transaction; False if another client
        released it.

        Otherwise we would queue behind clients that wait for that ticket, whose lease we renew ourselves.
        """
        mine = self._marker()
        data = self._encode(found.ticket, mine)
        answer = self._store.replace(self._key(found.ticket), data, found.etag)
        if isinstance(answer, Replaced):
            self._hold(ReadMarker(found.ticket, mine, answer.etag))
            return True
        return False

    def _take(self, ticket: int) -> None:
        """Create our marker at the first free number from this one on; live ones on the way precede us."""
        while True:
            mine = self._marker()
            answer = self._create(ticket, mine)
            if isinstance(answer, Created):
                self._hold(ReadMarker(ticket, mine, answer.etag))
                return
            found = self._understand(ticket, answer.found or self._store.get(self._key(ticket)))
            if found is not None and self._precedes(found):
                self._ahead[ticket] = found.marker.txn
            elif found is not None and found.marker.live and self._adopt(found):
                return
            ticket += 1

    def _create(self, ticket: int, mine: Marker) -> Created | Exists:
        data = self._encode(ticket, mine)
        try:
            return self._store.create(self._key(ticket), data)
        except Ambiguous:
            # A marker of ours that shows up later belongs to no client: it dies with the lease, or before
            # that with the next entry that names a higher ticket.
            found = self._store.get(self._key(ticket))
            if found is None:
                raise
            ours = found.data == data
            return Created(found.etag) if ours else Exists(doubtful=True, found=found)

    def _marker(self) -> Marker:
        return Marker(
            txn=self._txn,
            attempt=self._attempt,
            put=self._environment.new_id(),
            claimed_ms=self._environment.now_ms(),
            live=True,
            predecessors=self.predecessors,
        )

    def _hold(self, held: ReadMarker) -> None:
        self._held = held
        self._confirmed = self._environment.elapsed()

    # Waiting.

    def _keep_place(self, on_loss: Callable[[], None]) -> bool:
        """Whether another client precedes us, after we made sure that our own place is still ours."""
        self._refuse_if_fenced()
        assert self._held is not None, "only `free` gives our place up, and `claim` takes another"
        if self._is_lost(self._held):
            lost = self._held.ticket
            _log.warning("ticket %d of %s was freed or overtaken; claiming again", lost, self._txn)
            self.free()
            on_loss()
            self._environment.sleep(_FIRST_PAUSE_SECONDS * (1 + self._environment.random()))
            self.claim(lost, self._dead)
        return bool(self._ahead)

    def _refuse_if_fenced(self) -> None:
        if self._leases.fenced(self._txn):
            raise Fenced(
                f"another client resumed transaction {self._txn} and continues it", transaction=self._txn
            )

    def _is_lost(self, held: ReadMarker) -> bool:
        """Whether others no longer wait for us. No client frees a ticket before a lease time has passed."""
        if held.ticket <= self._dead:
            return True
        now = self._environment.elapsed()
        if now - self._confirmed < self._leases.seconds:
            return False
        found = self._read(held.ticket)
        self._confirmed = now
        return found is None or found.marker.put != held.marker.put

    def _look(self, watch: "_Watch", dead: Callable[[], int]) -> None:
        """Take those from `_ahead` that no longer precede us. Frees the nearest if its owner is stale."""
        watch.looks += 1
        if len(self._ahead) > 1 and watch.looks % 2:
            self._follow(dead())
            return
        found = self._read(watch.ticket)
        if found is None or not self._precedes(found):
            del self._ahead[watch.ticket]
        elif self._environment.elapsed() >= watch.lease_look_at:
            watch.lease_look_at = self._environment.elapsed() + _NEXT_LOOK * self._leases.seconds
            # Its owner may have published, and died before it freed the ticket.
            self._follow(dead())
            if watch.ticket in self._ahead and self._leases.is_stale(found.marker.txn, found.marker.put):
                self._free_stale(found)

    def _free_stale(self, found: ReadMarker) -> None:
        # If another waiter was faster, or the owner is alive again, the next look shows it.
        if self._bury(found):
            _log.warning(
                "freed ticket %d: its owner, transaction %s, is dead",
                found.ticket,
                found.marker.txn,
            )

    def _follow(self, dead: int) -> None:
        self._dead = max(self._dead, dead)
        self._ahead = {ticket: txn for ticket, txn in self._ahead.items() if ticket > self._dead}


@dataclass(slots=True)
class _Watch:
    """How the nearest predecessor is watched; `moved_at` is when the queue moved last, as far as we know.

    `turn` is the shortest time that one ahead of us took; 0 if none has passed yet.
    """

    ticket: int
    moved_at: float
    lease_look_at: float
    turn: float = 0.0
    looks: int = 0

    def passed(self, count: int, now: float) -> None:
        """So many that were ahead of us have had their turn since it moved last."""
        took = (now - self.moved_at) / count
        self.turn = min(self.turn or took, took)
        self.moved_at = now

    def pause(self, ahead: int, environment: Environment) -> None:
        """Sleep for a part of the time that we waited already. A client far behind looks again at the
        earliest when half of those ahead can have had their turn: so a long queue sends hardly more requests
        than a short one."""
        waited = environment.elapsed() - self.moved_at
        near = min(max(_FIRST_PAUSE_SECONDS, waited / 4), _LONGEST_NEAR_SECONDS)
        far = min((ahead - 0.5) * max(self.turn, _FIRST_PAUSE_SECONDS) / 2, _LONGEST_FAR_SECONDS)
        environment.sleep(max(near, far) * (0.5 + environment.random()))
