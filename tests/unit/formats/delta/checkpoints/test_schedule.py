"""When a version gets a checkpoint, and what the rule promises for logs of many commits."""

import pytest

from lakevilla.formats.delta.checkpoints.schedule import EVERY, MOST_ENTRIES, Unfolded, is_considered, is_due

ENTRY_BYTES, FILE_BYTES, EMPTY_BYTES = 900, 80, 18_000
"""About what a commit of one row and its file take in the log and in a checkpoint."""


@pytest.mark.parametrize(
    ("version", "expected"), [(0, False), (9, False), (10, True), (11, False), (20, True)]
)
def test_only_every_tenth_version_is_considered(version: int, expected: bool) -> None:
    assert is_considered(version, {}) is expected


@pytest.mark.parametrize("text", ["1", "3", "100"])
def test_interval_of_the_table_is_followed_exactly(text: str) -> None:
    configuration = {"delta.checkpointInterval": text}
    due = [
        version
        for version in range(301)
        if is_considered(version, configuration) and is_due(configuration, Unfolded(10**9, 1, 1))
    ]
    assert due == list(range(int(text), 301, int(text)))


@pytest.mark.parametrize("text", ["0", "-1", "often"])
def test_interval_that_says_nothing_counts_as_none(text: str) -> None:
    configuration = {"delta.checkpointInterval": text}
    assert not is_due(configuration, Unfolded(10**9, 10, 1))


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (Unfolded(None, 1, 1), True),
        (Unfolded(1000, 10, 999), False),
        (Unfolded(1000, 10, 1000), True),
        (Unfolded(10**9, MOST_ENTRIES - 1, 1), False),
        (Unfolded(10**9, MOST_ENTRIES, 1), True),
        (Unfolded(0, 0, 0), True),
    ],
)
def test_checkpoint_is_due_when_the_entries_weigh_as_much_or_are_too_many(
    found: Unfolded, expected: bool
) -> None:
    assert is_due({}, found) is expected


@pytest.mark.parametrize("appends", [1_000, 10_000, 30_000])
def test_appends_of_one_row_leave_a_small_log_that_is_opened_by_few_reads(appends: int) -> None:
    written, last, most = 0, None, 0
    for version in range(1, appends + 1):
        size = None if last is None else EMPTY_BYTES + last * FILE_BYTES
        entries = version - (last or 0)
        most = max(most, entries)
        if is_considered(version, {}) and is_due({}, Unfolded(size, entries, entries * ENTRY_BYTES)):
            written += EMPTY_BYTES + version * FILE_BYTES
            last = version
    assert most < MOST_ENTRIES + EVERY
    every_tenth = sum(EMPTY_BYTES + version * FILE_BYTES for version in range(10, appends + 1, 10))
    assert written < every_tenth / 2
    if appends == 10_000:
        assert written + appends * ENTRY_BYTES < 30_000_000
