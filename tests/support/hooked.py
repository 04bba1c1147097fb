"""A store that lets a test step in right before a request, and that lists objects as older than they are."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from lakevilla.store.port import Changed, Created, Exists, Meta, Object, Replaced, Store

Hook = Callable[[str, str], None]


class Hooked:
    """`inner`, with `hook` called with the kind and the key of every request before it is sent."""

    def __init__(self, inner: Store) -> None:
        self.inner = inner
        self.hook: Hook | None = None
        self.older_ms = 0

    @property
    def url(self) -> str:
        return self.inner.url

    def get(self, key: str) -> Object | None:
        self._step("get", key)
        return self.inner.get(key)

    def get_range(self, key: str, start: int, length: int) -> bytes | None:
        self._step("get_range", key)
        return self.inner.get_range(key, start, length)

    def head(self, key: str) -> Meta | None:
        self._step("head", key)
        return self.inner.head(key)

    def list(self, prefix: str, start_after: str = "") -> Iterator[Meta]:
        self._step("list", prefix)
        for meta in self.inner.list(prefix, start_after):
            yield replace(meta, modified_ms=meta.modified_ms - self.older_ms)

    def list_folders(self, prefix: str) -> Sequence[str]:
        self._step("list_folders", prefix)
        return self.inner.list_folders(prefix)

    def put(self, key: str, data: bytes) -> None:
        self._step("put", key)
        self.inner.put(key, data)

    def create(self, key: str, data: bytes) -> Created | Exists:
        self._step("create", key)
        return self.inner.create(key, data)

    def replace(self, key: str, data: bytes, etag: str) -> Replaced | Changed:
        self._step("replace", key)
        return self.inner.replace(key, data, etag)

    def delete(self, key: str) -> None:
        self._step("delete", key)
        self.inner.delete(key)

    def _step(self, kind: str, key: str) -> None:
        if self.hook is not None:
            self.hook(kind, key)
