"""Markers in the log of a Delta table (placement `log`): what may happen to an entry, judged from the writes.

Every entry but the first begins as a pending marker. Only its own transaction fills it, and only when no
entry below it is pending; whoever frees it leaves it empty, a stranger only when its owner could have shown
no sign of life for the lease time. What is not pending never changes. No checkpoint covers a pending marker.
So at every moment the whole log is a prefix of the commits, for everybody who knows no markers.

What is left when all of that is taken for granted are tables as any other: `without_markers` gives the
writes as if every entry had been created once, by the commit that it became.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from sim.bucket import Write
from sim.checkers.delta import CHECKPOINT, LOG_ENTRY, log_key, parse_commit

PENDING, FREED, FILLED = "pending", "freed", "filled"


@dataclass(frozen=True)
class _Entry:
    state: str
    txn: str | None
    client: str
    at: float


@dataclass
class Numbers:
    """The version of each commit among the commits alone, by table and version in the log."""

    _freed: dict[str, set[int]] = field(default_factory=dict)

    def free(self, root: str, version: int) -> None:
        self._freed.setdefault(root, set()).add(version)

    def of(self, root: str, version: int) -> int:
        return version - sum(freed < version for freed in self._freed.get(root, ()))


def check_log_markers(writes: Iterable[Write], lease_seconds: float) -> list[str]:
    """All violations, in the order in which they happened."""
    entries: dict[tuple[str, int], _Entry] = {}
    violations: list[str] = []
    for write in writes:
        entry, checkpoint = LOG_ENTRY.match(write.key), CHECKPOINT.match(write.key)
        if entry is not None:
            place = (entry["root"], int(entry["version"]))
            after = None if write.data is None else _parse(write, place[1])
            problem = _wrong(entries, place, after, write, lease_seconds)
            if problem is not None:
                violations.append(f"{write.client}: version {place[1]} of {place[0]} {problem}")
            if after is not None:
                entries[place] = after
        elif checkpoint is not None:
            below = _pending(entries, checkpoint["root"], int(checkpoint["version"]) + 1)
            if below:
                violations.append(f"{write.client}: {write.key} covers the pending markers {below}")
    return violations


def pending_markers(writes: Iterable[Write]) -> list[tuple[str, int]]:
    """The tables and versions of all markers that are pending in the end."""
    last = {(m["root"], int(m["version"])): w for w in writes if (m := LOG_ENTRY.match(w.key)) is not None}
    return sorted(place for place, write in last.items() if _parse(write, place[1]).state == PENDING)


def without_markers(writes: Sequence[Write]) -> tuple[list[Write], Numbers]:
    """The writes as if there had never been a marker, and what became of the numbers."""
    numbers = Numbers()
    for root, version, state in _states(writes):
        if state == FREED:
            numbers.free(root, version)
    kept: list[Write] = []
    for write in writes:
        entry, checkpoint = LOG_ENTRY.match(write.key), CHECKPOINT.match(write.key)
        if entry is not None:
            version = int(entry["version"])
            if _parse(write, version).state == FILLED:
                key = log_key(entry["root"], numbers.of(entry["root"], version))
                kept.append(replace(write, key=key))
        elif checkpoint is not None:
            version = numbers.of(checkpoint["root"], int(checkpoint["version"]))
            key = f"{checkpoint['root']}/_delta_log/{version:020d}.checkpoint.parquet"
            kept.append(replace(write, key=key))
        else:
            kept.append(write)
    return kept, numbers


def _states(writes: Iterable[Write]) -> Iterable[tuple[str, int, str]]:
    for write in writes:
        entry = LOG_ENTRY.match(write.key)
        if entry is not None:
            yield entry["root"], int(entry["version"]), _parse(write, int(entry["version"])).state


def _wrong(
    entries: dict[tuple[str, int], _Entry],
    place: tuple[str, int],
    after: _Entry | None,
    write: Write,
    lease_seconds: float,
) -> str | None:
    before, (root, version) = entries.get(place), place
    if after is None:
        return "is deleted"
    if before is None:
        return None if version == 0 or after.state == PENDING else f"begins {after.state}"
    if before.state != PENDING:
        return f"was {before.state}, and changes"
    if after.txn != before.txn:
        return f"was held by {before.txn}, and is {after.state} by {after.txn}"
    if after.state == FREED and write.client != before.client and write.at - before.at < lease_seconds:
        return f"is freed {write.at - before.at:.2f} seconds after its owner wrote it"
    below = _pending(entries, root, version)
    return f"is filled above the pending markers {below}" if after.state == FILLED and below else None


def _pending(entries: dict[tuple[str, int], _Entry], root: str, below: int) -> list[int]:
    return [v for (r, v), entry in entries.items() if r == root and v < below and entry.state == PENDING]


def _parse(write: Write, version: int) -> _Entry:
    assert write.data is not None, "nobody deletes log entries here"
    ours = parse_commit(version, write.data).ours
    state = {True: PENDING, False: FREED, None: FILLED}[ours.get("marker")]
    if state != FILLED and [set(json.loads(line)) for line in write.data.splitlines()] != [{"commitInfo"}]:
        raise AssertionError(f"a marker does something: {write.data!r}")
    return _Entry(state, ours.get("txn"), write.client, write.at)
