"""Bring a decided entry to its end: settle it, and move HEAD past it (docs/protocol.md, section 7).

Settling always ends. A table that no client can publish on any more (its log is deleted, cleaned up or
damaged) must not block the lake, and all clients must reach the same outcome, whenever each of them looked at
that table. So the decision that it is out of reach is itself a compare-and-swap: HEAD, still before the
entry, gets a record that gives the table up. From then on the entry counts as refused. A client that
published everything before the table was lost holds an older HEAD: its own move of HEAD fails, it meets the
record and rolls back with the others.
"""

import logging
from collections.abc import Callable

from lakevilla.environment import Environment
from lakevilla.errors import CommitUnknown, Corrupt, InvalidInput
from lakevilla.settle.premise import Overtaken
from lakevilla.settle.publish_walk import OutOfReach
from lakevilla.versions import registry
from lakevilla.versions.commits import Settled
from lakevilla.versions.log import GlobalLog, ReadHead
from lakevilla.versions.records import Entry

logger = logging.getLogger("lakevilla.settle")

SECOND_LOOK_SECONDS = 0.5
"""A table is given up only if a second look, this much later, finds it out of reach as well."""

Settle = Callable[[frozenset[str]], Settled]
"""Settles one entry without the tables at these locations, which are given up. May raise OutOfReach."""


def complete(
    log: GlobalLog, environment: Environment, read: ReadHead, entry: Entry, settle: Settle
) -> tuple[ReadHead, Settled]:
    """HEAD at this entry or beyond it, and the result of the entry. `read` is HEAD before it.

    LakeRecreated if the lake was deleted meanwhile: its entry means nothing to another lake. Corrupt if
    HEAD was set back.
    """
    settled, doubted, lake = None, "", read.head.lake
    while _is_before(read, entry):
        try:
            settled = settle(read.head.given_up)
        except Overtaken as overtaken:
            read, settled = overtaken.read, None
            continue
        except OutOfReach as lost:
            if lost.location == doubted:
                logger.error("entry %d cannot be published on %s: giving it up", entry.seq, lost)
                read = log.give_up(read, lost.location, environment.new_id()) or log.read_head_of(lake)
            else:
                doubted = lost.location
                environment.sleep(SECOND_LOOK_SECONDS)
                read = log.read_head_of(lake)
            continue
        moved = move_head(log, environment, read, entry, settled)
        if moved is not None:
            return moved, settled
        read = log.read_head_of(lake)
    return read, _as_head_says(log, read, entry, settled)


def _is_before(read: ReadHead, entry: Entry) -> bool:
    """Whether HEAD is right before the entry; False if it has come past it."""
    if read.head.seq < entry.seq - 1:
        raise Corrupt(
            f"the lake's HEAD was set back to entry {read.head.seq} while entry {entry.seq} was settled; "
            "restore the newest HEAD.json from a backup",
            entry=read.head.seq,
        )
    return read.head.seq < entry.seq


def give_up(log: GlobalLog, environment: Environment, name: str) -> str:
    """Record, on an operator's word, that a table of the entry after HEAD is lost permanently. Its location.

    InvalidInput if no entry waits to be completed, or if it does not write this table.
    """
    while True:
        read = log.read_head()
        entry = None if read is None else log.read_slot(read.head.seq + 1)
        if read is None or entry is None:
            raise InvalidInput(
                f"table {name!r} cannot be given up: no decided transaction waits for it", table=name
            )
        ref = next((ref for ref in entry.tables if ref.name.casefold() == name.casefold()), None)
        if ref is None:
            named = ", ".join(repr(ref.name) for ref in entry.tables) or "none"
            raise InvalidInput(
                f"table {name!r} cannot be given up: transaction {entry.txn}, which waits to be completed, "
                f"does not write it. It writes: {named}",
                table=name,
                transaction=entry.txn,
            )
        if log.give_up(read, ref.location, environment.new_id()) is not None:
            return ref.location


def move_head(
    log: GlobalLog, environment: Environment, read: ReadHead, entry: Entry, settled: Settled
) -> ReadHead | None:
    """HEAD after the entry was settled; None if another client replaced it first."""
    head = registry.apply(read.head, entry, settled, environment.new_id())
    return log.replace_head(read, head, entry, settled.published)


def _as_head_says(log: GlobalLog, read: ReadHead, entry: Entry, settled: Settled | None) -> Settled:
    """The result of an entry that another client moved HEAD past: as HEAD records it, if that differs from
    what we found. It does if a table was given up after we had published on it."""
    step = log.step_of(read, entry.seq)
    told_torn = frozenset() if step is None else step.added.get("torn", frozenset())
    if settled is not None and (
        step is None or (step.published, told_torn) == (settled.published, settled.torn)
    ):
        return settled
    if step is None or step.txn != entry.txn:
        raise CommitUnknown(
            f"the outcome of transaction {entry.txn} is unknown: it was entry {entry.seq} of the global log, "
            "which has expired. Look at the data before you run it again",
            transaction=entry.txn,
            entry=entry.seq,
        )
    moved = step.maps.get("versions", {}).items()
    versions = {location: version for location, version in moved if version is not None}
    return Settled(step.published, versions, told_torn)
