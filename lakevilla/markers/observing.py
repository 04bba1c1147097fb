"""When an owner is taken for gone: its lease did not change for the lease time, as one observer saw it.

Only the observer's own clock counts (docs/protocol.md, section 1): what machines say the time is, and what
they wrote into a record, is never compared. What is observed are the tag of the lease, which every beat
changes, and the sign of the ticket (its put-id). An absent lease is a lease that does not change: a short
holder writes none.
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
            seen = self._seen.get((txn, sign))
            if seen is None or seen.tag != tag:
                self._forget_old(now)
                self._seen[txn, sign] = _Seen(tag, now)
                return False
            # From the answer of the first look to the question of this one: never more than was seen.
            seen.unchanged += min(max(before - seen.at, 0.0), self._seconds / 2)
            seen.at = max(before, seen.at)
            return seen.unchanged >= self._seconds

    def _forget_old(self, now: float) -> None:
        oldest = now - _FORGET_AFTER * self._seconds
        self._seen = {key: seen for key, seen in self._seen.items() if seen.at >= oldest}
