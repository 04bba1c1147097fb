"""The versions of a table as its writes tell them: their rows, and when each was the newest."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from sim.checkers.history import Operation
from sim.checkers.tables.commits import Place, rows_of
from sim.checkers.tables.effects import Row, bag
from sim.checkers.tables.logs import new_log, place_of

Bag = list[tuple[tuple[str, str], ...]]


class TimedWrite(Protocol):
    """What this checker wants to know of a write."""

    @property
    def at(self) -> float: ...
    @property
    def key(self) -> str: ...
    @property
    def data(self) -> bytes | None: ...


@dataclass(frozen=True)
class Version:
    """The rows of one version, when it was published, and by which of our transactions, if by one.

    `is_made` is False for what comes before the first version of a table that begins with a later number.
    """

    at: float
    txn: str | None
    rows: list[Row]
    bag: Bag
    is_made: bool = True


def table_versions(writes: Iterable[TimedWrite], root: str) -> list[Version]:
    """All versions of a table, from 0 on. Data files that are missing hold no rows here: another check.

    A table that begins with a later number has versions without rows before that, which nobody made.
    """
    objects: dict[str, bytes] = {}
    published: dict[int, tuple[Place, float, bytes]] = {}
    for write in writes:
        if write.data is None or not write.key.startswith(f"{root}/"):
            continue
        place = place_of(write.key)
        if place is not None and place.root == root:
            published.setdefault(place.version, (place, write.at, write.data))
        else:
            objects[write.key] = write.data
    if not published:
        return []
    first, began, _ = published[min(published)]
    log, parsed = new_log(first), dict[str, list[Row]]()
    versions = [Version(began, None, [], [], is_made=False)] * first.version
    while len(versions) in published:
        _, at, data = published[len(versions)]
        commit = log.read(len(versions), data, objects)
        rows: list[Row] = []
        for name, file in log.live.items():
            if name not in parsed:
                parsed[name] = rows_of(file, objects) or []
            rows.extend(parsed[name])
        versions.append(Version(at, commit.ours.get("txn"), rows, bag(rows)))
    return versions


def newest_during(op: Operation, versions: Sequence[Version]) -> tuple[int, int]:
    """The first and the last version that were the newest while the operation ran."""
    times = [version.at for version in versions]
    return max(bisect_right(times, op.looks_from) - 1, 0), bisect_right(times, op.completed) - 1
