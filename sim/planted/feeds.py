"""Known bugs of change data feeds, to be planted one by one, as in `planted.commits`."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from lakevilla.engines.row_feed import RowFeed
from lakevilla.tables.pinned import Pinned
from lakevilla.transaction.redo.net_rows import Pair
from sim.planted.commits import Plant, planter

BUGS: dict[str, Plant] = {}
"""Every bug by its name."""

SUITES = {
    "statements-are-not-put-together": "isolation",
    "rows-changed-twice-are-told-twice": "isolation",
    "feed-of-before-a-redo-is-kept": "isolation",
    "what-was-rolled-back-is-shown": "isolation",
}
"""Where a bug shows that single statements do not show."""

_bug = planter(BUGS)
_COMMIT = "lakevilla.transaction.commit"


@_bug("lakevilla.engines.row_feed.RowFeed.updated")
def row_before_an_update_is_missing(self: RowFeed, old: pa.Table, new: pa.Table) -> None:  # noqa: ARG001
    """Only what rows are now is told."""
    self._add("update_postimage", new)
    self._only_inserts = False


@_bug(f"{_COMMIT}.slot_commit.put_together", f"{_COMMIT}.queued_commit.put_together")
def statements_are_not_put_together(*_: Any) -> None:
    """A version of several statements has no feed."""


@_bug("lakevilla.transaction.redo.net_feed.net_pairs")
def rows_changed_twice_are_told_twice(statements: Sequence[Sequence[Pair]]) -> list[Pair]:
    """The feed has all that the statements did, one after the other."""
    return [pair for pairs in statements for pair in pairs]


@_bug("lakevilla.transaction.redo.operations._feed_key")
def feed_of_before_a_redo_is_kept(_: Sequence[Any]) -> tuple[tuple[str, ...], ...]:
    """Statements that ran again have changed other rows."""
    return ()


def _all_versions(base: Pinned, until: int) -> list[Any]:
    return list(base.table.changes(base.snapshot, until))


@_bug("lakevilla.travel.changes.changed_versions")
def what_was_rolled_back_is_shown(base: Pinned, until: int) -> list[Any]:
    """A version and its inverse are changes like others."""
    return _all_versions(base, until)
