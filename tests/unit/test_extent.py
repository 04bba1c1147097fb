"""Which cases of a test `@pytest.mark.sampled` leaves to `make test-long`."""

from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.extent import is_left_to_long


def cases_that_stay(step: int, *parametrize: tuple[str, Any]) -> list[tuple[Any, ...]]:
    """The values of the cases of a test with these marks that `make test` runs."""
    names = [name for name, _ in parametrize]
    marks = [pytest.mark.parametrize(*each).mark for each in parametrize]
    every = product(*(list(values) or [pytest.param] for _, values in parametrize))
    return [values for values in every if not is_left_to_long(_item(step, marks, names, values))]


def _item(step: int, marks: list[pytest.Mark], names: list[str], values: tuple[Any, ...]) -> Any:
    mark = pytest.mark.sampled(step).mark
    return SimpleNamespace(
        get_closest_marker=lambda name: mark if name == "sampled" else None,
        iter_markers=lambda name: iter(marks),
        callspec=SimpleNamespace(params=dict(zip(names, values, strict=True))),
    )


def test_every_nth_case_stays() -> None:
    assert cases_that_stay(3, ("n", range(7))) == [(0,), (3,), (6,)]
    assert cases_that_stay(2, ("name", {"a": 1, "b": 2, "c": 3})) == [("a",), ("c",)]


def test_each_value_of_several_lists_stays_in_some_case() -> None:
    stay = cases_that_stay(3, ("n", [10, 20, 30]), ("name", "abc"))
    assert len(stay) == 3
    assert [set(column) for column in zip(*stay, strict=True)] == [{10, 20, 30}, set("abc")]


def test_list_without_values_leaves_the_case_that_pytest_skips() -> None:
    assert len(cases_that_stay(4, ("entry", []))) == 1
