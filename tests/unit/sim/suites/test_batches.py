"""Batches of pipelines under the simulator: the judge and planted bugs show faults."""

import pytest

from sim.checkers.batches import App, check_batches
from sim.checkers.history import History
from sim.planted import batches as planted_batches
from sim.suites import batches
from sim.world.formats import FORMATS
from sim.world.row_engine import rows_engine
from tests.support.planted import catch


def test_equal_seeds_give_equal_traces() -> None:
    assert batches.play(3).trace_hash == batches.play(3).trace_hash


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(planted_batches.BUGS))
def test_planted_bug_of_batches_is_caught(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    batches.images(rows_engine, FORMATS["delta"])
    catch(planted_batches.BUGS[name](), batches.play, range(60), name, capsys)


@pytest.mark.parametrize(
    ("held", "replays", "finding"),
    [
        ((1000, 1001), (False, True), ""),
        ((1000, 1000, 1001), (False, True), "holds"),
        ((1000,), (False, True), "holds"),
        ((1001, 1000), (False, True), "holds"),
        ((1000, 1001), (False, False), "was committed by c0, c1"),
        ((1000, 1001), (True, False), "before it was committed"),
    ],
)
def test_judge_sees_what_is_wrong(held: tuple[int, ...], replays: tuple[bool, bool], finding: str) -> None:
    history = History()
    for number, replayed in enumerate(replays):
        op = history.begin(f"c{number}", "batches", "once", "pipe", 0, 2.0 * number)
        op.completed, op.outcome, op.result = 2.0 * number + 1, "ok", replayed
    found = check_batches(history, {"left/0": held}, [App("pipe", 0)], 2, ["left"])
    assert finding in "".join(found)
    assert bool(found) == bool(finding)
