"""Bringing tables back to an earlier instant of the lake, in the suite `restores`.

What an instant shows is read before the restore, and is what the restored tables must have then: exactly, so
nothing that other clients committed meanwhile may be left. The restore is one transaction on all its tables.
"""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from lakevilla.errors import LakeVillaError
from lakevilla.travel.past import PastLake
from sim.checkers.history import Operation
from sim.checkers.tables.rows import Change, Work
from sim.outside.acts import read_rows
from sim.outside.session import Obedient
from sim.world.lakes import SimLake, ignore

LAST = 8
"""Of so many of the newest entries one is chosen."""
_OTHER_NAME = {"up": "down", "down": "up"}


@dataclass(frozen=True)
class _Instant:
    """An earlier instant, and what some of its tables show."""

    past: PastLake
    work: Work


def restore(session: Obedient, random: Random, nap: Callable[[], None]) -> None:
    """Restore one to three tables to an instant; sometimes that was looked at in an earlier season."""
    try:
        instant = _choose(session, random)
    except LakeVillaError:
        return
    if instant is None:
        return
    if random.random() < 0.1:
        nap()
    work = instant.work

    def run(op: Operation) -> None:
        lake = session.lake
        assert isinstance(lake, SimLake)

        def begins(txn: str) -> None:
            op.txn = txn

        lake.begins = begins
        try:
            report = lake.restore(at=instant.past, tables=list(work))
        finally:
            lake.begins = ignore
        op.result = report
        for name in [name for name in work if not {name, _OTHER_NAME.get(name, name)} & {*report.restored}]:
            del work[name]

    op = session.perform("", "restore", instant.past.seq, work, run)
    if op.failure == "InvalidInput" and "were deleted, such as" in op.error and _is_kept(session, instant):
        session.notes.problems.append(f"operation {op.number} restores a tagged instant: {op.error}")


def _choose(session: Obedient, random: Random) -> _Instant | None:
    """A tagged instant, or one of the last entries."""
    lake, tags = session.lake, [name for root, name in session.notes.tags if root == session.root]
    if tags and random.random() < 0.5:
        past = lake.at(tag=random.choice(tags))
    else:
        entries = lake.history(limit=LAST)
        if not entries:
            return None
        past = lake.at(seq=random.choice(entries).seq)
    names = [name for name in past.tables() if random.random() < 0.6]
    if {"up", "down"} <= set(names):
        names.remove("up")
    work: Work = {}
    for name in names[:3]:
        work[name] = [Change("restore", 0, 0, read_rows(past.read(name)))]
    return _Instant(past, work) if work else None


def _is_kept(session: Obedient, instant: _Instant) -> bool:
    """Whether vacuum keeps all files of this instant: no client has deleted a folder or cleaned a log."""
    notes = session.notes
    tagged = instant.past.seq in {
        session.lake.at(tag=name).seq for root, name in notes.tags if root == session.root
    }
    return tagged and not any(
        notes.was_deleted(name, 0.0) or notes.was_cleaned(name) for name in instant.work
    )
