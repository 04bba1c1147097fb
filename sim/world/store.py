"""One client's handle on the simulated store: a request is sent, applies and is answered.

Contract: implements `lakevilla.store.port.Store` as a raw adapter does, below the `Retrying` decorator.
Each request is a switch point and meets the fate that the plan chooses. A handle belongs to one
process; when that is dead every request raises `Crashed`, also from `finally`.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from lakevilla.errors import Unavailable
from lakevilla.store.port import Changed, Created, Exists, Meta, Object, Replaced, Unanswered
from sim.world.bucket import Bucket
from sim.world.faults import Denial, Fate, Plan
from sim.world.scheduler import Crashed, Process, Scheduler, Ticket


class SimStore:
    """The store as one simulated client sees it."""

    def __init__(
        self, scheduler: Scheduler, bucket: Bucket, plan: Plan, process: Process, *, page: int = 1000
    ) -> None:
        self._scheduler = scheduler
        self.bucket = bucket
        self._plan = plan
        self._process = process
        self._page = page
        self._cut_until = 0.0
        self.sent = 0
        self.denials: list[Denial] = []

    @property
    def url(self) -> str:
        return "sim://bucket"

    def get(self, key: str) -> Object | None:
        found: Object | None = self.request("get", key, lambda: self.bucket.get(key))
        return found

    def get_range(self, key: str, start: int, length: int) -> bytes | None:
        found: bytes | None = self.request(
            "get_range", key, lambda: self.bucket.get_range(key, start, length)
        )
        return found

    def head(self, key: str) -> Meta | None:
        found: Meta | None = self.request("head", key, lambda: self.bucket.head(key))
        return found

    def list(self, prefix: str, start_after: str = "") -> Iterator[Meta]:
        after = start_after
        while True:
            ask = partial(self.bucket.page, prefix, after, self._page)
            page: Sequence[Meta] = self.request("list", prefix, ask)
            yield from page
            if len(page) < self._page:
                return
            after = page[-1].key

    def list_folders(self, prefix: str) -> Sequence[str]:
        found: Sequence[str] = self.request("list_folders", prefix, lambda: self.bucket.folders(prefix))
        return found

    def put(self, key: str, data: bytes) -> None:
        name = self._process.name
        self.request("put", key, lambda: self.bucket.put(self._scheduler.now, name, key, data))

    def create(self, key: str, data: bytes) -> Created | Exists:
        name = self._process.name
        answer: Created | Exists = self.request(
            "create", key, lambda: self.bucket.create(self._scheduler.now, name, key, data)
        )
        return answer

    def replace(self, key: str, data: bytes, etag: str) -> Replaced | Changed:
        name = self._process.name
        answer: Replaced | Changed = self.request(
            "replace", key, lambda: self.bucket.replace(self._scheduler.now, name, key, data, etag)
        )
        return answer

    def delete(self, key: str) -> None:
        name = self._process.name
        self.request("delete", key, lambda: self.bucket.delete(self._scheduler.now, name, key))

    def request(self, kind: str, key: str, apply: Callable[[], Any]) -> Any:
        """Send a request, and give back what it gave where it applied. Also for servers other than the
        store."""
        if self._process.dead:
            raise Crashed(self._process.name)
        self.sent += 1
        number = self.sent
        if self.denials and (denial := next((d for d in self.denials if d.concerns(kind, key)), None)):
            self._scheduler.sleep(0.01)
            self._scheduler.note(self._process.name, number, denial.ends, kind, key)
            if denial.ends == "denied":
                raise Unavailable(f"{kind} {key}: access denied")
            if denial.ends == "mute":
                apply()
            raise Unanswered(f"{kind} {key}: internal server error")
        fate = self._fate(kind, key)
        scheduler = self._scheduler
        scheduler.note(self._process.name, number, "send", kind, key, fate.fault)
        ticket = scheduler.ticket()
        results: dict[int, Any] = {}
        for index, delay in enumerate(fate.applies):
            scheduler.at(delay, partial(self._apply, number, fate, index, apply, results))
        if fate.crash == "before":
            scheduler.kill(self._process)
            raise Crashed(self._process.name)
        if fate.freeze:
            self._process.frozen_until = scheduler.now + fate.freeze
        if fate.answer is not None:
            scheduler.at(fate.answer_after, lambda: self._answer(number, fate, results, ticket))
        elif fate.crash is None:
            scheduler.at(fate.gives_up, lambda: scheduler.wake(ticket))
        scheduler.wait(ticket)
        if fate.answer is None:
            scheduler.note(self._process.name, number, "unanswered", fate.error)
            raise Unanswered(f"{kind} {key}: {fate.error}")
        return ticket.value

    def _fate(self, kind: str, key: str) -> Fate:
        if self._scheduler.now < self._cut_until:
            return Fate("cut off", error="no route", gives_up=0.5)
        fate = self._plan.fate(self._process.name, kind, key)
        if fate.cut:
            self._cut_until = self._scheduler.now + fate.cut
        return fate

    def _apply(
        self, number: int, fate: Fate, index: int, apply: Callable[[], Any], results: dict[int, Any]
    ) -> None:
        results[index] = _as_retried(apply(), index)
        self._scheduler.note(self._process.name, number, "apply", type(results[index]).__name__)
        if fate.crash == "applied":
            self._scheduler.kill(self._process)

    def _answer(self, number: int, fate: Fate, results: dict[int, Any], ticket: Ticket) -> None:
        assert fate.answer is not None
        if fate.crash == "answered":
            self._scheduler.kill(self._process)
            return
        self._scheduler.note(self._process.name, number, "answer")
        self._scheduler.wake(ticket, results[fate.answer])


def _as_retried(result: Any, index: int) -> Any:
    """An adapter that repeated a replace says so: the first try may have applied."""
    return Changed(doubtful=True) if index > 0 and isinstance(result, Changed) else result
