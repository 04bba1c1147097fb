"""Known bugs of isolation, to be planted one by one, as in `planted.commits`."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from lakevilla.environment import Environment
from lakevilla.errors import InvalidInput
from lakevilla.model import ReadSet
from lakevilla.settle.completion import move_head
from lakevilla.settle.entries import entry_after
from lakevilla.settle.premise import Premise
from lakevilla.store.metered import Meter
from lakevilla.tables.catalog import Catalog
from lakevilla.tables.pinned import Pinned
from lakevilla.transaction.commit.instant_base import InstantBase
from lakevilla.transaction.commit.slot_commit import SlotCommit
from lakevilla.transaction.instants.instant import PinnedInstant
from lakevilla.versions import registry
from lakevilla.versions.commits import Adopt, Commit, Settled
from lakevilla.versions.log import GlobalLog, ReadHead
from lakevilla.versions.records import Entry, Head
from sim.planted.commits import Plant, planter

BUGS: dict[str, Plant] = {}
"""Every bug by its name."""

_CUT = "lakevilla.transaction.instants.instant"
_DECIDING = "lakevilla.transaction.commit.slot_commit"
_RULES = "lakevilla.validation.rules"
_REGISTRY = "lakevilla.versions.registry"


_bug = planter(BUGS)


_add = PinnedInstant._add
_after_commit = registry._after_commit
_commit = SlotCommit._commit
_pin = PinnedInstant.pin
_settle = SlotCommit._settle
_catch_up_with = InstantBase.catch_up_with


# The instant.


@_bug(f"{_CUT}.PinnedInstant._add")
def instant_moved_in_mid_transaction(
    self: PinnedInstant,
    tables: Sequence[Pinned],
    touched: Sequence[Pinned],  # noqa: ARG001
) -> None:
    """A later HEAD is pinned, whatever was read at the one before."""
    _add(self, tables, ())


@_bug(f"{_CUT}.PinnedInstant.pin")
def exclusive_table_is_taken_for_what_was_seen_last(self: PinnedInstant, name: str) -> Pinned:
    """No other client writes to it, so it seems needless to ask."""
    known = self._catalog.known(name)
    if known is None or not known[1].coordination.exclusive:
        return _pin(self, name)
    ref, newest = known
    return Pinned(ref, self._catalog.open(ref, self._meter), newest, self._read_at)


@_bug(f"{_CUT}.PinnedInstant.pin")
def outside_version_read_past_the_instant(self: PinnedInstant, name: str) -> Pinned:
    found = self._version(name)
    if found is None:
        raise InvalidInput(name)
    newest = self._catalog.newest(found[0], self._meter)
    if newest is None:
        raise InvalidInput(name)
    return replace(newest, pinned_at=self._read_at)


@_bug(f"{_CUT}.PinnedInstant._add")
def new_table_resolved_alone(
    self: PinnedInstant,
    tables: Sequence[Pinned],
    touched: Sequence[Pinned],  # noqa: ARG001
) -> None:
    """A table that HEAD does not know is read as it is, and no entry makes it part of the instant."""
    unknown = [pinned for pinned in tables if pinned.ref.location not in self.head.versions]
    self._head = replace(
        self.head,
        tables={**self.head.tables, **{pinned.ref.name: pinned.ref for pinned in unknown}},
        versions={**self.head.versions, **{p.ref.location: p.snapshot.version for p in unknown}},
    )


@_bug(f"{_CUT}.is_beyond")
def first_statement_adopts_nothing_of_known_tables(head: Head, pinned: Pinned) -> bool:
    return pinned.ref.location not in head.versions


@_bug(f"{_CUT}.adopt", "lakevilla.transaction.instants.sync.adopt")
def adoption_without_a_slot(
    catalog: Catalog, environment: Environment, meter: Meter, read: ReadHead, change: Adopt
) -> ReadHead | None:
    txn = environment.new_id()
    entry = entry_after(read.head, environment, txn, txn, change)
    versions = {found.table.location: found.version for found in change.tables}
    return move_head(catalog.log(meter), environment, read, entry, Settled(True, versions))


@_bug(f"{_CUT}.PinnedInstant._open")
def log_that_a_rival_made_first_is_set_back(self: PinnedInstant, names: Sequence[str]) -> None:
    """What is new is compared with the HEAD that was looked at, and adopted after the one that is there."""
    while self._head is None:
        read, newest = self._look(names)
        head = Head("", 0, "") if read is None else read.head
        beyond = [p for p in newest if p.snapshot.version > head.versions.get(p.ref.location, -1)]
        if beyond:
            read = self._adopt(read or self._catalog.first_head(self._meter), beyond)
        if read is not None:
            self.move(read)
        elif not beyond:
            self._head = head


@_bug(f"{_CUT}.PinnedInstant._beyond")
def later_tables_are_read_as_pinned(self: PinnedInstant, names: Sequence[str]) -> list[Pinned]:  # noqa: ARG001
    """A table that comes second is not asked for what writers without slots have committed."""
    return []


@_bug(f"{_CUT}.PinnedInstant._add")
def later_version_is_adopted_and_not_read(
    self: PinnedInstant, tables: Sequence[Pinned], touched: Sequence[Pinned]
) -> None:
    """It becomes part of the instant of others: this one keeps its own, though nothing has moved."""
    head, read, read_at, included = self._head, self._read, self._read_at, set(self._included)
    _add(self, tables, touched)
    if head is not None and all(pinned.ref.location in head.versions for pinned in tables):
        self._head, self._read, self._read_at, self._included = head, read, read_at, included


# Validation.


@_bug(f"{_RULES}.is_outdated")
def outdated_reads_not_looked_for(read: int, hidden: int, slack: int = 0) -> bool:  # noqa: ARG001
    return False


@_bug("lakevilla.transaction.commit.instant_base.InstantBase.catch_up_with")
def later_head_taken_without_validation(self: InstantBase, log: GlobalLog, read: ReadHead) -> ReadHead:  # noqa: ARG001
    return read


@_bug("lakevilla.transaction.redo.replay._same")
def redo_on_changed_values(operation: Any, after: Any) -> bool:  # noqa: ARG001
    """What the client was given may be another now; what it wrote because of that stays."""
    return True


@_bug(f"{_DECIDING}.SlotCommit._commit")
def entry_without_what_was_read(self: SlotCommit) -> Commit | None:
    commit = _commit(self)
    if commit is None:
        return None
    return Commit(tuple(replace(write, read=ReadSet()) for write in commit.writes), (), commit.drops)


# The commit.


@_bug(f"{_REGISTRY}._after_commit")
def commit_does_not_adopt_what_it_read(head: Head, commit: Commit, published: bool) -> Head:
    return _after_commit(head, replace(commit, reads=()), published)


@_bug(f"{_DECIDING}.SlotCommit._settle")
def head_replaced_before_publish(
    self: SlotCommit, read: ReadHead, entry: Entry, commit: Commit, premise: Premise
) -> tuple[ReadHead, Any]:
    workspace = self._workspace
    versions = {write.table.location: write.base + 1 for write in commit.writes}
    log = workspace.catalog.log(workspace.meter)
    move_head(log, workspace.environment, read, entry, Settled(True, versions))
    return _settle(self, read, entry, commit, premise)


@_bug("lakevilla.settle.completion.move_head")
def commit_told_before_it_is_visible(
    log: GlobalLog,  # noqa: ARG001
    environment: Environment,
    read: ReadHead,
    entry: Entry,
    settled: Settled,
) -> ReadHead:
    """The next client that looks has to settle it."""
    return replace(read, head=registry.apply(read.head, entry, settled, environment.new_id()))


@_bug("lakevilla.settle.completion.move_head")
def refused_commit_stays_in_head(
    log: GlobalLog, environment: Environment, read: ReadHead, entry: Entry, settled: Settled
) -> ReadHead | None:
    """HEAD does not take the version that takes a commit back, but the one of the commit."""
    early = {place: max(version - 1, 0) for place, version in settled.versions.items()}
    kept = settled if settled.published else replace(settled, versions=early)
    return move_head(log, environment, read, entry, kept)


# Going on with what another client began.


@_bug(
    "lakevilla.transaction.redo.fence.Fence.find",
    "lakevilla.transaction.redo.redo.Redo._refuse_fenced",
)
def resumed_instant_is_not_fenced(*_: object) -> None:
    """Entries and versions that name the transaction are taken for anybody's."""
