"""Retries and read-back, against faults on order."""

from collections.abc import Callable, Iterator

import pytest

from lakevilla.environment import SystemEnvironment
from lakevilla.errors import Unavailable
from lakevilla.store.faulty import Fault, Faulty, Plan, always, nth
from lakevilla.store.open import open_adapter
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
from lakevilla.store.prefixed import Prefixed
from lakevilla.store.retry import Retrying
from tests.unit.store.clocked import Clocked


@pytest.fixture
def inner() -> Store:
    return open_adapter("memory://", None, SystemEnvironment())


def retrying(inner: Store, plan: Plan, **budget: float) -> Retrying:
    return Retrying(Faulty(inner, plan), Clocked(), **budget)  # type: ignore[arg-type]


def content(store: Store, key: str) -> bytes:
    found = store.get(key)
    assert found is not None
    return found.data


@pytest.mark.parametrize("fault", list(Fault))
def test_create_hit_by_one_fault_is_ours(inner: Store, fault: Fault) -> None:
    store = retrying(inner, nth({1: fault}))
    created = store.create("k", b"ours")
    assert isinstance(created, Created)
    assert content(inner, "k") == b"ours"
    assert isinstance(inner.replace("k", b"next", created.etag), Replaced)


@pytest.mark.parametrize("fault", [Fault.FAILS, Fault.LOST])
def test_create_after_an_unanswered_try_is_doubtful(inner: Store, fault: Fault) -> None:
    """The first copy may have been there, and been deleted."""
    created = retrying(inner, nth({1: fault})).create("k", b"ours")
    assert isinstance(created, Created)
    assert created.doubtful
    plain = retrying(inner, nth({})).create("other", b"ours")
    assert isinstance(plain, Created)
    assert not plain.doubtful


@pytest.mark.parametrize("fault", [None, *Fault])
def test_create_of_a_taken_key_is_never_ours(inner: Store, fault: Fault | None) -> None:
    inner.put("k", b"theirs")
    store = retrying(inner, nth({1: fault} if fault else {}))
    found = inner.get("k")
    assert store.create("k", b"ours") == Exists(fault in (Fault.FAILS, Fault.LOST), found)
    assert content(inner, "k") == b"theirs"


@pytest.mark.parametrize("fault", list(Fault))
def test_replace_hit_by_one_fault_is_ours(inner: Store, fault: Fault) -> None:
    created = inner.create("k", b"old")
    assert isinstance(created, Created)
    replaced = retrying(inner, nth({1: fault})).replace("k", b"ours", created.etag)
    assert isinstance(replaced, Replaced)
    assert content(inner, "k") == b"ours"
    assert isinstance(inner.replace("k", b"next", replaced.etag), Replaced)


def test_replace_of_a_changed_object_is_lost_without_doubt(inner: Store) -> None:
    created = inner.create("k", b"old")
    assert isinstance(created, Created)
    inner.put("k", b"theirs")
    assert retrying(inner, nth({})).replace("k", b"ours", created.etag) == Changed(doubtful=False)


def test_replace_lost_and_overwritten_meanwhile_is_doubtful(inner: Store) -> None:
    created = inner.create("k", b"old")
    assert isinstance(created, Created)
    environment = Clocked()
    store = Retrying(Faulty(inner, nth({1: Fault.LOST})), environment)
    environment.sleep = lambda seconds: inner.put("k", b"theirs")  # type: ignore[method-assign]
    assert store.replace("k", b"ours", created.etag) == Changed(doubtful=True)


def test_create_whose_key_vanishes_before_the_read_back_is_ambiguous(inner: Store) -> None:
    def plan(kind: str, key: str, number: int) -> Fault | None:
        if kind == "get":
            inner.delete(key)
        return Fault.LOST if number == 1 else None

    with pytest.raises(Ambiguous):
        retrying(inner, plan).create("k", b"ours")


@pytest.mark.parametrize("fault", [Fault.FAILS, Fault.LOST])
def test_conditional_write_that_is_never_answered_is_ambiguous(inner: Store, fault: Fault) -> None:
    store = retrying(inner, always(fault))
    with pytest.raises(Ambiguous):
        store.create("k", b"ours")
    with pytest.raises(Ambiguous):
        store.replace("k", b"ours", "tag")


