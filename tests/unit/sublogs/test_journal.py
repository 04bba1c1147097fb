"""The journal of one attempt, in a simulated world: what is stored when, and what is left."""

from collections.abc import Callable, Iterator

import pytest

from lakevilla.store.retry import Retrying
from lakevilla.sublogs.finder import read_sublogs
from lakevilla.sublogs.journal import Journal
from lakevilla.sublogs.records import Saved, Terms
from sim.world.client import World
from sim.world.faults import Fate

TXN = "0" * 32


class Slow:
    """Every request applies after a second and is answered after two, but while `down` nothing is heard."""

    def __init__(self) -> None:
        self.down = False
        self.requests: list[tuple[str, str]] = []

    def fate(self, client: str, kind: str, key: str) -> Fate:
        if self.down:
            return Fate(error="down", gives_up=2.0)
        self.requests.append((kind, key.rpartition("/")[2]))
        return Fate(applies=(1.0,), answer=0, answer_after=2.0)


def _saved(name: str) -> Callable[[], Saved]:
    return lambda: Saved(name)


class Scene:
    """One client with one journal."""

    def __init__(self, plan: Slow) -> None:
        self.plan = plan
        self.world = World(0, lambda _: plan)
        self.client = self.world.client("a")
        self.environment = self.client.environment
        self.store = Retrying(self.client.store, self.environment)
        self.journal = Journal(self.store, self.environment, self.environment.background, TXN, TXN, 0)

    def play(self, body: Callable[[], None]) -> None:
        self.world.start(self.client, body)
        self.world.run()

    def left(self) -> list[str]:
        """The names that a client finds now."""
        found: list[str] = []

        def look() -> None:
            for left in read_sublogs(self.store, self.environment, TXN):
                found.extend(record.name for record in left.records if isinstance(record, Saved))

        self.play(look)
        return found


@pytest.fixture
def scene() -> Iterator[Scene]:
    scene = Scene(Slow())
    with scene.world:
        yield scene


def test_first_statement_alone_is_not_stored(scene: Scene) -> None:
    def work() -> None:
        scene.journal.next_statement()
        scene.journal.note(_saved("a"))
        scene.journal.write()
        scene.journal.remove()

    scene.play(work)
    assert (scene.plan.requests, scene.journal.sent) == ([], False)


def test_statements_are_stored_from_the_second_on_and_nobody_waits(scene: Scene) -> None:
    def work() -> None:
        for name in "abcd":
            scene.journal.next_statement()
            scene.environment.sleep(0.7)
            scene.journal.note(_saved(name))
            scene.journal.write()
        assert scene.environment.elapsed() < 3.0, "no request was waited for"

    scene.play(work)
    # The first put takes until the third statement has started: what came meanwhile goes together.
    assert scene.plan.requests == [("put", f"{n:08d}.json") for n in range(3)]
    assert scene.left() == ["a", "b", "c", "d"]


def test_end_removes_what_was_stored_also_what_is_still_on_its_way(scene: Scene) -> None:
    def work() -> None:
        scene.journal.next_statement()
        scene.journal.note(_saved("a"))
        scene.journal.next_statement()
        scene.environment.sleep(0.1)
        scene.journal.note(_saved("b"))
        scene.journal.remove()
        scene.journal.note(_saved("c"))
        scene.journal.write()

    scene.play(work)
    assert scene.plan.requests == [("put", "00000000.json"), ("delete", "00000000.json")]
    assert scene.left() == []


def test_end_before_anything_was_sent_sends_nothing(scene: Scene) -> None:
    def work() -> None:
        scene.journal.next_statement()
        scene.journal.note(_saved("a"))
        scene.journal.next_statement()
        scene.journal.remove()

    scene.play(work)
    assert scene.plan.requests == []


def test_removal_that_is_waited_for_leaves_nothing_when_it_returns(scene: Scene) -> None:
    found: list[object] = []

    def work() -> None:
        scene.journal.next_statement()
        scene.journal.note(_saved("a"))
        scene.journal.next_statement()
        scene.environment.sleep(0.1)
        scene.journal.remove_now()
        found.extend(read_sublogs(scene.store, scene.environment, TXN))

    scene.play(work)
    assert (found, scene.plan.requests[1][0]) == ([], "delete")


def test_record_that_could_not_be_stored_goes_with_the_next(scene: Scene) -> None:
    def work() -> None:
        scene.journal.next_statement()
        scene.journal.note(_saved("a"))
        scene.plan.down = True
        scene.journal.next_statement()
        scene.environment.sleep(600.0)
        scene.plan.down = False
        scene.journal.note(_saved("b"))
        scene.journal.write()

    scene.play(work)
    assert scene.plan.requests == [("put", "00000001.json")]
    assert scene.left() == ["a", "b"]


def test_record_that_cannot_be_made_fails_nobody(scene: Scene) -> None:
    def broken() -> Saved:
        raise TypeError("nonsense")

    def work() -> None:
        scene.journal.next_statement()
        scene.journal.note(_saved("a"))
        scene.journal.next_statement()
        scene.environment.sleep(5.0)
        scene.journal.note(broken)
        scene.journal.write()

    scene.play(work)
    assert scene.left() == ["a"]


def test_journal_that_takes_over_is_stored_at_once_and_removes_the_older_ones(scene: Scene) -> None:
    older = scene.journal
    newer = Journal(scene.store, scene.environment, scene.environment.background, TXN, "f" * 32, 0)

    def work() -> None:
        older.take_over([Saved("a")], [], Terms())
        (left,) = read_sublogs(scene.store, scene.environment, TXN)
        newer.take_over(left.records, left.keys, Terms())
        newer.note(_saved("b"))
        newer.write()
        scene.environment.sleep(5.0)
        both = read_sublogs(scene.store, scene.environment, TXN)
        assert [len(left.records) for left in both] == [1, 2]
        newer.remove()

    scene.play(work)
    assert scene.left() == []


def test_stopped_journal_keeps_what_it_has(scene: Scene) -> None:
    def work() -> None:
        scene.journal.next_statement()
        scene.journal.note(_saved("a"))
        scene.journal.next_statement()
        scene.journal.stop()
        scene.journal.note(_saved("b"))
        scene.journal.write()

    scene.play(work)
    assert scene.left() == ["a"]
