"""Turns, spreads and ratios."""

from bench.measures.timing import interleave, ratio, spread, timed


def test_systems_take_turns_and_the_first_turn_too() -> None:
    order: list[str] = []
    runs = {name: lambda name=name: (order.append(name), {"x": len(order)})[1] for name in "ab"}

    values = interleave(runs, 2)

    assert order == ["a", "b", "b", "a"]
    assert values == {"x": {"a": [1, 4], "b": [2, 3]}}


def test_warm_up_rounds_are_not_counted() -> None:
    ran: list[int] = []

    values = interleave({"a": lambda: (ran.append(1), {"x": 1.0})[1]}, 3, warm_up=2)

    assert len(ran) == 5
    assert len(values["x"]["a"]) == 3


def test_counter_is_read_around_the_work_alone() -> None:
    count = iter(range(10, 100, 10))
    found = timed(lambda: next(count), {"requests": lambda: next(count)})

    assert found["requests"] == 20
    assert found["seconds"] >= 0


def test_equal_systems_have_an_interval_around_one() -> None:
    values = [1.0, 1.1, 0.9, 1.2, 0.8, 1.05, 0.95, 1.0] * 5
    found = ratio(values, values[::-1])

    assert found.low < 1 < found.high
    assert found.value == 1


def test_system_of_twice_the_speed_has_half_the_ratio() -> None:
    slow = [2.0, 2.2, 1.8, 2.1]
    found = ratio([value / 2 for value in slow], slow)

    assert (found.low, found.value, found.high) == (0.5, 0.5, 0.5)


def test_spread_tells_quartiles() -> None:
    found = spread([1.0, 2.0, 3.0, 4.0, 5.0])

    assert (found.lower, found.median, found.upper, found.count) == (2.0, 3.0, 4.0, 5)
