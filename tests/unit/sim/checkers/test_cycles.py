"""The cycle checker on hand-made histories, and against brute force on random small ones."""

from random import Random

import pytest

from sim.checkers.isolation.cycles import Append, Read, Txn, find_anomalies
from sim.checkers.isolation.serial import find_serial_order


def kinds(*history: Txn, real_time: bool = True) -> list[str]:
    return [anomaly.kind for anomaly in find_anomalies(history, real_time=real_time)]


def test_serial_history_has_no_anomaly():
    assert (
        kinds(
            Txn(1, (Append("x", 1),)), Txn(2, (Read("x", (1,)), Append("x", 2))), Txn(3, (Read("x", (1, 2)),))
        )
        == []
    )


def test_read_of_a_failed_append_is_g1a():
    assert kinds(Txn(1, (Append("x", 1),), "failed"), Txn(2, (Read("x", (1,)),))) == ["G1a"]


def test_read_between_two_appends_of_one_transaction_is_g1b():
    history = (
        Txn(1, (Append("x", 1), Append("x", 2))),
        Txn(2, (Read("x", (1,)),)),
        Txn(3, (Read("x", (1, 2)),)),
    )
    assert kinds(*history) == ["G1b"]


def test_value_that_nobody_wrote_is_garbage():
    assert kinds(Txn(1, (Read("x", (9,)),))) == ["garbage"]


def test_value_read_twice_is_a_duplicate():
    assert kinds(Txn(1, (Append("x", 1),)), Txn(2, (Read("x", (1, 1)),))) == ["duplicate"]


def test_unequal_reads_in_one_transaction_are_internal():
    assert kinds(Txn(1, (Append("x", 1),)), Txn(2, (Read("x", ()), Read("x", (1,))))) == ["internal"]


def test_reads_that_are_no_prefix_of_each_other_are_incompatible():
    history = (
        Txn(1, (Append("x", 1),)),
        Txn(2, (Append("x", 2),)),
        Txn(3, (Read("x", (1, 2)),)),
        Txn(4, (Read("x", (2,)),)),
    )
    assert "incompatible-order" in kinds(*history)


def test_writers_in_opposite_orders_are_g0():
    history = (
        Txn(1, (Append("x", 1), Append("y", 1))),
        Txn(2, (Append("x", 2), Append("y", 2))),
        Txn(3, (Read("x", (1, 2)), Read("y", (2, 1)))),
    )
    assert kinds(*history)[0] == "G0"


def test_each_reads_the_other_is_g1c():
    history = Txn(1, (Append("x", 1), Read("y", (2,)))), Txn(2, (Append("y", 2), Read("x", (1,))))
    assert kinds(*history) == ["G1c"]


def test_old_and_new_in_one_read_is_g_single():
    history = (
        Txn(1, (Append("x", 1), Append("y", 1))),
        Txn(2, (Read("x", ()), Read("y", (1,)))),
        Txn(3, (Read("x", (1,)),)),
    )
    assert kinds(*history) == ["G-single"]


def test_write_skew_is_g2():
    history = (
        Txn(1, (Read("x", ()), Append("y", 1))),
        Txn(2, (Read("y", ()), Append("x", 2))),
        Txn(3, (Read("x", (2,)), Read("y", (1,)))),
    )
    assert kinds(*history) == ["G2"]


def test_stale_read_after_an_acknowledged_write_is_a_real_time_anomaly():
    history = (
        Txn(1, (Append("x", 1),), invoked=0, completed=1),
        Txn(2, (Read("x", ()),), invoked=2, completed=3),
        Txn(3, (Read("x", (1,)),), invoked=4, completed=5),
    )
    assert kinds(*history) == ["G-single-realtime"]
    assert kinds(*history, real_time=False) == []


def test_unknown_write_may_be_seen_or_not():
    assert kinds(Txn(1, (Append("x", 1),), "unknown"), Txn(2, (Read("x", (1,)),))) == []
    assert kinds(Txn(1, (Append("x", 1),), "unknown"), Txn(2, (Read("x", ()),))) == []


