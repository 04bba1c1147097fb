"""Known bugs of commit protocols, to be planted one by one: does the simulation find them?

Each is a context manager that replaces a piece of LakeVilla by a wrong one, by name, while it lasts. The
package itself knows nothing of this. `tests/unit/sim/planted/test_planted.py` shows each of them caught.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from inspect import signature
from pkgutil import resolve_name
from typing import Any
from unittest.mock import patch

from lakevilla.conflicts.files import decide_conflict
from lakevilla.conflicts.rows import RowFacts
from lakevilla.environment import Environment
from lakevilla.errors import CommitUnknown, Conflict, Unavailable
from lakevilla.formats.delta.table import DeltaTable
from lakevilla.formats.port import Published, Snapshot, Taken
from lakevilla.model import Author, Change, Footprint, ReadSet
from lakevilla.settle import entries
from lakevilla.settle.premise import GuardedPlaces
from lakevilla.store import keys
from lakevilla.store.port import Ambiguous, Created, Exists, Unanswered
from lakevilla.store.retry import Retrying
from lakevilla.transaction.statements.effect import TableChange
from lakevilla.versions.commits import Settled
from lakevilla.versions.log import GlobalLog, ReadHead
from lakevilla.versions.records import Entry, Head

Plant = Callable[[], AbstractContextManager[None]]

BUGS: dict[str, Plant] = {}
"""Every bug by its name."""


@contextmanager
def replaced(targets: Iterable[str], wrong: Callable[..., Any]) -> Iterator[None]:
    """The wrong piece in the place of each target, while this lasts."""
    with ExitStack() as planted:
        for target in targets:
            _refuse_misfit(target, wrong)
            planted.enter_context(patch(target, wrong))
        yield


def _refuse_misfit(target: str, wrong: Callable[..., Any]) -> None:
    """The wrong piece must take the arguments that its target takes: else not the bug would be found, but
    the TypeError of each call."""
    taken = signature(resolve_name(target)).parameters.values()
    for chosen in (taken, [one for one in taken if one.default is one.empty]):
        listed = [one.name for one in chosen if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
        named = {one.name: one for one in chosen if one.kind is one.KEYWORD_ONLY}
        signature(wrong).bind(*listed, **named)


def planter(bugs: dict[str, Plant]) -> Callable[..., Callable[[Callable[..., Any]], Callable[..., Any]]]:
    """A decorator that adds a function to these bugs, as the wrong piece that takes its targets' place."""

    def bug(*targets: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        def register(wrong: Callable[..., Any]) -> Callable[..., Any]:
            bugs[wrong.__name__.replace("_", "-")] = partial(replaced, targets, wrong)
            return wrong

        return register

    return bug


_bug = planter(BUGS)

_STORE = "lakevilla.store.retry.Retrying"
_ROW_FACTS = "lakevilla.settle.row_facts"
_TABLE = "lakevilla.formats.delta.table.DeltaTable"
_PUBLISH = "lakevilla.formats.delta.log.publish"
_SETTLE = "lakevilla.settle.entries"
_LOG = "lakevilla.versions.log.GlobalLog"

_create = Retrying.create
_put = Retrying.put
_latest = DeltaTable.latest
_publish = DeltaTable.publish


# The store room.


@_bug(f"{_STORE}.create")
def create_that_overwrites(self: Retrying, key: str, data: bytes) -> Created | Exists:
    """A store whose conditional writes lie."""
    _put(self, key, data)
    found = self.head(key)
    return Created(found.etag if found else "")


@_bug(f"{_STORE}.create")
def create_that_checks_first(self: Retrying, key: str, data: bytes) -> Created | Exists:
    """Check, then put: what some log stores do."""
    if self.get(key) is not None:
        return Exists()
    _put(self, key, data)
    found = self.head(key)
    return Created(found.etag if found else "")


@_bug(f"{_STORE}.put")
def put_that_takes_silence_for_success(self: Retrying, key: str, data: bytes) -> None:
    try:
        self._store.put(key, data)
    except Unanswered:
        return


@_bug(f"{_STORE}.create")
def ambiguous_create_taken_for_success(self: Retrying, key: str, data: bytes) -> Created | Exists:
    try:
        return _create(self, key, data)
    except Ambiguous:
        return Created("")


@_bug(f"{_STORE}.create")
def ambiguous_create_taken_for_failure(self: Retrying, key: str, data: bytes) -> Created | Exists:
    """What did not answer is said not to have happened."""
    try:
        return _create(self, key, data)
    except Ambiguous as error:
        raise Unavailable(str(error)) from error


def _create_without_read_back(self: Retrying, key: str, data: bytes) -> Created | Exists:
    budget = self._budget()
    return self._write(key, budget, lambda: self._store.create(key, data))


@_bug(f"{_STORE}.create")
def registry_entry_applied_twice(self: Retrying, key: str, data: bytes) -> Created | Exists:
    """A repeated create that met itself is taken for a rival's; commits still know their own entries."""
    return _create_without_read_back(self, key, data)


# The commit of one table.


@contextmanager
def _rebase_past_own_entry() -> Iterator[None]:
    """Neither the store nor the commit knows what is its own: a lost answer is rebased past itself."""
    with (
        patch(f"{_STORE}.create", _create_without_read_back),
        patch(f"{_PUBLISH}.attempt_of", lambda _: None),
    ):
        yield


BUGS["lost-put-id-rebases-past-its-own-entry"] = _rebase_past_own_entry


@_bug(f"{_ROW_FACTS}.decide_conflict")
def conflict_check_forgets_removed_files(change: Change, theirs: Footprint, *facts: RowFacts) -> Any:
    return decide_conflict(change, replace(theirs, removed=frozenset()), *facts)


@_bug(f"{_ROW_FACTS}.decide_conflict")
def conflict_check_forgets_added_files(change: Change, theirs: Footprint, *facts: RowFacts) -> Any:
    return decide_conflict(replace(change, read=ReadSet((), change.read.files)), theirs, *facts)


@_bug(f"{_ROW_FACTS}.decide_conflict")
def conflict_check_forgets_dropped_tables(change: Change, theirs: Footprint, *facts: RowFacts) -> Any:
    return decide_conflict(change, replace(theirs, dropped=False), *facts)


@_bug("lakevilla.transaction.commit.commit_strategy.commit_change")
def rebase_checks_only_the_first_winner(
    environment: Environment, pending: TableChange, txn: str, *_: Any
) -> Snapshot:
    table, base, checked = pending.pinned.table, pending.pinned.snapshot, False
    while True:
        match table.publish(base, pending.change, Author(txn, txn, environment.new_id())):
            case Published(snapshot):
                return snapshot
            case Taken(footprint=footprint, snapshot=snapshot):
                if not checked and decide_conflict(pending.change, footprint) is not None:
                    raise Conflict("planted")
                checked, base = True, snapshot


@_bug("lakevilla.transaction.commit.commit_strategy.commit_change")
def rebase_skips_an_unread_version(
    environment: Environment, pending: TableChange, txn: str, *_: Any
) -> Snapshot:
    """After a lost race it moves on to the newest version, and asks only the one that it lost to."""
    table, base = pending.pinned.table, pending.pinned.snapshot
    while True:
        match table.publish(base, pending.change, Author(txn, txn, environment.new_id())):
            case Published(snapshot):
                return snapshot
            case Taken(footprint=footprint, snapshot=snapshot):
                if decide_conflict(pending.change, footprint) is not None:
                    raise Conflict("planted")
                base = table.latest(snapshot) or snapshot


@_bug("lakevilla.transaction.commit.commit_strategy.commit_change")
def unknown_commit_is_sent_again(
    environment: Environment, pending: TableChange, txn: str, *_: Any
) -> Snapshot:
    """An outcome that could not be read is taken for a failure, and the change is sent again as new."""
    table, base = pending.pinned.table, pending.pinned.snapshot
    while True:
        author = Author(txn, environment.new_id(), environment.new_id())
        try:
            answer = table.publish(base, pending.change, author)
        except CommitUnknown:
            base = table.latest(base) or base
            continue
        match answer:
            case Published(snapshot):
                return snapshot
            case Taken(footprint=footprint, snapshot=snapshot):
                if decide_conflict(pending.change, footprint) is not None:
                    raise Conflict("planted")
                base = snapshot


@_bug(f"{_TABLE}.latest")
def snapshot_that_stays_old(self: DeltaTable, base: Any = None) -> Any:
    """A known snapshot is taken for the newest."""
    return _latest(self) if base is None else base


# The registry.


@_bug(f"{_LOG}.replace_head")
def head_replaced_without_match(
    self: GlobalLog, read: ReadHead, head: Head, entry: Entry, published: bool
) -> ReadHead | None:
    packed, inline, data = self._pack(read, head, entry, published)
    self._store.put(keys.HEAD, data)
    return ReadHead(head, read.etag, packed, inline)


@_bug(f"{_SETTLE}._finish")
def decided_entry_said_to_be_undecided(
    log: GlobalLog, environment: Environment, read: ReadHead, entry: Entry, places: GuardedPlaces
) -> entries.Decided:
    return entries.Decided(entry, *entries._complete(log, environment, read, entry, places))


@_bug(f"{_SETTLE}.settle")
def head_moves_before_the_table_is_there(
    lake: str,  # noqa: ARG001
    entry: Entry,  # noqa: ARG001
    environment: Environment,  # noqa: ARG001
    places: GuardedPlaces,  # noqa: ARG001
    given_up: frozenset[str] = frozenset(),  # noqa: ARG001
) -> Settled:
    return Settled(True)
