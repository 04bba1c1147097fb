"""The queue of writers of one table, beside its log (module 1, placement `side`; protocol section 3).

A marker at ticket k says that its owner wants to publish after the owners of all live tickets below k. The
commit itself is the create of a log entry, and the conflict check decides whether it may stand: **order is
fairness, safety is not ours**. So nothing here may lose a commit, and these errors leave this module:

- `Unavailable`: the store cannot be reached; nothing was decided. `free` logs it instead, because it runs
  after a commit or while an error is on its way up: the ticket dies with the published entry that names
  it, with its owner's lease otherwise.
- `Unsupported`: a marker of a newer record format; this client refuses.
- `Fenced`: a beat of our lease found that another client resumed the transaction.

A damaged marker is taken for absent, a lost race for what it is. Tickets are never reused: freeing puts a
tombstone, and only vacuum deletes those, long after.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from lakevilla.environment import Environment
from lakevilla.errors import Fenced, Unavailable
from lakevilla.markers.lease import Leases
from lakevilla.markers.reading import ReadMarker, bury, read_marker, read_markers, understand
from lakevilla.markers.records import Marker
from lakevilla.store import keys
from lakevilla.store.port import Ambiguous, Created, Exists, Replaced, Store

FIRST_PAUSE_SECONDS = 0.005
LONGEST_PAUSE_SECONDS = 0.1

# How many numbers a probe looks at, if it meets tombstones.
_PROBES = 4

# How long a predecessor is watched before its owner's lease is looked at, in lease times.
_FIRST_LOOK = 0.1
_NEXT_LOOK = 0.25

_log = logging.getLogger("lakevilla.markers")


class SideQueue:
    """One transaction's place in the queue of writers of one table. For one thread at a time.

    `store` is the table's root. `claim` makes the transaction hold a lease; who ends the transaction
    releases it.
    """

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

    def probe(self, version: int, dead: int = 0) -> bool:
        """The courtesy of a short transaction: does somebody else wait to publish this version? One GET.

        `dead` as in `claim`. Tickets run ahead of versions where some were given up: a tombstone makes us
        look at the next number, a few times at most.
        """
        first = max(version, dead + 1)
        for ticket in range(first, first + _PROBES):
            found = read_marker(self._store, ticket)
            if found is None or found.marker.live:
                return found is not None and self._precedes(found)
        return False

    def claim(self, latest: int, dead: int) -> None:
        """Take the next place in the queue, unless we hold one.

        `latest` is the table's latest version, `dead` the highest ticket that a published entry named (0 if
        unknown): no ticket up to it counts. One LIST, the markers found in one round, one create.
        """
        if self._held is not None:
            return
        self._refuse_if_fenced()
        self._leases.hold(self._txn, self._attempt)
        self._dead = max(self._dead, dead)
        self._ahead = {}
        listed = self._listed()
        for found in read_markers(self._store, self._environment, listed):
            if self._precedes(found):
                self._ahead[found.ticket] = found.marker.txn
            elif found.marker.live and self._adopt(found):
                return
        self._take(max([latest, self._dead, *listed]) + 1)

    def wait(self, dead: Callable[[], int]) -> None:
        """Return when no live ticket of another transaction precedes ours; at once if we hold none.

        `dead` follows the table's log and gives the highest ticket that a published entry named. Each look
        costs one GET: of the log, which says how far the queue has come, or of the nearest predecessor's
        marker, which says whether it was given up. Who is next looks often, who is far behind less so. A
        ticket whose owner's lease is stale is freed. If somebody freed ours, because we slept, we
        claim again, behind all others.
        """
        if self._held is None:
            return
        self._leases.busy(self._txn)
        try:
            watch = None
            while self._keep_place():
                now, nearest = self._environment.elapsed(), max(self._ahead)
                if watch is None or watch.ticket != nearest:
                    watch = _Watch(nearest, now, now + _FIRST_LOOK * self._leases.seconds)
                ahead = len(self._ahead)
                self._look(watch, dead)
                if len(self._ahead) < ahead:
                    watch.moved_at = self._environment.elapsed()
                else:
                    watch.pause(ahead, self._environment)
        finally:
            self._leases.idle(self._txn)

    def free(self) -> None:
        """Give our place up, by a tombstone (one replace). Nothing if we hold none, or if somebody freed it.

        Also after the commit was published, so that those who wait for us need not look at the log.
        """
        held, self._held, self._ahead = self._held, None, {}
        if held is None:
            return
        try:
            bury(self._store, self._environment, held)
        except Unavailable as failure:
            _log.warning("ticket %d of %s could not be freed: %s", held.ticket, self._txn, failure)

    # Claiming.

    def _listed(self) -> list[int]:
        start = keys.marker(self._dead) if self._dead else ""
        tickets = (keys.ticket_of(meta.key) for meta in self._store.list(keys.MARKERS, start))
        return [ticket for ticket in tickets if ticket is not None]

    def _precedes(self, found: ReadMarker) -> bool:
        """A ticket of one's own never precedes, whichever attempt holds it."""
        return found.marker.live and found.marker.txn != self._txn

    def _adopt(self, found: ReadMarker) -> bool:
        """Go on at the place of an earlier attempt of this transaction; False if somebody freed it.

        Otherwise we would queue behind those who wait for that ticket, whose lease we renew ourselves.
        """
        mine = self._marker()
        answer = self._store.replace(keys.marker(found.ticket), mine.encode(), found.etag)
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
            found = understand(self._store, ticket, answer.found or self._store.get(keys.marker(ticket)))
            if found is not None and self._precedes(found):
                self._ahead[ticket] = found.marker.txn
            ticket += 1

    def _create(self, ticket: int, mine: Marker) -> Created | Exists:
        try:
            return self._store.create(keys.marker(ticket), mine.encode())
        except Ambiguous:
            # A marker of ours that shows up later is nobody's: it dies with the lease, or before that with
            # the next entry that names a higher ticket.
            found = self._store.get(keys.marker(ticket))
            if found is None:
                raise
            ours = found.data == mine.encode()
            return Created(found.etag) if ours else Exists(doubtful=True, found=found)

    def _marker(self) -> Marker:
        return Marker(
            txn=self._txn,
            attempt=self._attempt,
            put=self._environment.new_id(),
            claimed_ms=self._environment.now_ms(),
            live=True,
            precedes=self.predecessors,
        )

    def _hold(self, held: ReadMarker) -> None:
        self._held = held
        self._confirmed = self._environment.elapsed()

    # Waiting.

    def _keep_place(self) -> bool:
        """Whether somebody precedes us, after we made sure that our own place is still ours."""
        self._refuse_if_fenced()
        assert self._held is not None, "only `free` gives our place up, and `claim` takes another"
        if self._is_lost(self._held):
            lost = self._held.ticket
            _log.warning("ticket %d of %s was freed or overtaken; claiming again", lost, self._txn)
            self.free()
            self._environment.sleep(FIRST_PAUSE_SECONDS * (1 + self._environment.random()))
            self.claim(lost, self._dead)
        return bool(self._ahead)

    def _refuse_if_fenced(self) -> None:
        if self._leases.fenced(self._txn):
            raise Fenced(f"another client resumed transaction {self._txn} and goes on with it")

    def _is_lost(self, held: ReadMarker) -> bool:
        """Whether others no longer wait for us. Nobody frees a ticket before a lease time has passed."""
        if held.ticket <= self._dead:
            return True
        now = self._environment.elapsed()
        if now - self._confirmed < self._leases.seconds:
            return False
        found = read_marker(self._store, held.ticket)
        self._confirmed = now
        return found is None or found.marker.put != held.marker.put

    def _look(self, watch: "_Watch", dead: Callable[[], int]) -> None:
        """Take those from `_ahead` that no longer precede us. Frees the nearest if its owner is stale."""
        watch.looks += 1
        if len(self._ahead) > 1 and watch.looks % 2:
            self._follow(dead())
            return
        found = read_marker(self._store, watch.ticket)
        if found is None or not self._precedes(found):
            del self._ahead[watch.ticket]
        elif self._environment.elapsed() >= watch.lease_look_at:
            watch.lease_look_at = self._environment.elapsed() + _NEXT_LOOK * self._leases.seconds
            # Its owner may have published, and died before it freed the ticket.
            self._follow(dead())
            if watch.ticket in self._ahead and self._leases.is_stale(found.marker.txn, found.marker.put):
                self._free_stale(found)

    def _free_stale(self, found: ReadMarker) -> None:
        # If another waiter was faster, or the owner came back, the next look tells.
        if bury(self._store, self._environment, found):
            _log.warning(
                "freed ticket %d: its owner, transaction %s, shows no sign of life",
                found.ticket,
                found.marker.txn,
            )

    def _follow(self, dead: int) -> None:
        self._dead = max(self._dead, dead)
        self._ahead = {ticket: txn for ticket, txn in self._ahead.items() if ticket > self._dead}


@dataclass(slots=True)
class _Watch:
    """How the nearest predecessor is watched; `moved_at` is when the queue moved last, as far as we know."""

    ticket: int
    moved_at: float
    lease_look_at: float
    looks: int = 0

    def pause(self, ahead: int, environment: Environment) -> None:
        """A tenth of what we waited already, more for each one ahead: nobody's turn is shorter than that."""
        waited = environment.elapsed() - self.moved_at
        pause = max(FIRST_PAUSE_SECONDS * ahead, waited / 10)
        environment.sleep(min(pause, LONGEST_PAUSE_SECONDS) * (0.5 + environment.random()))
