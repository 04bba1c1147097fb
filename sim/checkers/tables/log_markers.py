"""Markers in the log of a table (placement `log`): what may happen to an entry, judged from the writes.

Every entry but the first begins as a pending marker. Only its own transaction fills it, and only when no
entry below it is pending; a release leaves it empty, and another client may release it only after the lease
of its owner has expired. What is not pending never changes. No checkpoint covers a pending marker. So at
every moment the whole log is a prefix of the commits, for everybody who knows no markers.

In the log of an Iceberg table, where every version is the whole state, an empty entry shows the state of a
commit below it, and one that was freed may be rewritten to show that of a later one.

What is left when all of that is taken for granted are tables as any other: `without_markers` gives the
writes as if every entry had been created once, by the commit that it became.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sim.checkers.tables import delta, iceberg
from sim.checkers.tables.commits import Place
from sim.checkers.tables.logs import entry_key, place_of, told
from sim.world.bucket import Write

PENDING, FREED, FILLED = "pending", "freed", "filled"


@dataclass(frozen=True)
class _Entry:
    """`shows` is the version whose state a marker of an Iceberg table shows, `content` what others see."""

    state: str
    txn: str | None
    client: str
    at: float
    shows: int | None = None
    content: Any = None


_Entries = dict[tuple[str, int], _Entry]


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
    entries: _Entries = {}
    violations: list[str] = []
    for write in writes:
        place, checkpoint = place_of(write.key), delta.CHECKPOINT.match(write.key)
        if place is not None:
            after = None if write.data is None else _parse(write, place)
            problem = _wrong(entries, place, after, write, lease_seconds)
            if problem is not None:
                violations.append(f"{write.client}: version {place.version} of {place.root} {problem}")
            if after is not None:
                entries[place.root, place.version] = after
        elif checkpoint is not None:
            below = _pending(entries, checkpoint["root"], int(checkpoint["version"]) + 1)
            if below:
                violations.append(f"{write.client}: {write.key} covers the pending markers {below}")
    return violations


def pending_markers(writes: Iterable[Write]) -> list[tuple[str, int]]:
    """The tables and versions of all markers that are pending in the end."""
    return sorted(place for place, entry in _last(writes).items() if entry.state == PENDING)


def hidden_commits(writes: Iterable[Write]) -> list[tuple[str, int]]:
    """The tables and versions of commits that those do not see in the end who go by the greatest number."""
    last, hidden = _last(writes), []
    for root in sorted({root for root, _ in last}):
        newest = max(version for at, version in last if at == root and last[at, version].state == FILLED)
        top = last[root, max(version for at, version in last if at == root)]
        if top.shows is not None and top.shows < newest:
            hidden.append((root, newest))
    return hidden


def without_markers(writes: Sequence[Write]) -> tuple[list[Write], Numbers]:
    """The writes as if there had never been a marker, and the new numbers of the versions."""
    numbers, placed = Numbers(), [(write, place_of(write.key)) for write in writes]
    for write, place in placed:
        if place is not None and _parse(write, place).state == FREED:
            numbers.free(place.root, place.version)
    kept: list[Write] = []
    for write, place in placed:
        checkpoint, hint = delta.CHECKPOINT.match(write.key), iceberg.HINT.match(write.key)
        if place is not None:
            if _parse(write, place).state == FILLED:
                kept.append(_renumbered(write, place, numbers))
        elif checkpoint is not None:
            version = numbers.of(checkpoint["root"], int(checkpoint["version"]))
            key = f"{checkpoint['root']}/_delta_log/{version:020d}.checkpoint.parquet"
            kept.append(replace(write, key=key))
        elif hint is not None and write.data is not None:
            version = numbers.of(hint["root"], int(write.data))
            kept.append(replace(write, data=str(version).encode()))
        else:
            kept.append(write)
    return kept, numbers


def _renumbered(write: Write, place: Place, numbers: Numbers) -> Write:
    """A commit under its number among the commits; Iceberg's metadata tells its own, and those before it."""
    version = numbers.of(place.root, place.version)
    key = entry_key(place.format, place.root, version)
    if place.format == "delta":
        return replace(write, key=key)
    assert write.data is not None, "no client deletes log entries here"
    raw = json.loads(write.data)
    for before in raw["metadata-log"]:
        folder, _, name = before["metadata-file"].rpartition("/v")
        number = numbers.of(place.root, int(name.partition(".")[0]))
        before["metadata-file"] = f"{folder}/v{number}.metadata.json"
    ours = json.loads(raw["properties"][iceberg.OURS])
    raw["properties"][iceberg.OURS] = json.dumps({**ours, "version": version})
    return replace(write, key=key, data=json.dumps(raw).encode())


def _wrong(
    entries: _Entries, place: Place, after: _Entry | None, write: Write, lease_seconds: float
) -> str | None:
    root, version = place.root, place.version
    before = entries.get((root, version))
    if after is None:
        return "is deleted"
    if before is None:
        if not any(at == root for at, _ in entries):
            return None
        return _misleading(entries, place, after) if after.state == PENDING else f"begins {after.state}"
    if before.state == after.state == FREED and after.shows is not None:
        return _misleading(entries, place, after, before.shows)
    if before.state != PENDING:
        return f"was {before.state}, and changes"
    if after.txn != before.txn:
        return f"was held by {before.txn}, and is {after.state} by {after.txn}"
    if after.state == FREED and write.client != before.client and write.at - before.at < lease_seconds:
        return f"is freed {write.at - before.at:.2f} seconds after its owner wrote it"
    below = _pending(entries, root, version)
    if after.state == FILLED and below:
        return f"is filled above the pending markers {below}"
    return _misleading(entries, place, after)


def _misleading(entries: _Entries, place: Place, after: _Entry, than: int | None = None) -> str | None:
    """What is wrong with the state that a marker shows; `than` is the version that it showed before."""
    if after.shows is None:
        return None
    shown = entries.get((place.root, after.shows))
    if shown is None or shown.state != FILLED or after.shows >= place.version:
        return f"shows the state of {after.shows}, which is not a commit below it"
    if shown.content != after.content:
        return f"says that it shows the state of {after.shows}, and shows another"
    if than is not None and after.shows <= than:
        return f"is rewritten and showed {than} before, not less than {after.shows}"
    return None


def _pending(entries: _Entries, root: str, below: int) -> list[int]:
    return [v for (r, v), entry in entries.items() if r == root and v < below and entry.state == PENDING]


def _last(writes: Iterable[Write]) -> _Entries:
    """Every entry as it is in the end."""
    last = {place: write for write in writes if (place := place_of(write.key)) is not None}
    return {(place.root, place.version): _parse(write, place) for place, write in last.items()}


def _parse(write: Write, place: Place) -> _Entry:
    assert write.data is not None, "no client deletes log entries here"
    ours = told(place, write.data)
    state = {True: PENDING, False: FREED, None: FILLED}[ours.get("marker")]
    entry = _Entry(state, ours.get("txn"), write.client, write.at)
    if place.format == "iceberg":
        raw = json.loads(write.data)
        raw["properties"].pop(iceberg.OURS)
        return replace(entry, shows=ours["state_of"] if state != FILLED else None, content=raw)
    if state != FILLED and [set(json.loads(line)) for line in write.data.splitlines()] != [{"commitInfo"}]:
        raise AssertionError(f"a marker does something: {write.data!r}")
    return entry
