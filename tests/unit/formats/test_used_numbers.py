"""Had the number of a log entry been used before, and was that entry cleaned away?"""

import pytest

from lakevilla.formats.conditional_commit import was_used
from lakevilla.store.port import Meta

NOW_MS = 1_000_000_000


def _meta(seconds_ago: float) -> Meta:
    return Meta("key", 1, "etag", NOW_MS - int(seconds_ago * 1000))


@pytest.mark.parametrize(
    ("covering", "is_lowest", "expected"),
    [
        # Entries that were written before ours cover it: by their times alone, if clocks may be apart.
        pytest.param({3: 120.0}, False, True, id="long before ours"),
        pytest.param({3: 3.0}, False, False, id="right before ours, perhaps after it"),
        pytest.param({3: 3.0}, True, True, id="right before ours, and the log was cleaned up to ours"),
        pytest.param({3: 0.5}, True, False, id="at the same time"),
        pytest.param({3: -1.0, 4: -2.0}, True, False, id="after ours"),
        pytest.param({4: -1.0}, False, True, id="the entry right above ours is missing"),
    ],
)
def test_number_had_been_used_if_what_covers_it_is_older(
    covering: dict[int, float], is_lowest: bool, expected: bool
) -> None:
    found = {version: _meta(seconds) for version, seconds in covering.items()}
    assert was_used(_meta(0.0), found, 2, has_base=True, is_lowest=is_lowest) == expected


@pytest.mark.parametrize("has_base", [True, False])
def test_number_that_nothing_covers_had_been_used_if_its_base_is_not_there(has_base: bool) -> None:
    assert was_used(_meta(0.0), {}, 2, has_base) == (not has_base)
