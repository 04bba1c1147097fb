"""Faults on order, for tests: the n-th request fails, loses its answer, or applies twice.

A plan is asked about every request, with its kind (as the meter names them), its key and its number,
counted from 1; it answers with a fault or None. Requests that are sent at the same time ask at the same time:
a plan may wait without holding up others, and a plan that counts needs a lock of its own. Tests mostly need
the plans of `nth` and `always`.
"""

from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from threading import Lock
from typing import TypeVar

from lakevilla.store.port import Changed, Created, Exists, Meta, Object, Replaced, Store, Unanswered

T = TypeVar("T")


class Fault(Enum):
    """What happens to a request."""

    FAILS = "unanswered, and it did not apply"
    LOST = "it applies, and the answer is lost"
    TWICE = "it applies twice, and the second answer is given"


Plan = Callable[[str, str, int], Fault | BaseException | None]


def nth(faults: dict[int, Fault | BaseException], kind: str = "") -> Plan:
    """Faults by the number of the request, counted among those of one kind if a kind is given."""
    seen, lock = 0, Lock()

    def plan(asked: str, _key: str, _number: int) -> Fault | BaseException | None:
        nonlocal seen
        if kind and asked != kind:
            return None
        with lock:
            seen += 1
            return faults.get(seen)

    return plan


def always(fault: Fault | BaseException, kind: str = "") -> Plan:
    """The same fault for every request, or for every request of one kind."""
    return lambda asked, _key, _number: fault if not kind or asked == kind else None


class Faulty:
    """`store`, with the faults of `plan`."""

    def __init__(self, store: Store, plan: Plan) -> None:
        self._store = store
        self._plan = plan
        self._lock = Lock()
        self._requests = 0

    def __repr__(self) -> str:
        return f"Faulty({self._store!r})"

    @property
    def url(self) -> str:
        return self._store.url

    def get(self, key: str) -> Object | None:
        return self._do("get", key, lambda: self._store.get(key))

    def get_range(self, key: str, start: int, length: int) -> bytes | None:
        return self._do("get_range", key, lambda: self._store.get_range(key, start, length))

    def head(self, key: str) -> Meta | None:
        return self._do("head", key, lambda: self._store.head(key))

    def list(self, prefix: str, start_after: str = "") -> Iterator[Meta]:
        yield from self._do("list", prefix, lambda: self._store.list(prefix, start_after))

    def list_folders(self, prefix: str) -> Sequence[str]:
        return self._do("list", prefix, lambda: self._store.list_folders(prefix))

    def put(self, key: str, data: bytes) -> None:
        self._do("put", key, lambda: self._store.put(key, data))

    def create(self, key: str, data: bytes) -> Created | Exists:
        return self._do("create", key, lambda: self._store.create(key, data))

    def replace(self, key: str, data: bytes, etag: str) -> Replaced | Changed:
        return self._do("replace", key, lambda: self._store.replace(key, data, etag))

    def delete(self, key: str) -> None:
        self._do("delete", key, lambda: self._store.delete(key))

    def _do(self, kind: str, key: str, request: Callable[[], T]) -> T:
        with self._lock:
            self._requests += 1
            number = self._requests
        fault = self._plan(kind, key, number)
        if isinstance(fault, BaseException):
            raise fault
        if fault is Fault.FAILS:
            raise Unanswered(f"{kind} {key}: planned to fail")
        answer = request()
        if fault is Fault.LOST:
            raise Unanswered(f"{kind} {key}: planned to lose its answer")
        return request() if fault is Fault.TWICE else answer
