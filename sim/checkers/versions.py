"""The versions of a table as its writes tell them: their rows, and when each was the newest."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from sim.checkers.delta import LOG_ENTRY, data_key, live_files, parse_commit, parse_rows
from sim.checkers.effects import Row, bag
from sim.checkers.history import Operation

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
    """The rows of one version, when it was published, and by which of our transactions, if by one."""

    at: float
    txn: str | None
    rows: list[Row]
    bag: Bag


def table_versions(writes: Iterable[TimedWrite], root: str) -> list[Version]:
    """All versions of a table, from 0 on. Data files that are missing hold no rows here: another check."""
    objects: dict[str, bytes] = {}
    published: dict[int, float] = {}
    for write in writes:
        if write.data is None or not write.key.startswith(f"{root}/"):
            continue
        entry = LOG_ENTRY.match(write.key)
        if entry and entry["root"] == root:
            published.setdefault(int(entry["version"]), write.at)
            objects.setdefault(write.key, write.data)
        else:
            objects[write.key] = write.data
    commits = []
    versions: list[Version] = []
    parsed: dict[str, list[Row]] = {}
    while len(versions) in published:
        key = f"{root}/_delta_log/{len(versions):020d}.json"
        commits.append(parse_commit(len(versions), objects[key]))
        rows: list[Row] = []
        for path in live_files(commits):
            if path not in parsed:
                data = objects.get(data_key(root, path))
                parsed[path] = [] if data is None else parse_rows(data)
            rows.extend(parsed[path])
        ours = commits[-1].info.get("lakevilla") or {}
        versions.append(Version(published[len(versions)], ours.get("txn"), rows, bag(rows)))
    return versions


def newest_during(op: Operation, versions: Sequence[Version]) -> tuple[int, int]:
    """The first and the last version that were the newest while the operation ran."""
    times = [version.at for version in versions]
    return max(bisect_right(times, op.looks_from) - 1, 0), bisect_right(times, op.completed) - 1
