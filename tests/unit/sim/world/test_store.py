"""The simulated store: each fate does what it says, to the bucket and to the client."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from lakevilla.store.port import Changed, Created, Exists, Replaced, Unanswered
from sim.world.client import Client, World
from sim.world.faults import TIMEOUT, Fate


class Script:
    """Gives the listed fates in turn, then answers everything."""

    def __init__(self, *fates: Fate) -> None:
        self._fates = list(fates)

    def fate(self, client: str, kind: str, key: str) -> Fate:
        return self._fates.pop(0) if self._fates else Fate(applies=(0.01,), answer=0, answer_after=0.02)


def play(
    body: Callable[[Client, list[Any]], None], *fates: Fate, content_etags: bool = False
) -> tuple[list[Any], World]:
    seen: list[Any] = []
    with World(0, lambda _: Script(*fates), content_etags=content_etags, page=2) as world:
        client = world.client("a")
        world.start(client, lambda: body(client, seen))
        world.run()
    return seen, world


def create(client: Client, seen: list[Any]) -> None:
    try:
        seen.append(client.store.create("k", b"1"))
    except Unanswered as unanswered:
        seen.append(str(unanswered))
    seen.append(client.store.get("k"))


def test_second_create_loses_and_writes_nothing():
    def body(client: Client, seen: list[Any]) -> None:
        seen.append(client.store.create("k", b"1"))
        seen.append(client.store.create("k", b"2"))

    seen, world = play(body)
    assert isinstance(seen[0], Created)
    assert seen[1] == Exists()
    assert world.bucket.contents() == {"k": b"1"}


def test_replace_with_a_stale_tag_writes_nothing():
    def body(client: Client, seen: list[Any]) -> None:
        first = client.store.create("k", b"1")
        assert isinstance(first, Created)
        seen.append(client.store.replace("k", b"2", first.etag))
        seen.append(client.store.replace("k", b"3", first.etag))

    seen, world = play(body)
    assert isinstance(seen[0], Replaced)
    assert seen[1] == Changed()
    assert world.bucket.contents() == {"k": b"2"}


def test_content_etags_repeat_when_content_repeats():
    def body(client: Client, seen: list[Any]) -> None:
        client.store.put("k", b"1")
        old = client.store.get("k")
        client.store.put("k", b"2")
        client.store.put("k", b"1")
        assert old is not None
        seen.append(client.store.replace("k", b"3", old.etag))

    assert isinstance(play(body, content_etags=True)[0][0], Replaced)
    assert play(body)[0][0] == Changed()


def test_refused_request_never_applies():
    seen, _ = play(create, Fate("refused", error="503", gives_up=0.1))
    assert seen == ["create k: 503", None]


def test_lost_answer_leaves_the_object():
    seen, _ = play(create, Fate("lost", applies=(0.1,), error="timeout", gives_up=TIMEOUT))
    assert seen[0] == "create k: timeout"
    assert seen[1].data == b"1"


def test_late_request_applies_after_the_client_gave_up():
    seen, world = play(create, Fate("late", applies=(TIMEOUT + 1,), error="timeout", gives_up=TIMEOUT))
    assert seen == ["create k: timeout", None]
    assert world.bucket.contents() == {"k": b"1"}


def test_request_that_applies_twice_may_say_exists_though_ours_is_there():
    seen, world = play(create, Fate("twice", applies=(0.1, 0.2), answer=1, answer_after=0.3))
    assert seen[0] == Exists()
    assert world.bucket.contents() == {"k": b"1"}


@pytest.mark.parametrize(
    ("fate", "left"),
    [
        (Fate("crash", crash="before"), {}),
        (Fate("crash", applies=(30.0,), crash="before"), {"k": b"1"}),
        (Fate("crash", applies=(0.1,), crash="applied"), {"k": b"1"}),
        (Fate("crash", applies=(0.1,), answer=0, answer_after=0.2, crash="answered"), {"k": b"1"}),
    ],
)
def test_crashed_client_has_a_dead_handle_even_in_finally(fate: Fate, left: dict[str, bytes]):
    def body(client: Client, seen: list[Any]) -> None:
        try:
            create(client, seen)
        finally:
            try:
                client.store.put("cleanup", b"")
            finally:
                seen.append("unwound")

    seen, world = play(body, fate)
    assert seen == ["unwound"]
    assert world.bucket.contents() == left


def test_cut_off_client_reaches_the_store_again_later():
    def body(client: Client, seen: list[Any]) -> None:
        for _ in range(3):
            try:
                client.store.put("k", b"1")
                seen.append("put")
            except Unanswered:
                seen.append("cut")
            client.environment.sleep(4.0)

    seen, _ = play(body, Fate("cut off", error="no route", gives_up=1.0, cut=8.0))
    assert seen == ["cut", "cut", "put"]


def test_listing_asks_page_by_page():
    def body(client: Client, seen: list[Any]) -> None:
        for name in ("b", "a/2", "a/1", "a/3", "ä"):
            client.store.put(name, b"x")
        sent = client.store.sent
        seen.append([meta.key for meta in client.store.list("a/")])
        seen.append(client.store.sent - sent)
        seen.append([meta.key for meta in client.store.list("", "a/2")])
        seen.append(client.store.list_folders(""))

    assert play(body)[0] == [["a/1", "a/2", "a/3"], 2, ["a/3", "b", "ä"], ["a"]]


def test_fan_out_interleaves_or_orders_but_returns_in_order():
    def body(client: Client, seen: list[Any]) -> None:
        for _ in range(8):
            tasks = [lambda n=n: (client.store.put(f"k{n}", b""), n)[1] for n in range(4)]
            seen.append(client.environment.fan_out(tasks))

    seen, world = play(body)
    assert seen == [[0, 1, 2, 3]] * 8
    # In at least one round a request was sent before the one before it was answered.
    sends = [event[3] for event in world.scheduler.trace]
    assert any(a == b == "send" for a, b in pairwise(sends))


def test_fan_out_runs_every_task_and_raises_the_first_failure():
    def body(client: Client, seen: list[Any]) -> None:
        def fail(n: int) -> None:
            client.store.put(f"k{n}", b"")
            raise ValueError(n)

        for _ in range(4):
            with pytest.raises(ValueError, match="0"):
                client.environment.fan_out([lambda n=n: fail(n) for n in range(3)])
        seen.append(client.store.sent)

    assert play(body)[0] == [12]
