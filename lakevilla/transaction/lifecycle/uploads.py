"""Uploads that continue while the next statement runs.

A statement of a transaction is done when its rows are in files, not when the store has taken them: that is
only needed before a statement reads them, and before the commit names them.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from threading import Lock

from lakevilla.environment import Environment
from lakevilla.model import DataFile
from lakevilla.store.port import Changed, Created, Exists, Meta, Object, Replaced, Store

PENDING_BYTES = 64 * 1024 * 1024
"""How much may be on its way before a statement waits."""


@dataclass(frozen=True)
class _Pending:
    """An object on its way: how to send it, and how to wait for it."""

    size: int
    send: Callable[[], None]
    join: Callable[[], None]


class Uploads:
    """What one transaction has on its way to the store. Safe to use from many threads."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._pid = os.getpid()
        self._lock = Lock()
        self._pending: dict[str, _Pending] = {}

    def through(self, store: Store) -> Store:
        """The same store, with puts that run in the background."""
        return _Uploading(store, self)

    def start(self, store: Store, key: str, data: bytes) -> None:
        """Send an object. Raises what an earlier one that has to be waited for raised."""
        if self._bytes() + len(data) > PENDING_BYTES:
            self.finish()
        if len(data) > PENDING_BYTES:
            store.put(key, data)
            return
        send = partial(store.put, key, data)
        join = self._environment.background(send)
        with self._lock:
            self._pending[key] = _Pending(len(data), send, join)

    def wait_for(self, files: Iterable[DataFile]) -> None:
        """Wait if one of these files is on its way, or its deletes. Their names are unique, whatever the
        table."""
        with self._lock:
            pending = set(self._pending)
        if pending and any(not pending.isdisjoint(_keys(file)) for file in files):
            self.finish()

    def finish(self) -> None:
        """Wait until everything has arrived; raises the first failure.

        What did not arrive is sent again by the next call: nothing that is named may be missing, whatever
        the client makes of the failure.
        """
        with self._lock:
            waiting, self._pending = self._pending, {}
        failure: Exception | None = None
        for key, pending in waiting.items():
            try:
                # What was on its way when the process was forked is sent by the parent alone: a child that
                # needs it sends the same bytes again.
                (pending.join if self._pid == os.getpid() else pending.send)()
            except Exception as error:  # noqa: BLE001 - raised below, when the others have arrived
                failure = failure or error
                with self._lock:
                    self._pending[key] = replace(pending, join=pending.send)
        if failure is not None:
            raise failure

    def _bytes(self) -> int:
        with self._lock:
            return sum(pending.size for pending in self._pending.values())


def _keys(file: DataFile) -> tuple[str, ...]:
    """The files that a reader of this file reads."""
    return (file.key,) if file.deletes is None else (file.key, *file.deletes.keys)


class _Uploading:
    """A store whose puts are started, not waited for."""

    def __init__(self, store: Store, uploads: Uploads) -> None:
        self._store = store
        self._uploads = uploads

    @property
    def url(self) -> str:
        return self._store.url

    def put(self, key: str, data: bytes) -> None:
        self._uploads.start(self._store, key, data)

    def get(self, key: str) -> Object | None:
        return self._store.get(key)

    def get_range(self, key: str, start: int, length: int) -> bytes | None:
        return self._store.get_range(key, start, length)

    def head(self, key: str) -> Meta | None:
        return self._store.head(key)

    def list(self, prefix: str, start_after: str = "") -> Iterator[Meta]:
        return self._store.list(prefix, start_after)

    def list_folders(self, prefix: str) -> Sequence[str]:
        return self._store.list_folders(prefix)

    def create(self, key: str, data: bytes) -> Created | Exists:
        return self._store.create(key, data)

    def replace(self, key: str, data: bytes, etag: str) -> Replaced | Changed:
        return self._store.replace(key, data, etag)

    def delete(self, key: str) -> None:
        self._store.delete(key)
