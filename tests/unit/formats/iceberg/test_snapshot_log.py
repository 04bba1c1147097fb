"""Which entries of a table's `snapshot-log` stay."""

from typing import Any

from lakevilla.formats.iceberg.metadata.expiry import expire
from lakevilla.formats.iceberg.versions import history_of


def _log(*ids: int) -> list[dict[str, int]]:
    return [{"snapshot-id": number, "timestamp-ms": number * 10} for number in ids]


def test_log_without_gaps_stays() -> None:
    assert history_of(_log(1, 2, 3), _log(1, 2, 3, 2)) == _log(1, 2, 3, 2)


def test_entries_before_a_snapshot_that_is_gone_go_with_it() -> None:
    assert history_of(_log(1, 3, 4), _log(1, 2, 3, 4)) == _log(3, 4)


def test_entry_that_names_no_snapshot_counts_as_a_gap() -> None:
    assert history_of(_log(1, 3), [*_log(1), {"timestamp-ms": 20}, *_log(3)]) == _log(3)


def test_snapshot_that_a_tag_keeps_leaves_the_log_when_later_ones_expire() -> None:
    """It was not current from its time until that of the first one that is kept."""
    raw: dict[str, Any] = {
        "current-snapshot-id": 5,
        "snapshots": _log(1, 2, 3, 4, 5),
        "snapshot-log": _log(1, 2, 3, 4, 5),
    }
    change = expire(raw, since_ms=45, also={1})
    assert change is not None
    assert change.metadata is not None
    assert change.metadata["snapshots"] == _log(1, 4, 5)
    assert change.metadata["snapshot-log"] == _log(4, 5)
