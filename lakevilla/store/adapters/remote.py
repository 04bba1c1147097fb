"""Object stores through obstore: S3 and its like, GCS, Azure, and memory behind the same class.

obstore's own retries are off (the opener does that): a retry that the caller does not see would turn
"our first try applied" into "another client's object is there". `Retrying` repeats, and reads back.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any

from lakevilla.store.adapters.answers import Answer
from lakevilla.store.adapters.ordered_listing import in_key_order, just_below
from lakevilla.store.keys import check_folder, check_key
from lakevilla.store.port import Changed, Created, Exists, Meta, Object, Replaced

PAGE = 1000

Request = Callable[[Any, Any], Any]


class Remote:
    """A bucket (or container) and a prefix in it.

    `connect` gives the obstore library and a client made by it; it is called again in a forked child,
    and when the store refuses credentials that a callable gave (`renewable`), once per refused request.
    `byte_ordered` says that the store is known to list by the bytes of whole keys. `tag` is the field
    of obstore's answers that conditional writes compare: GCS compares generations ("version").
    """

    def __init__(
        self,
        url: str,
        root: str,
        connect: Callable[[], tuple[ModuleType, Any]],
        *,
        byte_ordered: bool,
        renewable: bool = False,
        tag: str = "e_tag",
    ) -> None:
        self._url = url
        self._root = f"{root}/" if root else ""
        self._connect = connect
        self._byte_ordered = byte_ordered
        self._renewable = renewable
        self._tag = tag
        self._connection: tuple[int, ModuleType, Any] | None = None

    def __repr__(self) -> str:
        return f"Remote({self._url!r})"

    @property
    def url(self) -> str:
        return self._url

    def get(self, key: str) -> Object | None:
        def request(library: Any, client: Any) -> Object:
            result = library.get(client, self._full(key))
            return Object(bytes(result.bytes()), self._etag(result.meta))

        found: Object | Answer = self._ask(key, request)
        if not isinstance(found, Answer):
            return found
        if found.missing:
            return None
        raise found.error(self._url, "get")

    def get_range(self, key: str, start: int, length: int) -> bytes | None:
        if length == 0:
            return b"" if self.head(key) is not None else None

        def request(library: Any, client: Any) -> bytes:
            return bytes(library.get_range(client, self._full(key), start=start, length=length))

        found: bytes | Answer = self._ask(key, request)
        if not isinstance(found, Answer):
            return found
        if found.missing:
            return None
        if found.past_the_end:
            return b""
        raise found.error(self._url, "get")

    def head(self, key: str) -> Meta | None:
        found = self._ask(key, lambda library, client: library.head(client, self._full(key)))
        if not isinstance(found, Answer):
            return self._meta(found)
        if found.missing:
            return None
        raise found.error(self._url, "head")

    def list(self, prefix: str, start_after: str = "") -> Iterator[Meta]:
        # obstore's prefix is a whole folder; the rest of `prefix` is filtered here.
        folder = check_folder(prefix[: prefix.rfind("/") + 1])
        listing = self._list_folder(folder, prefix, max(prefix, start_after))
        if not self._byte_ordered:
            listing = in_key_order(folder, listing)
        return (meta for meta in listing if meta.key.startswith(prefix) and meta.key > start_after)

    def list_folders(self, prefix: str) -> Sequence[str]:
        folder = self._full(check_folder(prefix)).rstrip("/") or None
        found = self._ask_list(prefix, lambda library, client: library.list_with_delimiter(client, folder))
        return sorted(path[len(self._root + prefix) :] for path in found["common_prefixes"])

    def put(self, key: str, data: bytes) -> None:
        done = self._ask(key, lambda library, client: library.put(client, self._full(key), data))
        if isinstance(done, Answer):
            raise done.error(self._url, "put")

    def create(self, key: str, data: bytes) -> Created | Exists:
        def request(library: Any, client: Any) -> Any:
            return library.put(client, self._full(key), data, mode="create")

        done = self._ask(key, request)
        if not isinstance(done, Answer):
            return Created(self._etag(done))
        if done.exists:
            return Exists()
        raise done.error(self._url, "conditional put")

    def replace(self, key: str, data: bytes, etag: str) -> Replaced | Changed:
        def request(library: Any, client: Any) -> Any:
            return library.put(client, self._full(key), data, mode={self._tag: etag})

        done = self._ask(key, request)
        if not isinstance(done, Answer):
            return Replaced(self._etag(done))
        if done.changed:
            return Changed()
        raise done.error(self._url, "conditional put")

    def delete(self, key: str) -> None:
        done = self._ask(key, lambda library, client: library.delete(client, self._full(key)))
        if isinstance(done, Answer) and not done.missing:
            raise done.error(self._url, "delete")

    def _list_folder(self, folder: str, prefix: str, start: str) -> Iterator[Meta]:
        """The folder's objects from about `start` to the end of `prefix`, as the store orders them."""
        below = just_below(folder, start)
        where = self._full(folder).rstrip("/") or None
        offset = self._full(below) if below else None

        def first_page(library: Any, client: Any) -> tuple[Any, Any]:
            pages = library.list(client, where, offset=offset, chunk_size=PAGE)
            return pages, next(pages, None)

        stem = prefix[len(folder) :]
        pages, page = self._ask_list(folder, first_page)
        while page is not None:
            for meta in map(self._meta, page):
                name = meta.key[len(folder) :].partition("/")[0]
                if name[: len(stem)] > stem:
                    return
                yield meta
            page = self._ask_list(folder, lambda *_: next(pages, None), renew=False)

    def _ask(self, key: str, request: Request) -> Any:
        """The request's result, or the store's answer to it if that was an error."""
        return self._request(check_key(key), request, self._renewable)

    def _ask_list(self, folder: str, request: Request, renew: bool = True) -> Any:
        found = self._request(folder, request, renew and self._renewable)
        if isinstance(found, Answer):
            raise found.error(self._url, "list")
        return found

    def _request(self, key: str, request: Request, renew: bool) -> Any:
        library, client = self._connected()
        try:
            return request(library, client)
        except (library.exceptions.BaseError, FileNotFoundError) as failure:
            answer = Answer(failure, key, library.exceptions)
        if renew and answer.refused:
            self._connection = None
            return self._request(key, request, renew=False)
        return answer

    def _connected(self) -> tuple[Any, Any]:
        held = self._connection
        if held is None or held[0] != os.getpid():
            held = (os.getpid(), *self._connect())
            self._connection = held
        return held[1], held[2]

    def _full(self, key: str) -> str:
        return self._root + key

    def _meta(self, item: Any) -> Meta:
        modified_ms = int(item["last_modified"].timestamp() * 1000)
        return Meta(item["path"][len(self._root) :], item["size"], self._etag(item), modified_ms)

    def _etag(self, answer: Any) -> str:
        return answer[self._tag] or ""
