"""Known bugs of commits on several tables, to be planted one by one, as in `planted.commits`.

Bugs that need a very narrow race are not here but in tests that step in at the right moment: a HEAD that is
not compared with what was pinned (tests/lake/transactions/test_many_tables.py), a drop that is told before
all is published (tests/crash/test_many_tables.py).
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from lakevilla.environment import Environment
from lakevilla.formats.port import Published, Snapshot, Table, Taken
from lakevilla.model import Author, Batch, Change, ReadSet
from lakevilla.settle.commits import CommitSettler, Outcome
from lakevilla.settle.publish_walk import PublishedAt, Refused, walk
from lakevilla.store.port import Ambiguous, Created
from lakevilla.transaction.commit.commit_base import PerTableBase
from lakevilla.transaction.commit.slot_commit import SlotCommit
from lakevilla.versions.commits import Commit, Settled, Write
from lakevilla.versions.log import GlobalLog
from lakevilla.versions.records import Entry
from sim.planted.commits import Plant, planter

BUGS: dict[str, Plant] = {}
"""Every bug by its name."""

_COMMITS = "lakevilla.settle.commits"
_DECIDING = "lakevilla.transaction.commit.slot_commit"


NARROW: dict[str, Plant] = {}
"""Bugs that need a race so narrow that only the crash matrix finds them (tests/crash)."""

_bug = planter(BUGS)
_narrow = planter(NARROW)


_commit = SlotCommit._commit
_publish = CommitSettler._publish
_roll_back = CommitSettler._roll_back


@_bug(f"{_COMMITS}.CommitSettler._roll_back")
def published_part_is_not_taken_back(
    self: CommitSettler,  # noqa: ARG001
    walked: Sequence[Any],  # noqa: ARG001
) -> Settled:
    return Settled(False)


@_bug(f"{_COMMITS}.CommitSettler.settle")
def helper_stops_at_the_first_refusal(self: CommitSettler, commit: Commit) -> Outcome:
    """The tables one after the other, in any order; what lies behind a refusal is not looked at."""
    walked = []
    for write in sorted(commit.writes, key=lambda _: self.environment.random()):
        walked.append(self._publish(write, commit.once))
        if isinstance(walked[-1].outcome, Refused):
            return Outcome(self._roll_back(walked), {}, walked[-1].outcome)
    published = {
        w.write.table.location: w.outcome.after for w in walked if isinstance(w.outcome, PublishedAt)
    }
    return Outcome(Settled(True, {place: s.version for place, s in published.items()}), published, None)


@_bug(f"{_COMMITS}.walk")
def identity_by_put(
    table: Table, base: Snapshot, change: Change, author: Author, new_put: Callable[[], str], *rows: Any
) -> PublishedAt | Refused:
    """Each helper takes only what it wrote itself for the commit."""
    return walk(table, base, change, replace(author, attempt=new_put()), new_put, *rows)


@_bug(f"{_COMMITS}.walk")
def number_skipped_unread(
    table: Table, base: Snapshot, change: Change, author: Author, new_put: Callable[[], str], *_: Any
) -> PublishedAt | Refused:
    while True:
        match table.publish(base, change, replace(author, put=new_put())):
            case Published(snapshot):
                return PublishedAt(base, snapshot)
            case Taken(snapshot=snapshot):
                base = snapshot


@_bug(f"{_COMMITS}.CommitSettler._roll_back")
def refused_commit_leaves_its_new_tables(self: CommitSettler, walked: Sequence[Any]) -> Settled:
    return _roll_back(self, [part for part in walked if not part.write.creates])


@_bug(f"{_DECIDING}.hold_slot")
def unanswered_slot_taken_for_lost(log: GlobalLog, environment: Environment, entry: Entry) -> bool:  # noqa: ARG001
    try:
        return isinstance(log.create_slot(entry), Created)
    except Ambiguous:
        return False


@_bug("lakevilla.transaction.commit.commit_base.PerTableBase._catch_up")
def reads_not_validated_after_a_lost_slot(self: PerTableBase) -> None:
    """Move to the newest versions, without a check of the commits since."""
    workspace = self._workspace
    self._redo._move_to({p.ref.location: p.table.latest(p.snapshot) or p.snapshot for p in workspace.touched})


@_bug(f"{_DECIDING}.SlotCommit._commit")
def read_set_left_out_of_the_entry(self: SlotCommit) -> Commit | None:
    commit = _commit(self)
    if commit is None:
        return None
    return Commit(tuple(replace(write, read=ReadSet()) for write in commit.writes), commit.reads)


@_bug("lakevilla.tables.catalog.Catalog.settle_up_to")
def built_on_what_is_not_settled(*_: object, **__: object) -> None:
    return None


@_narrow(
    "lakevilla.transaction.commit.queued_commit.QueuedCommit._settled",
    "lakevilla.transaction.commit.queued_commit.settle_base",
    "lakevilla.transaction.commit.commit_strategy.settle_base",
)
def only_the_pinned_version_is_settled(*args: Any, **_: Any) -> Any:
    """What is met later, in a queue or after a lost race, is built on as it is."""
    return args[-1]


@_bug(
    "lakevilla.transaction.redo.fence.Fence.find",
    "lakevilla.transaction.redo.redo.Redo._refuse_fenced",
)
def resumed_transaction_is_not_fenced(*_: object) -> None:
    """Entries and versions that name the transaction are taken for anybody's."""


@_narrow("lakevilla.transaction.redo.fence.Fence.find")
def entries_of_the_own_transaction_are_not_read(*_: object) -> None:
    """Only the tables that this client has touched tell it that another one committed the transaction."""


@_bug(f"{_COMMITS}.CommitSettler._publish")
def owner_publishes_on_the_newest_version(self: CommitSettler, write: Write, once: Batch | None) -> Any:
    """A walk from the newest version instead of the one that the commit was validated on."""
    table, base = self.open_at(write.table, write.base)
    newest = table.latest(base) or base
    fresh = replace(self, open_at=lambda _ref, _version: (table, newest))
    return _publish(fresh, write, once)


@_bug("lakevilla.transaction.views.stored.StoredViews.refuse_changed")
def views_are_not_compared(*_: object) -> None:
    """A commit does not look whether a view that it has read is another one by now."""
