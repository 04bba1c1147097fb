"""What a version says of its author, in texts."""

from lakevilla.formats.authorship import in_words


def test_version_is_described_with_its_author_and_time() -> None:
    text = in_words(7, "WRITE", "Apache-Spark/4.1", 1_769_860_800_000, "abc")
    assert text == "version 7 (WRITE by Apache-Spark/4.1 at 2026-01-31 12:00:00Z, transaction abc)"


def test_version_of_a_broken_clock_is_described_all_the_same() -> None:
    assert in_words(7, "WRITE", "", 10**18, None) == "version 7 (WRITE at an unknown time)"
