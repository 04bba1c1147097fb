"""Requests and bytes, counted. Tests hold the promised request counts against it, receipts show it."""

from collections.abc import Iterator, Sequence
from threading import Lock

from lakevilla.store.port import Changed, Created, Exists, Meta, Object, Replaced, Store

KINDS = ("get", "get_range", "head", "list", "put", "create", "replace", "delete")

# How many objects one answer to a list holds on S3; each further page is a request.
_PAGE = 1000


class Meter:
    """Counts by kind of request. One meter may serve several stores and many threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._counts = dict.fromkeys((*KINDS, "bytes_in", "bytes_out"), 0)

    def count(self, kind: str, bytes_out: int = 0) -> None:
        """One request of this kind, and the bytes that it sends."""
        with self._lock:
            self._counts[kind] += 1
            self._counts["bytes_out"] += bytes_out

    def receive(self, size: int) -> None:
        """The bytes that a request brought in, which is counted already."""
        with self._lock:
            self._counts["bytes_in"] += size

    def snapshot(self) -> dict[str, int]:
        """Requests by kind, `bytes_in` and `bytes_out`, up to now."""
        with self._lock:
            return dict(self._counts)

    @property
    def total(self) -> int:
        """All requests up to now."""
        counts = self.snapshot()
        return sum(counts[kind] for kind in KINDS)


class Metered:
    """`store`, counted by `meter`. A request counts when it is sent, so failures count too."""

    def __init__(self, store: Store, meter: Meter) -> None:
        self._store = store
        self._meter = meter

    def __repr__(self) -> str:
        return f"Metered({self._store!r})"

    @property
    def url(self) -> str:
        return self._store.url

    def get(self, key: str) -> Object | None:
        self._meter.count("get")
        found = self._store.get(key)
        self._meter.receive(len(found.data) if found else 0)
        return found

    def get_range(self, key: str, start: int, length: int) -> bytes | None:
        self._meter.count("get_range")
        found = self._store.get_range(key, start, length)
        self._meter.receive(len(found) if found else 0)
        return found

    def head(self, key: str) -> Meta | None:
        self._meter.count("head")
        return self._store.head(key)

    def list(self, prefix: str, start_after: str = "") -> Iterator[Meta]:
        self._meter.count("list")
        for place, meta in enumerate(self._store.list(prefix, start_after)):
            if place and place % _PAGE == 0:
                self._meter.count("list")
            yield meta

    def list_folders(self, prefix: str) -> Sequence[str]:
        self._meter.count("list")
        return self._store.list_folders(prefix)

    def put(self, key: str, data: bytes) -> None:
        self._meter.count("put", len(data))
        self._store.put(key, data)

    def create(self, key: str, data: bytes) -> Created | Exists:
        self._meter.count("create", len(data))
        return self._store.create(key, data)

    def replace(self, key: str, data: bytes, etag: str) -> Replaced | Changed:
        self._meter.count("replace", len(data))
        return self._store.replace(key, data, etag)

    def delete(self, key: str) -> None:
        self._meter.count("delete")
        self._store.delete(key)
