"""The leases of one client's transactions: one per transaction that holds tickets, however many tables.

A lease says that its owner is alive (docs/protocol.md, section 5). It is renewed in the background while a
statement runs and a bounded time after, so that a forgotten notebook blocks no client. The first renewal
comes after a third of the lease time: a short holder writes no lease at all. Nothing that must be right rests
on a lease; one that runs out too early costs its owner the place in the queue.

One background loop renews everything that is held, and ends when nothing is left to renew. No lock is held
while a request or a sleep runs.
"""

import logging
import os
from dataclasses import dataclass, field
from functools import partial
from threading import Lock

from lakevilla.environment import Environment
from lakevilla.errors import LakeVillaError, Unavailable
from lakevilla.markers.records import VACUUM, Lease
from lakevilla.markers.staleness import Observer
from lakevilla.store import keys
from lakevilla.store.port import Created, Replaced, Store

LEASE_SECONDS = 10.0
IDLE_SECONDS = 60.0

_BEATS_PER_LEASE = 3
_SHORTEST_PAUSE_SECONDS = 0.01

_log = logging.getLogger("lakevilla.markers")


@dataclass(eq=False, slots=True)
class _Holder:
    """One transaction of this client. `attempt` is None until it holds tickets.

    `etag` is that of our last beat. `doubtful` says that a beat failed and may be stored all the same;
    `writing` that one is on its way; `stays` that the lease is not deleted when it is released.
    """

    active_at: float
    attempt: str | None = None
    attempts: set[str] = field(default_factory=set)
    statements: int = 0
    due: float = 0.0
    beat: int = 0
    etag: str | None = None
    doubtful: bool = False
    writing: bool = False
    took_over: bool = False
    fenced: bool = False
    released: bool = False
    stays: bool = False

    def wants_beats(self, now: float, idle_seconds: float) -> bool:
        if self.attempt is None or self.fenced or self.released:
            return False
        return self.statements > 0 or now - self.active_at < idle_seconds

    def leaves_lease(self) -> bool:
        """Whether its end leaves a lease to delete. The lease of a client that took over stays, as a
        fence."""
        return (self.etag is not None or self.doubtful) and not self.took_over and not self.stays


