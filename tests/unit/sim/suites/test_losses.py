"""Tables that are lost for good in the middle of commits: planted bugs are caught, and transactions that miss
what ended before they began."""

import pytest

from lakevilla.model import Features
from sim.checkers.history import History
from sim.checkers.isolation.cycles import Append, Read
from sim.planted import losses as planted_losses
from sim.suites import losses
from sim.suites.tables import BOTH
from sim.world.bucket import Bucket
from sim.world.formats import FORMATS
from sim.world.row_engine import rows_engine
from tests.support.planted import catch

LOST = "up"
FIRST = (Features.R, 1.0, 2.0, (Append("left/0", 1),))
"""A writer without slots: its commit is on one table."""
SECOND = (losses.ALL, 3.0, 4.0, (Append("right/0", 2),))
MISSING = (Read("left/0", ()), Read("right/0", (2,)), Append("right/0", 3))
"""It saw the second, and not the first, which ended before the second began."""


def judged(*transactions: tuple[Features, float, float, tuple[Append | Read, ...]]) -> list[str]:
    """Transactions with features, begin, end and steps. All are there at the end, but on the lost table."""
    history, final = History(), dict[str, tuple[int, ...]]()
    for number, (features, begun, ended, steps) in enumerate(transactions):
        op = history.begin(f"c{number}", "lists", "multi", features, number + 1, begun)
        op.result, op.outcome, op.completed = list(steps), "ok", ended
        for step in steps:
            if isinstance(step, Append) and not step.key.startswith(LOST):
                final[step.key] = (*final.get(step.key, ()), step.value)
    return losses.judge_left(history, final, LOST, Bucket())


def test_equal_seeds_give_equal_traces():
    assert losses.play(3).trace_hash == losses.play(3).trace_hash


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(planted_losses.BUGS))
def test_planted_bug_of_lost_tables_is_caught(name, capsys):
    losses.images(rows_engine, FORMATS["delta"])
    catch(planted_losses.BUGS[name](), losses.play, range(40), name, capsys)


def test_instant_without_a_writer_without_slots_is_no_violation() -> None:
    """Seed 60702: a client with I looks at `left` and is suspended. `left` is changed with R, and after that
    `right` with I: that instant has `right` as it is now, and `left` as it was."""
    assert losses.play(60702).violations == []
    assert judged(FIRST, SECOND, (losses.ALL, 0.0, 9.0, MISSING)) == []


@pytest.mark.parametrize(
    ("second", "features", "begun"),
    [
        pytest.param(SECOND, losses.ALL, 2.5, id="that ended before"),
        pytest.param((*SECOND[:3], (Read("left/0", (1,)), *SECOND[3])), losses.ALL, 0.0, id="in the instant"),
        pytest.param(SECOND, BOTH, 0.0, id="without I"),
        pytest.param(SECOND, BOTH, 2.5, id="without I, after the writer"),
    ],
)
def test_missed_writer_is_a_violation(
    second: tuple[Features, float, float, tuple[Append | Read, ...]], features: Features, begun: float
) -> None:
    for steps in (MISSING, (MISSING[1], MISSING[0], MISSING[2])):
        assert judged(FIRST, second, (features, begun, 9.0, steps)) != []
    seen = (Read("left/0", (1,)), *MISSING[1:])
    assert judged(FIRST, second, (features, begun, 9.0, seen)) == []


def test_missed_commit_is_a_violation_if_its_other_table_was_lost() -> None:
    """A slot orders it, though on the tables that are left it is a commit on one."""
    missing = (losses.ALL, 0.0, 9.0, MISSING)
    assert judged((BOTH, 1.0, 2.0, (Append("left/0", 1), Append(f"{LOST}/0", 1))), SECOND, missing) != []
    assert judged((BOTH, 1.0, 2.0, (Append("left/0", 1),)), SECOND, missing) == []
