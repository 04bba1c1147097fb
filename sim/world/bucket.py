"""The simulated store's content: what one applied request does. No time, no faults, no clients.

Contract: each method applies one request of `lakevilla.store.port.Store` at one instant, as a strongly
consistent object store with conditional writes does. Every write and delete is kept in `writes`, in
the order in which it applied, so that checkers can look at any prefix.
"""

import hashlib
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import islice, takewhile

from lakevilla.store.port import Changed, Created, Exists, Meta, Object, Replaced

EPOCH_MS = 1_760_000_000_000
"""When simulated time begins, by the store's clock."""


@dataclass(frozen=True, slots=True)
class Write:
    """One applied write. `data` is None for a delete."""

    at: float
    client: str
    kind: str
    key: str
    data: bytes | None


@dataclass(frozen=True, slots=True)
class _Held:
    data: bytes
    etag: str
    modified_ms: int


class Bucket:
    """Objects by key. With `content_etags`, equal contents have equal tags, as on many stores."""

    def __init__(self, *, content_etags: bool = False) -> None:
        self.writes: list[Write] = []
        self._objects: dict[str, _Held] = {}
        self._keys: list[str] = []  # sorted: Python's order of texts is that of their UTF-8 bytes
        self._content_etags = content_etags

    def load(self, other: "Bucket") -> None:
        """Take over the content of another bucket, as if it had been written here before time began."""
        self.replay(replace(write, at=0.0) for write in other.writes)

    def replay(self, writes: Iterable[Write]) -> None:
        """Apply these writes again, each at its time."""
        for write in writes:
            if write.data is None:
                self.delete(write.at, write.client, write.key)
            else:
                self._write(write.at, write.client, write.kind, write.key, write.data)

    def contents(self) -> dict[str, bytes]:
        """All objects as they are now."""
        return {key: held.data for key, held in self._objects.items()}

    def get(self, key: str) -> Object | None:
        held = self._objects.get(key)
        return None if held is None else Object(held.data, held.etag)

    def get_range(self, key: str, start: int, length: int) -> bytes | None:
        held = self._objects.get(key)
        return None if held is None else held.data[start : start + length]

    def head(self, key: str) -> Meta | None:
        held = self._objects.get(key)
        return None if held is None else self._meta(key, held)

    def page(self, prefix: str, start_after: str, size: int) -> list[Meta]:
        """The first `size` objects with this prefix after the given key, in the order of UTF-8 bytes."""
        first = max(bisect_left(self._keys, prefix), bisect_right(self._keys, start_after))
        keys = takewhile(lambda key: key.startswith(prefix), islice(self._keys, first, first + size))
        return [self._meta(key, self._objects[key]) for key in keys]

    def folders(self, prefix: str) -> list[str]:
        keys = islice(self._keys, bisect_left(self._keys, prefix), None)
        below = (key[len(prefix) :] for key in takewhile(lambda key: key.startswith(prefix), keys))
        return sorted({rest.split("/", 1)[0] for rest in below if "/" in rest})

    def put(self, at: float, client: str, key: str, data: bytes) -> None:
        self._write(at, client, "put", key, data)

    def create(self, at: float, client: str, key: str, data: bytes) -> Created | Exists:
        if key in self._objects:
            return Exists()
        return Created(self._write(at, client, "create", key, data))

    def replace(self, at: float, client: str, key: str, data: bytes, etag: str) -> Replaced | Changed:
        held = self._objects.get(key)
        if held is None or held.etag != etag:
            return Changed()
        return Replaced(self._write(at, client, "replace", key, data))

    def delete(self, at: float, client: str, key: str) -> None:
        if self._objects.pop(key, None) is not None:
            del self._keys[bisect_left(self._keys, key)]
            self.writes.append(Write(at, client, "delete", key, None))

    def _write(self, at: float, client: str, kind: str, key: str, data: bytes) -> str:
        self.writes.append(Write(at, client, kind, key, data))
        mark = data if self._content_etags else str(len(self.writes)).encode()
        etag = hashlib.md5(mark, usedforsecurity=False).hexdigest()
        if key not in self._objects:
            insort(self._keys, key)
        self._objects[key] = _Held(data, etag, EPOCH_MS + round(at * 1000))
        return etag

    @staticmethod
    def _meta(key: str, held: _Held) -> Meta:
        return Meta(key, len(held.data), held.etag, held.modified_ms)
