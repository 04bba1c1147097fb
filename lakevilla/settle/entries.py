"""Deciding an entry of the global log, and carrying out what it decided (modules 4.1 and 4.2).

The create of slot HEAD + 1 decides; then the entry is settled (its tables are published) and HEAD is
replaced, which makes it visible. The owner and the client that finds an unsettled entry run this same code.
That is safe at any moment and any number of times: each publish is a create that is recognised by its
attempt, so its result is fixed by the first client that reached it, and HEAD after an entry is a pure
function of that result.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from lakevilla.environment import Environment
from lakevilla.errors import CommitUnknown, LakeVillaError, Unavailable, Unsupported
from lakevilla.formats.port import Snapshot, Table
from lakevilla.model import Notice, TableRef
from lakevilla.settle.commits import CommitSettler
from lakevilla.settle.completion import complete
from lakevilla.settle.places import Places, claim
from lakevilla.settle.premise import GuardedPlaces, Premise
from lakevilla.settle.publish_walk import FOR_GOOD, OutOfReach, publish_notice
from lakevilla.store.port import Ambiguous, Created
from lakevilla.versions.commits import Adopt, Commit, Settled, Void
from lakevilla.versions.log import GlobalLog, LakeRecreated, ReadHead, lost_with_its_lake, unknown_outcome
from lakevilla.versions.records import GONE, AnyChange, CreateTable, DropTable, Entry, Head, RenameTable

logger = logging.getLogger("lakevilla.settle")

HELP_AFTER_SECONDS = 0.05
"""The client that finds an unsettled entry first gives its owner this long, and a random time more."""
FIRST_LOOK_SECONDS = 0.005


@dataclass(frozen=True, slots=True)
class Decided:
    """An entry that is settled, and HEAD as it was left."""

    entry: Entry
    read: ReadHead
    settled: Settled


def entry_after(head: Head, environment: Environment, txn: str, attempt: str, change: AnyChange) -> Entry:
    """The entry that a client proposes for the slot after this HEAD."""
    return Entry(head.seq + 1, txn, attempt, environment.new_id(), environment.now_ms(), change, head.lake)


def decide_entry(
    log: GlobalLog, environment: Environment, propose: Callable[[Head], Entry], places: Places
) -> Decided:
    """Bring one entry into the global log and settle it.

    `propose` makes the entry for a given HEAD, and raises if it makes no sense there; it is called
    again whenever another entry came first.
    """
    read = log.read_head() or log.first_head()
    while True:
        entry = propose(read.head)
        premise = Premise(log, environment, entry, environment.elapsed())
        if hold_slot(log, environment, entry):
            return _finish(log, environment, read, entry, GuardedPlaces(places, premise))
        read = help_next(log, environment, read, places)


def help_next(
    log: GlobalLog,
    environment: Environment,
    read: ReadHead,
    places: Places,
    lost: frozenset[str] = frozenset(),
) -> ReadHead:
    """HEAD after the entry in the next slot after `read` was settled: by its owner, else by us. If HEAD was
    set back meanwhile, HEAD as it is now. `lost` are locations that an operator has declared lost."""
    seq = read.head.seq + 1
    now = _wait_for_owner(log, environment, read.head.lake, seq)
    if now.head.seq != seq - 1:
        return now
    entry = log.read_slot(seq)
    if entry is None:
        return now
    entry = entry.seen_from(now.head.lake)
    logger.info("settling entry %d of transaction %s, whose owner did not", seq, entry.txn)
    late = log.is_late(entry)
    found = late or log.is_aged(entry)
    premise = Premise(log, environment, entry, now.read_at, found=found, late=late, lost=lost)
    try:
        return _complete(log, environment, now, entry, GuardedPlaces(places, premise))[0]
    except (Unavailable, Unsupported) as error:
        kind = Unavailable if isinstance(error, Unavailable) else Unsupported
        raise kind(
            f"the lake cannot be written: transaction {entry.txn} is decided and not complete, and this "
            f"client cannot complete it: {error}. Nothing was changed by the statement. Run lakevilla "
            "recover with a client that can write all "
            f"of its tables ({', '.join(repr(ref.name) for ref in entry.tables)}); if one of them is lost "
            "for good, lakevilla recover --give-up TABLE completes the transaction without it"
        ) from error


def _wait_for_owner(log: GlobalLog, environment: Environment, lake: str, seq: int) -> ReadHead:
    """HEAD as soon as the owner of the entry moved it, or when its time is up.

    The time is random, so that many clients do not settle the same entry at once. HEAD is read several times
    meanwhile, so that no client waits much longer than the owner takes.
    """
    left, pause = HELP_AFTER_SECONDS * (1 + environment.random()), FIRST_LOOK_SECONDS
    while True:
        environment.sleep(min(pause, left))
        now = log.read_head_of(lake)
        if now.head.seq >= seq or left <= pause:
            return now
        left, pause = left - pause, pause * 2


def settle_up_to(
    log: GlobalLog,
    environment: Environment,
    seq: int,
    places: Places,
    lost: frozenset[str] = frozenset(),
) -> ReadHead | None:
    """HEAD at this entry or beyond it; entries on the way that no client settled are settled by us.

    A number beyond the last entry belongs to the lake that a table came from: then HEAD is what it is.
    """
    read = log.read_head()
    while read is not None and read.head.seq < seq and log.read_slot(read.head.seq + 1) is not None:
        read = help_next(log, environment, read, places, lost)
    return read


def _complete(
    log: GlobalLog, environment: Environment, read: ReadHead, entry: Entry, places: GuardedPlaces
) -> tuple[ReadHead, Settled]:
    lake = read.head.lake
    return complete(log, environment, read, entry, partial(settle, lake, entry, environment, places))


def settle(
    lake: str,
    entry: Entry,
    environment: Environment,
    places: GuardedPlaces,
    given_up: frozenset[str] = frozenset(),
) -> Settled:
    """Publish what the entry decided, but for tables that are given up. Raises OutOfReach."""
    match entry.change:
        case CreateTable(table=ref) if ref.location in given_up:
            return Settled(False)
        case CreateTable(table=ref, first=first):
            return _create(lake, entry, environment, places, ref, first)
        case DropTable(table=ref, base=base) | RenameTable(table=ref, base=base) if base is not None:
            if ref.location not in given_up and base != GONE:
                notice = Notice(lake, entry.seq, dropped=isinstance(entry.change, DropTable))
                publish_notice(places.open(ref), base, notice, entry.txn, entry.attempt)
            return Settled(True)
        case Commit() as commit:
            return _settle_commit(lake, entry, commit, environment, places, given_up)
        case Adopt(tables=adopted):
            return Settled(True, {found.table.location: found.version for found in adopted})
        case _:
            return Settled(True)


def _create(
    lake: str, entry: Entry, environment: Environment, places: Places, ref: TableRef, first: str
) -> Settled:
    table = places.open(ref)
    try:
        if not table.publish_first(first.encode(), entry.attempt):
            return Settled(False)
        owner = claim(places.store(ref), environment, lake, places.url)
    except FOR_GOOD as error:
        raise OutOfReach(ref.location, str(error)) from error
    owned = frozenset({ref.location} if owner.lake == lake else ())
    return Settled(True, {ref.location: table.first_version}, owned=owned)


def _settle_commit(
    lake: str,
    entry: Entry,
    commit: Commit,
    environment: Environment,
    places: GuardedPlaces,
    given_up: frozenset[str],
) -> Settled:
    """Settle a commit that we found. The client that decided it may have left no hints of its versions."""
    open_at = partial(_open_at, places)
    settler = CommitSettler(
        lake, entry.seq, entry.txn, entry.attempt, environment, places, open_at, given_up, places.premise
    )
    outcome = settler.settle(commit)
    for write in commit.writes:
        if write.table.location in outcome.snapshots:
            places.open(write.table).renew_hint(outcome.snapshots[write.table.location])
    return outcome.settled


def _open_at(places: Places, ref: TableRef, version: int) -> tuple[Table, Snapshot]:
    table = places.open(ref)
    return table, table.at_version(version)


def hold_slot(log: GlobalLog, environment: Environment, entry: Entry) -> bool:
    """Create the entry's slot: whether this entry now holds it, and is decided.

    A create that stays unanswered is resolved by a void entry in the same slot: the entry that is there then
    has won, and a late copy of ours finds the slot taken.
    """
    try:
        return isinstance(log.create_slot(entry), Created)
    except Ambiguous:
        logger.warning("the create of entry %d went unanswered; reading the slot", entry.seq)
    void = replace(entry, put=environment.new_id(), change=Void())
    try:
        passed = log.passed(entry)
        if passed is None and isinstance(log.create_slot(void), Created):
            return False
        found = log.read_slot(entry.seq)
        passed = log.passed(entry) if found is None and passed is None else passed
    except LakeRecreated as error:
        raise lost_with_its_lake(entry) from error
    except Unavailable as error:
        raise CommitUnknown(
            f"the store did not say whether transaction {entry.txn} was written as entry {entry.seq} of the "
            f"global log: ask lake.outcome({entry.txn!r}) when the store answers again; do not rerun it "
            "blindly",
            transaction=entry.txn,
            entry=entry.seq,
        ) from error
    if found is not None:
        return found.attempt == entry.attempt and not isinstance(found.change, Void)
    # It was settled, and its slot was cleaned up: what HEAD kept of it shows whose it was.
    if passed is None or passed.step is None:
        raise unknown_outcome(entry)
    return passed.shows(entry)


def _finish(
    log: GlobalLog, environment: Environment, read: ReadHead, entry: Entry, places: GuardedPlaces
) -> Decided:
    """Settle our own entry. It is decided, so a store that goes away now cannot undo it."""
    try:
        moved, settled = _complete(log, environment, read, entry, places)
    except LakeVillaError as error:
        raise decided_but_unseen(entry, error) from error
    return Decided(entry, moved, settled)


def decided_but_unseen(entry: Entry, error: LakeVillaError) -> CommitUnknown:
    """The error for an owner that cannot complete its decided entry."""
    if isinstance(error, LakeRecreated):
        return lost_with_its_lake(entry)
    return CommitUnknown(
        f"transaction {entry.txn} is entry {entry.seq} of the global log, but could not be completed by this "
        f"client ({error}): the next client that changes the lake's tables completes it, or rolls it back. "
        f"Do not rerun it; ask lake.outcome({entry.txn!r})",
        transaction=entry.txn,
        entry=entry.seq,
    )
