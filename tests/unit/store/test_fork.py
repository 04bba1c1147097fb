"""A store used before a fork works in the child, and in the child's child."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from lakevilla.environment import SystemEnvironment
from lakevilla.store.open import open_store
from lakevilla.store.port import Created, Store

CHILD_SECONDS = 30


def in_a_child(work: Callable[[], None]) -> int:
    """Run in a forked child; its exit code, or 14 negated if it hangs."""
    child = os.fork()
    if child == 0:
        signal.alarm(CHILD_SECONDS)
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def use(store: Store, name: str) -> None:
    assert isinstance(store.create(name, b"x"), Created)
    assert store.get("before") is not None
    assert store.get("none") is None
    assert name in [meta.key for meta in store.list("")]
    tasks = [lambda: store.head("before")] * 8
    assert None not in SystemEnvironment().fan_out(tasks)


def test_store_works_in_children_of_children(any_store: Store) -> None:
    any_store.put("before", b"x")

    def child() -> None:
        use(any_store, "child")
        assert in_a_child(lambda: use(any_store, "grandchild")) == 0
        use(any_store, "child-again")

    assert in_a_child(child) == 0
    use(any_store, "parent")
    if not any_store.url.startswith("memory://"):
        assert [meta.key for meta in any_store.list("")] == [
            "before",
            "child",
            "child-again",
            "grandchild",
            "parent",
        ]


def test_store_opened_in_a_child_works(
    tmp_path: Path, any_store: Store, any_place: tuple[str, dict[str, str]]
) -> None:
    if any_place[0] == "memory://":
        pytest.skip("memory is not shared with a child")
    any_store.put("before", b"x")
    assert in_a_child(lambda: use(open_store(*any_place), "child")) == 0
    assert any_store.get("child") is not None
