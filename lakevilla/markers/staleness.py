"""When an owner counts as dead: its lease did not change for the lease time, as one observer saw it.

Only the observer's own clock counts (docs/protocol.md, section 1): what machines say the time is, and what
they wrote into a record, is never compared. What is observed are the tag of the lease, which every beat
changes, and the sign of the ticket (its put-id). An absent lease is a lease that does not change: a short
holder writes none.

A transaction that was found dead stays dead for this observer as long as its lease does not change, whatever
other tickets of it are met: its client would have renewed the lease before it took another ticket. So a dead
transaction delays an observer once, not once for each of its tables.
"""

from dataclasses import dataclass
from threading import Lock

from lakevilla.environment import Environment
from lakevilla.store import keys
from lakevilla.store.port import Store

_FORGET_AFTER = 20


@dataclass(slots=True)
class _Seen:
    """The tag that was seen, when last, and for how long it has been seen unchanged."""

    tag: str | None
    at: float
    unchanged: float = 0.0


class Observer:
    """What one client saw of other transactions' leases. Thread safe."""

    def __init__(self, store: Store, environment: Environment, seconds: float) -> None:
        self._store = store
        self._environment = environment
        self._seconds = seconds
        self._lock = Lock()
        self._seen: dict[tuple[str, str], _Seen] = {}
        self._dead: dict[str, _Seen] = {}

    def is_stale(self, txn: str, sign: str) -> bool:
        """Look once (one GET): has the lease been the same for the lease time, over all looks so far?

        The time between two looks counts for at most half of the lease time, so it takes three looks. An
        observer that was suspended together with the owner (one machine, one process) would otherwise
        find that nothing had changed, before the owner had a chance to beat.
        """
        before = self._environment.elapsed()
        found = self._store.get(keys.lease(txn))
        tag = None if found is None else found.etag
        now = self._environment.elapsed()
        with self._lock:
            dead = self._dead.get(txn)
            if dead is not None and dead.tag == tag:
                dead.at = now
                return True
            self._dead.pop(txn, None)
            seen = self._seen.get((txn, sign))
            if seen is None or seen.tag != tag:
                self._forget_old(now)
                self._seen[txn, sign] = _Seen(tag, now)
                return False
            # From the answer of the first look to the question of this one: never more than was seen.
            seen.unchanged += min(max(before - seen.at, 0.0), self._seconds / 2)
            seen.at = max(before, seen.at)
            if seen.unchanged < self._seconds:
                return False
            self._dead[txn] = _Seen(tag, now)
            return True

    def was_dead(self, txn: str) -> bool:
        """Whether a look has found the transaction dead, and none since has found it alive. No request."""
        with self._lock:
            return txn in self._dead

    def _forget_old(self, now: float) -> None:
        oldest = now - _FORGET_AFTER * self._seconds
        self._seen = {key: seen for key, seen in self._seen.items() if seen.at >= oldest}
        self._dead = {txn: seen for txn, seen in self._dead.items() if seen.at >= oldest}
