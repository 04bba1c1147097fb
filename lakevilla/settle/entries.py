"""Deciding an entry of the global log, and carrying out what it decided (modules 4.1 and 4.2).

The create of slot HEAD + 1 decides; then the entry is settled (its tables are published) and HEAD is
replaced, which makes it visible. The owner and whoever finds an unsettled entry run this same code. That is
safe at any moment and any number of times: each publish is a create that is recognised by its attempt, so
its result is fixed by the first who reached it, and HEAD after an entry is a pure function of that result.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from lakevilla.environment import Environment
from lakevilla.errors import CommitUnknown, Corrupt, Unavailable
from lakevilla.formats.port import Snapshot, Table
from lakevilla.model import Notice, TableRef
from lakevilla.settle.commits import CommitSettler
from lakevilla.store.port import Ambiguous, Created, Exists
from lakevilla.versions import registry
from lakevilla.versions.commits import Commit, Settled
from lakevilla.versions.log import GlobalLog, ReadHead
from lakevilla.versions.records import CreateTable, DropTable, Entry, Head, RenameTable

logger = logging.getLogger("lakevilla.settle")

HELP_AFTER_SECONDS = 0.05
"""Whoever finds an unsettled entry first gives its owner this long, and a random time more."""


OpenTable = Callable[[TableRef], Table]


@dataclass(frozen=True, slots=True)
class Decided:
    """An entry that is settled, and HEAD as it was left."""

    entry: Entry
    read: ReadHead
    settled: Settled


def decide_entry(
    log: GlobalLog, environment: Environment, propose: Callable[[Head], Entry], open_table: OpenTable
) -> Decided:
    """Bring one entry into the global log and settle it.

    `propose` makes the entry for a given HEAD, and raises if it makes no sense there; it is called
    again whenever another entry came first.
    """
    read = log.read_head() or log.first_head()
    while True:
        entry = propose(read.head)
        if _create(log, entry):
            return _finish(log, environment, read, entry, open_table)
        read = help_next(log, environment, read, open_table)


def help_next(log: GlobalLog, environment: Environment, read: ReadHead, open_table: OpenTable) -> ReadHead:
    """HEAD beyond the entry that lies in the slot after `read`: moved by its owner, else by us."""
    seq = read.head.seq + 1
    environment.sleep(HELP_AFTER_SECONDS * (1 + environment.random()))
    now = _read(log)
    if now.head.seq >= seq:
        return now
    entry = log.read_slot(seq)
    if entry is None:
        return now
    logger.info("settling entry %d of transaction %s, whose owner did not", seq, entry.txn)
    return _move(log, environment, now, entry, settle(now.head.lake, entry, environment, open_table))


def settle(lake: str, entry: Entry, environment: Environment, open_table: OpenTable) -> Settled:
    """Publish what the entry decided."""
    match entry.change:
        case CreateTable(table=ref, first=first):
            return Settled(open_table(ref).publish_first(first.encode(), entry.attempt))
        case DropTable(table=ref, base=base) | RenameTable(table=ref, base=base) if base is not None:
            notice = Notice(lake, entry.seq, dropped=isinstance(entry.change, DropTable))
            open_table(ref).publish_notice(base, notice, entry.txn, entry.attempt)
            return Settled(True)
        case Commit() as commit:
            settler = CommitSettler(
                entry.seq, entry.txn, entry.attempt, environment, partial(_open_at, open_table)
            )
            return settler.settle(commit)[0]
        case _:
            return Settled(True)


def _open_at(open_table: OpenTable, ref: TableRef, version: int) -> tuple[Table, Snapshot]:
    table = open_table(ref)
    return table, table.at_version(version)


def _create(log: GlobalLog, entry: Entry) -> bool:
    """Whether this entry now holds its slot."""
    try:
        result = log.create_slot(entry)
    except Ambiguous as error:
        raise CommitUnknown(
            f"the store did not say whether transaction {entry.txn} was written as entry {entry.seq} of the "
            "global log: look at lake.tables() once the store answers again, and do not rerun blindly"
        ) from error
    match result:
        case Created():
            return True
        case Exists():
            return False


def _finish(
    log: GlobalLog, environment: Environment, read: ReadHead, entry: Entry, open_table: OpenTable
) -> Decided:
    """Settle our own entry. It is decided, so a store that goes away now cannot undo it."""
    try:
        settled = settle(read.head.lake, entry, environment, open_table)
        return Decided(entry, _move(log, environment, read, entry, settled), settled)
    except Unavailable as error:
        raise CommitUnknown(
            f"transaction {entry.txn} is entry {entry.seq} of the global log, but the store went away before "
            "it was visible: the next client that changes the lake's tables completes it; do not rerun it"
        ) from error


def _move(
    log: GlobalLog, environment: Environment, read: ReadHead, entry: Entry, settled: Settled
) -> ReadHead:
    head = registry.apply(read.head, entry, settled, environment.new_id())
    return log.replace_head(read, head) or _read(log)


def _read(log: GlobalLog) -> ReadHead:
    read = log.read_head()
    if read is None:
        raise Corrupt("the lake's HEAD has vanished: restore _lakevilla/global/HEAD.json from a backup")
    return read
