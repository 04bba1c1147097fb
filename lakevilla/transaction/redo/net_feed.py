"""The change data feed of a transaction with several statements on one table.

Each statement has written the rows that it changed. A version has one feed, which says what all of them did:
before the commit it is put together and written anew. What only adds files, or only removes whole ones, needs
no feed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, islice

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakevilla.engines.row_feed import (
    AFTER,
    BEFORE,
    CHANGE_TYPE,
    DELETE,
    INSERT,
    RowFeed,
    feed_schema,
    feed_writer,
    together_by,
)
from lakevilla.engines.row_groups import Groups, groups_of
from lakevilla.formats.port import Snapshot
from lakevilla.model import Change, DataFile, WrittenFile
from lakevilla.predicates import ANYTHING
from lakevilla.transaction.redo.net_rows import Pair, net_pairs
from lakevilla.transaction.redo.operations import Operations
from lakevilla.transaction.statements.sources import table_source
from lakevilla.transaction.targets import feed_place
from lakevilla.transaction.workspace import Workspace


def put_together(workspace: Workspace, operations: Operations) -> None:
    """Write the feed of each table that several operations change, unless that is done."""
    for pinned in operations.targets:
        location = pinned.ref.location
        changes = operations.changes_of(location)
        if len(changes) < 2 or operations.has_feed(location):
            continue
        total = operations.net(location)
        if total is not None and _needs_feed(workspace, location, [one.change for one in changes], total):
            operations.keep_feed(location, _Feed(workspace, location).of([one.change for one in changes]))


def _needs_feed(workspace: Workspace, location: str, changes: list[Change], total: Change) -> bool:
    # Where a table is replaced as a whole, all of its files went, and came: that says what happened.
    replaced = any(change.replaces for change in changes)
    is_new = workspace.own.was_made(location)
    return workspace.view(location).keeps_feed and bool(total.removed) and not replaced and not is_new


@dataclass(frozen=True)
class _Part:
    """Rows as one statement found and left them, in one order: one of the two is missing where rows came or
    went."""

    before: pa.Table | None
    after: pa.Table | None


class _Feed:
    """The feed of one table."""

    def __init__(self, workspace: Workspace, location: str) -> None:
        self._workspace = workspace
        self._pinned = workspace.base(location)
        self._snapshot = workspace.view(location)

    def of(self, changes: Sequence[Change]) -> tuple[WrittenFile, ...]:
        """The files of the feed of these changes."""
        view = self._pinned.snapshot
        statements: list[list[_Part]] = []
        for change in changes:
            after = self._pinned.table.preview(view, change)
            statements.append(list(self._parts(view, after, change)))
            view = after
        pool = [rows for parts in statements for part in parts for rows in (part.before, part.after)]
        together = pa.concat_tables([rows for rows in pool if rows is not None])
        groups = groups_of(together)
        numbers = iter(groups.tolist())
        found = [[pair for part in parts for pair in _pairs(part, numbers)] for parts in statements]
        return self._written(together, np.unique(groups, return_index=True)[1], net_pairs(found))

    def _written(self, rows: pa.Table, examples: Groups, net: Sequence[Pair]) -> tuple[WrittenFile, ...]:
        """The files of what is left; `examples` has a row of each group."""
        workspace = self._workspace
        target = workspace.target(replace(self._pinned, snapshot=self._snapshot))
        feed = RowFeed(feed_place(workspace, target), feed_writer(target.store, target.now_ms))

        def rows_of(wanted: Sequence[int]) -> pa.Table:
            return rows.take(pa.array(examples[list(wanted)], pa.int64()))

        both = [(old, new) for old, new in net if old is not None and new is not None]
        feed.updated(rows_of([old for old, _ in both]), rows_of([new for _, new in both]))
        feed.deleted(rows_of([old for old, new in net if old is not None and new is None]))
        feed.inserted(rows_of([new for old, new in net if old is None and new is not None]))
        return feed.finish()

    def _parts(self, view: Snapshot, after: Snapshot, change: Change) -> Iterator[_Part]:
        """The rows that one statement changed."""
        if change.feed:
            yield from self._parts_of_feed(after, change)
            return
        before = {file.identity: file for file in view.files(ANYTHING)}
        left = {file.identity: file for file in after.files(ANYTHING)}
        gone = [file for name, file in before.items() if name not in left]
        came = [file for name, file in left.items() if name not in before]
        for rows in self._read(gone, self._snapshot.schema):
            yield _Part(rows, None)
        for rows in self._read(came, self._snapshot.schema):
            yield _Part(None, rows)

    def _parts_of_feed(self, after: Snapshot, change: Change) -> Iterator[_Part]:
        # Files of one stem belong together: they are those of updates that move rows to another partition.
        files = sorted(self._pinned.table.feed_files(after, change.feed), key=_stem)
        parts = zip(files, self._read(files, feed_schema(self._snapshot.schema)), strict=True)
        for _, group in groupby(parts, key=lambda part: _stem(part[0])):
            rows = pa.concat_tables([piece for _, piece in group])
            old, new, gone, came = (
                rows.filter(pc.equal(rows.column(CHANGE_TYPE), kind)).drop_columns([CHANGE_TYPE])
                for kind in (BEFORE, AFTER, DELETE, INSERT)
            )
            yield from (_Part(old, new), _Part(gone, None), _Part(None, came))

    def _read(self, files: Sequence[DataFile], schema: pa.Schema) -> Iterator[pa.Table]:
        workspace = self._workspace
        workspace.uploads.wait_for(files)
        pinned = replace(self._pinned, snapshot=self._snapshot)
        source = table_source(pinned, lambda *_: None, workspace.uploads.wait_for)
        return workspace.engine.file_rows(replace(source, schema=schema), files)


def _stem(file: DataFile) -> str:
    return together_by(file.key)


def _pairs(part: _Part, numbers: Iterator[int]) -> Iterator[Pair]:
    """The rows of a part by their groups, whose numbers come in the order of `before` and `after`."""
    old = None if part.before is None else list(islice(numbers, part.before.num_rows))
    new = None if part.after is None else list(islice(numbers, part.after.num_rows))
    return zip(old, new, strict=True) if old and new else _alone(old, new)


def _alone(old: Sequence[int] | None, new: Sequence[int] | None) -> Iterator[Pair]:
    yield from ((number, None) for number in old or ())
    yield from ((None, number) for number in new or ())
