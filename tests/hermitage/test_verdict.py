"""The player and the judge, tried on systems of which we know what they do."""

from collections.abc import Callable

import pytest

from tests.hermitage import player
from tests.hermitage.outcome import End, Ended, Outcome
from tests.hermitage.player import Place, Program, play
from tests.hermitage.scripts.anomalies import SCRIPTS
from tests.hermitage.scripts.notation import Layout, Rows
from tests.hermitage.scripts.orders import telling_orders
from tests.hermitage.scripts.script import FIRST_ROWS, Script
from tests.hermitage.systems.fakes import (
    Dirty,
    FirstCommitterWins,
    KeepsStaleReads,
    NeverEnds,
    OneAtATime,
    Refused,
)
from tests.hermitage.verdict import (
    complaint,
    complaint_across,
    find_order_of_writers,
    find_serial_order,
    find_snapshot_order,
    find_unjust,
)

BY_NAME = {script.name: script for script in SCRIPTS}
SHORT = [script for script in SCRIPTS if script.name != "otv"]


def _complaints(script: Script, place: Callable[[], Place], patience_seconds: float = 5) -> list[str]:
    outcomes = [play(place(), script, order, patience_seconds) for order in script.orders()]
    return [found for outcome in outcomes if (found := complaint(script, outcome))]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_system_without_transactions_shows_every_anomaly_by_name(script: Script) -> None:
    revealing = telling_orders(script, 3)
    assert len(revealing) == 3
    for order in revealing:
        assert script.anomaly in complaint(script, play(Dirty(), script, order, 5))


@pytest.mark.parametrize("script", SHORT, ids=lambda script: script.name)
@pytest.mark.parametrize("again", [False, True])
def test_first_committer_wins_shows_no_anomaly(script: Script, again: bool) -> None:
    assert _complaints(script, lambda: FirstCommitterWins(again)) == []


@pytest.mark.parametrize(
    "name", ["p4", "g2-item", "g2", "g2-two-edges", "g-single-write-1", "g1c", "pmp-write"]
)
def test_stale_reads_under_a_redo_are_found(name: str) -> None:
    # What pmp-write reads is what it left itself.
    assert bool(_complaints(BY_NAME[name], KeepsStaleReads)) == (name != "pmp-write")


@pytest.mark.parametrize(("name", "explained"), [("g2-item", True), ("g1c", True), ("p4", False)])
def test_snapshots_explain_write_skew_and_no_lost_update(name: str, explained: bool) -> None:
    script = BY_NAME[name]
    outcomes = [play(KeepsStaleReads(), script, order, 5) for order in script.orders()]
    unexplained = [outcome for outcome in outcomes if find_serial_order(script, outcome) is None]
    assert unexplained
    assert {find_snapshot_order(script, outcome) is not None for outcome in unexplained} == {explained}


def test_snapshots_explain_no_mixture_of_instants() -> None:
    script = BY_NAME["g-single"]
    (order,) = telling_orders(script, 1)
    assert find_snapshot_order(script, play(Dirty(), script, order, 5)) is None


@pytest.mark.parametrize("name", ["g0", "otv", "g2-two-edges"])
def test_step_that_blocks_lets_the_others_go_on(name: str) -> None:
    script = BY_NAME[name]
    outcome = play(OneAtATime(), script, script.order, patience_seconds=0.05)
    assert find_serial_order(script, outcome) is not None
    assert outcome.committed(*script.transactions)


def test_transaction_that_is_run_again_counts_with_its_last_reads() -> None:
    p4 = BY_NAME["p4"]
    outcome = play(FirstCommitterWins(again=True), p4, p4.order, 5)
    assert outcome.reads("T1") == (((1, 10),),)
    assert outcome.reads("T2") == (((1, 11),),)


