"""What a seed of the suite `world` damaged, so that the judges excuse its consequences and nothing else.

An excuse needs a cause that the writes or the notes show: the table that an operation names was torn, its
folder was deleted before the operation ended, or an object of it was deleted by others while the operation
was at work. No excuse reads the text of an error.
"""

from collections.abc import Iterable

from sim.checkers.history import Operation
from sim.checkers.lives.lives import Lives, SentWrite
from sim.checkers.lives.retention import Keeping
from sim.checkers.tables.delta import CHECKPOINT
from sim.checkers.tables.logs import place_of
from sim.outside.plan import DAY
from sim.outside.session import FAR, LAKE, Notes, folders_of

URL = "sim://bucket/"


class Damage:
    """What the checkers found in the writes: folders that were deleted under a client at work, locations that
    some HEAD called torn, transactions whose lake was deleted before they were settled, and versions that
    their clients rolled back at once."""

    def __init__(self, lives: Lives, keeping: Keeping, notes: Notes, writes: Iterable[SentWrite]) -> None:
        self.torn = {_root(location) for location in keeping.torn}
        self._cut_short = keeping.cut_short
        self._spoiled = lives.spoiled
        self._taken_back = [
            (life.root, since, until) for life in lives.lives for since, until in life.taken_back.values()
        ]
        self._notes = notes
        self._deletes = [(write.at, write.client, write.key) for write in writes if write.data is None]

    def is_torn(self, name: str) -> bool:
        return any(is_of(root, name) for root in self.torn)

    def is_spoiled(self, name: str) -> bool:
        return any(is_of(root, name) for root in self._spoiled)

    def may_be_half(self, op: Operation) -> bool:
        """Whether no client could complete what this operation did, or roll it back."""
        return op.txn in self._cut_short or any(map(self.is_torn, op.value))

    def was_deleted(self, op: Operation) -> bool:
        """Whether the folder of a table of this operation was deleted before it ended."""
        return any(self._was_deleted(name, op.completed) for name in _names(op))

    def _was_deleted(self, name: str, until: float) -> bool:
        folders = [folder for at, folder in self._notes.wrecks if at <= until]
        folders += [FAR for at in self._notes.renewals if at <= until]
        return any(folder == LAKE or is_of(folder, name) for folder in folders)

    def explains(self, op: Operation) -> bool:
        """Whether an operation may have met a log that contradicts itself: its table's folder was deleted, a
        version that was published too late for its files was not rolled back yet, or others deleted a part of
        its log while it was at work, or a data file while it slept."""
        if self.was_deleted(op) or self._was_taken_back(op):
            return True
        names, slept = _names(op), op.completed - op.invoked > DAY / 2
        for at, client, key in self._deletes:
            mine = any(key.startswith(f"{folder}") for name in names for folder in folders_of(name))
            if mine and client != op.client and op.invoked <= at <= op.completed and (slept or _is_log(key)):
                return True
        return False

    def _was_taken_back(self, op: Operation) -> bool:
        """Whether a version of one of its tables that was rolled back at once was there while it worked."""
        during = [
            root for root, since, until in self._taken_back if op.invoked <= until and op.completed >= since
        ]
        return any(is_of(root, name) for root in during for name in _names(op))


def _names(op: Operation) -> tuple[str, ...]:
    """The tables that an operation is about; all if it names none."""
    if op.table:
        return (op.table,)
    return tuple(op.value) if isinstance(op.value, dict) and op.value else ("left", "right", "up", FAR)


def _is_log(key: str) -> bool:
    return place_of(key) is not None or CHECKPOINT.match(key) is not None


def _root(location: str) -> str:
    return location.removeprefix(URL) if "://" in location else f"{LAKE}/{location}"


def is_of(root: str, name: str) -> bool:
    """Whether a table of this name may lie there: a name that was used before gets a folder of its own."""
    return any(root == folder or root.startswith(f"{folder}-") for folder in folders_of(name))
