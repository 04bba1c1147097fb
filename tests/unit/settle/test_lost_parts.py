"""Which versions of a log may have been written since a slot was created."""

import pytest

from lakevilla.settle.lost_parts import versions_since

HOUR_MS = 3_600_000
SLOT_MS = 100 * HOUR_MS
BEFORE, AFTER = SLOT_MS - HOUR_MS - 1, SLOT_MS - HOUR_MS


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        pytest.param({7: BEFORE}, ([], True), id="nothing-since"),
        pytest.param({7: BEFORE, 8: AFTER, 9: AFTER}, ([9, 8], True), id="some-since"),
        pytest.param({8: AFTER, 9: AFTER}, ([9, 8], False), id="cleaned-up-since"),
        pytest.param({6: BEFORE, 8: AFTER}, ([8], False), id="gap-since"),
        pytest.param({3: BEFORE, 4: AFTER, 5: AFTER}, ([5, 4], True), id="back-to-the-validated-version"),
        pytest.param({4: AFTER, 5: AFTER}, ([5, 4], True), id="all-after-the-validated-version"),
        pytest.param({}, ([], False), id="no-times"),
    ],
)
def test_versions_since_a_slot_end_with_an_older_one_or_with_a_gap(
    written: dict[int, int], expected: tuple[list[int], bool]
) -> None:
    assert versions_since(written, 3, SLOT_MS) == expected


def test_without_a_time_of_the_slot_all_versions_after_the_validated_one_are_needed() -> None:
    assert versions_since({5: BEFORE, 6: AFTER}, 3, None) == ([6, 5], False)
    assert versions_since({4: BEFORE, 5: AFTER}, 3, None) == ([5, 4], True)
