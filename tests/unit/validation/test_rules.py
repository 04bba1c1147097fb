"""The rules R1-R3, one by one and together."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakevilla.validation.rules import (
    ISOLATIONS,
    Isolation,
    TableVersions,
    is_lost,
    is_outdated,
    is_taken,
    validate,
)


@pytest.mark.parametrize(
    ("read", "hidden", "slack", "outdated"),
    [(4, 4, 0, False), (4, 5, 0, True), (4, 5, 1, False), (4, 6, 1, True), (4, 3, 0, False)],
)
def test_read_is_outdated_beyond_the_slack(read: int, hidden: int, slack: int, outdated: bool) -> None:
    assert is_outdated(read, hidden, slack) is outdated


def test_number_is_taken_up_to_the_newest() -> None:
    assert [is_taken(write, 5) for write in (4, 5, 6)] == [True, True, False]


def test_update_is_lost_unless_it_follows_head() -> None:
    assert [is_lost(5, 1, write) for write in (5, 6, 7)] == [True, False, True]


@pytest.mark.parametrize(
    ("versions", "isolation", "rule"),
    [
        (TableVersions("t", 4, None, 4, 4), "serializable", None),
        (TableVersions("t", 4, None, 5, 5), "serializable", "R1"),
        (TableVersions("t", 4, None, 5, 5), "snapshot", None),
        (TableVersions("t", 4, 5, 5, 5), "serializable", "R2"),
        (TableVersions("t", 4, 5, 5, 5), "snapshot", "R2"),
        (TableVersions("t", 4, 6, 5, 4), "snapshot", "R3"),
        (TableVersions("t", 4, 5, 4, 4), "serializable", None),
    ],
)
def test_first_broken_rule_is_named(versions: TableVersions, isolation: Isolation, rule: str | None) -> None:
    failure = validate([TableVersions("other", 1, 2, 1, 1), versions], isolation)
    assert (None if failure is None else failure.rule) == rule
    assert failure is None or failure.table == "t"


def test_slack_lets_old_reads_pass_but_no_old_writes() -> None:
    assert validate([TableVersions("t", 4, None, 6, 6)], "serializable", slack=2) is None
    failure = validate([TableVersions("t", 4, 5, 6, 6)], "serializable", slack=2)
    assert failure is not None
    assert failure.rule == "R2"


@given(st.lists(st.tuples(st.integers(0, 9), st.booleans(), st.integers(0, 9))), st.integers(0, 3))
def test_snapshot_allows_what_serializable_allows(tables: list[tuple[int, bool, int]], slack: int) -> None:
    compared = [
        TableVersions("t", read, read + 1 if writes else None, now, now) for read, writes, now in tables
    ]
    if validate(compared, "serializable", slack) is None:
        assert validate(compared, "snapshot", slack) is None


@given(st.integers(0, 9), st.booleans())
def test_who_stands_on_head_is_valid(version: int, writes: bool) -> None:
    versions = TableVersions("t", version, version + 1 if writes else None, version, version)
    assert validate([versions], "serializable") is None


def test_write_serializable_is_serializable() -> None:
    assert ISOLATIONS["write-serializable"] == "serializable"
