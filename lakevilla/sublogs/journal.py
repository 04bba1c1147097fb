"""Writing and removing the sublogs of one attempt, in the background (module 2).

Nothing is stored for a transaction of one statement. When the second one starts, and it is not too early, the
record of the first is written, and from then on every record as soon as there is one. No statement waits for
that: a record that cannot be stored is tried again with the next one, and costs a restarted client the
statements from there on, never a commit.

One task at a time writes, in order, so the store always holds a prefix of the attempt's records. No lock
is held while a request runs.
"""

import logging
from collections.abc import Callable, Sequence
from functools import partial
from threading import Lock

from lakevilla.environment import Environment
from lakevilla.errors import LakeVillaError
from lakevilla.store import keys
from lakevilla.store.port import Store
from lakevilla.sublogs.records import Record, Sublog, Terms

logger = logging.getLogger("lakevilla.sublogs")

Task = Callable[[], None]
Start = Callable[[Task], Task]
"""Runs a task in the background; the returned function waits for its end (see `Environment.background`)."""


class Journal:
    """The sublogs of one attempt of a transaction. `store` is the lake's root.

    `agree` returns the terms that they record, before the first is stored; None if it is too early for that.
    """

    def __init__(
        self,
        store: Store,
        environment: Environment,
        start: Start,
        txn: str,
        attempt: str,
        begun_ms: int,
        agree: Callable[[], Terms | None] = Terms,
    ) -> None:
        self._store = store
        self._environment = environment
        self._start = start
        self._txn = txn
        self._attempt = attempt
        self._begun_ms = begun_ms
        self._agree = agree
        self._terms: Terms | None = None
        self._lock = Lock()
        self._records: list[Callable[[], Record]] = []
        self._stored = 0
        self._keys: list[str] = []
        self._older: tuple[str, ...] = ()
        self._statements = 0
        self._writing = False
        self._written: Task = lambda: None
        self._stopped = False
        self._ended = False

    @property
    def sent(self) -> bool:
        """Whether others may find something of this attempt."""
        with self._lock:
            return bool(self._keys)

    def next_statement(self) -> None:
        """A statement starts: if it is not the first, those before it are worth keeping."""
        self._statements += 1
        self.write()

    def note(self, record: Callable[[], Record]) -> None:
        """Something happened. The record is made where it is written: to encode it takes time."""
        with self._lock:
            if not self._stopped:
                self._records.append(record)

    def write(self) -> None:
        """Store what was noted, in the background, unless it is the only statement so far, or too early."""
        with self._lock:
            if self._writing or self._statements < 2 or not self._waiting():
                return
        self._terms = self._terms or self._agree()
        if self._terms is None:
            return
        with self._lock:
            self._writing = True
        self._written = self._start(self._write_all)

    def take_over(self, records: Sequence[Record], older: Sequence[str], terms: Terms) -> None:
        """Begin with what another attempt had done; stored when this returns.

        `older` are keys of earlier attempts, which go when this one ends.
        """
        self._terms = terms
        self._records = [partial(_itself, record) for record in records]
        self._put(self._new_key(), 0, self._records)
        self._stored, self._older, self._statements = len(records), tuple(older), 2

    def stop(self) -> None:
        """Note nothing any more; what was noted stays until the attempt ends."""
        with self._lock:
            self._stopped = True

    def remove(self, after: Task = lambda: None) -> None:
        """The attempt has ended: remove its sublogs in the background, and then do what comes after."""
        if self._end():
            self._start(partial(self._remove, after))

    def remove_now(self) -> None:
        """When this returns, no client can find the attempt; Unavailable if that cannot be guaranteed."""
        if self._end():
            self._written()
            self._delete()

    def _end(self) -> bool:
        """Write nothing any more; whether there is something to remove."""
        with self._lock:
            self._ended = True
            return bool(self._keys)

    def _waiting(self) -> bool:
        return self._stored < len(self._records) and not self._ended

    def _write_all(self) -> None:
        while (batch := self._next()) is not None:
            key, records = batch
            try:
                self._put(key, self._stored, records)
            except Exception as failure:
                # Also what is wrong with a record: the transaction does not depend on it.
                known = isinstance(failure, LakeVillaError)
                logger.warning(
                    "a sublog of transaction %s was not stored: %s", self._txn, failure, exc_info=not known
                )
                self._writing = False
                return
            self._stored += len(records)

    def _next(self) -> tuple[str, list[Callable[[], Record]]] | None:
        """The records that are not stored and their key; None (and the task has ended) if all are."""
        with self._lock:
            self._writing = self._waiting()
            return (self._new_key(), self._records[self._stored :]) if self._writing else None

    def _new_key(self) -> str:
        """Each try has its own key: a late copy of one never replaces another."""
        self._keys.append(keys.sublog(self._txn, self._attempt, len(self._keys)))
        return self._keys[-1]

    def _put(self, key: str, first: int, records: Sequence[Callable[[], Record]]) -> None:
        put, made = self._environment.new_id(), tuple(record() for record in records)
        assert self._terms is not None, "a stored record has its terms"
        sublog = Sublog(self._txn, self._attempt, put, self._begun_ms, first, made, self._terms)
        self._store.put(key, sublog.encode())

    def _remove(self, after: Task) -> None:
        self._written()
        try:
            self._delete()
        except LakeVillaError as failure:
            logger.warning("sublogs of transaction %s were left behind: %s", self._txn, failure)
            return
        after()

    def _delete(self) -> None:
        self._environment.fan_out([partial(self._store.delete, key) for key in (*self._keys, *self._older)])


def _itself(record: Record) -> Record:
    return record