class _State:
    """What the threads of one process share. Neither threads nor leases survive a fork."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.lock = Lock()
        self.holders: dict[str, _Holder] = {}
        self.fences: dict[str, _Holder] = {}
        """Transactions that we had taken over, and that have ended for us: their leases stay, as fences."""
        self.running = False


class Leases:
    """The leases that one client holds, and what it sees of others'. Shared by its transactions.

    `store` is the lake's root. `seconds` is the lease time, which all clients of a lake agree on.
    """

    def __init__(
        self,
        store: Store,
        environment: Environment,
        seconds: float = LEASE_SECONDS,
        idle_seconds: float = IDLE_SECONDS,
    ) -> None:
        self.seconds = seconds
        self._store = store
        self._environment = environment
        self._idle_seconds = idle_seconds
        self._period = seconds / _BEATS_PER_LEASE
        self._observer = Observer(store, environment, seconds)
        self._current = _State()

    # The owner's side.

    def hold(self, txn: str, attempt: str) -> None:
        """From now on the lease is renewed. No request here; again for another attempt of the same owner."""
        state, now = self._state(), self._environment.elapsed()
        with state.lock:
            holder = state.holders.setdefault(txn, _Holder(now))
            if holder.attempt is None:
                holder.due = now + self._period
            holder.attempt = attempt
            holder.attempts.add(attempt)
            holder.active_at = now
        self._start(state)

    def take_over(self, txn: str, attempt: str) -> None:
        """Hold the lease of a transaction that another client began, and fence that client (resume).

        Writes at once. `Unavailable` if the store cannot be reached: then nothing is held.
        """
        key = keys.lease(txn)
        while True:
            lease = Lease(txn, attempt, self._environment.new_id(), 1, self._environment.now_ms())
            found = self._store.get(key)
            data = lease.encode()
            answer = (
                self._store.create(key, data) if found is None else self._store.replace(key, data, found.etag)
            )
            if isinstance(answer, Created | Replaced):
                break
            self._environment.sleep(_SHORTEST_PAUSE_SECONDS)
        state, now = self._state(), self._environment.elapsed()
        with state.lock:
            state.holders[txn] = _Holder(
                now, attempt, {attempt}, due=now + self._period, beat=1, etag=answer.etag, took_over=True
            )
        self._start(state)

    def show(self, txn: str, attempt: str) -> str | None:
        """Write the lease now: from here on vacuum keeps what the transaction uploaded, for its retention.

        None if it is written; else the attempt of another client that took the transaction over, or of
        vacuum, which deletes what it left. `Unavailable` if the store cannot be reached.
        """
        self.hold(txn, attempt)
        state = self._state()
        while True:
            with state.lock:
                # Another transaction object of this client may have released it.
                holder = state.holders.setdefault(txn, _Holder(self._environment.elapsed()))
                holder.attempt = attempt
                holder.attempts.add(attempt)
                ready, holder.writing = not holder.writing, True
                holder.beat += ready
            if ready and (answer := self._show(state, txn, holder)) != "":
                return answer
            self._environment.sleep(_SHORTEST_PAUSE_SECONDS)

    def _show(self, state: _State, txn: str, holder: _Holder) -> str | None:
        """One beat for `show`; an empty text if the lease was in motion, so that it is tried again."""
        key = keys.lease(txn)
        etag, doubtful, found = holder.etag, True, None
        try:
            etag, fenced = self._write(txn, holder)
            found = self._store.get(key) if fenced else None
            doubtful = False
        finally:
            with state.lock:
                holder.writing = False
                holder.etag, holder.doubtful = etag, doubtful
        if etag is not None:
            return None
        if not fenced:
            return ""
        return VACUUM if found is None else Lease.decode(found.data, f"{self._store.url}/{key}").attempt

    def busy(self, txn: str) -> None:
        """A statement starts. Also before `hold`, so that it counts for a transaction that claims later."""
        state, now = self._state(), self._environment.elapsed()
        with state.lock:
            holder = state.holders.setdefault(txn, _Holder(now))
            holder.statements += 1
            holder.active_at = now
        self._start(state)

    def idle(self, txn: str) -> None:
        """A statement ended."""
        state = self._state()
        with state.lock:
            holder = state.holders.get(txn)
            if holder is not None:
                holder.statements = max(0, holder.statements - 1)
                holder.active_at = self._environment.elapsed()

    def release(self, txn: str, *, stays: bool = False) -> None:
        """The transaction ended: deletes its lease if one was written. One that `stays` keeps what the
        transaction uploaded for the retention.

        Never raises `Unavailable`: a lease that is left is stale soon.
        """
        state = self._state()
        with state.lock:
            holder = state.holders.pop(txn, None)
            if holder is None:
                return
            holder.released, holder.stays = True, stays
            if holder.took_over:
                state.fences[txn] = holder
            # A beat that is on its way would write the lease again: its end deletes it.
            remove = holder.leaves_lease() and not holder.writing
        if remove:
            self._delete(txn)

    def give_back(self, txn: str, attempt: str) -> None:
        """We took the transaction over, but do not continue it: its lease names this attempt again, so that a
        client which still works on it is not fenced by us. Never raises `Unavailable`."""
        self._leave_fence(txn, attempt, delete=False)

    def lift(self, txn: str) -> None:
        """Delete the lease of a transaction that we had taken over and released.

        Only once no client needs it as a fence: nothing of the transaction is left to be resumed, and either
        it was not committed by us, or its other clients meet the commit elsewhere. A lease that another
        client has taken over since is left alone: a delete has no condition, so a replace that has one comes
        before it, and the client that takes over after that finds no records.
        """
        self._leave_fence(txn, txn, delete=True)

    def _leave_fence(self, txn: str, attempt: str, delete: bool) -> None:
        state, key = self._state(), keys.lease(txn)
        with state.lock:
            holder = state.fences.pop(txn, None)
        if holder is None:
            return
        while holder.writing:
            self._environment.sleep(_SHORTEST_PAUSE_SECONDS)
        if holder.etag is None:
            return
        now_ms = self._environment.now_ms()
        ended = Lease(txn, attempt, self._environment.new_id(), holder.beat + 1, now_ms)
        try:
            answer = self._store.replace(key, ended.encode(), holder.etag)
        except Unavailable as failure:
            _log.warning("the lease of %s, which was taken over, stays behind: %s", txn, failure)
            return
        if delete and isinstance(answer, Replaced):
            self._delete(txn)

    def fenced(self, txn: str) -> bool:
        """Whether a beat found that another client took the transaction over. Asks nothing of the store."""
        state = self._state()
        with state.lock:
            holder = state.holders.get(txn)
            return holder is not None and holder.fenced

    # The observer's side.

    def is_stale(self, txn: str, sign: str) -> bool:
        """Whether this client saw the lease of `txn`, and `sign`, unchanged for the lease time.

        One GET per call; ask at least three times (see `Observer.is_stale`).
        """
        return self._observer.is_stale(txn, sign)

    def was_dead(self, txn: str) -> bool:
        """Whether this client has found `txn` dead before. Asks nothing of the store."""
        return self._observer.was_dead(txn)

    # The loop.

    def _state(self) -> _State:
        if self._current.pid != os.getpid():
            self._current = _State()
        return self._current

    def _start(self, state: _State) -> None:
        now = self._environment.elapsed()
        with state.lock:
            wanted = any(h.wants_beats(now, self._idle_seconds) for h in state.holders.values())
            if state.running or not wanted:
                return
            state.running = True
        try:
            self._environment.background(partial(self._renew, state))
        except BaseException:
            self._stopped(state)
            raise

    def _renew(self, state: _State) -> None:
        try:
            while (pause := self._pause(state)) is not None:
                self._environment.sleep(pause)
                self._environment.fan_out(
                    [partial(self._beat, state, txn, holder) for txn, holder in self._due(state)]
                )
        except BaseException:
            self._stopped(state)
            raise

    def _stopped(self, state: _State) -> None:
        with state.lock:
            state.running = False

    def _pause(self, state: _State) -> float | None:
        """Until the next beat, a period at the longest; None (and the loop has ended) if there is none."""
        now = self._environment.elapsed()
        with state.lock:
            dues = [h.due for h in state.holders.values() if h.wants_beats(now, self._idle_seconds)]
            if not dues:
                state.running = False
                return None
            return min(max(min(dues) - now, _SHORTEST_PAUSE_SECONDS), self._period)

    def _due(self, state: _State) -> list[tuple[str, _Holder]]:
        now = self._environment.elapsed()
        with state.lock:
            due = [
                (txn, holder)
                for txn, holder in state.holders.items()
                if holder.wants_beats(now, self._idle_seconds) and holder.due <= now
            ]
            for _, holder in due:
                holder.writing = True
                holder.beat += 1
                holder.due = now + self._period
            return due

    def _beat(self, state: _State, txn: str, holder: _Holder) -> None:
        try:
            etag, fenced, doubtful = *self._write(txn, holder), False
        except LakeVillaError as failure:
            _log.warning("the lease of %s could not be renewed, trying again: %s", txn, failure)
            etag, fenced, doubtful = holder.etag, False, True
        with state.lock:
            holder.writing = False
            holder.etag, holder.fenced, holder.doubtful = etag, fenced, doubtful
            if doubtful or etag is None:
                holder.due = self._environment.elapsed() + self._period / 2
            remove = holder.released and holder.leaves_lease()
        if fenced:
            _log.warning("transaction %s was taken over by another client", txn)
        if remove:
            self._delete(txn)

    def _write(self, txn: str, holder: _Holder) -> tuple[str | None, bool]:
        """One beat: the tag of the lease that is ours now, if any, and whether we are fenced."""
        key, old = keys.lease(txn), holder.etag
        assert holder.attempt is not None, "only holders beat"
        beat = Lease(txn, holder.attempt, self._environment.new_id(), holder.beat, self._environment.now_ms())
        data = beat.encode()
        answer = self._store.create(key, data) if old is None else self._store.replace(key, data, old)
        if isinstance(answer, Created | Replaced):
            return answer.etag, False
        found = self._store.get(key)
        if found is None:
            # Deleted, and we had one: only vacuum deletes another client's lease, of a transaction that it
            # takes for dead. The owner that we took over from deletes it once, when it ends.
            return None, old is not None and not holder.took_over
        # A beat of our own whose answer was lost is not a take-over.
        ours = Lease.decode(found.data, f"{self._store.url}/{key}").attempt in holder.attempts
        return (found.etag, False) if ours else (None, True)

    def _delete(self, txn: str) -> None:
        try:
            self._store.delete(keys.lease(txn))
        except Unavailable as failure:
            _log.warning("the lease of %s, which has ended, could not be deleted: %s", txn, failure)