def test_refusal_after_an_unanswered_create_is_ambiguous(inner: Store) -> None:
    plan = nth({1: Fault.LOST, 2: Unavailable("permission was taken away")})
    with pytest.raises(Ambiguous, match="permission was taken away"):
        retrying(inner, plan).create("k", b"ours")


def test_refusal_of_the_first_try_is_plain(inner: Store) -> None:
    with pytest.raises(Unavailable) as failure:
        retrying(inner, nth({1: Unavailable("no permission")})).create("k", b"ours")
    assert not isinstance(failure.value, Ambiguous)


def test_read_back_that_fails_for_good_is_ambiguous(inner: Store) -> None:
    def plan(kind: str, key: str, number: int) -> Fault | None:
        return Fault.FAILS if kind == "get" or number == 1 else None

    inner.put("k", b"theirs")
    with pytest.raises(Ambiguous):
        retrying(inner, plan).create("k", b"ours")


REQUESTS: list[Callable[[Store], object]] = [
    lambda store: store.get("k"),
    lambda store: store.get_range("k", 0, 1),
    lambda store: store.head("k"),
    lambda store: list(store.list("")),
    lambda store: store.list_folders(""),
    lambda store: store.put("k", b"x"),
    lambda store: store.delete("k"),
]


@pytest.mark.parametrize("request_", REQUESTS)
def test_request_that_is_never_answered_is_unavailable(
    inner: Store, request_: Callable[[Store], object]
) -> None:
    with pytest.raises(Unavailable, match="did not answer 8 times") as failure:
        request_(retrying(inner, always(Fault.FAILS)))
    assert not isinstance(failure.value, Ambiguous)


@pytest.mark.parametrize("request_", REQUESTS)
def test_request_hit_by_faults_succeeds_at_last(inner: Store, request_: Callable[[Store], object]) -> None:
    inner.put("k", b"xyz")
    inner.put("f/k", b"")
    expected = request_(inner)
    inner.put("k", b"xyz") if expected is None else None
    faults = nth({1: Fault.FAILS, 2: Fault.LOST, 3: Fault.FAILS})
    assert request_(retrying(inner, faults)) == expected


def test_pauses_grow_with_jitter_and_end_with_the_seconds(inner: Store) -> None:
    environment = Clocked()
    store = Retrying(Faulty(inner, always(Fault.FAILS)), environment, tries=100, seconds=10)
    with pytest.raises(Unavailable):
        store.get("k")
    assert environment.pauses[:4] == [0.05, 0.1, 0.2, 0.4]
    assert max(environment.pauses) <= 2.5
    assert sum(environment.pauses) <= 10


READS: list[Callable[[Store], object]] = [
    lambda store: store.get("k"),
    lambda store: store.get_range("k", 0, 1),
    lambda store: store.head("k"),
    lambda store: list(store.list("")),
    lambda store: store.list_folders(""),
]


@pytest.mark.parametrize("read", READS)
def test_read_that_was_on_its_way_when_its_machine_slept_is_asked_again(
    inner: Store, read: Callable[[Store], object]
) -> None:
    environment = Clocked()
    inner.put("k", b"found")

    def fails_after_a_sleep(kind: str, key: str, number: int) -> Fault | None:
        if number > 1:
            return None
        environment.time += 3600
        return Fault.FAILS

    assert read(Retrying(Faulty(inner, fails_after_a_sleep), environment)) == read(inner)


class BreakingList(Prefixed):
    """A store whose listing breaks after every second object."""

    def list(self, prefix: str, start_after: str = "") -> Iterator[Meta]:
        for place, meta in enumerate(super().list(prefix, start_after)):
            if place == 2:
                raise Unanswered("the next page")
            yield meta


def test_listing_that_breaks_goes_on_where_it_was(inner: Store) -> None:
    for number in range(25):
        inner.put(f"p/{number:02d}", b"")
    store = Retrying(BreakingList(inner, "p"), Clocked())
    assert [meta.key for meta in store.list("")] == [f"{number:02d}" for number in range(25)]


def test_get_returns_the_object(inner: Store) -> None:
    inner.put("k", b"x")
    assert isinstance(retrying(inner, nth({})).get("k"), Object)
