"""Latency added to a store that has none: a cloud's distance for benchmarks on one machine."""

from collections.abc import Iterator, Sequence

from lakevilla.environment import Environment
from lakevilla.store.port import Changed, Created, Exists, Meta, Object, Replaced, Store


class Delayed:
    """`store`, with `seconds` of waiting before every request."""

    def __init__(self, store: Store, environment: Environment, seconds: float) -> None:
        self._store = store
        self._environment = environment
        self._seconds = seconds

    def __repr__(self) -> str:
        return f"Delayed({self._store!r}, {self._seconds})"

    @property
    def url(self) -> str:
        return self._store.url

    def get(self, key: str) -> Object | None:
        self._wait()
        return self._store.get(key)

    def get_range(self, key: str, start: int, length: int) -> bytes | None:
        self._wait()
        return self._store.get_range(key, start, length)

    def head(self, key: str) -> Meta | None:
        self._wait()
        return self._store.head(key)

    def list(self, prefix: str, start_after: str = "") -> Iterator[Meta]:
        self._wait()
        yield from self._store.list(prefix, start_after)

    def list_folders(self, prefix: str) -> Sequence[str]:
        self._wait()
        return self._store.list_folders(prefix)

    def put(self, key: str, data: bytes) -> None:
        self._wait()
        self._store.put(key, data)

    def create(self, key: str, data: bytes) -> Created | Exists:
        self._wait()
        return self._store.create(key, data)

    def replace(self, key: str, data: bytes, etag: str) -> Replaced | Changed:
        self._wait()
        return self._store.replace(key, data, etag)

    def delete(self, key: str) -> None:
        self._wait()
        self._store.delete(key)

    def _wait(self) -> None:
        self._environment.sleep(self._seconds)
