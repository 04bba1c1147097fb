"""Stores whose conditional writes lie, and the probe that finds out."""

import pytest

from lakevilla.environment import SystemEnvironment
from lakevilla.errors import Unsupported
from lakevilla.store.open import open_adapter
from lakevilla.store.port import Changed, Created, Exists, Replaced, Store
from lakevilla.store.prefixed import Prefixed
from lakevilla.store.probe import probe
from lakevilla.store.retry import Retrying


class Honest(Prefixed):
    """A view that the liars below are made from."""

    def __init__(self) -> None:
        self.inner = open_adapter("memory://", None, SystemEnvironment())
        super().__init__(self.inner, "p")

    def tag(self, key: str) -> str:
        found = self.head(key)
        return found.etag if found else ""


class CreateOverwrites(Honest):
    def create(self, key: str, data: bytes) -> Created | Exists:
        self.put(key, data)
        return Created(self.tag(key))


class CreateOverwritesAndSaysExists(Honest):
    def create(self, key: str, data: bytes) -> Created | Exists:
        taken = self.head(key) is not None
        self.put(key, data)
        return Exists() if taken else Created(self.tag(key))


class ReplaceIgnoresTheTag(Honest):
    def replace(self, key: str, data: bytes, etag: str) -> Replaced | Changed:
        if self.head(key) is None:
            return Changed()
        self.put(key, data)
        return Replaced(self.tag(key))


class ReplaceCreates(Honest):
    def replace(self, key: str, data: bytes, etag: str) -> Replaced | Changed:
        if self.head(key) is None:
            self.put(key, data)
            return Replaced(self.tag(key))
        return super().replace(key, data, etag)


class ReplaceWritesAndSaysChanged(Honest):
    def replace(self, key: str, data: bytes, etag: str) -> Replaced | Changed:
        answer = super().replace(key, data, etag)
        if isinstance(answer, Changed) and self.head(key) is not None:
            self.put(key, data)
        return answer


class ReplaceComparesWhatIsSent(Honest):
    """Accepts a stale tag if the content sent is the one that the tag stood for."""

    def __init__(self) -> None:
        super().__init__()
        self.contents: dict[str, bytes] = {}

    def replace(self, key: str, data: bytes, etag: str) -> Replaced | Changed:
        found = self.get(key)
        if found is not None:
            self.contents[found.etag] = found.data
        if found is not None and self.contents.get(etag) == data:
            self.put(key, data)
            return Replaced(self.tag(key))
        return super().replace(key, data, etag)


class ReplaceGivesAWrongTag(Honest):
    def replace(self, key: str, data: bytes, etag: str) -> Replaced | Changed:
        answer = super().replace(key, data, etag)
        return Replaced("other") if isinstance(answer, Replaced) else answer


class ReplaceNeverSucceeds(Honest):
    def replace(self, key: str, data: bytes, etag: str) -> Replaced | Changed:
        return Changed()


class CreateNeverSucceeds(Honest):
    def create(self, key: str, data: bytes) -> Created | Exists:
        return Exists()


LIARS = [
    CreateOverwrites,
    CreateOverwritesAndSaysExists,
    ReplaceIgnoresTheTag,
    ReplaceCreates,
    ReplaceWritesAndSaysChanged,
    ReplaceComparesWhatIsSent,
    ReplaceGivesAWrongTag,
    ReplaceNeverSucceeds,
    CreateNeverSucceeds,
]


@pytest.mark.parametrize("liar", LIARS)
@pytest.mark.parametrize("wrapped", [False, True])
def test_lying_store_is_refused_and_left_clean(liar: type[Honest], wrapped: bool) -> None:
    store = liar()
    asked: Store = Retrying(store, SystemEnvironment()) if wrapped else store
    with pytest.raises(Unsupported, match="conditional writes"):
        probe(asked, SystemEnvironment())
    assert list(store.inner.list("")) == []


def test_honest_store_passes() -> None:
    probe(Honest(), SystemEnvironment())


class RepeatsACreateAfterTheDelete(Honest):
    """A proxy on the way sends a create again, once, after the object was deleted."""

    repeats = 1

    def create(self, key: str, data: bytes) -> Created | Exists:
        self.sent = data
        return super().create(key, data)

    def delete(self, key: str) -> None:
        super().delete(key)
        if self.repeats:
            self.repeats -= 1
            super().create(key, self.sent)


def test_honest_store_passes_though_a_request_is_repeated_late() -> None:
    store = RepeatsACreateAfterTheDelete()
    probe(store, SystemEnvironment())
    assert store.repeats == 0
