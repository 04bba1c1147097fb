"""Where a statement that changes rows writes: the table's files, and its change data feed if it has one."""

from dataclasses import replace

from lakevilla.engines.port import Target
from lakevilla.engines.row_feed import FeedPlace, feed_schema
from lakevilla.store import keys
from lakevilla.tables.pinned import Pinned
from lakevilla.transaction.workspace import Workspace


def changing(workspace: Workspace, pinned: Pinned, operation: str, has_feed: bool = True) -> Target:
    """The target of a statement that changes rows; with `has_feed` files alone may not say which."""
    target = workspace.target(pinned, operation)
    if not has_feed or not pinned.snapshot.keeps_feed:
        return target
    return replace(target, feed=feed_place(workspace, target))


def feed_place(workspace: Workspace, target: Target) -> FeedPlace:
    """Where the rows go that a statement changes in a table with a feed."""
    return FeedPlace(feed_schema(target.schema), target.partitioning, workspace.new_key(keys.FEED_FOLDER))
