"""Bounded retries with jitter, and read-back for conditional writes (docs/protocol.md, section 1).

A request that went unanswered may have applied. Reads, puts and deletes are simply asked again. A
conditional write is asked again too, and whenever one is rejected the object that it met is read: every
record that we write under a condition carries a unique put-id, so equal bytes are proof that it is ours.
That holds without an unanswered try as well: a proxy may have repeated the request, and handed us the
second answer. Only a lost race costs the extra read, never the uncontended path.

`Ambiguous` is raised when a conditional write may have applied and the budget (or the store) ends before
it is known; everything else ends as `Unavailable`. A late copy of a write that was taken for lost can do
no harm: the key is taken (create), or the tag has moved on for good (replace), because content never
repeats.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from lakevilla.environment import Environment
from lakevilla.errors import LakeVillaError, Unavailable
from lakevilla.store.port import (
    Ambiguous,
    Changed,
    Created,
    Exists,
    Meta,
    Object,
    Replaced,
    Store,
    Unanswered,
)

T = TypeVar("T")

TRIES = 8
BUDGET_SECONDS = 30.0
_FIRST_PAUSE_SECONDS = 0.05
_LONGEST_PAUSE_SECONDS = 5.0

_log = logging.getLogger("lakevilla.store")


class Retrying:
    """`store`, asked again while requests go unanswered, at most `tries` times and `seconds` long."""

    def __init__(
        self,
        store: Store,
        environment: Environment,
        *,
        tries: int = TRIES,
        seconds: float = BUDGET_SECONDS,
    ) -> None:
        self._store = store
        self._environment = environment
        self._tries = tries
        self._seconds = seconds

    def __repr__(self) -> str:
        return f"Retrying({self._store!r})"

    @property
    def url(self) -> str:
        return self._store.url

    def get(self, key: str) -> Object | None:
        return self._budget(least=2).ask(lambda: self._store.get(key))

    def get_range(self, key: str, start: int, length: int) -> bytes | None:
        return self._budget(least=2).ask(lambda: self._store.get_range(key, start, length))

    def head(self, key: str) -> Meta | None:
        return self._budget(least=2).ask(lambda: self._store.head(key))

    def list(self, prefix: str, start_after: str = "") -> Iterator[Meta]:
        budget = self._budget(least=2)
        pages = self._store.list(prefix, start_after)
        while True:
            try:
                for meta in pages:
                    yield meta
                    start_after = meta.key
                    budget = self._budget(least=2)
                return
            except Unanswered as failure:
                budget.pause(failure)
                pages = self._store.list(prefix, start_after)

    def list_folders(self, prefix: str) -> Sequence[str]:
        return self._budget(least=2).ask(lambda: self._store.list_folders(prefix))

    def put(self, key: str, data: bytes) -> None:
        self._budget().ask(lambda: self._store.put(key, data))

    def delete(self, key: str) -> None:
        self._budget().ask(lambda: self._store.delete(key))

    def create(self, key: str, data: bytes) -> Created | Exists:
        budget = self._budget()
        answer = self._write(key, budget, lambda: self._store.create(key, data))
        doubtful = budget.doubtful
        if isinstance(answer, Created):
            return Created(answer.etag, doubtful)
        found = self._read_back(key, budget)
        if found is not None and found.data == data:
            return Created(found.etag, doubtful)
        if found is None and doubtful:
            # The client that deleted it may have deleted ours: to create it again could revive what was
            # ended.
            raise Ambiguous(f"{key} was deleted meanwhile; whether it was ours cannot be known")
        return Exists(doubtful, found)

    def replace(self, key: str, data: bytes, etag: str) -> Replaced | Changed:
        budget = self._budget()
        answer = self._write(key, budget, lambda: self._store.replace(key, data, etag))
        if isinstance(answer, Replaced):
            return answer
        doubtful = budget.doubtful
        found = self._read_back(key, budget)
        if found is not None and found.data == data:
            return Replaced(found.etag)
        return Changed(doubtful)

    def _write(self, key: str, budget: "_Budget", request: Callable[[], T]) -> T:
        try:
            return budget.ask(request)
        except Unavailable as failure:
            # A refusal answers its own try only; an earlier one may have applied.
            if budget.doubtful:
                raise Ambiguous(f"it is not known whether {key} was written: {failure}") from failure
            raise

    def _read_back(self, key: str, budget: "_Budget") -> Object | None:
        try:
            return budget.ask(lambda: self._store.get(key))
        except LakeVillaError as failure:
            raise Ambiguous(f"it is not known whether {key} was written: {failure}") from failure

    def _budget(self, least: int = 1) -> "_Budget":
        return _Budget(self._environment, self._store, self._tries, self._seconds, least)


class _Budget:
    """What one request may still spend, and whether a try of it went unanswered (`doubtful`).

    A machine that slept while a request was on its way has lost its connection and all of the time: `least`
    tries are made all the same. For reads only: a write that was asked for before the sleep may build on what
    is too old by now, so the code that wanted it decides.
    """

    def __init__(
        self, environment: Environment, store: Store, tries: int, seconds: float, least: int
    ) -> None:
        self.doubtful = False
        self._environment = environment
        self._store = store
        self._tries = tries
        self._least = least
        self._done = 0
        self._end = environment.elapsed() + seconds

    def ask(self, request: Callable[[], T]) -> T:
        while True:
            try:
                return request()
            except Unanswered as failure:
                self.pause(failure)

    def pause(self, failure: Unanswered) -> None:
        """Wait before the next try, or say that the budget is spent."""
        self.doubtful = True
        self._done += 1
        pause = self._environment.random() * min(_LONGEST_PAUSE_SECONDS, _FIRST_PAUSE_SECONDS * 2**self._done)
        late = self._done >= self._least and self._environment.elapsed() + pause > self._end
        if late or self._done >= self._tries:
            url = self._store.url
            raise Unavailable(f"{url} did not answer {self._done} times; last: {failure}") from failure
        _log.info("try %d went unanswered, again in %.2f s: %s", self._done, pause, failure)
        self._environment.sleep(pause)