def test_system_that_never_ends_a_commit_is_stuck(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(player, "STUCK_SECONDS", 0.1)
    script = BY_NAME["g-single-write-2"]
    outcome = play(NeverEnds(), script, script.order, 0.01)
    assert outcome.transactions["T1"].end is End.ABORTED
    assert outcome.transactions["T2"].end is End.STUCK
    assert script.anomaly in complaint(script, outcome)


def test_failure_that_is_no_refusal_is_raised() -> None:
    class Broken(Dirty):
        def run(self, program: Program) -> None:
            raise ZeroDivisionError

    script = BY_NAME["p4"]
    with pytest.raises(ZeroDivisionError):
        play(Broken(), script, script.order, 5)


def test_refusal_with_nobody_to_give_way_to_is_unjust() -> None:
    class Moody(FirstCommitterWins):
        def run(self, program: Program) -> None:
            super().run(program)
            raise Refused("no reason")

    script = BY_NAME["g1a"]
    assert find_unjust(play(Moody(), script, script.order, 5)) == (
        "T2 was refused, and no other transaction committed: no reason"
    )


def _outcome(final: Rows, **reads: tuple[int, int, Rows]) -> Outcome:
    """An outcome of transactions that committed: began, ended, and the rows of one read."""
    ended = {name: Ended(End.COMMITTED, (rows,), began, end) for name, (began, end, rows) in reads.items()}
    return Outcome(ended, final)


READ_AND_WRITE = Script("s", "T1 r1,c; T2 r1,w1=11,c", "", seen=lambda outcome: True)


@pytest.mark.parametrize(
    ("ended", "explained"),
    [(1, None), (3, ("T1", "T2"))],
    ids=["after_the_commit", "beside_the_commit"],
)
def test_old_value_is_explained_only_beside_the_commit(ended: int, explained: object) -> None:
    old = ((1, 10),)
    outcome = _outcome(((1, 11), (2, 20)), T1=(2, 4, old), T2=(0, ended, old))
    assert find_serial_order(READ_AND_WRITE, outcome) == explained


@pytest.mark.parametrize(
    "final",
    [FIRST_ROWS, ((1, 11),), ((1, 11), (1, 11), (2, 20)), ((1, 11), (2, 20), (3, 30))],
    ids=["update_lost", "row_lost", "row_twice", "row_from_nowhere"],
)
def test_wrong_rows_at_the_end_are_not_explained(final: Rows) -> None:
    outcome = _outcome(final, T1=(0, 9, ((1, 10),)), T2=(0, 9, ((1, 10),)))
    assert find_serial_order(READ_AND_WRITE, outcome) is None


ACROSS = Layout(tables=("a", "b"))
READ_BOTH = Script("s", "T1 r1,r2,c; T2 w1=11,w2=21,c", "", seen=lambda outcome: True, readers_differ=True)
OLD, NEW = ((1, 10), (2, 20)), ((1, 11), (2, 21))


def _of_reader(*reads: Rows, began: int = 0) -> Outcome:
    """An outcome of T2, which wrote both tables from 1 to 3, and of T1, which read this meanwhile."""
    ended = {"T1": Ended(End.COMMITTED, reads, began, 9), "T2": Ended(End.COMMITTED, (), 1, 3)}
    return Outcome(ended, NEW)


def test_reader_may_see_tables_at_different_instants_where_the_script_says_so() -> None:
    outcome = _of_reader(((1, 10),), ((2, 21),))
    assert find_serial_order(READ_BOTH, outcome) is None
    assert find_order_of_writers(READ_BOTH, outcome, ACROSS) == ("T2",)
    assert complaint_across(READ_BOTH, outcome, ACROSS) == ""
    strict = Script("s", READ_BOTH.steps, "", seen=READ_BOTH.seen)
    assert "no serial order" in complaint_across(strict, outcome, ACROSS)


@pytest.mark.parametrize(
    ("outcome", "what"),
    [
        (_of_reader(((1, 10),), ((2, 21),), began=4), "the old value after the commit"),
        (_of_reader(((1, 12),), ((2, 21),)), "a value that was never written"),
        (_of_reader((), ((2, 21),)), "no row"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_reader_sees_each_table_at_an_instant_that_was(outcome: Outcome, what: str) -> None:
    assert find_order_of_writers(READ_BOTH, outcome, ACROSS) is None, what


def test_reader_sees_one_table_at_one_instant_only() -> None:
    script = Script("s", "T1 r1,r*,c; T2 w1=11,w2=21,c", "", seen=lambda outcome: True, readers_differ=True)
    assert find_order_of_writers(script, _of_reader(((1, 10),), ((1, 10), (2, 21))), ACROSS)
    assert find_order_of_writers(script, _of_reader(((1, 10),), ((1, 11), (2, 21))), ACROSS) is None


def test_who_writes_is_not_excused_as_a_reader() -> None:
    skew, reads = BY_NAME["g2-item"], (((1, 10),), ((2, 20),))
    ends = {name: Ended(End.COMMITTED, reads, 0, 9) for name in ("T1", "T2")}
    assert find_order_of_writers(skew, Outcome(ends, ((1, 11), (2, 21))), ACROSS) is None
