"""A view of a store below a prefix: a table's folder seen as a root of its own."""

from collections.abc import Iterator, Sequence

from lakevilla.store.keys import check_key
from lakevilla.store.port import Changed, Created, Exists, Meta, Object, Replaced, Store


class Prefixed:
    """`store`, with every key below `prefix` (a folder, without slashes at its ends)."""

    def __init__(self, store: Store, prefix: str) -> None:
        self._store = store
        self._prefix = check_key(prefix) + "/"

    def __repr__(self) -> str:
        return f"Prefixed({self._store!r}, {self._prefix[:-1]!r})"

    @property
    def url(self) -> str:
        return f"{self._store.url}/{self._prefix[:-1]}"

    def get(self, key: str) -> Object | None:
        return self._store.get(self._prefix + key)

    def get_range(self, key: str, start: int, length: int) -> bytes | None:
        return self._store.get_range(self._prefix + key, start, length)

    def head(self, key: str) -> Meta | None:
        found = self._store.head(self._prefix + key)
        return found and self._below(found)

    def list(self, prefix: str, start_after: str = "") -> Iterator[Meta]:
        after = self._prefix + start_after if start_after else ""
        return map(self._below, self._store.list(self._prefix + prefix, after))

    def list_folders(self, prefix: str) -> Sequence[str]:
        return self._store.list_folders(self._prefix + prefix)

    def put(self, key: str, data: bytes) -> None:
        self._store.put(self._prefix + key, data)

    def create(self, key: str, data: bytes) -> Created | Exists:
        return self._store.create(self._prefix + key, data)

    def replace(self, key: str, data: bytes, etag: str) -> Replaced | Changed:
        return self._store.replace(self._prefix + key, data, etag)

    def delete(self, key: str) -> None:
        self._store.delete(self._prefix + key)

    def _below(self, meta: Meta) -> Meta:
        return Meta(meta.key[len(self._prefix) :], meta.size, meta.etag, meta.modified_ms)
