"""Times in texts, those of broken clocks too."""

import pytest

from lakevilla.timestamps import UNKNOWN, iso_text, utc_text

NOON_MS = 1_769_860_800_000


@pytest.mark.parametrize(
    ("time_ms", "people", "programs"),
    [
        (NOON_MS, "2026-01-31 12:00:00Z", "2026-01-31T12:00:00.000Z"),
        (NOON_MS + 1_999, "2026-01-31 12:00:01Z", "2026-01-31T12:00:01.999Z"),
        (0, "1970-01-01 00:00:00Z", "1970-01-01T00:00:00.000Z"),
        (-62_135_596_800_000, "0001-01-01 00:00:00Z", "0001-01-01T00:00:00.000Z"),
        (10**18, UNKNOWN, UNKNOWN),
        (-(10**30), UNKNOWN, UNKNOWN),
    ],
)
def test_time_is_written_in_utc(time_ms: int, people: str, programs: str) -> None:
    assert (utc_text(time_ms), iso_text(time_ms)) == (people, programs)
