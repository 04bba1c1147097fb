"""Faults on order, when requests are sent at the same time."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from lakevilla.environment import SystemEnvironment
from lakevilla.store.faulty import Fault, Faulty, nth
from lakevilla.store.open import open_adapter
from lakevilla.store.port import Store, Unanswered

SECONDS = 10.0
"""More than any request takes; a test that waits so long has failed."""


@pytest.fixture
def inner() -> Store:
    return open_adapter("memory://", None, SystemEnvironment())


def test_plan_that_waits_for_another_request_does_not_hold_it_up(inner: Store) -> None:
    other_done = Event()

    def plan(_kind: str, key: str, _number: int) -> None:
        if key == "first":
            assert other_done.wait(SECONDS), "the other request was held up"

    store = Faulty(inner, plan)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(store.put, "first", b"1")
        pool.submit(store.put, "second", b"2").result(SECONDS)
        other_done.set()
        first.result(SECONDS)
    assert [meta.key for meta in inner.list("")] == ["first", "second"]


def test_requests_at_the_same_time_have_numbers_of_their_own(inner: Store) -> None:
    numbers: list[int] = []
    store = Faulty(inner, lambda _kind, _key, number: numbers.append(number))
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: store.put(f"k{n}", b""), range(400)))
    assert sorted(numbers) == list(range(1, 401))


def test_each_planned_fault_meets_one_of_many_requests(inner: Store) -> None:
    store = Faulty(inner, nth({3: Fault.FAILS, 50: Fault.FAILS, 77: Fault.FAILS}, "put"))

    def failed(number: int) -> bool:
        try:
            store.put(f"k{number}", b"")
        except Unanswered:
            return True
        return False

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(failed, range(200))) == 3