SKEW = (
    Txn(1, (Read("x", ()), Append("y", 1))),
    Txn(2, (Read("y", ()), Append("x", 2))),
    Txn(3, (Read("x", (2,)), Read("y", (1,)))),
)


def test_write_skew_is_allowed_if_both_have_snapshot_isolation():
    assert find_anomalies(SKEW, snapshot={1, 2}) == []


def test_write_skew_with_a_serializable_transaction_on_its_one_side_is_allowed_too():
    """It came first; the other one is allowed to have read what was before it."""
    assert find_anomalies(SKEW, snapshot={2}) == []


def test_lost_update_is_an_anomaly_with_snapshot_isolation_too():
    history = (
        Txn(1, (Read("x", ()), Append("x", 1))),
        Txn(2, (Read("x", ()), Append("x", 2))),
        Txn(3, (Read("x", (1, 2)),)),
    )
    assert [a.kind for a in find_anomalies(history, snapshot={1, 2})] == ["G-single"]


def test_read_skew_is_an_anomaly_with_snapshot_isolation_too():
    history = (
        Txn(1, (Append("x", 1), Append("y", 1))),
        Txn(2, (Read("x", ()), Read("y", (1,)), Append("z", 2))),
        Txn(3, (Read("x", (1,)), Read("z", (2,)))),
    )
    assert [a.kind for a in find_anomalies(history, snapshot={1, 2})] == ["G-single"]


def test_skew_by_way_of_a_third_that_only_reads_is_allowed_with_snapshot_isolation():
    """What a reader sees between two writers that each miss the other."""
    history = (
        Txn(1, (Read("x", ()), Read("y", ()), Append("x", 1))),
        Txn(2, (Read("y", ()), Append("y", 2))),
        Txn(3, (Read("x", ()), Read("y", (2,)))),
        Txn(4, (Read("x", (1,)), Read("y", (2,)))),
    )
    assert find_anomalies(history, snapshot={1, 2, 3}) == []
    assert [a.kind for a in find_anomalies(history)] == ["G2"]


def test_real_time_counts_only_where_it_is_promised():
    history = (
        Txn(1, (Append("x", 1),), invoked=0, completed=1),
        Txn(2, (Read("x", ()),), invoked=2, completed=3),
        Txn(3, (Read("x", (1,)),), invoked=4, completed=5),
    )
    assert find_anomalies(history, precedes=lambda a, b: (a.id, b.id) != (1, 2)) == []
    assert find_serial_order(history, precedes=lambda a, b: (a.id, b.id) != (1, 2)) == [2, 1, 3]
    assert find_serial_order(history) is None


@pytest.mark.parametrize("seed", range(4))
def test_random_histories_agree_with_brute_force(seed: int):
    """Transactions run on snapshots that are at times stale; a last one reads everything."""
    random = Random(seed)
    verdicts = set()
    for _ in range(300):
        history = random_history(random)
        clean = find_anomalies(history) == []
        assert clean == (find_serial_order(history) is not None), history
        verdicts.add(clean)
    assert verdicts == {True, False}


def random_history(random: Random) -> list[Txn]:
    states: list[dict[str, tuple[int, ...]]] = [{}]
    history = []
    for number in range(1, 5):
        seen = random.choice(states[-2:])
        now = dict(states[-1])
        steps: list[Append | Read] = []
        for key in random.sample("xyz", 2):
            if random.random() < 0.5:
                steps.append(Read(key, seen.get(key, ())))
            else:
                steps.append(Append(key, number))
                now[key] = (*now.get(key, ()), number)
        states.append(now)
        start = number + random.random()
        history.append(Txn(number, tuple(steps), "ok", start, start + random.random() * 2))
    final = tuple(Read(key, states[-1].get(key, ())) for key in "xyz")
    return [*history, Txn(9, final, "ok", 100, 101)]
